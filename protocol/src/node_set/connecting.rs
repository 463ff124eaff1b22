//! The first attempts of a new client wait for its connections. The time to open connections counts
//! neither against the attempt, because its T1 has not been read, nor against the node timeout,
//! because no command has been sent.

use super::NodeSet;
use crate::command::LockId;
use crate::link::Link;
use crate::time::BootInstant;

impl NodeSet {
    /// Makes the first attempt of `lock` due: at once, or as soon as a majority of the nodes is
    /// connected, can no longer be, or has had its connect timeout.
    pub(super) fn first_attempt_is_due(&mut self, lock: LockId, now: BootInstant) {
        if !self.lacks_first_connections() {
            return self.attempt_is_due(lock, now);
        }
        self.connect(now);
        let patience = self.links.iter().map(Link::connect_timeout).max().unwrap_or_default();
        let machine = self.lock_mut(lock).expect("it is due");
        machine.put_off(now.after(patience));
        let timeout = machine.poll_timeout(now);
        self.timers.arm(lock.slot, timeout);
        self.connecting.push(lock);
    }

    /// Makes waiting first attempts due, if the change of a connection allows it.
    #[inline]
    pub(super) fn look_for_connections(&mut self, now: BootInstant) {
        if !self.connecting.is_empty() && !self.lacks_first_connections() {
            self.first_attempts_are_due(now);
        }
    }

    #[cold]
    fn first_attempts_are_due(&mut self, now: BootInstant) {
        for lock in core::mem::take(&mut self.connecting) {
            if self.lock_mut(lock).is_some_and(|it| it.connections_ready()) {
                self.timers.arm(lock.slot, None);
                self.attempt_is_due(lock, now);
            }
        }
    }

    /// Returns true if fewer than a majority are connected, and a majority will be if all first
    /// connections that are being opened succeed.
    fn lacks_first_connections(&self) -> bool {
        let open = self.links.iter().filter(|link| link.is_open()).count();
        let opening = self.links.iter().filter(|link| link.opens_first()).count();
        open < self.nodes.quorum() && open + opening >= self.nodes.quorum()
    }
}
