//! Rules of one connection, tested through the client that owns it.

use super::*;
use crate::Drift;
use crate::command::LockId;
use crate::lock::{AttemptError, Fresh, Limit, LockConfig, ReleaseOutcome};
use crate::node_set::Event;
use crate::testing::{
    NODE_TIMEOUT, RESOURCE, TTL, World, decided, failed, fresh, held, held_by, lock_config, mask,
    ms, node, token,
};
use crate::token::Token;

// ---- releasing

#[test]
fn failed_attempt_is_released_everywhere_also_without_answers() {
    let mut world = World::warm(5);
    world.acquire(lock_config(5), 1);
    world.answer_with(0, Reply::Ok);
    world.answer_with(1, Reply::Error);
    world.answer_with(2, Reply::Nil);
    assert_eq!(world.nodes[4].written, [World::set(1)], "undecided");
    world.pass(NODE_TIMEOUT);
    for (index, node) in world.nodes.iter().enumerate() {
        assert!(node.written.contains(&World::del(1)), "{index}");
    }
}

#[test]
fn a_release_is_written_at_once_behind_a_set_without_an_answer() {
    let (mut world, lock) = held();
    world.release(lock);
    assert_eq!(world.nodes[4].written, [World::set(1), World::del(1)]);
    world.answer(4);
    world.answer(4);
    assert_eq!(world.nodes[4].key, None);
}

#[test]
fn a_release_is_written_behind_a_set_on_a_link_that_looks_dead() {
    let (mut world, lock) = held();
    world.pass(ms(400));
    world.release(lock);
    assert_eq!(world.nodes[4].written, [World::set(1), World::del(1)]);
}

#[test]
fn a_set_that_was_not_written_is_dropped_with_its_release() {
    let mut world = World::reconnecting(1);
    let lock = world.acquire(lock_config(1), 1);
    world.release(lock);
    let outcome = ReleaseOutcome { absent: mask(&[0]), ..ReleaseOutcome::default() };
    assert!(world.events().contains(&Event::Released { lock, outcome }));
    world.accept(0);
    assert_eq!(world.nodes[0].written, []);
}

#[test]
fn a_set_that_times_out_unwritten_is_never_written() {
    let mut world = World::reconnecting(1);
    world.acquire(lock_config(1), 1);
    world.open(0);
    world.pass(NODE_TIMEOUT);
    assert_eq!(failed(&world.events()), Some(AttemptError::TooFewNodes));
    world.answer(0);
    assert_eq!(world.nodes[0].written, []);
}

#[test]
fn node_timeout_runs_from_the_attempt_not_the_connection() {
    let mut world = World::reconnecting(1);
    world.acquire(lock_config(1), 1);
    world.pass(NODE_TIMEOUT - ms(20));
    world.open(0);
    world.pass(ms(20));
    assert_eq!(failed(&world.events()), Some(AttemptError::TooFewNodes));
}

#[test]
fn a_cancelled_attempt_is_released() {
    let mut world = World::warm(3);
    let lock = world.acquire(lock_config(3), 1);
    world.answer(0);
    world.release(lock);
    assert_eq!(failed(&world.events()), Some(AttemptError::Cancelled));
    for node in &world.nodes {
        assert_eq!(node.written, [World::set(1), World::del(1)]);
    }
}

#[test]
fn release_reports_deleted_missing_and_silent_per_node() {
    let (mut world, lock) = held();
    world.nodes[1].key = None;
    world.release(lock);
    world.answer(0);
    world.answer(1);
    world.answer(2);
    assert_eq!(world.events(), []);
    world.pass(NODE_TIMEOUT);
    let outcome =
        ReleaseOutcome { deleted: mask(&[0, 2]), absent: mask(&[1]), unconfirmed: mask(&[3, 4]) };
    assert_eq!(world.events(), [Event::Released { lock, outcome }]);
}

#[test]
fn release_on_a_lost_connection_is_sent_twice_on_the_next() {
    let (mut world, lock) = held();
    world.release(lock);
    world.close(4);
    assert_eq!(world.client.owed(node(4)), 1);
    world.nodes[4].written.clear();
    world.pass(ms(10));
    world.accept(4);
    assert_eq!(world.nodes[4].written, [World::del(1)]);
    // The old SET is executed only now, from the server's receive queue.
    world.answer(4);
    world.nodes[4].key = Some(token(1));
    world.nodes[4].expires = world.now.after(TTL);
    world.pass(NODE_TIMEOUT - ms(1));
    assert_eq!(world.nodes[4].written.len(), 1);
    world.pass(ms(1));
    assert_eq!(world.nodes[4].written.len(), 2);
    world.answer(4);
    assert_eq!((world.nodes[4].key, world.client.owed(node(4))), (None, 0));
}

#[test]
fn a_debt_whose_second_payment_was_lost_is_owed_again() {
    let (mut world, lock) = held();
    world.release(lock);
    world.close(4);
    world.pass(ms(10));
    world.accept(4);
    world.answer(4);
    world.pass(NODE_TIMEOUT);
    world.close(4);
    world.nodes[4].written.clear();
    world.pass(ms(20));
    world.accept(4);
    assert_eq!(world.nodes[4].written, [World::del(1)]);
}

#[test]
fn release_is_owed_if_the_connection_was_lost_before() {
    let (mut world, lock) = held();
    world.close(4);
    world.pass(ms(10));
    world.accept(4);
    world.nodes[4].written.clear();
    world.release(lock);
    assert_eq!(world.nodes[4].written, [World::del(1)]);
    world.answer(4);
    world.pass(NODE_TIMEOUT);
    assert_eq!(world.nodes[4].written, [World::del(1), World::del(1)]);
}

#[test]
fn a_debt_is_forgotten_a_ttl_after_the_reset() {
    let (mut world, lock) = held();
    world.release(lock);
    world.close(4);
    world.pass(TTL - ms(1));
    assert_eq!(world.client.owed(node(4)), 1);
    world.pass(ms(1));
    assert_eq!(world.client.owed(node(4)), 0);
}

#[test]
fn release_answered_by_an_error_is_retried_after_the_patience() {
    let (mut world, lock) = held();
    world.release(lock);
    world.answer_with(0, Reply::Error);
    (1..3).for_each(|index| world.answer(index));
    (3..5).for_each(|index| (0..2).for_each(|_| world.answer(index)));
    let outcome = ReleaseOutcome {
        deleted: mask(&[1, 2, 3, 4]),
        unconfirmed: mask(&[0]),
        ..ReleaseOutcome::default()
    };
    assert_eq!(world.events(), [Event::Released { lock, outcome }]);
    assert_eq!(world.client.owed(node(0)), 1);
    for tries in 1..=3 {
        world.nodes[0].written.clear();
        world.pass(ms(499));
        assert_eq!(world.nodes[0].written, [], "{tries}");
        world.pass(ms(1));
        assert_eq!(world.nodes[0].written, [World::del(1)], "{tries}");
        if tries < 3 {
            world.answer_with(0, Reply::Error);
        }
    }
    world.answer(0);
    assert_eq!((world.nodes[0].key, world.client.owed(node(0))), (None, 0));
    assert_eq!(world.client.poll_timeout(), None);
}

#[test]
fn release_that_always_fails_ends_when_the_key_is_gone() {
    let (mut world, lock) = held();
    world.release(lock);
    world.answer_with(0, Reply::Error);
    let mut tries = 0;
    for _ in 0..TTL.as_millis() {
        world.pass(ms(1));
        if !world.nodes[0].inbox.is_empty() {
            tries += 1;
            world.answer_with(0, Reply::Error);
        }
    }
    assert_eq!((tries, world.client.owed(node(0))), (19, 0));
    world.pass(TTL);
    assert_eq!(world.nodes[0].inbox.len(), 0);
}

#[test]
fn the_release_of_a_failed_attempt_is_tried_again_too() {
    let mut world = World::warm(3);
    world.acquire(lock_config(3), 1);
    (0..3).for_each(|index| world.answer_with(index, Reply::Error));
    world.answer_with(0, Reply::Error);
    (1..3).for_each(|index| world.answer(index));
    assert_eq!([0, 1, 2].map(|index| world.client.owed(node(index))), [1, 0, 0]);
}

#[test]
fn refused_release_on_a_lost_connection_is_owed_like_others() {
    let (mut world, lock) = held();
    world.release(lock);
    world.answer_with(0, Reply::Error);
    world.close(0);
    world.nodes[0].written.clear();
    world.pass(ms(10));
    world.accept(0);
    assert_eq!(world.nodes[0].written, [World::del(1)]);
    world.answer_with(0, Reply::Error);
    world.pass(NODE_TIMEOUT);
    assert_eq!(world.nodes[0].written.len(), 1, "not before its patience is over");
    world.pass(ms(450));
    world.answer(0);
    assert_eq!(world.client.owed(node(0)), 0);
}

/// Takes `count` leases on one node, each with its own token.
fn many_leases(world: &mut World, count: u32) -> Vec<LockId> {
    let lease = |number: u32| {
        let mut bytes = [0; Token::LENGTH];
        bytes[..4].copy_from_slice(&number.to_le_bytes());
        let lock = world.client.open(RESOURCE, lock_config(1), world.now);
        world.client.begin(lock, Fresh { token: Token::from_bytes(bytes), jitter: 0 }, world.now);
        world.drain();
        world.answer_with(0, Reply::Ok);
        world.client.deliver(lock, world.now).expect("granted");
        lock
    };
    (0..count).map(lease).collect()
}

#[test]
fn a_release_that_finds_no_room_on_the_connection_is_owed() {
    let mut world = World::warm(1);
    let leases = many_leases(&mut world, PENDING_MAX as u32 + 6);
    leases.iter().for_each(|&lock| world.release(lock));
    assert_eq!((world.nodes[0].inbox.len(), world.client.owed(node(0))), (IN_FLIGHT_MAX, 6));
    for _ in 0..2 {
        while !world.nodes[0].inbox.is_empty() {
            world.answer_with(0, Reply::Integer(1));
        }
        world.pass(NODE_TIMEOUT);
    }
    assert_eq!(world.client.owed(node(0)), 0);
    let released = world.nodes[0].written.iter().filter(|op| matches!(op, Op::Release { .. }));
    assert_eq!(released.count(), PENDING_MAX + 2 * 6, "each that was owed is paid twice");
}

#[test]
fn a_debt_that_finds_no_room_does_not_keep_the_timer_busy() {
    let mut world = World::warm(1);
    let mut leases = many_leases(&mut world, PENDING_MAX as u32 + 1);
    let first = leases.pop().expect("there are many");
    world.release(first);
    world.close(0);
    world.pass(ms(10));
    world.accept(0);
    world.answer_with(0, Reply::Integer(1));
    leases.into_iter().for_each(|lock| world.release(lock));
    world.pass(NODE_TIMEOUT);
    assert_eq!(world.client.owed(node(0)), 1, "it is due, and waits for an answer to another");
    assert!(world.client.poll_timeout().is_some_and(|at| at > world.now));
}

// ---- introductions

#[test]
fn a_node_too_busy_to_introduce_itself_is_asked_again() {
    let mut world = World::reconnecting(1);
    let limit = Limit::Until(world.now.after(TTL / 2));
    let lock = world.acquire(LockConfig { limit, ..lock_config(1) }, 1);
    world.open(0);
    world.answer_with(0, Reply::Error);
    world.answer(0);
    assert_eq!(failed(&world.events()), Some(AttemptError::Quarantined));
    world.answer(0);
    world.pass(ms(499));
    assert_eq!(world.events(), [], "it is left alone for the link's patience");
    world.pass(ms(6));
    assert_eq!(world.events(), [Event::AttemptDue(lock)]);
    world.begin(lock, 2);
    assert_eq!(world.nodes[0].inbox.front().map(|&(_, op)| op), Some(Op::Introduce));
    world.answer(0);
    world.answer(0);
    assert_eq!(decided(&world.events()).map(|(counted, _)| counted), Some(mask(&[0])));
}

#[test]
fn node_that_never_introduces_itself_counts_in_the_end() {
    let mut world = World::cold(1);
    world.client.connect(world.now);
    world.drain();
    world.open(0);
    let counts_from = world.now.after(TTL + Drift::default().of(TTL));
    while world.now < counts_from {
        world.answer_with(0, Reply::Error);
        assert_eq!(world.client.eligible_from(node(0)), Some(counts_from));
        while !world.nodes[0].inbox.is_empty() {
            world.answer(0);
        }
        world.pass(ms(501));
        world.acquire(lock_config(1), 1);
        assert_eq!(world.nodes[0].inbox[0].1, Op::Introduce, "it is asked each time");
    }
    world.answer_with(0, Reply::Error);
    world.answer(0);
    assert_eq!(decided(&world.events()).map(|(counted, _)| counted), Some(mask(&[0])));
}

// ---- giving up

#[test]
fn a_silent_connection_is_reset_after_half_a_second() {
    let (mut world, _) = held();
    world.pass(ms(499));
    assert_eq!(world.nodes[4].resets, 0);
    world.pass(ms(1));
    assert_eq!((world.nodes[4].resets, world.nodes[3].resets), (1, 1));
    assert_eq!(world.nodes[0].resets, 0, "nothing is outstanding there");
}

#[test]
fn node_that_owes_an_answer_gets_no_new_set_before_it() {
    let (mut world, lock) = held();
    world.pass(NODE_TIMEOUT);
    world.release(lock);
    (0..3).for_each(|index| world.answer(index));
    world.pass(NODE_TIMEOUT);
    world.acquire(lock_config(5), 2);
    assert!(!world.nodes[4].written.contains(&World::set(2)));
    assert!(world.nodes[0].written.contains(&World::set(2)));
    world.answer(4);
    world.answer(4);
    world.acquire(lock_config(5), 3);
    assert!(world.nodes[4].written.contains(&World::set(3)));
}

#[test]
fn a_node_that_does_not_answer_a_debt_gets_no_new_set() {
    let (mut world, lock) = held();
    world.release(lock);
    world.close(4);
    world.pass(ms(10));
    world.accept(4);
    assert_eq!(world.nodes[4].inbox.len(), 1, "the release that was owed");
    (0..3).for_each(|index| world.answer(index));
    world.pass(NODE_TIMEOUT);
    world.acquire(lock_config(5), 2);
    assert!(!world.nodes[4].written.contains(&World::set(2)));
}

#[test]
fn a_connection_is_not_given_up_for_the_time_before_it_was_open() {
    let mut world = World::warm(1);
    let lock = world.acquire(lock_config(1), 1);
    world.answer(0);
    world.client.deliver(lock, world.now).expect("granted");
    world.close(0);
    world.pass(ms(8));
    // The connection is being dialled: the release waits until it opens, which takes long.
    world.release(lock);
    world.pass(ms(499));
    world.accept(0);
    assert_eq!(world.nodes[0].inbox.len(), 1);
    world.pass(ms(499));
    assert_eq!(world.nodes[0].resets, 1, "only the close above");
}

#[test]
fn a_connection_whose_answers_do_not_match_is_reset() {
    let mut world = World::warm(1);
    world.acquire(lock_config(1), 1);
    world.answer_with(0, Reply::Integer(1));
    assert_eq!(world.nodes[0].resets, 1);
    let mut world = World::warm(1);
    world.answer_with(0, Reply::Ok);
    assert_eq!(world.nodes[0].resets, 1, "an answer to nothing");
}

#[test]
fn what_a_connection_that_is_gone_still_says_is_ignored() {
    let mut world = World::warm(1);
    world.acquire(lock_config(1), 1);
    let epoch = world.nodes[0].epoch.expect("open");
    world.close(0);
    world.pass(ms(10));
    world.client.handle_reply(node(0), epoch, Reply::Ok, world.now);
    world.client.handle_closed(node(0), epoch, world.now);
    world.client.handle_connected(node(0), epoch, world.now);
    world.drain();
    world.accept(0);
    assert!(world.client.is_open(node(0)));
    assert_eq!(decided(&world.events), None);
}

#[test]
fn dial_has_the_whole_connect_timeout_from_its_request() {
    let mut world = World::cold(1);
    world.client.connect(world.now);
    world.drain();
    world.pass(ms(499));
    assert!(world.nodes[0].dialed.is_some());
    world.pass(ms(1));
    assert!(world.nodes[0].dialed.is_none());
}

/// Asserts that the node is dialled after exactly this time.
fn assert_dialled_after(world: &mut World, wait_ms: u64) {
    world.pass(ms(wait_ms - 1));
    assert!(world.nodes[0].dialed.is_none(), "{wait_ms}");
    world.pass(ms(1));
    assert!(world.nodes[0].dialed.is_some(), "{wait_ms}");
}

#[test]
fn dials_are_spaced_out_up_to_a_second() {
    let mut world = World::cold(1);
    world.client.connect(world.now);
    world.drain();
    for wait_ms in [10, 20, 40, 80, 160, 320, 640, 1_000, 1_000] {
        world.close(0);
        assert_dialled_after(&mut world, wait_ms);
    }
}

#[test]
fn node_that_only_introduces_itself_is_dialled_less_often() {
    let mut world = World::cold(1);
    world.client.connect(world.now);
    world.drain();
    for wait_ms in [10, 20, 40, 80] {
        world.accept(0);
        world.close(0);
        assert_dialled_after(&mut world, wait_ms);
    }
}

#[test]
fn node_that_answered_a_command_is_dialled_soon_after_a_loss() {
    let mut world = World::cold(1);
    world.client.connect(world.now);
    world.drain();
    for _ in 0..3 {
        world.close(0);
        world.pass(ms(100));
    }
    world.accept(0);
    world.acquire(lock_config(1), 1);
    world.answer(0);
    world.close(0);
    world.pass(ms(10));
    assert!(world.nodes[0].dialed.is_some());
}

#[test]
fn dials_after_an_attempt_are_spread_by_up_to_a_quarter() {
    let dialled_after = |jitter: u64| {
        let mut world = World::warm(1);
        let lock = world.client.open(RESOURCE, lock_config(1), world.now);
        let fresh = Fresh { jitter, ..fresh(1) };
        world.client.begin(lock, fresh, world.now);
        world.drain();
        world.close(0);
        world.client.poll_timeout().expect("it dials again").since(world.now)
    };
    let waits: Vec<_> = (0..64_u64).map(|it| dialled_after(it << 58)).collect();
    let (least, most) = (*waits.iter().min().unwrap(), *waits.iter().max().unwrap());
    assert!(least >= ms(15) / 2 && most <= ms(10), "{least:?} to {most:?}");
    assert!(most - least > ms(2), "{least:?} to {most:?}");
}

#[test]
fn beyond_the_limit_a_command_is_refused_and_nothing_is_owed() {
    let mut world = World::reconnecting(1);
    for _ in 0..PENDING_MAX / 2 {
        world.acquire(lock_config(1), 1);
    }
    world.events();
    let lock = world.acquire(lock_config(1), 1);
    assert!(world.events().contains(&Event::GaveUp {
        lock,
        reason: AttemptError::TooFewNodes,
        taken_for: None
    }));
    assert_eq!(world.client.owed(node(0)), 0);
}

#[test]
fn commands_beyond_the_window_wait_until_there_is_room() {
    let mut world = World::warm(1);
    for _ in 0..3 * IN_FLIGHT_MAX {
        world.acquire(lock_config(1), 1);
    }
    assert_eq!(world.nodes[0].written.len(), IN_FLIGHT_MAX);
    world.pass(NODE_TIMEOUT / 2);
    (0..IN_FLIGHT_MAX).for_each(|_| world.answer_with(0, held_by(9)));
    assert_eq!(world.nodes[0].written.len(), 2 * IN_FLIGHT_MAX, "one answered, one written");
    world.events();
    world.pass(NODE_TIMEOUT / 2);
    let events = world.events();
    let failed = |why| {
        let gave_up = |it: &&Event| matches!(it, Event::GaveUp { reason, .. } if *reason == why);
        events.iter().filter(gave_up).count()
    };
    assert_eq!(failed(AttemptError::TooFewNodes), IN_FLIGHT_MAX, "asked, and not answered");
    assert_eq!(failed(AttemptError::Overloaded), IN_FLIGHT_MAX, "not asked, for others were ahead");
}

#[test]
fn a_node_that_refuses_its_introduction_does_not_vote() {
    let mut world = World::warm(1);
    world.close(0);
    world.pass(ms(10));
    world.open(0);
    world.answer_with(0, Reply::Error);
    assert!(world.client.eligible_from(node(0)) > Some(world.now), "it may have forgotten keys");
    world.acquire(lock_config(1), 1);
    world.answer(0);
    assert_eq!(failed(&world.events()), Some(AttemptError::Quarantined));
}
