//! Tests of tidy. With links of 1 ms and a node timeout of 50 ms the bound is 564 ms, or 2 064 ms
//! after a node was unreachable.

mod clocks;
mod demoted;
mod half_open;
mod late;

use super::tale::{C1, C2, MS, PROBE, Tale, node};
use crate::history::{
    Answer, ClockKind, CommandId, EventKind, FaultId, OpKind, Settlement, Writer,
};
use crate::oracle::{Judgement, Oracle};
use crate::scenario::Connections;
use crate::scenario::Property::Tidy;

/// C1 has released at 100 ms, and its key is still on C.
fn left_behind() -> Tale {
    let mut tale = Tale::new();
    tale.acquires(C1, "ABC").at(100).releases(C1).unlocks(C1, "AB");
    tale
}

#[test]
fn a_lease_that_was_never_released_is_vacuous() {
    assert_eq!(Tale::new().acquires(C1, "ABC").at(9_000).finds(Tidy), Judgement::Vacuous);
}

#[test]
fn keys_that_are_gone_in_time_are_tidy() {
    let mut tale = left_behind();
    tale.at(664).unlocks(C1, "C");
    assert_eq!(tale.finds(Tidy), Judgement::Holds);
}

#[test]
fn a_key_that_is_left_violates_it() {
    let found = left_behind().at(665).violation(Tidy);
    assert_eq!((found.from_ns, found.first, found.node), (664 * MS, C1, Some(node('C'))));
    let mut late = left_behind();
    late.at(800).unlocks(C1, "C");
    assert_eq!(late.blame(Tidy), ["none"]);
}

#[test]
fn a_run_that_ends_early_is_not_judged() {
    assert_eq!(left_behind().at(600).finds(Tidy), Judgement::Vacuous);
    let mut other = left_behind();
    other.acquires(C2, "DE").releases(C2).unlocks(C2, "DE");
    assert_eq!(other.at(600).finds(Tidy), Judgement::Holds, "C2's is judged");
}

#[test]
fn the_oracle_names_how_long_a_run_must_last() {
    let mut tale = left_behind();
    let mut oracle = Oracle::new(&tale.scenario, &[]);
    tale.events.iter().for_each(|event| oracle.observe(event));
    assert_eq!(oracle.must_last_until_ns(), Some(664 * MS + 1));
    assert!(tale.at_ns(664 * MS + 1).finds(Tidy).is_violated());
}

#[test]
fn a_failure_is_to_be_cleaned_up_too_and_so_is_a_refused_grant() {
    let mut failed = Tale::new();
    failed.begins(C1).sets(C1, "AB").settles(C1, Settlement::TooFewNodes);
    assert!(failed.at(1_000).finds(Tidy).is_violated());
    let mut refused = Tale::new();
    refused.begins(C1).sets(C1, "ABC").decides(C1, "ABC").settles(C1, Settlement::TooSlow);
    assert!(refused.at(1_000).finds(Tidy).is_violated());
}

#[test]
fn a_key_that_comes_after_the_failure_counts() {
    let mut tale = Tale::new();
    tale.begins(C1).settles(C1, Settlement::TooFewNodes).at(80).sets(C1, "D");
    assert!(tale.at(1_000).finds(Tidy).is_violated());
}

#[test]
fn anothers_key_is_anothers_matter() {
    let mut tale = left_behind();
    tale.unlocks(C1, "C").acquires(C2, "ABC");
    assert_eq!(tale.at(5_000).finds(Tidy), Judgement::Holds);
}

#[test]
fn the_probe_is_exempt() {
    let mut tale = Tale::new();
    tale.acquires(PROBE, "ABC").releases(PROBE);
    assert_eq!(tale.at(5_000).finds(Tidy), Judgement::Vacuous);
}

#[test]
fn node_that_was_down_or_stalled_is_excused_then_bounded() {
    type FaultWindow = (EventKind, EventKind);
    let down = EventKind::NodeDown { node: node('C'), power: false };
    let up = EventKind::NodeUp { node: node('C'), incarnation: 1 };
    let stalled = EventKind::NodeStalled { node: node('C') };
    let unstalled = EventKind::NodeUnstalled { node: node('C') };
    for (begin, end) in [(down, up), (stalled, unstalled)] as [FaultWindow; 2] {
        let story = |until_ms| {
            let mut tale = left_behind();
            tale.at(200).tell(begin).at(3_000).tell(end).at(until_ms).finds(Tidy)
        };
        assert_eq!(story(3_000 + 2_064), Judgement::Vacuous, "{begin:?}");
        assert!(story(3_000 + 2_065).is_violated(), "{begin:?}");
    }
}

#[test]
fn a_release_that_a_proxy_has_lost_is_blamed_on_the_node() {
    let blame = |is_proxied: bool| {
        let mut tale = Tale::new();
        tale.with_fault(&format!(
            "kill = {{ host = 'C', restart-after = '50ms', behind-a-proxy = {is_proxied} }}"
        ));
        tale.acquires(C1, "ABC").at(100).releases(C1).unlocks(C1, "AB");
        tale.writes(C1, 'C', OpKind::Release);
        tale.tell(EventKind::NodeDown { node: node('C'), power: false }).at(150);
        tale.tell(EventKind::NodeUp { node: node('C'), incarnation: 1 });
        tale.at(9_000).blame(Tidy)
    };
    assert_eq!(blame(true), ["amnesia(C)"]);
    assert_eq!(blame(false), ["none"]);
}

/// Judges a run in which C1's key is left on C and a fault lasts from 50 ms to 3 s.
fn left_behind_under(fault: &str, until_ms: u64) -> Judgement {
    let mut tale = Tale::new();
    tale.with_fault(fault).acquires(C1, "ABC");
    tale.at(50).tell(EventKind::FaultBegan { fault: FaultId(0) });
    tale.at(100).releases(C1).unlocks(C1, "AB");
    tale.at(3_000).tell(EventKind::FaultEnded { fault: FaultId(0) }).at(until_ms).finds(Tidy)
}

#[test]
fn a_partition_excuses_until_what_it_held_is_sent_again() {
    let reset = "partition = { between = [['C'], ['c1']], lost = 'reset' }";
    assert_eq!(left_behind_under(reset, 3_000 + 2_064), Judgement::Vacuous);
    assert!(left_behind_under(reset, 3_000 + 2_065).is_violated());
    // The partition lasted for 2 950 ms: a retransmission may come that long plus 400 ms after its
    // end.
    let hold = "partition = { between = [['c1'], ['C', 'D']] }";
    assert_eq!(left_behind_under(hold, 3_000 + 3_350 + 2_064), Judgement::Vacuous);
    assert!(left_behind_under(hold, 3_000 + 3_350 + 2_065).is_violated());
}

#[test]
fn a_delay_excuses_until_what_it_held_arrives() {
    let delay = "delay = { from = ['c1'], to = ['C'], by = '1s' }";
    assert_eq!(left_behind_under(delay, 4_000 + 2_064), Judgement::Vacuous);
    assert!(left_behind_under(delay, 4_000 + 2_065).is_violated());
}

#[test]
fn answers_that_do_not_pass_excuse_nothing_that_could_be_sent() {
    for fault in [
        "partition = { between = [['C'], ['c1']], one-way = true }",
        "delay = { from = ['C'], to = ['c1'], by = '12s' }",
        "delay = { from = ['C'], to = ['c1'], by = '12s', only = 'answer' }",
    ] {
        assert!(left_behind_under(fault, 3_000).is_violated(), "{fault}");
    }
}

/// C1's lease is delivered at 2 ms and counts A, B and D. C has executed the SET that was written at
/// 1 ms; its answer is still to come. Returns that SET.
fn grants_without_answer(tale: &mut Tale) -> CommandId {
    tale.begins(C1).at(1).sets(C1, "ABD");
    let command = tale.writes(C1, 'C', OpKind::Set);
    let change = (Writer::Nobody, Writer::Attempt(C1));
    tale.executes((command, C1, 'C', OpKind::Set), Answer::Yes, change);
    tale.at(2).decides(C1, "ABD").delivers(C1);
    command
}

/// C1's SET to C is written at 1 ms. Its answer arrives only after the end of a fault that lasts
/// from 0 to 3 s. The lease, which counts A, B and D, is released at `released_ms`.
fn unanswered(fault: &str, released_ms: u64, until_ms: u64) -> Judgement {
    let mut tale = Tale::new();
    tale.with_fault(fault).tell(EventKind::FaultBegan { fault: FaultId(0) });
    let command = grants_without_answer(&mut tale);
    tale.at(released_ms).releases(C1).unlocks(C1, "ABD");
    tale.at(3_000).tell(EventKind::FaultEnded { fault: FaultId(0) });
    tale.at(3_100).answers(command, C1, 'C', Answer::Yes);
    tale.at(until_ms).finds(Tidy)
}

#[test]
fn a_client_that_may_have_let_go_of_its_connection_dials_again() {
    let deaf = "partition = { between = [['C'], ['c1']], one-way = true, lost = 'silent' }";
    // The client waits for 500 ms, from 1 ms on, before it may close the connection.
    assert!(unanswered(deaf, 500, 4_000).is_violated());
    assert_eq!(unanswered(deaf, 501, 3_000 + 2_064), Judgement::Vacuous);
    assert!(unanswered(deaf, 501, 3_000 + 2_065).is_violated());
}

#[test]
fn a_release_that_is_held_back_goes_down_with_its_connection() {
    let story = |answers: &str, until_ms: u64| {
        let mut tale = Tale::new();
        tale.with_fault("delay = { from = ['c1'], to = ['C'], by = '1s' }").with_fault(answers);
        grants_without_answer(&mut tale);
        for fault in [FaultId(0), FaultId(1)] {
            tale.at(50).tell(EventKind::FaultBegan { fault });
        }
        tale.at(100).releases(C1).unlocks(C1, "ABD");
        tale.at(3_000).tell(EventKind::FaultEnded { fault: FaultId(0) });
        tale.at(until_ms).finds(Tidy)
    };
    // The client closes the connection at 501 ms; the request arrives at 1 100 ms.
    let dials_in_vain = "delay = { from = ['C'], to = ['c1'], by = '12s' }";
    assert!(!story(dials_in_vain, 20_000).is_violated());
    let dials = "delay = { from = ['D'], to = ['c1'], by = '12s' }";
    assert!(!story(dials, 4_000 + 2_064).is_violated());
    assert!(story(dials, 4_000 + 2_065).is_violated());
}

#[test]
fn a_release_on_its_way_goes_down_with_its_connection() {
    let released = |at_us: u64| {
        let mut tale = Tale::new();
        tale.with_fault("delay = { from = ['C'], to = ['c1'], by = '12s' }");
        grants_without_answer(&mut tale);
        tale.at(50).tell(EventKind::FaultBegan { fault: FaultId(0) });
        tale.at_ns(at_us * 1_000).releases(C1).unlocks(C1, "ABD");
        tale.at(9_000).finds(Tidy)
    };
    // The client closes the connection at 501 ms; the request travels for 1 ms.
    assert!(released(499_900).is_violated());
    assert!(!released(500_100).is_violated());
}

#[test]
fn a_connection_that_was_reset_is_dialled_again() {
    let reset = "partition = { between = [['C'], ['c1']], one-way = true, lost = 'reset' }";
    assert_eq!(left_behind_under(reset, 3_000 + 2_064), Judgement::Vacuous);
    assert!(left_behind_under(reset, 3_000 + 2_065).is_violated());
}

#[test]
fn a_release_lost_by_a_reset_is_sent_on_a_new_connection() {
    let reset = "partition = { between = [['C'], ['c1']], one-way = true, lost = 'reset' }";
    let story = |until_ms| {
        let mut tale = left_behind();
        tale.with_fault(reset).at(101).tell(EventKind::FaultBegan { fault: FaultId(0) });
        tale.at(3_000).tell(EventKind::FaultEnded { fault: FaultId(0) }).at(until_ms).finds(Tidy)
    };
    assert_eq!(story(3_000 + 2_064), Judgement::Vacuous);
    assert!(story(3_000 + 2_065).is_violated());
}

#[test]
fn a_client_that_dials_for_every_command_needs_answers() {
    let mut tale = Tale::new();
    tale.scenario.clients[0].connections = Some(Connections::FreshPerCommand);
    tale.with_fault("partition = { between = [['C'], ['c1']], one-way = true }");
    tale.acquires(C1, "ABD").at(50).tell(EventKind::FaultBegan { fault: FaultId(0) });
    let command = tale.writes(C1, 'C', OpKind::Set);
    let change = (Writer::Nobody, Writer::Attempt(C1));
    tale.executes((command, C1, 'C', OpKind::Set), Answer::Yes, change);
    tale.at(100).releases(C1).unlocks(C1, "ABD");
    tale.at(3_000).tell(EventKind::FaultEnded { fault: FaultId(0) });
    assert_eq!(tale.at(3_000 + 3_350 + 2_064).finds(Tidy), Judgement::Vacuous);
}

#[test]
fn an_answer_from_before_a_reset_restores_no_connection() {
    let reset = "partition = { between = [['C'], ['c1']], one-way = true, lost = 'reset' }";
    let mut tale = Tale::new();
    tale.with_fault(reset).begins(C1).at(1).sets(C1, "AB");
    let command = tale.writes(C1, 'C', OpKind::Set);
    let change = (Writer::Nobody, Writer::Attempt(C1));
    tale.executes((command, C1, 'C', OpKind::Set), Answer::Yes, change);
    tale.at(2).tell(EventKind::FaultBegan { fault: FaultId(0) });
    tale.answers(command, C1, 'C', Answer::Yes);
    tale.decides(C1, "ABC").delivers(C1).releases(C1).unlocks(C1, "AB");
    assert!(!tale.at(5_000).finds(Tidy).is_violated());
}

#[test]
fn faults_between_others_excuse_nothing() {
    for fault in [
        "partition = { between = [['c2'], ['C']] }",
        "partition = { between = [['c1'], ['D', 'store']] }",
        "delay = { from = ['c1'], to = ['C'], by = '1s', only = 'write' }",
        "stall = { host = 'D' }",
    ] {
        assert!(left_behind_under(fault, 3_000).is_violated(), "{fault}");
    }
}

#[test]
fn a_client_that_is_stopped_is_excused_and_a_dead_one_for_ever() {
    let mut stopped = left_behind();
    stopped.at(300).stops(C1).at(5_000).continues(C1).at(5_564);
    assert_eq!(stopped.finds(Tidy), Judgement::Vacuous);
    let mut stopped = left_behind();
    stopped.at(300).stops(C1).at(5_000).continues(C1).at(5_565);
    assert!(stopped.finds(Tidy).is_violated());
    let mut killed = left_behind();
    killed.at(300).kills(C1);
    assert_eq!(killed.at(9_000).finds(Tidy), Judgement::Holds);
}

#[test]
fn a_set_that_lay_for_too_long_may_have_outlived_its_release() {
    let lies_until = |ms: u64| {
        let mut tale = Tale::new();
        let command = tale.begins(C1).writes(C1, 'A', OpKind::Set);
        tale.at(50).settles(C1, Settlement::TooFewNodes).at(ms);
        let change = (Writer::Nobody, Writer::Attempt(C1));
        tale.executes((command, C1, 'A', OpKind::Set), Answer::Yes, change);
        tale.at(ms + 5_000).finds(Tidy)
    };
    // The TTL is 10 s, and the bound after a heal is 2 064 ms.
    assert!(lies_until(7_936).is_violated());
    assert_eq!(lies_until(7_937), Judgement::Holds);
}

#[test]
fn client_stopped_while_a_node_returned_dials_when_it_continues() {
    let story = |until_ms| {
        let mut tale = left_behind();
        tale.at(200).tell(EventKind::NodeDown { node: node('C'), power: false });
        tale.at(300)
            .stops(C1)
            .at(1_000)
            .tell(EventKind::NodeUp { node: node('C'), incarnation: 1 });
        tale.at(5_000).continues(C1).at(until_ms).finds(Tidy)
    };
    assert_eq!(story(5_000 + 2_064), Judgement::Vacuous);
    assert!(story(5_000 + 2_065).is_violated());
}

#[test]
fn a_release_due_before_the_excuse_is_still_a_violation() {
    let mut tale = left_behind();
    tale.at(1_000).kills(C1);
    assert_eq!(tale.at(9_000).violation(Tidy).from_ns, 664 * MS);
}

#[test]
fn a_clock_set_back_is_blamed_for_a_key_that_outlives_its_ttl() {
    let left_on_a_dead_node = |by_ms: i64| {
        let mut tale = Tale::new();
        tale.acquires(C1, "ABC").at(50);
        tale.tell(EventKind::NodeDown { node: node('C'), power: false });
        tale.steps(node('C').first_host(), ClockKind::Wall, by_ms);
        tale.at(100).releases(C1).unlocks(C1, "AB");
        tale.at(12_000).tell(EventKind::NodeUp { node: node('C'), incarnation: 1 });
        tale.at(15_000).blame(Tidy)
    };
    assert_eq!(left_on_a_dead_node(-20_000), ["clock(C)"]);
    assert_eq!(left_on_a_dead_node(-100), ["none"]);
    // A release that could have been sent at once is the client's matter.
    let mut tale = left_behind();
    tale.steps(node('C').first_host(), ClockKind::Wall, -20_000);
    assert_eq!(tale.at(15_000).blame(Tidy), ["none"]);
}

#[test]
fn a_clock_is_blamed_for_what_could_be_extended_after_its_ttl() {
    let extended_late = |by_ms: i64| {
        let mut tale = Tale::new();
        tale.acquires(C1, "ABC").at(50).tell(EventKind::NodeStalled { node: node('C') });
        tale.steps(node('C').first_host(), ClockKind::Wall, by_ms).begins_extension(C1);
        tale.at(100).releases(C1).unlocks(C1, "AB");
        tale.at(12_000).tell(EventKind::NodeUnstalled { node: node('C') }).retimes(C1, C1, "C");
        tale.at(15_000).blame(Tidy)
    };
    assert_eq!(extended_late(-20_000), ["clock(C)"]);
    assert_eq!(extended_late(-100), ["none"]);
}
