//! Getters of [`NodeSet`].

use core::time::Duration;

use super::NodeSet;
use crate::command::{LockId, ResourceId};
use crate::link::Link;
use crate::lock::{Lock, LostReason, Phase, Votes};
use crate::quorum::{MAX_NODES, NodeCount, NodeIndex};
use crate::restart::Standing;
use crate::time::BootInstant;
use crate::token::Token;

impl NodeSet {
    /// Returns the number of configured nodes.
    #[must_use]
    #[inline]
    pub fn nodes(&self) -> NodeCount {
        self.nodes
    }

    /// Checks that the lease of `lock` has more than `need` left at `now`.
    ///
    /// # Errors
    ///
    /// Returns the reason if it has not. Without a lease the reason is
    /// [`LostReason::DeadlinePassed`].
    pub fn check(&self, lock: LockId, need: Duration, now: BootInstant) -> Result<(), LostReason> {
        let left =
            self.lock(lock).map_or(Err(LostReason::DeadlinePassed), |it| it.remaining(now))?;
        if left > need { Ok(()) } else { Err(LostReason::DeadlinePassed) }
    }

    /// Returns the nodes that have the key of `lock`, and those that may have it; `None` without a
    /// lease that is alive at `now`.
    #[must_use]
    pub fn votes(&self, lock: LockId, now: BootInstant) -> Option<Votes> {
        self.lock(lock).filter(|it| it.remaining(now).is_ok()).map(Lock::votes)
    }

    /// As [`NodeSet::votes`], but `None` also while the lease is too young to be watched.
    #[must_use]
    pub fn watched_votes(&self, lock: LockId, now: BootInstant) -> Option<Votes> {
        let is_watched = self.lock(lock).is_some_and(Lock::is_watched);
        if is_watched { self.votes(lock, now) } else { None }
    }

    /// Returns true if a majority of the nodes is confirmed to have the key of `lock`.
    #[must_use]
    pub fn is_confirmed(&self, lock: LockId, now: BootInstant) -> bool {
        let votes = self.votes(lock, now);
        votes.is_some_and(|votes| votes.confirmed.len() >= self.nodes.quorum())
    }

    /// Returns the deadline of the lease of `lock`; `None` while it has no lease.
    #[must_use]
    pub fn deadline(&self, lock: LockId) -> Option<BootInstant> {
        let lock = self.lock(lock)?;
        matches!(lock.phase(), Phase::Held { .. }).then(|| lock.deadline())
    }

    /// Returns the longest of the recent round trips to `node`; zero before the first one.
    #[must_use]
    pub fn round_trip(&self, node: NodeIndex) -> Duration {
        self.links[node.get()].round_trip()
    }

    /// Returns the round trip within which a majority of the nodes has replied lately. Replies
    /// after the node timeout do not count.
    pub(super) fn quorum_round_trip(&self) -> Duration {
        let mut all = [Duration::ZERO; MAX_NODES];
        for (place, link) in self.links.iter().enumerate() {
            all[place] = link.round_trip().min(link.node_timeout());
        }
        all[..self.links.len()].sort_unstable();
        all[self.nodes.quorum() - 1]
    }

    /// Returns the token of the current attempt of `lock`.
    #[must_use]
    pub fn token(&self, lock: LockId) -> Option<Token> {
        self.lock(lock).map(Lock::token)
    }

    /// Returns the instant since which the votes of `node` count; `None` while they do not.
    #[must_use]
    #[inline]
    pub fn eligible_from(&self, node: NodeIndex) -> Option<BootInstant> {
        self.links[node.get()].eligible_from()
    }

    /// Returns the standing of `node` for an attempt that begins at `now`.
    #[must_use]
    pub fn standing(&self, node: NodeIndex, now: BootInstant) -> Standing {
        match self.eligible_from(node) {
            None => Standing::NotKnown,
            Some(from) if from > now => Standing::Quarantined(from.since(now)),
            Some(_) => Standing::Counts,
        }
    }

    /// Returns true if enough nodes are connected and eligible at `now` for an attempt to succeed.
    #[must_use]
    pub fn has_quorum(&self, now: BootInstant) -> bool {
        let counts =
            |&node: &NodeIndex| self.is_open(node) && self.standing(node, now) == Standing::Counts;
        self.nodes.iter().filter(counts).count() >= self.nodes.quorum()
    }

    /// Returns true if commands to `node` can be written.
    #[must_use]
    pub fn is_open(&self, node: NodeIndex) -> bool {
        self.links[node.get()].is_open()
    }

    /// Returns the number of releases owed to `node`.
    #[must_use]
    pub fn owed(&self, node: NodeIndex) -> usize {
        self.links[node.get()].owes()
    }

    /// Calls `mark` with every resource of a use of the lock, of a link's command, or of a release
    /// owed; some resources more than once.
    pub fn for_each_resource(&self, mut mark: impl FnMut(ResourceId)) {
        let locks = self.slots.iter().filter_map(|slot| slot.lock.as_ref());
        locks.for_each(|lock| mark(lock.resource()));
        self.links.iter().for_each(|link| link.for_each_resource(&mut mark));
    }

    /// Returns true if [`NodeSet::for_each_resource`] names `resource`.
    #[cfg(test)]
    pub(crate) fn uses(&self, resource: ResourceId) -> bool {
        let mut used = false;
        self.for_each_resource(|it| used |= it == resource);
        used
    }

    /// Returns true if no answer is awaited from `node` and no release is owed to it.
    #[must_use]
    pub fn is_settled(&self, node: NodeIndex) -> bool {
        self.links[node.get()].is_idle()
    }

    /// Returns true if no answer is awaited from any node and no release is owed to any.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.links.iter().all(Link::is_idle)
    }

    /// Returns true if nothing is left to be polled or routed.
    pub(crate) fn is_drained(&self) -> bool {
        self.touched.is_empty() && self.notes.is_empty() && self.events.is_empty()
    }

    pub(crate) fn link(&self, node: NodeIndex) -> &Link {
        &self.links[node.get()]
    }

    pub(crate) fn locks(&self) -> impl Iterator<Item = Option<&Lock>> {
        self.slots.iter().map(|slot| slot.lock.as_ref())
    }

    pub(crate) fn place_in_line(&self, lock: &Lock) -> Option<usize> {
        self.lines.place_of(lock.resource(), lock.id())
    }
}
