//! The operator's promise about restarts of the nodes.

/// The operator's promise about a node's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RestartGuard {
    /// A restart loses no acknowledged write (`appendfsync always` on an honest disk): every
    /// restart of a master is safe. One that ends a time as a replica is not.
    Durable,
    /// A crashed node stays down for longer than `fleet_max_ttl` plus drift (1 % and 2 ms by
    /// default). The specification calls that "delayed restart".
    DelayedRestart,
    /// No promise. If the data set of a node is young, or its process has changed, its votes do not
    /// count until every lease that it may have forgotten is over.
    #[default]
    Quarantine,
}

impl RestartGuard {
    /// Returns the promise as a word, the one of [`Config`](crate::Config): `durable`,
    /// `delayed-restart` or `quarantine`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Durable => "durable",
            Self::DelayedRestart => "delayed-restart",
            Self::Quarantine => "quarantine",
        }
    }

    /// Returns the promise with this word.
    pub(crate) fn of(word: &str) -> Option<Self> {
        let all = [Self::Durable, Self::DelayedRestart, Self::Quarantine];
        all.into_iter().find(|guard| guard.as_str() == word)
    }
}

impl From<RestartGuard> for redlock_protocol::RestartGuard {
    fn from(guard: RestartGuard) -> Self {
        match guard {
            RestartGuard::Durable => Self::Durable,
            RestartGuard::DelayedRestart => Self::DelayedRestart,
            RestartGuard::Quarantine => Self::Quarantine,
        }
    }
}
