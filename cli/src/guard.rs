//! The promise about the nodes' memory, as an option.

use clap::ValueEnum;
use redlock_client::RestartGuard;

/// Promise about the nodes' memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Guard {
    /// No promise: a node that may have forgotten leases does not vote until they are over
    Quarantine,
    /// A restart loses no acknowledged write
    Durable,
    /// A dead node stays away for longer than the fleet's longest TTL; also for servers that were
    /// started just now and have no leases to forget
    DelayedRestart,
}

impl From<Guard> for RestartGuard {
    fn from(guard: Guard) -> Self {
        match guard {
            Guard::Quarantine => Self::Quarantine,
            Guard::Durable => Self::Durable,
            Guard::DelayedRestart => Self::DelayedRestart,
        }
    }
}
