//! The lock clients under test.
//!
//! Ours is the production protocol, driven as the tokio shell drives it. Most others are one policy
//! machine with a few knobs; a lock that is another algorithm has a machine of its own. Weaker rules
//! live here, never as switches in the client.

mod contract;
mod getset;
mod php;
mod policy;
mod presets;
mod redlock;
mod terms;
mod transport;

pub use contract::{
    Action, Ask, Delivered, FreshAttempt, Now, Patience, Profile, Request, Response, Route, Word,
};
pub use getset::GetSetClient;
pub use php::PhpClient;
pub use policy::{
    Asking, Clock, Connect, Errors, Expiry, Extending, Fencing, Lasting, Policy, PolicyClient,
    Quorum, ReleaseTo, Settings, Settling, Then, TokenFrom, Unlock,
};
pub use presets::{Kind, kind};
pub(crate) use redlock::settlement;
pub use redlock::{RedlockClient, token_of};

use crate::history::{ClockKind, Refusal};

/// A lock client in a scenario. The host tells it what happened and does what it asks; the order of
/// calls is that of [`redlock_client::protocol::NodeSet`].
#[derive(Debug)]
pub enum Subject {
    /// The `SETNX`/`GETSET` lock.
    GetSet(Box<GetSetClient>),
    /// The PHP class.
    Php(Box<PhpClient>),
    /// Most others.
    Policy(Box<PolicyClient>),
    /// Ours.
    Redlock(Box<RedlockClient>),
}

/// Asks the machine, whichever it is.
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

impl Subject {
    /// Which clock it measures leases with.
    #[must_use]
    pub fn lease_clock(&self) -> ClockKind {
        match self {
            Self::GetSet(_) | Self::Php(_) => ClockKind::Wall,
            Self::Policy(it) => it.policy().clock.kind(),
            Self::Redlock(_) => ClockKind::Boot,
        }
    }

    /// What the host has to know of it.
    #[must_use]
    pub fn profile(&self) -> Profile {
        of_machine!(self, it => it.profile())
    }

    /// Begins to want the lock; [`Action::AttemptDue`] follows. A subject that can keeps its lease
    /// alive for `keep_alive_ns`.
    pub fn acquire(&mut self, patience: Patience, keep_alive_ns: Option<u64>, now: Now) {
        match self {
            Self::GetSet(it) => it.acquire(patience),
            Self::Php(it) => it.acquire(patience),
            Self::Policy(it) => it.acquire(patience),
            Self::Redlock(it) => it.acquire(patience, keep_alive_ns, now),
        }
    }

    /// Begins the attempt that is due; `now` is T1.
    pub fn begin(&mut self, fresh: FreshAttempt, now: Now) {
        of_machine!(self, it => it.begin(fresh, now));
    }

    /// Hands the lease to the application; `None` if the subject thinks better of it.
    pub fn deliver(&mut self, now: Now) -> Option<Delivered> {
        of_machine!(self, it => it.deliver(now))
    }

    /// The application asks whether the lease is alive.
    #[must_use]
    pub fn is_alive(&self, now: Now) -> bool {
        of_machine!(self, it => it.is_alive(now))
    }

    /// Begins to extend the lease to `ttl_ns` from `now`, which is T1 of the extension;
    /// [`Action::ExtensionSettled`] follows.
    ///
    /// # Errors
    ///
    /// If nothing was begun: why.
    pub fn extend(&mut self, ttl_ns: u64, now: Now) -> Result<(), Refusal> {
        match self {
            Self::GetSet(_) | Self::Php(_) => Err(Refusal::Unsupported),
            Self::Policy(it) => it.extend(ttl_ns, now),
            Self::Redlock(it) => it.extend(ttl_ns, now),
        }
    }

    /// Releases the lease, or stops trying.
    pub fn release(&mut self, now: Now) {
        of_machine!(self, it => it.release(now));
    }

    /// A connection that was dialled is open.
    pub fn handle_connected(&mut self, route: Route, now: Now) {
        of_machine!(self, it => it.handle_connected(route, now));
    }

    /// A connection is gone.
    pub fn handle_closed(&mut self, route: Route, now: Now) {
        of_machine!(self, it => it.handle_closed(route, now));
    }

    /// The node says on a connection that its keys are gone. Only the production client listens.
    pub fn handle_forgot(&mut self, route: Route, now: Now) {
        if let Self::Redlock(it) = self {
            it.handle_forgot(route, now);
        }
    }

    /// The next answer on a connection.
    pub fn handle_response(&mut self, route: Route, response: Response, now: Now) {
        of_machine!(self, it => it.handle_response(route, response, now));
    }

    /// The time that [`Subject::poll_timeout_boot_ns`] named has come.
    pub fn handle_timeout(&mut self, now: Now) {
        of_machine!(self, it => it.handle_timeout(now));
    }

    /// What it asks for next.
    pub fn poll_action(&mut self) -> Option<Action> {
        of_machine!(self, it => it.poll_action())
    }

    /// When it wants [`Subject::handle_timeout`], on the boot clock.
    #[must_use]
    pub fn poll_timeout_boot_ns(&self) -> Option<u64> {
        of_machine!(self, it => it.poll_timeout_boot_ns())
    }
}
