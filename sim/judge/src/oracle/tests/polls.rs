//! Tests of `polls-in-a-second` and `attempts-in-vain`.

use super::tale::{C1, C2, PROBE, Tale, host, node};
use crate::history::{Answer, AttemptId, ClockKind, EventKind, FaultId, OpKind, Settlement};
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
fn attempts_without_commands_or_of_the_probe_do_not_count() {
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

#[test]
fn a_release_is_no_command_of_the_next_attempt() {
    let mut tale = Tale::new();
    tale.begins(C2).sets(C2, "ABC");
    for number in 1..20 {
        let silent = AttemptId { number, ..C1 };
        tale.at(u64::from(number) * 200).begins(silent).writes(C1, 'A', OpKind::Release);
        tale.settles(silent, Settlement::TooFewNodes);
    }
    assert_eq!(tale.measured().of(Quantity::AttemptsInVain), Some(0));
}

/// Lets C1 wait for a lock that C2 holds on the nodes of `held`, and attempt every 250 ms for a second.
/// The first failure is news.
fn in_vain(tale: &mut Tale, held: &str) -> Option<u64> {
    tale.begins(C2).sets(C2, held);
    asks(tale, (0, 1_000), Settlement::Taken);
    tale.measured().of(Quantity::AttemptsInVain)
}

#[test]
fn attempts_are_in_vain_while_the_client_could_sleep() {
    assert_eq!(in_vain(&mut Tale::new(), "ABC"), Some(3));
    assert_eq!(in_vain(&mut Tale::new(), "AB"), Some(0), "C, D and E would vote");
}

#[test]
fn a_quarantine_leaves_no_majority_either() {
    let mut tale = Tale::new();
    let client = C1.client;
    let from_local_ns = tale.reads_ns(host(C1), ClockKind::Boot) + 5_000_000_000;
    tale.tell(EventKind::Eligible { client, node: node('C'), from_local_ns });
    assert_eq!(in_vain(&mut tale, "AB"), Some(3));
}

#[test]
fn what_keeps_the_client_awake_excuses_its_attempts() {
    let mut tale = Tale::new();
    tale.with_c1_at_once();
    assert_eq!(in_vain(&mut tale, "ABC"), Some(0), "it does not wait");
    let mut tale = Tale::new();
    tale.tell(EventKind::NodeDown { node: node('E'), power: false });
    assert_eq!(in_vain(&mut tale, "ABC"), Some(0), "E does not push");
    for fault in [
        "clock-jump = { host = 'A', by = '-8s' }",
        "kill = { host = 'A', restart-after = '20ms', behind-a-proxy = true }",
    ] {
        let mut tale = Tale::new();
        tale.with_fault(fault);
        assert_eq!(in_vain(&mut tale, "ABC"), Some(0), "changes without a push");
    }
}

#[test]
fn an_earlier_answer_does_not_show_that_requests_pass_again() {
    let asked = |between: &str| {
        let mut tale = Tale::new();
        tale.with_fault(&format!(
            "partition = {{ between = [[{between}], ['E']], one-way = true, lost = 'silent' }}"
        ));
        let command = tale.begins(C1).writes(C1, 'E', OpKind::Set);
        tale.tell(EventKind::FaultBegan { fault: FaultId(0) });
        tale.at(1).tell(EventKind::FaultEnded { fault: FaultId(0) });
        tale.answers(command, C1, 'E', Answer::Yes);
        tale.at(5_000).settles(C1, Settlement::Taken).begins(C2).sets(C2, "ABC");
        asks(&mut tale, (5_000, 6_000), Settlement::Taken);
        tale.measured().of(Quantity::AttemptsInVain)
    };
    assert_eq!(asked("'c1'"), Some(0), "E may not push either");
    assert_eq!(asked("'c2'"), Some(4));
}
