//! Tests of `polls-in-a-second`.

use super::tale::{C1, C2, PROBE, Tale};
use crate::history::{AttemptId, EventKind, FaultId, OpKind, Settlement};
use crate::scenario::Quantity;

/// Lets C1 attempt every 250 ms from `from_ms` to before `to_ms`; each attempt fails as `failed`.
fn asks(tale: &mut Tale, (from_ms, to_ms): (u64, u64), failed: Settlement) {
    for at_ms in (from_ms..to_ms).step_by(250) {
        let id = AttemptId { number: (at_ms / 250) as u16 + 1, ..C1 };
        tale.at(at_ms).begins(id).writes(id, 'A', OpKind::Set);
        tale.settles(id, failed);
    }
}

fn polls(tale: &mut Tale) -> Option<u64> {
    tale.measured().of(Quantity::PollsInASecond)
}

#[test]
fn attempts_count_once_nothing_has_changed_for_a_second() {
    let mut tale = Tale::new();
    asks(&mut tale, (0, 1_000), Settlement::Taken);
    assert_eq!(polls(&mut tale), Some(0));
    asks(&mut tale, (1_000, 3_000), Settlement::Taken);
    assert_eq!(polls(&mut tale), Some(4), "in each of two seconds");
}

#[test]
fn a_change_by_others_begins_a_second_without_polls() {
    for is_fault in [false, true] {
        let mut tale = Tale::new();
        asks(&mut tale, (0, 1_250), Settlement::Taken);
        tale.at(1_300);
        if is_fault {
            tale.tell(EventKind::FaultBegan { fault: FaultId(0) });
        } else {
            tale.begins(C2).sets(C2, "A");
        }
        asks(&mut tale, (1_500, 2_250), Settlement::Taken);
        assert_eq!(polls(&mut tale), Some(1), "at 1 000 ms, the change came before the next");
        asks(&mut tale, (2_250, 2_750), Settlement::Taken);
        assert_eq!(polls(&mut tale), Some(1), "at 2 500 ms");
    }
}

#[test]
fn what_the_client_does_itself_is_no_change() {
    let mut tale = Tale::new();
    asks(&mut tale, (0, 1_250), Settlement::TooFewNodes);
    let id = AttemptId { number: 5, ..C1 };
    tale.at(1_300).sets(id, "B").unlocks(id, "B");
    asks(&mut tale, (1_500, 2_000), Settlement::TooFewNodes);
    assert_eq!(polls(&mut tale), Some(3));
}

#[test]
fn another_reason_to_wait_is_a_change() {
    let mut tale = Tale::new();
    asks(&mut tale, (0, 1_250), Settlement::Quarantined);
    asks(&mut tale, (1_250, 2_250), Settlement::Taken);
    assert_eq!(polls(&mut tale), Some(2), "the last one for the old reason, and the one after it");
}

#[test]
fn each_acquisition_is_judged_by_itself() {
    for end in [Settlement::Granted, Settlement::Cancelled] {
        let mut tale = Tale::new();
        asks(&mut tale, (0, 500), Settlement::Taken);
        asks(&mut tale, (500, 750), end);
        asks(&mut tale, (2_000, 2_750), Settlement::Taken);
        assert_eq!(polls(&mut tale), Some(0), "{end:?}");
    }
    let mut tale = Tale::new();
    asks(&mut tale, (0, 750), Settlement::Taken);
    tale.tell(EventKind::GaveUp { client: C1.client });
    asks(&mut tale, (2_000, 2_750), Settlement::Taken);
    assert_eq!(polls(&mut tale), Some(0));
}

#[test]
fn attempts_without_commands_and_those_of_the_probe_do_not_count() {
    let mut tale = Tale::new();
    for number in 1..20 {
        tale.at(u64::from(number) * 200);
        let silent = AttemptId { number, ..C1 };
        tale.begins(silent).settles(silent, Settlement::TooFewNodes);
        let probe = AttemptId { number, ..PROBE };
        tale.begins(probe).writes(probe, 'A', OpKind::Set);
        tale.settles(probe, Settlement::Taken);
    }
    assert_eq!(polls(&mut tale), Some(0));
}
