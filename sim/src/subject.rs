//! The lock clients under test.
//!
//! [`RedlockClient`] is this project's client: the production protocol, driven as the tokio shell
//! drives it. Most other subjects are one policy machine with a few settings. A lock that uses
//! another algorithm has a machine of its own. Weaker rules live here; the production client has no
//! switch for them.

mod contract;
mod getset;
mod php;
mod policy;
mod presets;
mod redlock;
mod transport;

pub use contract::{
    Action, CommandKind, Delivered, FreshAttempt, Now, Patience, Profile, Reply, ReplyValue,
    Request, Route, UNNUMBERED, Wanted,
};
pub use getset::GetSetClient;
pub use php::PhpClient;
pub use policy::{
    AfterSet, Asking, Clock, Connect, DecisionPoint, Errors, Expiry, Extending, Fencing, LeaseForm,
    Policy, PolicyClient, Quorum, ReleaseTo, Settings, TokenFrom, Unlock,
};
pub use presets::{Kind, kind};
pub use redlock::{RedlockClient, token_of};
pub(crate) use redlock::{lost, settlement};

use lock_judge::history::{ClockKind, Refusal};
use lock_judge::ids::ResourceId;
use redlock_protocol::Votes;

/// A lock client in a scenario. The host reports events to the subject and carries out the actions
/// that the subject requests. The calls follow the order of [`redlock_protocol::NodeSet`].
///
/// Several tasks of one process may use the production client at a time; `task` is the number of the
/// task that calls. Every other subject has one task, number 0.
#[derive(Debug)]
pub enum Subject {
    /// The `SETNX`/`GETSET` lock.
    GetSet(Box<GetSetClient>),
    /// The PHP class.
    Php(Box<PhpClient>),
    /// A client that follows a [`Policy`]; most subjects are of this kind.
    Policy(Box<PolicyClient>),
    /// This project's own client.
    Redlock(Box<RedlockClient>),
}

/// Calls the same method on the machine of every variant.
macro_rules! of_machine {
    ($subject:expr, $it:ident => $asked:expr) => {
        match $subject {
            Subject::GetSet($it) => $asked,
            Subject::Php($it) => $asked,
            Subject::Policy($it) => $asked,
            Subject::Redlock($it) => $asked,
        }
    };
}

/// Calls a method of the machine, which the production client does for one of several tasks.
macro_rules! of_task {
    ($subject:expr, $it:ident => $alone:expr, $ours:expr) => {
        match $subject {
            Subject::GetSet($it) => $alone,
            Subject::Php($it) => $alone,
            Subject::Policy($it) => $alone,
            Subject::Redlock($it) => $ours,
        }
    };
}

impl Subject {
    /// Returns the clock with which the subject measures leases.
    #[must_use]
    pub fn lease_clock(&self) -> ClockKind {
        match self {
            Self::GetSet(_) | Self::Php(_) => ClockKind::Wall,
            Self::Policy(it) => it.policy().clock.kind(),
            Self::Redlock(_) => ClockKind::Boot,
        }
    }

    /// Returns the facts that the host needs about the subject.
    #[must_use]
    pub fn profile(&self) -> Profile {
        of_machine!(self, it => it.profile())
    }

    /// Starts to acquire the lock; [`Action::AttemptDue`] follows.
    pub fn acquire(&mut self, task: usize, wanted: Wanted, now: Now) {
        match self {
            Self::GetSet(it) => it.acquire(wanted.patience),
            Self::Php(it) => it.acquire(wanted.patience),
            Self::Policy(it) => it.acquire(wanted.patience),
            Self::Redlock(it) => it.acquire(task, wanted, now),
        }
    }

    /// Begins the due attempt; `now` is T1.
    pub fn begin(&mut self, task: usize, fresh: FreshAttempt, now: Now) {
        of_task!(self, it => it.begin(fresh, now), it.begin(task, fresh, now));
    }

    /// Hands the lease to the application; returns `None` if the subject withdraws the lease.
    pub fn deliver(&mut self, task: usize, now: Now) -> Option<Delivered> {
        of_task!(self, it => it.deliver(now), it.deliver(task, now))
    }

    /// Returns true if the subject still considers the lease alive; the application calls this.
    #[must_use]
    pub fn is_alive(&self, task: usize, now: Now) -> bool {
        of_task!(self, it => it.is_alive(now), it.is_alive(task, now))
    }

    /// Returns the nodes that have the key of the lease, and those that may have it, as far as the
    /// subject watches its lease and knows.
    #[must_use]
    pub fn watched_votes(&self, task: usize, now: Now) -> Option<Votes> {
        match self {
            Self::GetSet(_) | Self::Php(_) | Self::Policy(_) => None,
            Self::Redlock(it) => it.watched_votes(task, now),
        }
    }

    /// Begins to extend the lease to `ttl_ns` from `now`, which is T1 of the extension;
    /// [`Action::ExtensionSettled`] follows.
    ///
    /// # Errors
    ///
    /// If the extension was not begun; the [`Refusal`] gives the reason.
    pub fn extend(&mut self, task: usize, ttl_ns: u64, now: Now) -> Result<(), Refusal> {
        match self {
            Self::GetSet(_) | Self::Php(_) => Err(Refusal::Unsupported),
            Self::Policy(it) => it.extend(ttl_ns, now),
            Self::Redlock(it) => it.extend(task, ttl_ns, now),
        }
    }

    /// Releases the lease, or cancels the acquisition.
    pub fn release(&mut self, task: usize, now: Now) {
        of_task!(self, it => it.release(now), it.release(task, now));
    }

    /// Reports that a dialled connection is open.
    pub fn handle_connected(&mut self, route: Route, now: Now) {
        of_machine!(self, it => it.handle_connected(route, now));
    }

    /// Reports that a connection is closed.
    pub fn handle_closed(&mut self, route: Route, now: Now) {
        of_machine!(self, it => it.handle_closed(route, now));
    }

    /// Reports a node's notice on a connection that the node lost its keys. Only the production
    /// client uses this notice.
    pub fn handle_keys_lost(&mut self, route: Route, now: Now) {
        if let Self::Redlock(it) = self {
            it.handle_keys_lost(route, now);
        }
    }

    /// Reports a node's push on a connection: the key of `resource` has changed. Only the production
    /// client listens for changes.
    pub fn handle_key_changed(&mut self, route: Route, resource: ResourceId, now: Now) {
        if let Self::Redlock(it) = self {
            it.handle_key_changed(route, resource, now);
        }
    }

    /// Passes on the next reply on a connection. Returns false if no action can follow from it.
    pub fn handle_reply(&mut self, route: Route, reply: Reply, now: Now) -> bool {
        match self {
            Self::GetSet(it) => it.handle_reply(route, reply, now),
            Self::Php(it) => it.handle_reply(route, reply, now),
            Self::Policy(it) => it.handle_reply(route, reply, now),
            Self::Redlock(it) => return it.handle_reply(route, reply, now),
        }
        true
    }

    /// Reports that the time from [`Subject::poll_timeout_boot_ns`] has come.
    pub fn handle_timeout(&mut self, now: Now) {
        of_machine!(self, it => it.handle_timeout(now));
    }

    /// Returns the next requested action, and the task that it is for. Actions for connections are
    /// the first task's.
    pub fn poll_action(&mut self) -> Option<(usize, Action)> {
        of_task!(self, it => it.poll_action().map(|action| (0, action)), it.poll_action())
    }

    /// Returns the time, on the boot clock, at which the subject needs [`Subject::handle_timeout`].
    #[must_use]
    pub fn poll_timeout_boot_ns(&self) -> Option<u64> {
        of_machine!(self, it => it.poll_timeout_boot_ns())
    }
}
