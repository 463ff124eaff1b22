//! Keys and commands of others that are in the way.

use super::*;

/// C2 holds the lock on three nodes.
fn theirs(tale: &mut Tale) -> &mut Tale {
    tale.acquires(C2, "CDE")
}

#[test]
fn keys_of_other_attempts_are_in_the_way() {
    let mut tale = refuses("AB", theirs, |tale| tale.is_refused(C1, C2, "CDE"));
    assert_eq!(tale.finds(FaultTolerant), Judgement::Holds);
}

#[test]
fn keys_and_commands_during_the_attempt_can_block_it() {
    let mut ended = refuses("AB", theirs, |tale| tale.expires(C2, "CDE"));
    assert_eq!(ended.finds(FaultTolerant), Judgement::Holds);
    let mut touched = refuses("AB", nothing, |tale| {
        for at in ['C', 'D', 'E'] {
            let command = tale.writes(C2, at, OpKind::Release);
            let change = (Writer::Nobody, Writer::Nobody);
            tale.executes((command, C2, at, OpKind::Release), Answer::No, change);
        }
        tale
    });
    assert_eq!(touched.finds(FaultTolerant), Judgement::Holds);
}

#[test]
fn late_command_of_the_clients_older_attempt_can_block() {
    let mut tale = Tale::new();
    tale.begins(C1).settles(C1, Settlement::Cancelled).at(1_000).begins(C1_AGAIN);
    tale.sets(C1_AGAIN, "AB").at(1_005);
    for at in ['C', 'D', 'E'] {
        let release = (tale.writes(C1, at, OpKind::Release), C1, at, OpKind::Release);
        tale.executes(release, Answer::No, (Writer::Nobody, Writer::Nobody));
        tale.hears(release, Answer::No);
    }
    tale.at(1_010).settles(C1_AGAIN, Settlement::Taken);
    assert_eq!(tale.finds(FaultTolerant), Judgement::Holds);
}

#[test]
fn earlier_keys_of_other_clients_do_not_count() {
    let mut tale = Tale::new();
    theirs(&mut tale).releases(C2).unlocks(C2, "CDE");
    tale.at(1_000).begins(C1).sets(C1, "ABC").settles(C1, Settlement::TooFewNodes);
    assert!(tale.finds(FaultTolerant).is_violated());
}

#[test]
fn a_subject_of_one_node_is_judged_by_that_node() {
    let begins = |tale: &mut Tale, id: AttemptId| {
        tale.tell(EventKind::AttemptBegan {
            attempt: id,
            clock: ClockKind::Boot,
            t1_local_ns: 1_000_000 * MS,
            ttl_ns: u64::MAX,
            drift_ns: 0,
            needed: 1,
        });
    };
    let mut tale = Tale::new();
    begins(&mut tale, C2);
    tale.sets(C2, "A");
    begins(&mut tale, C1);
    tale.is_refused(C1, C2, "A").settles(C1, Settlement::Taken);
    assert_eq!(tale.finds(FaultTolerant), Judgement::Holds);
}
