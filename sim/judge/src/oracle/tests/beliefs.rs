//! Tests of mutual exclusion: the definition of a belief.

use proptest::prelude::*;

use super::tale::{C1, C2, C3, MS, PROBE, Tale, host};
use crate::history::{AttemptId, ClientId, ClockKind, EventKind, HostId, NodeId, Writer};
use crate::oracle::Judgement;
use crate::scenario::Property::MutualExclusion;

/// C1 believes from 2 ms to 9 898 ms.
fn c1_holds() -> Tale {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABC");
    tale
}

#[test]
fn a_run_without_a_grant_is_vacuous() {
    assert_eq!(Tale::new().finds(MutualExclusion), Judgement::Vacuous);
}

#[test]
fn beliefs_that_follow_each_other_are_disjoint() {
    let mut tale = c1_holds();
    tale.at(10_002).expires(C1, "ABC").acquires(C2, "ABC");
    assert_eq!(tale.at(30_000).finds(MutualExclusion), Judgement::Holds);
}

#[test]
fn overlap_lasts_from_the_later_grant_to_the_earlier_deadline() {
    let found = c1_holds().at(1_100).acquires(C2, "CDE").at(30_000).violation(MutualExclusion);
    assert_eq!((found.from_ns, found.to_ns), (1_102 * MS, 9_898 * MS));
    assert_eq!((found.first, found.second), (C1, Some(C2)));
}

#[test]
fn a_lease_that_is_over_hides_no_overlap_of_two_others() {
    let mut tale = c1_holds();
    tale.at(10_002).expires(C1, "ABC").acquires(C2, "ABC").at(10_500).acquires(C3, "CDE");
    let found = tale.at(30_000).violation(MutualExclusion);
    assert_eq!((found.from_ns, found.first, found.second), (10_502 * MS, C2, Some(C3)));
}

#[test]
fn three_that_hold_at_once_are_judged_in_every_pair() {
    let mut tale = Tale::new();
    for id in [C1, C2, C3] {
        tale.begins(id).sets(id, "ABC").decides(id, "ABC").delivers(id);
    }
    // C1 releases at once, so its belief overlaps with neither of the others.
    let found = tale.releases(C1).at(30_000).violation(MutualExclusion);
    assert_eq!((found.first, found.second), (C2, Some(C3)));
}

#[test]
fn an_overlap_ends_with_the_run() {
    let found = c1_holds().at(1_100).acquires(C2, "CDE").at(3_000).violation(MutualExclusion);
    assert_eq!(found.to_ns, 3_000 * MS);
}

#[test]
fn belief_ends_with_release_loss_or_death() {
    let mut released = c1_holds();
    released.at(500).releases(C1).acquires(C2, "CDE");
    assert_eq!(released.finds(MutualExclusion), Judgement::Holds);
    let mut lost = c1_holds();
    lost.at(500).loses(C1).acquires(C2, "CDE");
    assert_eq!(lost.finds(MutualExclusion), Judgement::Holds);
    let mut killed = c1_holds();
    killed.at(500).kills(C1).acquires(C2, "CDE");
    assert_eq!(killed.finds(MutualExclusion), Judgement::Holds);
}

#[test]
fn beliefs_that_meet_at_an_instant_do_not_overlap() {
    let mut tale = c1_holds();
    tale.at(1_098).acquires(C2, "CDE").releases(C1);
    assert_eq!(tale.at(30_000).finds(MutualExclusion), Judgement::Holds);
}

#[test]
fn a_grant_delivered_past_its_deadline_is_not_believed() {
    let mut tale = Tale::new();
    tale.begins(C1).at(1).sets(C1, "ABC").at(2).decides(C1, "ABC").stops(C1);
    tale.at(10_002).expires(C1, "ABC").acquires(C2, "ABC");
    tale.at(12_000).continues(C1).delivers(C1);
    assert_eq!(tale.at(30_000).finds(MutualExclusion), Judgement::Holds);
}

#[test]
fn a_belief_goes_by_the_clock_also_while_the_process_is_stopped() {
    let mut tale = c1_holds();
    tale.at(500).stops(C1).at(9_896).acquires(C2, "CDE");
    assert_eq!(tale.at(30_000).finds(MutualExclusion), Judgement::Holds);
}

#[test]
fn a_clock_that_stands_still_prolongs_a_belief() {
    let mut tale = Tale::new();
    tale.clock = ClockKind::Monotonic;
    tale.acquires(C1, "ABC").at(1_000).runs_at(host(C1), ClockKind::Monotonic, -1_000_000_000);
    tale.at(11_000).runs_at(host(C1), ClockKind::Monotonic, 0).at(15_000).acquires(C2, "ABC");
    let found = tale.at(40_000).violation(MutualExclusion);
    assert_eq!((found.from_ns, found.to_ns), (15_002 * MS, 19_898 * MS));
}

#[test]
fn a_clock_set_back_after_the_deadline_revives_a_belief() {
    let mut tale = Tale::new();
    tale.clock = ClockKind::Wall;
    tale.acquires(C1, "ABC").at(10_100).expires(C1, "ABC").acquires(C2, "ABC");
    tale.at(11_000).steps(host(C1), ClockKind::Wall, -5_000);
    let found = tale.at(40_000).violation(MutualExclusion);
    assert_eq!((found.from_ns, found.to_ns), (11_000 * MS, 14_898 * MS));
}

#[test]
fn another_clock_does_not_matter() {
    let mut tale = c1_holds();
    tale.at(1_000).steps(host(C1), ClockKind::Wall, -5_000);
    tale.steps(host(C2), ClockKind::Boot, 5_000).at(9_898).acquires(C2, "CDE");
    assert_eq!(tale.at(30_000).finds(MutualExclusion), Judgement::Holds);
}

#[test]
fn a_lease_without_end_is_believed_for_ever() {
    let mut tale = Tale::new();
    tale.begins(C1).sets(C1, "ABC").decides(C1, "ABC").delivers_until(C1, u64::MAX, 0);
    tale.at(100_000).acquires(C2, "CDE");
    assert_eq!(tale.at(100_010).violation(MutualExclusion).to_ns, 100_010 * MS);
}

#[test]
fn the_probe_is_exempt() {
    let mut tale = c1_holds();
    tale.at(1_000).acquires(PROBE, "CDE");
    assert_eq!(tale.at(30_000).finds(MutualExclusion), Judgement::Holds);
}

/// One step of a random history: time since the step before, client, kind of step, amount.
type TaleStep = (u64, u8, u8, i64);

const CLIENTS: [AttemptId; 3] = [C1, C2, C3];

/// Builds a history from steps: grants on the wall clock, releases, kills, clock jumps and changes
/// of rate.
fn play(happenings: &[TaleStep]) -> (Tale, Vec<AttemptId>) {
    let (mut tale, mut ids, mut now_ns) = (Tale::new(), Vec::new(), 0);
    tale.clock = ClockKind::Wall;
    for &(after_ns, who, what, amount) in happenings {
        now_ns += after_ns;
        tale.at_ns(now_ns);
        let client = CLIENTS[usize::from(who)];
        match what {
            0..4 => {
                let number = ids.len() as u16 + 1;
                let id = AttemptId { number, ..client };
                ids.push(id);
                let deadline_ns = tale.reads_ns(host(id), ClockKind::Wall) as i64 + amount / 20;
                tale.begins(id).decides(id, "ABC").delivers_until(id, deadline_ns as u64, 0);
            }
            4 => {
                let last = ids.iter().rev().find(|id| id.client == client.client);
                last.copied().map(|id| tale.releases(id));
            }
            5 => {
                tale.kills(client);
            }
            6..8 => {
                tale.steps(host(client), ClockKind::Wall, amount / 20 / MS as i64);
            }
            _ => {
                tale.runs_at(host(client), ClockKind::Wall, (amount / 20) as i32);
            }
        }
    }
    tale.at_ns(now_ns + 50 * MS);
    (tale, ids)
}

/// Returns true if `id` is believed at `instant_ns`, computed from the definition of a belief
/// alone.
fn believed(tale: &Tale, id: AttemptId, instant_ns: u64) -> bool {
    let mut segment = None;
    let mut deadline_ns = None;
    for event in tale.events.iter().take_while(|event| event.at_ns <= instant_ns) {
        match event.kind {
            EventKind::Clock { host: of, clock: ClockKind::Wall, local_ns, rate_ppb }
                if of == host(id) =>
            {
                segment = Some((event.at_ns, local_ns, rate_ppb));
            }
            EventKind::GrantDelivered { attempt, deadline_local_ns, .. } if attempt == id => {
                deadline_ns = Some(deadline_local_ns);
            }
            EventKind::ReleaseCalled { attempt } if attempt == id => return false,
            EventKind::Killed { host: of, .. } if of == host(id) && deadline_ns.is_some() => {
                return false;
            }
            _ => {}
        }
    }
    let (Some((from_ns, local_ns, rate_ppb)), Some(deadline_ns)) = (segment, deadline_ns) else {
        return false;
    };
    let gone = i128::from(instant_ns - from_ns) * (1_000_000_000 + i128::from(rate_ppb));
    i128::from(local_ns) + gone / 1_000_000_000 < i128::from(deadline_ns)
}

/// Returns the first event time at which two of `ids` are believed at once.
fn first_overlap_ns(tale: &Tale, ids: &[AttemptId], end_ns: u64) -> Option<u64> {
    let overlaps =
        |instant_ns: u64| ids.iter().filter(|&&id| believed(tale, id, instant_ns)).count() >= 2;
    // Between two events beliefs only end, so an overlap begins with an event.
    let instants = tale.events.iter().map(|event| event.at_ns);
    instants.filter(|&instant_ns| instant_ns < end_ns).find(|&instant_ns| overlaps(instant_ns))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_fold_agrees_with_the_definition(
        happenings in prop::collection::vec(
            (0..10 * MS, 0u8..3, 0u8..9, -(300 * MS as i64)..500 * MS as i64), 1..25)
    ) {
        let (mut tale, ids) = play(&happenings);
        let end_ns = tale.events.last().map_or(0, |event| event.at_ns);
        let naive_ns = first_overlap_ns(&tale, &ids, end_ns);
        let found = match tale.finds(MutualExclusion) {
            Judgement::Violated(found) => {
                let pair = [found.first, found.second.expect("two leases")];
                for instant_ns in [found.from_ns, found.to_ns - 1] {
                    prop_assert!(pair.iter().all(|&id| believed(&tale, id, instant_ns)));
                }
                Some(found.from_ns).filter(|&from_ns| from_ns < end_ns)
            }
            _ => None,
        };
        prop_assert_eq!(found, naive_ns);
    }
}

#[test]
fn impossible_events_are_skipped() {
    let nowhere = AttemptId { client: ClientId(200), number: 0 };
    let mut tale = Tale::new();
    tale.tell(EventKind::ReleaseCalled { attempt: nowhere });
    tale.tell(EventKind::Killed { host: HostId(250), power: true });
    tale.tell(EventKind::SectionLeft { attempt: nowhere });
    tale.tell(EventKind::KeyEnded {
        node: NodeId(77),
        writer: Writer::Attempt(nowhere),
        cause: crate::history::KeyEnd::Expired,
        by: Writer::Nobody,
        expires_wall_ms: 0,
    });
    assert_eq!(tale.finds(MutualExclusion), Judgement::Vacuous);
}
