//! Length of the part of a run that explains a violation.

use lock_judge::history::{Event, EventKind};
use lock_judge::oracle::Violation;

/// Returns the number of events that lead to `violation`: all events up to its start, without the
/// initial state of clocks and nodes, and without the probe's, which come when all faults are over.
#[must_use]
pub fn events_up_to(violation: &Violation, events: &[Event]) -> usize {
    let is_before = |event: &&Event| {
        event.at_ns <= violation.from_ns && !matches!(event.kind, EventKind::Healed { .. })
    };
    let is_initial = |event: &&Event| {
        event.at_ns == 0 && matches!(event.kind, EventKind::Clock { .. } | EventKind::NodeUp { .. })
    };
    events.iter().take_while(is_before).filter(|event| !is_initial(event)).count()
}

#[cfg(test)]
mod tests {
    use lock_judge::history::{ClientId, FaultId, HostId, NodeId};
    use lock_judge::oracle::Blamed;

    use super::*;

    #[test]
    fn only_steps_before_the_violation_count() {
        let event = |at_ns, kind| Event { at_ns, kind };
        let up = EventKind::NodeUp { node: NodeId(0), incarnation: 0 };
        let fault = EventKind::FaultBegan { fault: FaultId(0) };
        let events = [
            event(0, up),
            event(0, fault),
            event(5, EventKind::Stopped { host: HostId(5), suspended: false }),
            event(7, up),
            event(9, EventKind::Healed { probe: ClientId(1) }),
            event(9, EventKind::Ended),
        ];
        let violation = |from_ns| Violation {
            from_ns,
            to_ns: 20,
            first: Default::default(),
            second: None,
            node: None,
            blamed: Blamed::NONE,
        };
        assert_eq!(events_up_to(&violation(5), &events), 2);
        assert_eq!(events_up_to(&violation(20), &events), 3);
    }
}
