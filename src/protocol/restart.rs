//! Which nodes may vote: the quarantine of nodes that may have forgotten keys.

use core::time::Duration;

use super::digest::Digest;
use super::time::BootInstant;
use super::validity::Drift;

/// The identity of one run of a server process (`run_id` of `INFO server`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RunId(pub [u8; 20]);

/// What a node says of itself: at the start of every connection, and whenever it is asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Introduction {
    /// Which run of the process answers.
    pub run_id: RunId,
    /// How long that process has run, in whole seconds.
    pub uptime: Duration,
    /// Whether it calls itself a master.
    pub is_master: bool,
    /// What its canary says; `None` if the node does not let the client read or write one.
    pub canary: Option<Canary>,
}

/// The key that the fleet's clients keep in the node's own memory, as it is now. It was written when a
/// client first missed it, and again whenever it did not fit the server any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Canary {
    /// Which memory it is in: another one after every loss of all keys.
    pub memory: Digest,
    /// The replication history of which the memory was a part when it was written
    /// (`master_replid`): another one in a server that was demoted and promoted.
    pub history: Digest,
    /// How long ago it was written, by the node's clock.
    pub age: Duration,
}

/// What the operator promises of a node's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RestartGuard {
    /// The operator promises that a restart loses no acknowledged write (`appendfsync always` on
    /// an honest disk): every restart of the node is safe.
    Durable,
    /// The operator promises that a crashed node stays away for longer than the fleet's longest
    /// TTL (specification, "delayed restart").
    DelayedRestart,
    /// Nothing is promised: a node whose memory is young, or whose process has changed, does not vote
    /// until every lease that it may have forgotten is over.
    #[default]
    Quarantine,
}

/// Whether a node's votes count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standing {
    /// They do.
    Counts,
    /// They do not: the node has not introduced itself so far, or is a replica.
    NotKnown,
    /// They will, after this long: the node may have forgotten leases.
    Quarantined(Duration),
}

/// How much of an uptime in whole seconds proves nothing.
const UPTIME_SLACK: Duration = Duration::from_secs(2);

/// What the last introduction was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) run_id: RunId,
    pub(crate) is_master: bool,
    /// Of its canary; what the node does not let us read any more stays known.
    pub(crate) memory: Option<(Digest, Digest)>,
    /// From when on it counts, whatever was refused since.
    pub(crate) from: Option<BootInstant>,
}

/// What an introduction says of the node's memory to somebody who knows the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    /// Nothing that the node has acknowledged is known to be lost, and it is the same process.
    Same,
    /// Another process has the memory, or says nothing of it.
    Restarted,
    /// All keys, or an unknown part of them, are gone.
    Forgot { restarted: bool },
}

/// How long a node that may have forgotten keys does not vote.
pub(crate) fn quarantine(fleet_max_ttl: Duration, drift: Drift) -> Duration {
    fleet_max_ttl.saturating_add(drift.of(fleet_max_ttl))
}

/// From which instant on a node's votes count. Keeps what is known of it across connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Eligibility {
    guard: RestartGuard,
    quarantine: Duration,
    fleet_max_ttl: Duration,
    known: Option<Known>,
    /// `None`: never, as far as is known.
    from: Option<BootInstant>,
}

impl Eligibility {
    /// A node of which nothing is known yet. `fleet_max_ttl` is the longest TTL that any client of
    /// the nodes uses.
    #[must_use]
    pub(crate) fn new(guard: RestartGuard, fleet_max_ttl: Duration, drift: Drift) -> Self {
        let quarantine = quarantine(fleet_max_ttl, drift);
        Self { guard, quarantine, fleet_max_ttl, known: None, from: None }
    }

    /// Takes note of what the node said of itself; its answer was read at `now`.
    pub(crate) fn introduced(&mut self, introduction: Introduction, now: BootInstant) {
        let Introduction { run_id, is_master, canary, .. } = introduction;
        self.from = match self.known {
            _ if !is_master => None,
            None => Some(self.first_from(introduction, now)),
            Some(known) => {
                let before = known.from.unwrap_or(BootInstant::ZERO);
                Some(match (self.guard, known.news_in(introduction)) {
                    (_, News::Same)
                    | (RestartGuard::Durable | RestartGuard::DelayedRestart, News::Restarted)
                    // What the operator promised to wait out.
                    | (RestartGuard::DelayedRestart, News::Forgot { restarted: true }) => before,
                    (RestartGuard::Quarantine, News::Restarted) | (_, News::Forgot { .. }) => {
                        now.after(self.quarantine)
                    }
                })
            }
        };
        let memory = canary.map(|it| (it.memory, it.history));
        let memory = memory.or(self.known.and_then(|it| it.memory));
        self.known = Some(Known { run_id, is_master, memory, from: self.from });
    }

    /// From when on a node counts that this client meets for the first time. Nothing was observed,
    /// so a promise is believed; without one it is the canary's age that tells for how long nothing
    /// was lost, or at least the uptime how long it is since the last restart.
    fn first_from(&self, introduction: Introduction, now: BootInstant) -> BootInstant {
        let proven = match introduction.canary {
            _ if self.guard != RestartGuard::Quarantine => self.quarantine,
            Some(canary) => canary.age,
            None => {
                let credit = introduction.uptime.saturating_sub(UPTIME_SLACK);
                if credit >= self.fleet_max_ttl { self.quarantine } else { credit }
            }
        };
        let left = self.quarantine.saturating_sub(proven);
        if left.is_zero() { BootInstant::ZERO } else { now.after(left) }
    }

    /// Takes note that the node refused to introduce itself at `now`: it may be another process, so
    /// it counts as changed. Which process was known stays known: whatever introduces itself next
    /// is compared with it and not believed as at first contact.
    pub(crate) fn refused(&mut self, now: BootInstant) {
        let before = self.known.and_then(|it| it.from);
        self.from = match self.guard {
            RestartGuard::Durable | RestartGuard::DelayedRestart => {
                Some(before.unwrap_or(BootInstant::ZERO))
            }
            RestartGuard::Quarantine => Some(now.after(self.quarantine)),
        };
    }

    /// Takes note that the node serves nobody for now: it loads its data, or is a replica.
    pub(crate) fn stopped_serving(&mut self) {
        self.from = None;
    }

    /// The last introduction.
    #[cfg(any(test, feature = "simulation"))]
    pub(crate) fn known(&self) -> Option<Known> {
        self.known
    }

    /// The instant from which on attempts may count the node; `None` while there is none.
    #[must_use]
    pub(crate) fn from(&self) -> Option<BootInstant> {
        self.from
    }
}

impl Known {
    /// A memory is the same only if it is known by the same canary *and* belongs to the same history: a
    /// server that was filled again by its own former replica has the old canary. And who has been a
    /// replica has had the keys of another server since.
    fn news_in(&self, introduction: Introduction) -> News {
        let restarted = self.run_id != introduction.run_id;
        let canaries = self.memory.zip(introduction.canary);
        let is_other = canaries.is_some_and(|((memory, _), canary)| memory != canary.memory);
        let is_elsewhere = canaries.is_some_and(|((_, history), canary)| history != canary.history);
        if is_other || !restarted && (is_elsewhere || !self.is_master) {
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
