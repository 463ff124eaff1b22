//! Which nodes may vote: the quarantine of nodes that may have forgotten keys.

use core::time::Duration;

use super::time::BootInstant;
use super::validity::Drift;

/// The identity of one run of a server process (`run_id` of `INFO server`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RunId(pub [u8; 20]);

/// What a node says of itself at the start of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Introduction {
    /// Which run of the process answers.
    pub run_id: RunId,
    /// How long that process has run, in whole seconds.
    pub uptime: Duration,
    /// Whether it calls itself a master.
    pub is_master: bool,
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
    /// Nothing is promised: a node whose process is young or has changed does not vote until every
    /// lease that it may have forgotten is over.
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

/// From which instant on a node's votes count. Keeps what is known of it across connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Eligibility {
    guard: RestartGuard,
    quarantine: Duration,
    fleet_max_ttl: Duration,
    known: Option<RunId>,
    /// From when on `known` counts by its last introduction, whatever was refused since.
    known_from: Option<BootInstant>,
    /// `None`: never, as far as is known.
    from: Option<BootInstant>,
}

impl Eligibility {
    /// A node of which nothing is known yet. `fleet_max_ttl` is the longest TTL that any client of
    /// the nodes uses.
    #[must_use]
    pub(crate) fn new(guard: RestartGuard, fleet_max_ttl: Duration, drift: Drift) -> Self {
        let quarantine = fleet_max_ttl.saturating_add(drift.of(fleet_max_ttl));
        Self { guard, quarantine, fleet_max_ttl, known: None, known_from: None, from: None }
    }

    /// Takes note of what the node answered to `INFO` at `now`.
    pub(crate) fn introduced(&mut self, introduction: Introduction, now: BootInstant) {
        let changed = self.known.is_some_and(|known| known != introduction.run_id);
        let first = self.known.is_none();
        self.known = Some(introduction.run_id);
        self.from = match self.guard {
            _ if !introduction.is_master => None,
            RestartGuard::Durable | RestartGuard::DelayedRestart => Some(BootInstant::ZERO),
            RestartGuard::Quarantine if changed => Some(now.after(self.quarantine)),
            RestartGuard::Quarantine if first => {
                let credit = introduction.uptime.saturating_sub(UPTIME_SLACK);
                let old_enough = credit >= self.fleet_max_ttl;
                let left = self.quarantine.saturating_sub(credit);
                Some(if old_enough { BootInstant::ZERO } else { now.after(left) })
            }
            // A replica that has become a master may lack keys: to us it is a new process.
            RestartGuard::Quarantine => Some(self.known_from.unwrap_or(now.after(self.quarantine))),
        };
        self.known_from = self.from;
    }

    /// Takes note that the node refused to introduce itself at `now`: it may be another process, so
    /// it counts as changed. Which process was known stays known: whatever introduces itself next
    /// is compared with it and not believed as at first contact.
    pub(crate) fn refused(&mut self, now: BootInstant) {
        self.from = match self.guard {
            RestartGuard::Durable | RestartGuard::DelayedRestart => Some(BootInstant::ZERO),
            RestartGuard::Quarantine => Some(now.after(self.quarantine)),
        };
    }

    /// The last process that introduced itself.
    #[cfg(any(test, feature = "simulation"))]
    pub(crate) fn known(&self) -> Option<RunId> {
        self.known
    }

    /// The instant from which on that process counts, whatever was refused since.
    #[cfg(any(test, feature = "simulation"))]
    pub(crate) fn known_from(&self) -> Option<BootInstant> {
        self.known_from
    }

    /// The instant from which on attempts may count the node; `None` while there is none.
    #[must_use]
    pub(crate) fn from(&self) -> Option<BootInstant> {
        self.from
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(10);

    fn eligibility(guard: RestartGuard) -> Eligibility {
        Eligibility::new(guard, TTL, Drift::default())
    }

    fn introduction(run: u8, uptime_s: u64, is_master: bool) -> Introduction {
        Introduction { run_id: RunId([run; 20]), uptime: Duration::from_secs(uptime_s), is_master }
    }

    fn at_s(seconds: u64) -> BootInstant {
        BootInstant::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn an_old_master_is_believed_at_first_contact() {
        let mut node = eligibility(RestartGuard::Quarantine);
        assert_eq!(node.from(), None);
        node.introduced(introduction(1, 12, true), at_s(100));
        assert_eq!(node.from(), Some(BootInstant::ZERO));
    }

    #[test]
    fn a_young_master_waits_out_the_longest_lease_and_its_drift() {
        let mut node = eligibility(RestartGuard::Quarantine);
        node.introduced(introduction(1, 2, true), at_s(100));
        assert_eq!(node.from(), Some(at_s(110).after(Duration::from_millis(102))));
    }

    #[test]
    fn an_uptime_is_credited_at_first_contact() {
        let mut node = eligibility(RestartGuard::Quarantine);
        node.introduced(introduction(1, 11, true), at_s(100));
        assert_eq!(node.from(), Some(at_s(101).after(Duration::from_millis(102))), "9 s of 11");
    }

    #[test]
    fn a_changed_run_id_is_quarantined_whatever_its_uptime() {
        let mut node = eligibility(RestartGuard::Quarantine);
        node.introduced(introduction(1, 1_000, true), at_s(100));
        node.introduced(introduction(2, 1_000, true), at_s(200));
        assert_eq!(node.from(), Some(at_s(210).after(Duration::from_millis(102))));
    }

    #[test]
    fn a_reconnection_to_the_same_process_changes_nothing() {
        let mut node = eligibility(RestartGuard::Quarantine);
        node.introduced(introduction(1, 1, true), at_s(100));
        let from = node.from();
        node.introduced(introduction(1, 5, true), at_s(105));
        assert_eq!(node.from(), from);
    }

    #[test]
    fn a_refusal_is_quarantined() {
        let mut node = eligibility(RestartGuard::Quarantine);
        node.introduced(introduction(1, 1_000, true), at_s(100));
        node.refused(at_s(200));
        assert_eq!(node.from(), Some(at_s(210).after(Duration::from_millis(102))));
    }

    #[test]
    fn an_introduction_after_a_refusal_restores_the_vote() {
        let mut node = eligibility(RestartGuard::Quarantine);
        node.introduced(introduction(1, 1, true), at_s(100));
        let from = node.from();
        node.refused(at_s(105));
        node.introduced(introduction(1, 7, true), at_s(106));
        assert_eq!(node.from(), from);
    }

    #[test]
    fn a_refusal_does_not_make_the_next_contact_the_first() {
        let mut node = eligibility(RestartGuard::Quarantine);
        node.introduced(introduction(1, 1_000, true), at_s(100));
        node.refused(at_s(200));
        node.introduced(introduction(2, 1_000, true), at_s(300));
        assert_eq!(node.from(), Some(at_s(310).after(Duration::from_millis(102))));
    }

    #[test]
    fn a_replica_never_votes_even_when_durable() {
        for guard in [RestartGuard::Durable, RestartGuard::Quarantine] {
            let mut node = eligibility(guard);
            node.introduced(introduction(1, 1_000, false), at_s(100));
            assert_eq!(node.from(), None, "{guard:?}");
        }
    }

    #[test]
    fn a_replica_that_becomes_master_is_quarantined() {
        let mut node = eligibility(RestartGuard::Quarantine);
        node.introduced(introduction(1, 1_000, false), at_s(100));
        node.introduced(introduction(1, 1_000, true), at_s(200));
        assert_eq!(node.from(), Some(at_s(210).after(Duration::from_millis(102))));
    }

    #[test]
    fn promises_are_taken_at_their_word() {
        for guard in [RestartGuard::Durable, RestartGuard::DelayedRestart] {
            let mut node = eligibility(guard);
            node.introduced(introduction(1, 0, true), at_s(100));
            node.introduced(introduction(2, 0, true), at_s(200));
            assert_eq!(node.from(), Some(BootInstant::ZERO), "{guard:?}");
        }
    }
}
