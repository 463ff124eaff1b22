//! Tests of the quantities.

use super::tale::{C1, C1_AGAIN, C2, MS, PROBE, Tale};
use crate::history::{EventKind, KeyEnd, Writer};
use crate::oracle::Measured;
use crate::scenario::Quantity;

fn ms(tale: &mut Tale, quantity: Quantity) -> Option<u64> {
    let ns = tale.measured().of(quantity)?;
    assert_eq!(ns % MS, 0, "tales are told in milliseconds");
    Some(ns / MS)
}

#[test]
fn the_last_grant_is_that_of_the_last_client() {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABC").at(500).releases(C1).acquires(C2, "ABC").at(900);
    assert_eq!(ms(&mut tale, Quantity::GrantedAt), Some(502));
}

#[test]
fn a_failed_acquisition_leaves_the_last_grant_unmeasured() {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABC").at(100).begins(C2).at(200);
    tale.tell(EventKind::GaveUp { client: C2.client });
    assert_eq!(ms(&mut tale, Quantity::GrantedAt), None);
    assert_eq!(ms(&mut Tale::new(), Quantity::GrantedAt), None);
}

#[test]
fn a_lease_is_kept_from_delivery_to_release_or_deadline() {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABC").at(3_000).releases(C1).at(3_100).acquires(C1_AGAIN, "ABC").at(4_000);
    assert_eq!(ms(&mut tale, Quantity::LeaseKept), Some(2_998));
    let mut tale = Tale::new();
    tale.acquires(C1, "ABC").at(20_000);
    assert_eq!(ms(&mut tale, Quantity::LeaseKept), Some(9_896));
    assert_eq!(ms(&mut Tale::new(), Quantity::LeaseKept), None);
}

#[test]
fn an_extension_keeps_a_lease_longer() {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABC").at(5_000).extends(C1, "ABC").at(20_000);
    assert_eq!(ms(&mut tale, Quantity::LeaseKept), Some(14_896));
}

#[test]
fn the_overlap_of_beliefs_ends_with_the_first_of_them() {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABC").at(1_000).ends_key(C1, "ABC", KeyEnd::Evicted, Writer::Nobody);
    tale.acquires(C2, "ABC").at(20_000);
    // C1 believes until 9 898 ms; C2's lease was delivered at 1 002 ms.
    assert_eq!(ms(&mut tale, Quantity::BeliefOverlap), Some(8_896));
    assert_eq!(ms(Tale::new().acquires(C1, "ABC"), Quantity::BeliefOverlap), Some(0));
}

#[test]
fn a_belief_without_majority_begins_with_the_key_too_many() {
    let lost = |nodes: &str| {
        let mut tale = Tale::new();
        tale.acquires(C1, "ABCDE").at(1_000);
        tale.ends_key(C1, nodes, KeyEnd::Evicted, Writer::Nobody).at(1_500).loses(C1).at(2_000);
        ms(&mut tale, Quantity::BeliefWithoutMajority)
    };
    assert_eq!(lost("AB"), Some(0));
    assert_eq!(lost("ABC"), Some(500));
    assert_eq!(ms(&mut Tale::new(), Quantity::BeliefWithoutMajority), None);
}

#[test]
fn a_lease_is_lost_when_it_is_reported() {
    let lost = |tale: &mut Tale| tale.measured().of(Quantity::LeasesLost);
    assert_eq!(lost(Tale::new().acquires(C1, "ABC").at(500).loses(C1)), Some(1));
    assert_eq!(lost(Tale::new().acquires(C1, "ABC").at(500).releases(C1)), Some(0));
    assert_eq!(lost(&mut Tale::new()), None);
}

#[test]
fn votes_are_misjudged_until_the_next_report() {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABCDE").at(500).knows(C1, "ABCDE", "ABCDE").at(1_000);
    tale.ends_key(C1, "AB", KeyEnd::Evicted, Writer::Nobody).at(1_100).knows(C1, "BCDE", "BCDE");
    tale.at(1_300).knows(C1, "CD", "CDE").at(1_400).releases(C1).at(2_000);
    // Two nodes for 100 ms, B for 200 ms, and E for 100 ms.
    assert_eq!(ms(&mut tale, Quantity::VotesMisjudged), Some(500));
    assert_eq!(ms(Tale::new().acquires(C1, "ABC"), Quantity::VotesMisjudged), None);
}

#[test]
fn overlaps_of_sections_are_added_up() {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABC").enters(C1).at(100).enters(C2).at(300).leaves(C1);
    tale.at(400).leaves(C2).enters(C1).at(500).enters(C2).at(550).kills(C2).at(900).leaves(C1);
    assert_eq!(ms(&mut tale, Quantity::SectionOverlap), Some(250));
    assert_eq!(ms(Tale::new().acquires(C1, "ABC"), Quantity::SectionOverlap), None);
}

#[test]
fn a_section_without_lease_begins_at_the_deadline() {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABC").enters(C1).at(12_000).leaves(C1).at(13_000);
    assert_eq!(ms(&mut tale, Quantity::SectionWithoutLease), Some(2_102));
    let mut tale = Tale::new();
    tale.acquires(C1, "ABC").enters(C1).at(9_000).leaves(C1).at(13_000);
    assert_eq!(ms(&mut tale, Quantity::SectionWithoutLease), Some(0));
}

#[test]
fn a_section_without_majority_begins_with_the_key_too_many() {
    let lost = |nodes: &str| {
        let mut tale = Tale::new();
        tale.acquires(C1, "ABCDE").enters(C1).at(1_000);
        tale.ends_key(C1, nodes, KeyEnd::Evicted, Writer::Nobody).at(1_500).leaves(C1).at(2_000);
        ms(&mut tale, Quantity::SectionWithoutMajority)
    };
    assert_eq!(lost("AB"), Some(0));
    assert_eq!(lost("ABC"), Some(500));
}

#[test]
fn a_wait_counts_while_nobody_holds_the_lock() {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABC").at(100).begins(C2).at(500).releases(C1).at(600);
    tale.tell(EventKind::GaveUp { client: C2.client }).at(900);
    // The round trip of C1's grant, and C2 alone.
    assert_eq!(ms(&mut tale, Quantity::WaitWithoutHolder), Some(102));
    let mut tale = Tale::new();
    tale.acquires(C1, "ABC").at(100).begins(C2).at(10_000);
    assert_eq!(ms(&mut tale, Quantity::WaitWithoutHolder), Some(104), "C1's deadline is 9 898 ms");
}

#[test]
fn attempts_and_commands_are_divided_by_grants() {
    let counted = |measured: Measured| {
        [Quantity::AttemptsPerLock, Quantity::CommandsPerLock, Quantity::Commands]
            .map(|it| measured.of(it))
    };
    let mut tale = Tale::new();
    tale.acquires(C1, "ABCD").begins(C2).is_refused(C2, C1, "ABC");
    assert_eq!(counted(tale.measured()), [Some(2_000), Some(7_000), Some(7)]);
    assert_eq!(counted(Tale::new().begins(C1).measured()), [None, None, Some(0)]);
}

#[test]
fn the_probe_does_not_count() {
    let mut tale = Tale::new();
    tale.acquires(PROBE, "ABC").enters(PROBE).at(20_000);
    let measured: Vec<_> = tale.measured().iter().collect();
    assert_eq!(
        measured,
        [
            (Quantity::PollsInASecond, 0),
            (Quantity::AttemptsInVain, 0),
            (Quantity::ReadsInASecond, 0),
            (Quantity::Commands, 0)
        ]
    );
}

#[test]
fn quantities_that_an_engine_does_not_record_are_unmeasured() {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABC").enters(C1).at(1_000);
    let measured = tale.measured().only(&[Quantity::SectionOverlap]);
    assert_eq!(measured.iter().collect::<Vec<_>>(), [(Quantity::SectionOverlap, 0)]);
}
