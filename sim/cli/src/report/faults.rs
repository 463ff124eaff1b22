//! Sentences about the effect of a fault in one run.

use lock_judge::history::HostId;
use lock_judge::scenario::{Family, Scenario};
use lock_judge::text;

use super::timeline::{FaultWindow, Timeline};

/// Describes the effect and the time of a fault, as the clause that follows "because".
pub(super) fn because(scenario: &Scenario, trouble: &FaultWindow) -> String {
    let Some(fault) = scenario.fault(trouble.fault) else { return String::from("a fault") };
    let from = text::instant(trouble.began.at_ns);
    let span = match trouble.ended {
        Some(ended) => match text::instant(ended.at_ns) {
            to if to == from => format!("at {from}"),
            to => format!("from {from} to {to}"),
        },
        None => format!("from {from} on"),
    };
    fault.kind.because(&fault.id, &format!("at {from}"), &span)
}

/// Returns the last fault of `family` on `host` that was active at some instant of
/// `from_ns..=to_ns`.
pub(super) fn on<'t>(
    timeline: &'t Timeline<'_>,
    family: Family,
    host: HostId,
    from_ns: u64,
    to_ns: u64,
) -> Option<&'t FaultWindow> {
    all_on(timeline, family, host, from_ns, to_ns).next()
}

/// Iterates over the faults of `family` on `host` that were active at some instant of
/// `from_ns..=to_ns`, the last one first.
pub(super) fn all_on<'t>(
    timeline: &'t Timeline<'_>,
    family: Family,
    host: HostId,
    from_ns: u64,
    to_ns: u64,
) -> impl Iterator<Item = &'t FaultWindow> {
    let name = timeline.host_name(host);
    timeline.fault_windows.iter().rev().filter(move |trouble| {
        let Some(fault) = timeline.scenario.fault(trouble.fault) else { return false };
        // A moved clock stays moved, so a clock fault that has no end is active from its beginning
        // on.
        let began_in_time = trouble.began.at_ns <= to_ns;
        let lasted = family == Family::Clock && trouble.ended.is_none()
            || trouble.ended.map_or(trouble.began, |ended| ended).at_ns >= from_ns;
        let is_reason = fault.kind.descriptor().explains.contains(&family);
        fault.kind.hosts().iter().any(|it| it == name) && is_reason && began_in_time && lasted
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    #[test]
    fn fault_of_one_instant_has_no_span() {
        let played = fixture::pause();
        let timeline = fixture::timeline(&played);
        let mut window = timeline.fault_windows[0].clone();
        let told = because(timeline.scenario, &window);
        assert_eq!(told, "fault “gc” stopped c1 from 0.003 s to 12.003 s");
        window.ended = Some(window.began);
        assert_eq!(because(timeline.scenario, &window), "fault “gc” stopped c1 at 0.003 s");
    }
}
