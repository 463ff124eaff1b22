//! Tests of sections within their leases. C1 is granted at 2 ms and believes until 9 898 ms.

use super::tale::{C1, C2, MS, PROBE, Tale, host};
use crate::history::{ClockKind, EventKind, LostReason};
use crate::oracle::{Blame, Blamed, Judgement};
use crate::scenario::Property::{ExclusiveSection, SectionWithinLease};

/// C1 has looked at its lease and entered its section at 2 ms.
fn inside() -> Tale {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABC").checks(C1, true).enters(C1);
    tale
}

#[test]
fn without_a_section_it_is_vacuous() {
    assert_eq!(
        Tale::new().acquires(C1, "ABC").at(20_000).finds(SectionWithinLease),
        Judgement::Vacuous
    );
    let mut probe = Tale::new();
    probe.acquires(PROBE, "ABC").enters(PROBE).at(20_000);
    assert_eq!(probe.finds(SectionWithinLease), Judgement::Vacuous);
}

#[test]
fn a_section_may_end_with_its_lease() {
    assert_eq!(inside().at(9_898).leaves(C1).finds(SectionWithinLease), Judgement::Holds);
    let mut lost = inside();
    lost.at(5_000).loses(C1).leaves(C1).at(20_000);
    assert_eq!(lost.finds(SectionWithinLease), Judgement::Holds);
    let mut killed = inside();
    killed.at(5_000).kills(C1).at(20_000);
    assert_eq!(killed.finds(SectionWithinLease), Judgement::Holds);
}

#[test]
fn section_without_lease_needs_no_second_client() {
    let mut tale = inside();
    tale.at(13_898).leaves(C1).at(20_000);
    let found = tale.violation(SectionWithinLease);
    assert_eq!((found.from_ns, found.to_ns), (9_898 * MS, 13_898 * MS));
    assert_eq!((found.first, found.second), (C1, None));
    assert_eq!(tale.blame(SectionWithinLease), ["application"]);
    assert_eq!(tale.finds(ExclusiveSection), Judgement::Holds);
}

#[test]
fn a_clock_that_ran_ahead_is_blamed_for_an_early_end() {
    let exposed_by = |set_at_ms, by_ms| {
        let mut tale = Tale::new();
        tale.clock = ClockKind::Wall;
        tale.acquires(C1, "ABC").checks(C1, true).enters(C1);
        tale.at(set_at_ms).steps(host(C1), ClockKind::Wall, by_ms).at(13_000).leaves(C1);
        tale.blame(SectionWithinLease)
    };
    assert_eq!(exposed_by(3_000, 20_000), ["clock(c1)"]);
    assert_eq!(exposed_by(3_000, 100), ["application"], "within what the lease gives up for drift");
    assert_eq!(exposed_by(11_000, 20_000), ["application"], "the lease was over by then");
}

#[test]
fn a_section_without_leave_lasts_to_the_end() {
    let found = inside().at(12_000).violation(SectionWithinLease);
    assert_eq!((found.from_ns, found.to_ns), (9_898 * MS, 12_000 * MS));
}

#[test]
fn a_loss_or_a_release_ends_the_lease_of_a_section() {
    let reason = LostReason::KeysGone;
    let lost = EventKind::LostDelivered { attempt: C1, reason };
    for end in [lost, EventKind::ReleaseCalled { attempt: C1 }] {
        let mut tale = inside();
        tale.at(5_000).tell(end).at(5_001).leaves(C1).at(20_000);
        let found = tale.violation(SectionWithinLease);
        assert_eq!((found.from_ns, found.to_ns), (5_000 * MS, 5_001 * MS), "{end:?}");
    }
}

#[test]
fn a_section_that_is_entered_too_late_has_no_lease() {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABC").at(9_900).enters(C1).at(9_950).leaves(C1);
    let found = tale.violation(SectionWithinLease);
    assert_eq!((found.from_ns, found.to_ns), (9_900 * MS, 9_950 * MS));
}

#[test]
fn stop_across_the_deadline_is_blamed_despite_later_checks() {
    let mut tale = inside();
    tale.at(9_000).stops(C1).at(12_000).continues(C1).checks(C1, false).at(12_001).leaves(C1);
    assert_eq!(tale.blame(SectionWithinLease), ["pause"]);
}

#[test]
fn a_stop_after_the_deadline_is_no_excuse() {
    let mut tale = inside();
    tale.at(10_000).stops(C1).at(12_000).continues(C1).leaves(C1);
    assert_eq!(tale.blame(SectionWithinLease), ["application"]);
}

/// Returns the blame if C1 is stopped in these periods and leaves its section at `left_ms`.
fn blame_with_stops(stops: &[(u64, u64)], left_ms: u64) -> Vec<String> {
    let mut tale = inside();
    for &(from_ms, to_ms) in stops {
        tale.at(from_ms).stops(C1).at(to_ms).continues(C1);
    }
    tale.at(left_ms).leaves(C1).blame(SectionWithinLease)
}

#[test]
fn a_stop_before_the_deadline_is_no_excuse() {
    assert_eq!(blame_with_stops(&[(100, 9_000)], 13_898), ["application"]);
    assert_eq!(blame_with_stops(&[(100, 9_897)], 9_899), ["application"]);
    assert_eq!(blame_with_stops(&[(100, 9_898)], 9_899), ["pause"], "it ends with the lease");
    assert_eq!(blame_with_stops(&[(9_898, 9_950)], 9_950), ["application"], "so it begins");
}

#[test]
fn a_stop_excuses_no_more_than_the_lease_had_left() {
    assert_eq!(blame_with_stops(&[(9_800, 9_950)], 10_048), ["pause"]);
    assert_eq!(blame_with_stops(&[(9_800, 9_950)], 10_049), ["application"]);
    assert_eq!(blame_with_stops(&[(5_000, 12_000)], 16_898), ["pause"]);
}

#[test]
fn of_two_stops_the_one_across_the_deadline_counts() {
    assert_eq!(blame_with_stops(&[(1_000, 9_000), (9_800, 12_000)], 12_098), ["pause"]);
    assert_eq!(blame_with_stops(&[(1_000, 9_000), (9_800, 12_000)], 12_099), ["application"]);
    let second = (10_000, 20_000);
    assert_eq!(blame_with_stops(&[(9_800, 9_950), second], 20_048), ["pause"]);
    assert_eq!(blame_with_stops(&[(9_800, 9_950), second], 20_049), ["application"]);
}

#[test]
fn a_stop_begins_with_the_first_of_two_faults() {
    let mut tale = inside();
    tale.at(5_000).stops(C1).at(9_800).stops(C1).at(12_000).continues(C1).at(13_000).leaves(C1);
    assert_eq!(tale.blame(SectionWithinLease), ["pause"]);
}

#[test]
fn a_stop_of_another_process_is_no_excuse() {
    let mut tale = inside();
    tale.at(9_000).stops(C2).at(12_000).continues(C2).leaves(C1);
    assert_eq!(tale.blame(SectionWithinLease), ["application"]);
}

#[test]
fn a_stop_after_a_loss_is_no_excuse() {
    let mut tale = inside();
    tale.at(5_000).loses(C1);
    tale.at(5_001).stops(C1).at(12_000).continues(C1).leaves(C1);
    assert_eq!(tale.blame(SectionWithinLease), ["application"]);
}

#[test]
fn an_extended_lease_outlasts_a_stop() {
    let extended = |stopped_ms: u64, continued_ms, left_ms| {
        let mut tale = inside();
        tale.with_extensions(3).at(8_000).extends(C1, "ABC");
        tale.at(stopped_ms).stops(C1).at(continued_ms).continues(C1);
        tale.at(left_ms).leaves(C1).blame(SectionWithinLease)
    };
    assert_eq!(extended(9_000, 12_000, 18_000), ["application"]);
    assert_eq!(extended(9_000, 18_000, 18_000), ["pause"]);
}

#[test]
fn an_extension_revives_a_lease_that_ended_during_a_stop() {
    let mut tale = inside();
    tale.with_extensions(3).at(9_000).begins_extension(C1).retimes(C1, C1, "ABC");
    let until_ns = tale.extended_until_ns(C1);
    tale.succeeds(C1, "ABC", until_ns).at(9_001).stops(C1).at(10_000).continues(C1);
    tale.prolongs(C1, until_ns).at(25_000).leaves(C1);
    let found = tale.violation(SectionWithinLease);
    assert_eq!((found.from_ns, found.to_ns), (9_898 * MS, 10_000 * MS));
    assert_eq!(tale.blame(SectionWithinLease), ["pause"]);
}

#[test]
fn a_host_that_sleeps_is_stopped() {
    let asleep = |clock, rate_ppb| {
        let mut tale = Tale::new();
        tale.clock = clock;
        tale.acquires(C1, "ABC").checks(C1, true).enters(C1).at(5_000);
        tale.tell(EventKind::Stopped { host: host(C1), suspended: true });
        tale.runs_at(host(C1), clock, rate_ppb).at(12_000).runs_at(host(C1), clock, 0);
        tale.continues(C1).at(16_000).leaves(C1).finds(SectionWithinLease)
    };
    let found = asleep(ClockKind::Boot, 0);
    assert!(matches!(found, Judgement::Violated(it) if it.blamed == Blamed::just(Blame::Pause)));
    assert_eq!(asleep(ClockKind::Monotonic, -1_000_000_000), Judgement::Holds);
}

#[test]
fn lease_over_when_decided_is_the_clients_fault() {
    let mut tale = Tale::new();
    tale.begins(C1).at(1).sets(C1, "ABC").at(10_000).decides(C1, "ABC").delivers(C1);
    tale.enters(C1).at(10_001).leaves(C1);
    assert_eq!(tale.blame(SectionWithinLease), ["none"]);
}

#[test]
fn an_extension_in_time_keeps_the_section_within_its_lease() {
    let mut tale = inside();
    tale.with_extensions(3).at(9_000).extends(C1, "ABC").at(18_000).leaves(C1);
    assert_eq!(tale.finds(SectionWithinLease), Judgement::Holds);
    let mut late = inside();
    late.with_extensions(3).at(9_897).extends(C1, "ABC").at(18_000).leaves(C1);
    let found = late.violation(SectionWithinLease);
    assert_eq!((found.from_ns, found.to_ns), (9_898 * MS, 9_899 * MS), "until it is heard of");
}

#[test]
fn clock_set_across_the_deadline_ends_the_lease_at_once() {
    let mut tale = Tale::new();
    tale.clock = ClockKind::Wall;
    tale.acquires(C1, "ABC").enters(C1);
    tale.at(3_000).steps(host(C1), ClockKind::Wall, 60_000).at(3_500).leaves(C1);
    let found = tale.violation(SectionWithinLease);
    assert_eq!((found.from_ns, found.to_ns), (3_000 * MS, 3_500 * MS));
}

#[test]
fn the_first_section_without_its_lease_is_reported() {
    let mut tale = inside();
    tale.at(10_000).leaves(C1).acquires(C2, "ABC").enters(C2).at(30_000).leaves(C2);
    let found = tale.violation(SectionWithinLease);
    assert_eq!((found.first, found.from_ns, found.to_ns), (C1, 9_898 * MS, 10_000 * MS));
}
