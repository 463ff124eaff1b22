//! The contract by which a run of a plan is judged.

use core::fmt;

use lock_judge::oracle::{Blame, Judgement, Violation};
use lock_judge::scenario::{Checks, OURS, Property, Quantity, Rights, Scenario};
use serde::{Deserialize, Serialize};

use crate::engine::Outcome;
use crate::search::Engine;

use super::assumptions::{Assumption, Assumptions, is_broken_at, may_forget};

/// Largest values for a client of this project while nothing changes: without pushes it attempts at
/// intervals of a tenth of its wait, with pushes it sleeps, and it grows slow to follow a storm of
/// pushes.
const LIMITS: [(Quantity, u64); 3] =
    [(Quantity::PollsInASecond, 12), (Quantity::AttemptsInVain, 2), (Quantity::ReadsInASecond, 40)];

/// Something that the contract rules out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// A client asked more often than it needs.
    Exceeded {
        /// Quantity that counts them.
        quantity: Quantity,
        /// Largest value that the contract allows.
        most: u64,
    },
    /// A property was violated.
    Violated {
        /// The property.
        property: Property,
        /// Causes without their hosts, sorted: `clock`, `amnesia`, …; empty if the client is to
        /// blame.
        causes: Vec<String>,
    },
    /// Two runs of one plan differed.
    Differed,
    /// A run panicked: a bug of the client, or of the simulator.
    Panicked,
}

impl Finding {
    /// Returns a name for files: `PROPERTY-CAUSES`, `QUANTITY`, `differed` or `panicked`.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Violated { property, causes } if causes.is_empty() => {
                format!("{}-none", property.name())
            }
            Self::Violated { property, causes } => {
                format!("{}-{}", property.name(), causes.join("-"))
            }
            Self::Exceeded { quantity, .. } => String::from(quantity.name()),
            Self::Differed => String::from("differed"),
            Self::Panicked => String::from("panicked"),
        }
    }

    /// Returns the violation in `outcome`, a run that shows this finding; `None` if the finding is
    /// no violation of a property.
    #[must_use]
    pub fn violation(&self, outcome: &Outcome) -> Option<Violation> {
        let Self::Violated { property, .. } = self else { return None };
        violations(outcome).find(|(violated, _)| violated == property).map(|(_, it)| it)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Violated { property, causes } if causes.is_empty() => {
                write!(formatter, "`{}` is violated by the client alone", property.name())
            }
            Self::Violated { property, causes } => {
                let causes = causes.join(" and ");
                let why = "although the plan rules that out at this host";
                write!(formatter, "`{}` is violated, blamed on {causes}, {why}", property.name())
            }
            Self::Exceeded { quantity, most } => {
                write!(formatter, "`{}` is more than {most}", quantity.name())
            }
            Self::Differed => formatter.write_str("two runs differ"),
            Self::Panicked => formatter.write_str("a run panics"),
        }
    }
}

/// Returns the violations in `outcome`, a run of `scenario` on `engine`, that neither the assumptions
/// which the scenario breaks nor the steps of the engine explain, and what attempts of clients of this
/// project cost too much.
///
/// A violation is explained if it has a cause, and the scenario breaks the assumption behind each of
/// its causes, at one of the hosts that are blamed for it: of two clocks that are too far apart, one
/// may be within its bounds. Beside a broken assumption, a node may have lost its memory as the
/// assumptions permit: the lease that lost that key had less to lose. What a process does after its
/// last look at the lease, or a write in transit, explains violations about sections and writes alone:
/// no lock prevents them (K1, K7, K10).
#[must_use]
pub fn findings(scenario: &Scenario, engine: Engine, outcome: &Outcome) -> Vec<Finding> {
    let unexplained = violations(outcome)
        .filter(|(_, it)| engine.resolves(it))
        .filter(|(property, it)| !is_explained_in(scenario, *property, it));
    let mut findings: Vec<_> = unexplained
        .map(|(property, it)| Finding::Violated { property, causes: causes(&it) })
        .collect();
    // Of a list with two names of one node, some votes never come, so attempts are split for ever.
    let can_win = || !Assumptions::broken_by(scenario).has(Assumption::Membership);
    let is_ours = || scenario.clients.iter().all(|client| client.subject == OURS);
    // What finds no room is tried again, and so is a node that may only be busy.
    let has_room = scenario.lock.window.is_none();
    let asks_again = scenario.cluster.rights().any(|it| it == Rights::NoInfo);
    let exceeds = |&(quantity, most): &(Quantity, u64)| {
        let is_exceeded = outcome.measured.of(quantity).is_some_and(|value| value > most);
        let is_due = asks_again && quantity == Quantity::AttemptsInVain;
        is_exceeded && !is_due && has_room && can_win() && is_ours()
    };
    let exceeded = LIMITS.into_iter().filter(exceeds);
    findings.extend(exceeded.map(|(quantity, most)| Finding::Exceeded { quantity, most }));
    findings
}

/// Returns the properties that `outcome`, a run of `scenario`, violates for a cause that the
/// assumptions which the scenario breaks explain.
#[must_use]
pub fn explained(scenario: &Scenario, outcome: &Outcome) -> Vec<Property> {
    let explained =
        violations(outcome).filter(|(property, it)| is_explained_in(scenario, *property, it));
    explained.map(|(property, _)| property).collect()
}

fn violations(outcome: &Outcome) -> impl Iterator<Item = (Property, Violation)> {
    Property::ALL.into_iter().filter_map(|property| match outcome.verdicts.of(property) {
        Judgement::Violated(violation) => Some((property, violation)),
        Judgement::Holds | Judgement::Unjudged | Judgement::Vacuous => None,
    })
}

/// Returns true if the protected resource keeps `property` by itself, whatever happens to the lock:
/// an update whose basis has changed is refused, or one of an earlier lease than the resource has seen.
/// Clients of this project have their fencing tokens from an ideal counter.
fn is_kept_by_resource(scenario: &Scenario, property: Property) -> bool {
    match scenario.store.checks {
        Checks::CompareAndSetVersion => property == Property::NoLostUpdate,
        Checks::TokenOnOpenAndWrite => {
            matches!(property, Property::NoLostUpdate | Property::FencedOrder)
                && scenario.clients.iter().all(|client| client.subject == OURS)
        }
        Checks::CompareAndSetOwner | Checks::Nothing | Checks::TokenOnWrite => false,
    }
}

fn is_explained_in(scenario: &Scenario, property: Property, violation: &Violation) -> bool {
    let is_broken = |cause| is_broken_at(scenario, cause);
    let may_forget = |cause| may_forget(scenario, cause);
    !is_kept_by_resource(scenario, property)
        && is_explained(property, violation, is_broken, may_forget)
}

fn is_explained(
    property: Property,
    violation: &Violation,
    is_broken: impl Fn(Blame) -> bool,
    may_forget: impl Fn(Blame) -> bool,
) -> bool {
    let has_broken = violation.blamed.iter().any(&is_broken);
    let excuse = |cause| match Assumption::of(cause) {
        // A release may be lost with the node's memory; the key that returns expires (D10).
        Some(Assumption::Memory) if property == Property::Tidy => true,
        Some(Assumption::Memory) if may_forget(cause) && has_broken => true,
        // Keys live longer where a node's clock was set back (C4).
        Some(Assumption::Clock) if topic(property) == Topic::Leftovers => true,
        Some(assumption) => {
            let mut causes = violation.blamed.iter();
            causes.any(|it| Assumption::of(it) == Some(assumption) && is_broken(it))
        }
        None => topic(property) == Topic::Work,
    };
    !violation.blamed.is_none() && violation.blamed.iter().all(excuse)
}

/// Subject matter of a property.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Topic {
    /// Keys that stay too long.
    Leftovers,
    /// The protocol of the lock, which its client must keep.
    Protocol,
    /// Critical sections and writes. A lock alone cannot keep them.
    Work,
}

const fn topic(property: Property) -> Topic {
    match property {
        Property::DeadlockFree | Property::Tidy => Topic::Leftovers,
        Property::ExclusiveSection
        | Property::FencedOrder
        | Property::NoLostUpdate
        | Property::SectionWithinLease => Topic::Work,
        Property::Continuity
        | Property::FaultTolerant
        | Property::MutualExclusion
        | Property::OwnerOnly
        | Property::SoundGrant
        | Property::SoundLoss
        | Property::SoundRefusal
        | Property::SoundVotes => Topic::Protocol,
    }
}

fn causes(violation: &Violation) -> Vec<String> {
    let mut causes: Vec<_> = violation.blamed.iter().map(Blame::name).collect();
    causes.sort_unstable();
    causes.dedup();
    causes.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lock_judge::history::{AttemptId, HostId};
    use lock_judge::oracle::Blamed;
    use lock_judge::scenario::File;

    fn is_explained_by(property: Property, causes: &[Blame], broken: &[Blame]) -> bool {
        let mut blamed = Blamed::NONE;
        causes.iter().for_each(|cause| blamed.add(*cause));
        let (from_ns, to_ns, first) = (0, 0, AttemptId::default());
        let violation = Violation { from_ns, to_ns, first, second: None, node: None, blamed };
        let may_forget = |cause| cause == Blame::Amnesia(C);
        is_explained(property, &violation, |cause| broken.contains(&cause), may_forget)
    }

    const A: HostId = HostId(0);
    const B: HostId = HostId(1);
    const C: HostId = HostId(2);

    #[test]
    fn a_resource_that_checks_both_ways_keeps_its_data() {
        let kept = |checks: Checks, subject: &str| {
            let text = format!(
                "schema = 1\nname = \"x\"\ntitle = \"t\"\n[[client]]\nid = \"c1\"\n\
                 subject = \"{subject}\"\nsteps = []\n"
            );
            let mut scenario = File::parse("x.toml", &text).expect("valid").scenario().clone();
            scenario.store.checks = checks;
            let is_kept = |it: &Property| is_kept_by_resource(&scenario, *it);
            Property::ALL.into_iter().filter(is_kept).collect::<Vec<_>>()
        };
        let (lost, order) = (Property::NoLostUpdate, Property::FencedOrder);
        assert_eq!(kept(Checks::TokenOnOpenAndWrite, OURS), [lost, order]);
        assert_eq!(kept(Checks::TokenOnOpenAndWrite, "wall-clock-token"), [], "its own tokens");
        assert_eq!(kept(Checks::CompareAndSetVersion, "unique-id"), [lost]);
        assert_eq!(kept(Checks::TokenOnWrite, OURS), [], "F2");
    }

    #[test]
    fn the_client_alone_is_never_excused() {
        for property in Property::ALL {
            assert!(!is_explained_by(property, &[], &[Blame::Clock(A), Blame::Membership]));
        }
    }

    #[test]
    fn a_cause_excuses_if_its_assumption_is_broken() {
        let clock = [Blame::Clock(C)];
        assert!(!is_explained_by(Property::MutualExclusion, &clock, &[]));
        assert!(!is_explained_by(Property::MutualExclusion, &clock, &[Blame::Amnesia(C)]));
        assert!(is_explained_by(Property::MutualExclusion, &clock, &clock));
        let both = [Blame::Clock(C), Blame::Amnesia(B)];
        assert!(!is_explained_by(Property::MutualExclusion, &both, &clock));
    }

    #[test]
    fn a_cause_at_another_host_excuses_nothing_by_itself() {
        let broken = [Blame::Clock(C)];
        assert!(!is_explained_by(Property::MutualExclusion, &[Blame::Clock(A)], &broken));
        let together = [Blame::Clock(A), Blame::Clock(C)];
        assert!(is_explained_by(Property::MutualExclusion, &together, &broken));
    }

    #[test]
    fn a_permitted_loss_excuses_beside_a_broken_assumption() {
        let both = [Blame::Amnesia(C), Blame::Clock(A)];
        assert!(is_explained_by(Property::MutualExclusion, &both, &[Blame::Clock(A)]));
        assert!(!is_explained_by(Property::MutualExclusion, &both, &[]));
        assert!(!is_explained_by(Property::MutualExclusion, &[Blame::Amnesia(C)], &[]));
    }

    #[test]
    fn a_node_may_forget_a_release() {
        let amnesia = [Blame::Amnesia(A)];
        assert!(is_explained_by(Property::Tidy, &amnesia, &[]));
        assert!(!is_explained_by(Property::MutualExclusion, &amnesia, &[]));
        assert!(is_explained_by(Property::DeadlockFree, &[Blame::Clock(A)], &[]));
    }

    #[test]
    fn a_pause_excuses_sections_and_no_beliefs() {
        assert!(is_explained_by(Property::ExclusiveSection, &[Blame::Pause], &[]));
        assert!(is_explained_by(Property::FencedOrder, &[Blame::DelayedWrite], &[]));
        assert!(!is_explained_by(Property::MutualExclusion, &[Blame::Pause], &[]));
    }
}
