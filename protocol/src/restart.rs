//! Eligibility of nodes to vote: the quarantine of nodes that may have forgotten keys.

use core::time::Duration;

use super::digest::Digest;
use super::time::BootInstant;
use super::validity::Drift;

/// The identity of one run of a server process (`run_id` of `INFO server`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RunId(pub [u8; 20]);

/// A node's answer to [`Op::Introduce`](super::Op::Introduce): given at the start of every
/// connection, and whenever the node is asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Introduction {
    /// The run of the server process that answered.
    pub run_id: RunId,
    /// Uptime of that process, in whole seconds.
    pub uptime: Duration,
    /// True if the server calls itself a master.
    pub is_master: bool,
    /// Replication history (`master_replid`) of a server that continues another one's
    /// (`second_repl_offset`): it took over from its master at some time, or has loaded the data of a
    /// master that had replicas. It may lack keys that its uptime says nothing about.
    pub succession: Option<Digest>,
    /// The canary's content; `None` if the node does not let the client read or write a canary.
    pub canary: Option<Canary>,
}

/// Present content of the key that the fleet's clients keep in the node's own data set. A client
/// writes it when it is missing, and anew when it does not fit the server any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Canary {
    /// Incarnation of the data set: changes with every loss of all keys.
    pub memory: Digest,
    /// Replication history (`master_replid`) of the data set when the canary was written; changes
    /// when a server is demoted and promoted.
    pub history: Digest,
    /// Time since the canary was written, by the node's clock.
    pub age: Duration,
}

/// The operator's promise about a node's data set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RestartGuard {
    /// A restart loses no acknowledged write (`appendfsync always` on an honest disk): every
    /// restart of a master is safe. One that ends a time as a replica is not.
    Durable,
    /// A crashed node stays away for longer than the fleet's longest TTL, with 1 % and 2 ms for
    /// drift (specification, "delayed restart").
    DelayedRestart,
    /// No promise: a node whose data set is young, or whose process has changed, does not vote
    /// until every lease that it may have forgotten is over.
    #[default]
    Quarantine,
}

/// Standing of a node: its votes count, or why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Votes count.
    Counts,
    /// Votes do not count: the node has not introduced itself, must do so again, or is a replica.
    NotKnown,
    /// Votes will count after this long: the node may have forgotten leases.
    Quarantined(Duration),
}

/// Part of an uptime in whole seconds that is not trusted.
const UPTIME_SLACK: Duration = Duration::from_secs(2);

/// The last introduction, and the eligibility that resulted from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) run_id: RunId,
    pub(crate) is_master: bool,
    /// Memory and history of the last canary read; kept when the node stops letting the client read
    /// it.
    pub(crate) memory: Option<(Digest, Digest)>,
    pub(crate) succession: Option<Digest>,
    /// Start of eligibility after that introduction, whatever the node has refused since; of a
    /// replica, the start when it was last a master.
    pub(crate) from: Option<BootInstant>,
}

/// Change in a node's data set between its last introduction and a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    /// The same process, and no acknowledged write is known to be lost.
    Same,
    /// Another process; the data set is the same, or there is no canary to compare.
    Restarted,
    /// All keys, or an unknown part of them, are lost.
    Forgot { restarted: bool },
}

/// Returns how long a node that may have forgotten keys does not vote.
pub fn quarantine(fleet_max_ttl: Duration, drift: Drift) -> Duration {
    fleet_max_ttl.saturating_add(drift.of(fleet_max_ttl))
}

/// Computes from when a node's votes count. The knowledge of the node survives connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Eligibility {
    guard: RestartGuard,
    quarantine: Duration,
    fleet_max_ttl: Duration,
    known: Option<Known>,
    /// `None`: never, as far as is known. `lost_until` can put it off.
    from: Option<BootInstant>,
    /// End of the quarantine for lost keys that no canary has explained.
    lost_until: BootInstant,
    /// The last introduction was that of another process than the one before.
    has_restarted: bool,
}

impl Eligibility {
    /// Creates the state for an unknown node. `fleet_max_ttl` is the longest TTL that any client of
    /// the nodes uses.
    #[must_use]
    pub fn new(guard: RestartGuard, fleet_max_ttl: Duration, drift: Drift) -> Self {
        let quarantine = quarantine(fleet_max_ttl, drift);
        let (lost_until, has_restarted) = (BootInstant::ZERO, false);
        Self {
            guard,
            quarantine,
            fleet_max_ttl,
            known: None,
            from: None,
            lost_until,
            has_restarted,
        }
    }

    /// Records an introduction whose reply was read at `now`.
    pub fn introduced(&mut self, introduction: Introduction, now: BootInstant) {
        let Introduction { run_id, is_master, succession, canary, .. } = introduction;
        let from = match self.known {
            None => is_master.then(|| self.first_from(introduction, now)),
            // A quarantine outlasts the time as a replica.
            Some(known) if !is_master => known.from,
            Some(known) => {
                let before = known.from.unwrap_or(BootInstant::ZERO);
                Some(match (self.guard, known.news_in(introduction)) {
                    (_, News::Same)
                    | (RestartGuard::Durable | RestartGuard::DelayedRestart, News::Restarted)
                    // DelayedRestart: the operator has promised to wait out the restart.
                    | (RestartGuard::DelayedRestart, News::Forgot { restarted: true }) => before,
                    (RestartGuard::Quarantine, News::Restarted) | (_, News::Forgot { .. }) => {
                        now.after(self.quarantine)
                    }
                })
            }
        };
        let memory = canary.map(|it| (it.memory, it.history));
        let memory = memory.or(self.known.and_then(|it| it.memory));
        self.has_restarted = self.known.is_some_and(|known| known.run_id != run_id);
        self.known = Some(Known { run_id, is_master, memory, succession, from });
        self.from = from.filter(|_| is_master);
    }

    /// Returns from when a node counts at this client's first contact. The client has observed
    /// nothing, so a promise is believed. Without a promise, the canary's age proves for how long
    /// nothing was lost; without a canary, the uptime proves how long ago the last restart was, but
    /// nothing of a server that took over from another one.
    fn first_from(&self, introduction: Introduction, now: BootInstant) -> BootInstant {
        let proven = match introduction.canary {
            _ if self.guard != RestartGuard::Quarantine => self.quarantine,
            Some(canary) => canary.age,
            None if introduction.succession.is_some() => Duration::ZERO,
            None => {
                let credit = introduction.uptime.saturating_sub(UPTIME_SLACK);
                if credit >= self.fleet_max_ttl { self.quarantine } else { credit }
            }
        };
        let left = self.quarantine.saturating_sub(proven);
        if left.is_zero() { BootInstant::ZERO } else { now.after(left) }
    }

    /// Records that the node refused to introduce itself at `now`. Under `Quarantine` it counts as
    /// changed, because it may be another process; so does a former replica under any promise, and a
    /// node whose canary the client has read: a full memory refuses only to set a canary that is gone.
    /// The known process stays on record: the next introduction is compared with it, not believed as
    /// at first contact.
    pub fn refused(&mut self, now: BootInstant) {
        let may_have_changed = match self.known {
            _ if self.guard == RestartGuard::Quarantine => true,
            Some(known) => !known.is_master || known.memory.is_some(),
            None => false,
        };
        let before = self.known.and_then(|it| it.from).unwrap_or(BootInstant::ZERO);
        self.from = Some(if may_have_changed { now.after(self.quarantine) } else { before });
    }

    /// Records at `now` that the node has reported lost keys, and has not shown a canary since. These
    /// may have been all leases, whatever the guard promises, and no later introduction disproves it.
    pub(crate) fn forgot(&mut self, now: BootInstant) {
        self.lost_until = now.after(self.quarantine);
    }

    /// Records that the node serves no requests for now: it is loading its data, or is a replica.
    pub(crate) fn stopped_serving(&mut self) {
        self.from = None;
    }

    /// Returns the end of the quarantine for lost keys that no canary has explained.
    pub(crate) fn lost_until(&self) -> BootInstant {
        self.lost_until
    }

    /// Returns true if the last introduction was that of another process than the one before.
    pub(crate) fn has_restarted(&self) -> bool {
        self.has_restarted
    }

    /// Returns the last introduction.
    pub(crate) fn known(&self) -> Option<Known> {
        self.known
    }

    /// Returns the instant from which attempts may count the node; `None` while there is none.
    #[inline]
    #[must_use]
    pub fn from(&self) -> Option<BootInstant> {
        self.from.map(|from| from.max(self.lost_until))
    }
}

impl Known {
    /// Compares a new introduction with this one. The data set is the same only if the canary is
    /// the same *and* belongs to the same history: a server that was refilled by its own former
    /// replica has the old canary. Without canaries to compare, a new succession shows that. A server that has been a replica has held another server's keys
    /// since, and a restart does not bring its own back.
    fn news_in(&self, introduction: Introduction) -> News {
        let restarted = self.run_id != introduction.run_id;
        let canaries = self.memory.zip(introduction.canary);
        let is_other = canaries.is_some_and(|((memory, _), canary)| memory != canary.memory);
        let is_elsewhere = match canaries {
            Some(((_, history), canary)) => history != canary.history,
            None => introduction.succession.is_some_and(|it| Some(it) != self.succession),
        };
        if is_other || !self.is_master || !restarted && is_elsewhere {
            News::Forgot { restarted }
        } else if restarted {
            News::Restarted
        } else {
            News::Same
        }
    }
}

#[cfg(test)]
mod tests;
