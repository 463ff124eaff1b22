//! Rules of the machine of one use of the lock, tested alone by the commands it sends to the links.

use super::*;
use crate::testing::{RESOURCE, at_ms, fresh, held_by, lock_config, mask, ms, node};

const ID: LockId = LockId { slot: 0, generation: 1 };
const LOST: LockOutcome =
    LockOutcome::Lost { reason: LostReason::DeadlinePassed, extending: false };
const ELIGIBLE: Option<BootInstant> = Some(BootInstant::ZERO);

fn lock(config: LockConfig) -> Lock {
    Lock::new(ID, RESOURCE, config)
}

fn sends(lock: &mut Lock) -> Vec<Send> {
    core::iter::from_fn(|| lock.poll_send()).collect()
}

/// A lock of three nodes whose first attempt began at one second, and the SETs of that attempt.
fn begun() -> (Lock, Vec<Send>) {
    let mut lock = lock(LockConfig { limit: Limit::Attempts(3), ..lock_config(3) });
    lock.begin(fresh(1), at_ms(1_000));
    let sets = sends(&mut lock);
    (lock, sets)
}

fn tell(lock: &mut Lock, set: Send, outcome: Result<Reply, NoAnswer>) -> Option<LockOutcome> {
    tell_of(lock, set, outcome, ELIGIBLE)
}

/// Does what [`NodeSet`](crate::NodeSet) does: ends an attempt that failed.
fn tell_of(
    lock: &mut Lock,
    set: Send,
    outcome: Result<Reply, NoAnswer>,
    eligible_from: Option<BootInstant>,
) -> Option<LockOutcome> {
    let now = at_ms(1_001);
    let handled = lock.handle_outcome(set.id, set.node, outcome, eligible_from, now);
    let happened = handled.or_else(|| lock.settle(now).map(LockOutcome::Settled));
    if let Some(LockOutcome::Settled(Err(reason))) = happened {
        lock.fail(reason, Duration::ZERO, None, NodeMask::EMPTY, now);
    }
    happened
}

#[test]
fn every_node_is_asked_once_with_the_attempts_token() {
    let (_, sets) = begun();
    assert_eq!(sets.iter().map(|it| it.node).collect::<Vec<_>>(), [node(0), node(1), node(2)]);
    let op = Op::Set { resource: RESOURCE, token: fresh(1).token, ttl: ms(10_000) };
    assert!(sets.iter().all(|it| it.op == op && it.after.is_none()));
}

#[test]
fn release_waits_only_for_an_unanswered_set() {
    let (mut lock, sets) = begun();
    tell(&mut lock, sets[0], Ok(Reply::Ok));
    tell(&mut lock, sets[1], Err(NoAnswer::Unknown));
    lock.release();
    let releases = sends(&mut lock);
    let after: Vec<_> = releases.iter().map(|it| it.after).collect();
    assert_eq!(after, [None, Some(sets[1].id), Some(sets[2].id)]);
}

#[test]
fn nodes_that_cannot_have_the_key_get_no_release() {
    let (mut lock, sets) = begun();
    tell(&mut lock, sets[1], Err(NoAnswer::NotSent));
    lock.release();
    let nodes: Vec<_> = sends(&mut lock).iter().map(|it| it.node).collect();
    assert_eq!(nodes, [node(0), node(2)]);
}

#[test]
fn a_node_that_refused_is_released_too() {
    let (mut lock, sets) = begun();
    tell(&mut lock, sets[0], Ok(held_by(9)));
    tell(&mut lock, sets[1], Ok(held_by(9)));
    assert_eq!(sends(&mut lock).len(), 3);
}

#[test]
fn release_does_not_wait_for_a_set_that_failed() {
    let (mut lock, sets) = begun();
    tell(&mut lock, sets[0], Ok(Reply::Error));
    lock.release();
    let releases = sends(&mut lock);
    assert_eq!((releases[0].node, releases[0].after), (node(0), None));
}

#[test]
fn a_vote_is_cast_once() {
    let (mut lock, sets) = begun();
    tell(&mut lock, sets[0], Ok(held_by(9)));
    tell(&mut lock, sets[0], Ok(Reply::Ok));
    assert_eq!(lock.counted(), mask(&[]));
}

#[test]
fn commands_of_different_attempts_have_different_names() {
    let (mut lock, sets) = begun();
    for &set in &sets {
        tell(&mut lock, set, Ok(held_by(9)));
    }
    let releases = sends(&mut lock);
    lock.handle_timeout(at_ms(2_000));
    lock.begin(fresh(2), at_ms(2_000));
    let again = sends(&mut lock);
    let mut ids: Vec<_> = [sets, releases, again].concat().iter().map(|it| it.id).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((count, ids.len()), (9, 9));
}

const A: Result<Reply, NoAnswer> = Ok(Reply::Ok);
const SILENT: Result<Reply, NoAnswer> = Err(NoAnswer::Unknown);
const UNSENT: Result<Reply, NoAnswer> = Err(NoAnswer::NotSent);

/// Gives `outcomes` in turn to an attempt at as many nodes: how many of them settle it, and the
/// result.
fn settled_by(outcomes: &[Result<Reply, NoAnswer>]) -> (usize, Result<(), AttemptError>) {
    let mut lock = lock(lock_config(outcomes.len()));
    lock.begin(fresh(1), at_ms(1_000));
    let sets = sends(&mut lock);
    for (place, &outcome) in outcomes.iter().enumerate() {
        if let Some(LockOutcome::Settled(settled)) = tell(&mut lock, sets[place], outcome) {
            return (place + 1, settled);
        }
    }
    panic!("not settled by {outcomes:?}")
}

#[test]
fn taken_needs_a_majority_of_keys_of_one_token() {
    use AttemptError::{Split, Taken, TooFewNodes};
    let [b, c, error] = [Ok(held_by(2)), Ok(held_by(3)), Ok(Reply::Error)];
    let (untold, gone) = (Ok(Reply::Nil), Ok(Reply::Gone));
    let own = Ok(held_by(1));
    let table = [
        ([b, b, b, A, A], 3, Taken),
        ([b, A, b, A, b], 5, Taken),
        ([b, b, A, SILENT, b], 5, Taken),
        ([b, b, c, c, A], 5, Split),
        ([b, b, c, A, A], 5, Split),
        ([A, A, b, b, c], 5, Split),
        ([b, c, A, A, SILENT], 5, Split),
        ([gone, gone, gone, A, A], 3, Split),
        ([b, b, A, A, SILENT], 5, TooFewNodes),
        ([b, b, c, UNSENT, error], 5, TooFewNodes),
        ([untold, untold, untold, A, A], 3, TooFewNodes),
        ([own, own, own, A, A], 3, TooFewNodes),
        ([SILENT; 5], 3, TooFewNodes),
        ([error; 5], 3, TooFewNodes),
    ];
    for (outcomes, count, reason) in table {
        assert_eq!(settled_by(&outcomes), (count, Err(reason)), "{outcomes:?}");
    }
}

#[test]
fn half_of_an_even_number_of_nodes_is_too_few() {
    use AttemptError::{Split, TooFewNodes};
    assert_eq!(settled_by(&[A, SILENT]), (2, Err(TooFewNodes)));
    assert_eq!(settled_by(&[A, A, SILENT, SILENT]), (4, Err(TooFewNodes)));
    assert_eq!(settled_by(&[A, A, Ok(held_by(2)), SILENT]), (4, Err(Split)));
    assert_eq!(settled_by(&[SILENT, A]), (1, Err(TooFewNodes)), "no answer of the other helps");
    assert_eq!(settled_by(&[A, UNSENT, SILENT, A]), (3, Err(TooFewNodes)));
}

#[test]
fn quarantine_is_no_split_vote_while_a_majority_is_possible() {
    let [b, c] = [Ok(held_by(2)), Ok(held_by(3))];
    for (last, reason) in [(A, AttemptError::Quarantined), (b, AttemptError::Split)] {
        let mut lock = lock(lock_config(5));
        lock.begin(fresh(1), at_ms(1_000));
        let sets = sends(&mut lock);
        let mut settled = Vec::new();
        for (set, outcome) in sets.into_iter().zip([A, A, b, c, last]) {
            settled.push(tell_of(&mut lock, set, outcome, None));
        }
        let expected = [None, None, None, None, Some(LockOutcome::Settled(Err(reason)))];
        assert_eq!(settled, expected);
    }
}

#[test]
fn only_a_split_vote_is_tried_again() {
    let limit = Limit::WhileSplit(2);
    let [b, c] = [Ok(held_by(2)), Ok(held_by(3))];
    for (outcomes, again) in [([b, c, A], true), ([b, b, A], false), ([SILENT; 3], false)] {
        let mut lock = lock(LockConfig { limit, ..lock_config(3) });
        for (attempt, again) in [(1, again), (2, false)] {
            lock.begin(fresh(attempt), at_ms(1_000));
            for (set, outcome) in sends(&mut lock).into_iter().zip(outcomes) {
                tell(&mut lock, set, outcome);
            }
            sends(&mut lock);
            let waits = matches!(lock.phase(), Phase::Waiting { .. });
            assert_eq!(waits, again, "{outcomes:?}, attempt {attempt}");
            if !waits {
                break;
            }
            lock.handle_timeout(at_ms(2_000));
        }
    }
}

#[test]
fn a_lease_is_lost_two_milliseconds_or_a_hundredth_early() {
    for (ttl_ms, margin_us) in [(10_000, 2_000), (100, 1_000)] {
        let config = LockConfig { ttl: ms(ttl_ms), ..lock_config(1) };
        let mut lock = lock(config);
        lock.begin(fresh(1), at_ms(1_000));
        let set = sends(&mut lock)[0];
        assert_eq!(tell(&mut lock, set, Ok(Reply::Ok)), Some(LockOutcome::Settled(Ok(()))));
        let grant = lock.deliver(at_ms(1_001)).expect("granted");
        let lost_at = grant.deadline.before(Duration::from_micros(margin_us));
        assert_eq!(lock.poll_timeout(at_ms(0)), Some(lost_at));
        assert_eq!(lock.handle_timeout(lost_at.before(Duration::from_nanos(1))), None);
        assert_eq!(lock.handle_timeout(lost_at), Some(LOST));
        assert_eq!((lock.handle_timeout(lost_at), lock.poll_timeout(lost_at)), (None, None));
    }
}

#[test]
fn a_release_is_over_when_every_node_has_had_its_say() {
    let (mut lock, sets) = begun();
    for &set in &sets {
        tell(&mut lock, set, Ok(Reply::Ok));
    }
    lock.release();
    let releases = sends(&mut lock);
    tell(&mut lock, releases[0], Ok(Reply::Integer(1)));
    tell(&mut lock, releases[1], Ok(Reply::Error));
    assert_eq!(lock.poll_released(), None);
    tell(&mut lock, releases[2], Ok(Reply::Integer(0)));
    let (deleted, absent) = (mask(&[0]), mask(&[2]));
    let outcome = ReleaseOutcome { deleted, absent, unconfirmed: mask(&[1]), failed: mask(&[1]) };
    assert_eq!(lock.poll_released(), Some(outcome));
    assert_eq!((lock.poll_released(), lock.phase()), (None, Phase::Ended));
}

#[test]
fn releasing_twice_is_releasing_once() {
    let (mut lock, _) = begun();
    lock.release();
    assert_eq!(sends(&mut lock).len(), 3);
    lock.release();
    assert_eq!(sends(&mut lock).len(), 0);
}

// ---- ballots

fn said(lock: &Lock) -> [(NodeVerdict, u128); 3] {
    let ballot = lock.ballot();
    [0, 1, 2].map(|index| {
        let (verdict, after) = ballot.of(node(index));
        (verdict, after.as_millis())
    })
}

#[test]
fn each_nodes_verdict_is_kept_with_its_time_since_t1() {
    use NodeVerdict::{Error, Granted, NotAsked, NotCounted, Pending, Silent, Taken};
    let table = [
        (Ok(Reply::Ok), ELIGIBLE, Granted),
        (Ok(Reply::Ok), None, NotCounted),
        (Ok(held_by(9)), ELIGIBLE, Taken),
        (Ok(Reply::Error), ELIGIBLE, Error),
        (Err(NoAnswer::Unknown), ELIGIBLE, Silent),
        (Err(NoAnswer::NotSent), ELIGIBLE, NotAsked),
    ];
    for (outcome, eligible, verdict) in table {
        let (mut lock, sets) = begun();
        let now = at_ms(1_007);
        lock.handle_outcome(sets[1].id, sets[1].node, outcome, eligible, now);
        assert_eq!(said(&lock), [(Pending, 0), (verdict, 7), (Pending, 0)], "{outcome:?}");
    }
}

#[test]
fn answers_after_the_decision_count_if_the_grant_is_refused() {
    let (mut lock, sets) = begun();
    tell(&mut lock, sets[0], Ok(Reply::Ok));
    tell(&mut lock, sets[1], Ok(Reply::Ok));
    tell(&mut lock, sets[2], Ok(held_by(9)));
    assert_eq!(lock.deliver(at_ms(99_000)), Err(AttemptError::TooSlow));
    let granted = (NodeVerdict::Granted, 1);
    assert_eq!(said(&lock), [granted, granted, (NodeVerdict::Taken, 1)]);
}

#[test]
fn an_attempt_ignores_answers_to_the_last_one() {
    let (mut lock, sets) = begun();
    for &set in &sets {
        tell(&mut lock, set, Ok(held_by(9)));
    }
    sends(&mut lock);
    lock.handle_timeout(at_ms(2_000));
    lock.begin(fresh(2), at_ms(2_000));
    assert_eq!(said(&lock), [(NodeVerdict::Pending, 0); 3]);
}

#[test]
#[should_panic(expected = "an attempt begins when it is due")]
fn an_attempt_does_not_begin_before_it_is_due() {
    let (mut lock, _) = begun();
    lock.begin(fresh(2), at_ms(1_001));
}
