//! Rules of keep-alive, one per test, at the interface that drivers use.
//!
//! `kept` grants a lease at one day, by the nodes 0 and 1 of three. A lease of 10 s is over after
//! 9 898 ms, and `fresh` spreads a round by up to a tenth of its period.

mod late_answers;
mod many_leases;

use core::time::Duration;

use crate::command::{LockId, Op, Reply};
use crate::lock::{ExtendError, LockConfig, LostReason};
use crate::node_set::Event;
use crate::testing::{
    NODE_TIMEOUT, RESOURCE, TTL, World, fresh, held_by_three_with, lock_config, ms, node, token,
};
use crate::time::BootInstant;

fn kept(at_most: Duration) -> (World, LockId) {
    kept_with(LockConfig { keep_alive: Some(at_most), ..lock_config(3) })
}

fn kept_with(config: LockConfig) -> (World, LockId) {
    held_by_three_with(config)
}

/// Returns a lease that the nodes 0 and 1 have granted. Node 2 has not answered.
fn granted_by_two() -> (World, LockId) {
    granted_by_two_in(World::warm(3))
}

fn granted_by_two_in(mut world: World) -> (World, LockId) {
    let config = LockConfig { keep_alive: Some(TTL * 60), ..lock_config(3) };
    let lock = world.acquire(config, 1);
    (0..2).for_each(|index| world.answer(index));
    world.client.deliver(lock, world.now).expect("granted");
    (world, lock)
}

/// Lets `time` pass while every node answers a millisecond after it was asked.
fn live(world: &mut World, time: Duration) {
    live_among(world, time, &[0, 1, 2]);
}

fn live_among(world: &mut World, time: Duration, nodes: &[usize]) {
    let end = world.now.after(time);
    while world.now < end {
        for &index in nodes {
            while !world.nodes[index].inbox.is_empty() {
                world.answer(index);
            }
        }
        world.pass(ms(1).min(end.since(world.now)));
    }
}

fn rounds(world: &World) -> Vec<(Duration, Duration)> {
    let begun = BootInstant::from_nanos(86_400_000_000_000);
    let written = world.nodes[0].written.iter().zip(&world.nodes[0].written_at);
    let round = |(&op, &at): (&Op, &BootInstant)| match op {
        Op::Extend { ttl, .. } => Some((at.since(begun), ttl)),
        _ => None,
    };
    written.filter_map(round).collect()
}

fn lost(events: &[Event]) -> Option<LostReason> {
    events.iter().find_map(|event| match *event {
        Event::Lost { reason, .. } => Some(reason),
        _ => None,
    })
}

#[test]
fn a_lease_is_kept_alive_by_rounds_a_third_of_the_ttl_apart() {
    let (mut world, lock) = kept(ms(600_000));
    live(&mut world, ms(40_000));
    assert_eq!(lost(&world.events()), None);
    assert!(world.client.check(lock, ms(6_000), world.now).is_ok());
    let rounds = rounds(&world);
    let (mut before, ttl) = rounds[0];
    assert_eq!(ttl, TTL);
    for &(at, ttl) in &rounds[1..] {
        let period = at - before;
        assert!(ms(2_800) < period && period < ms(3_700), "{period:?}, sooner than half the TTL");
        assert_eq!(ttl, TTL);
        before = at;
    }
    assert!((11..=15).contains(&rounds.len()), "{rounds:?}");
}

#[test]
fn first_round_is_early_if_a_node_answered_after_the_grant() {
    let (mut world, lock) = kept(ms(600_000));
    live(&mut world, ms(100));
    let begun = rounds(&world);
    assert!(begun.len() == 1 && begun[0].0 >= ms(45), "{begun:?}");
    // From now on one of the nodes that granted the lease may fail: the node whose key came after
    // the grant counts, too.
    live_among(&mut world, ms(12_000), &[1, 2]);
    assert!(world.client.check(lock, ms(5_000), world.now).is_ok());
}

#[test]
fn a_key_that_was_set_after_the_first_round_soon_counts() {
    let (mut world, _) = granted_by_two();
    live_among(&mut world, NODE_TIMEOUT - ms(1), &[0, 1]);
    live(&mut world, ms(200));
    assert_eq!(rounds(&world).len(), 2, "{:?}", rounds(&world));
}

#[test]
fn a_key_that_is_set_again_soon_counts() {
    let (mut world, lock) = kept(ms(600_000));
    live(&mut world, ms(3_000));
    world.nodes[2].key = None;
    live(&mut world, ms(1_000));
    let [_, (found, _), (counts, _)] = rounds(&world)[..] else { panic!("{:?}", rounds(&world)) };
    let pause = counts - found;
    assert!(ms(45) < pause && pause < ms(60), "{pause:?}");
    live_among(&mut world, ms(8_000), &[1, 2]);
    assert!(world.client.check(lock, ms(5_000), world.now).is_ok());
}

#[test]
fn a_key_refused_beside_anothers_is_soon_set_again() {
    let (mut world, lock) = kept(ms(600_000));
    world.nodes[2].key = Some(token(9));
    live(&mut world, ms(1_000));
    let refused = rounds(&world).len();
    assert!((3..=4).contains(&refused), "{:?}", rounds(&world));
    live(&mut world, ms(9_000));
    assert!(rounds(&world).len() < refused + 12, "{:?}", rounds(&world));
    world.nodes[2].key = None;
    live(&mut world, ms(2_000));
    live_among(&mut world, ms(8_000), &[1, 2]);
    assert!(world.client.check(lock, ms(5_000), world.now).is_ok());
}

#[test]
fn rounds_become_rare_if_a_node_keeps_losing_its_key() {
    let (mut world, _) = kept(ms(600_000));
    for _ in 0..10_000 {
        world.nodes[2].key = None;
        live(&mut world, ms(1));
    }
    let times: Vec<Duration> = rounds(&world).into_iter().map(|(at, _)| at).collect();
    assert!(times[5..].windows(2).all(|pair| pair[1] - pair[0] > ms(740)), "{times:?}");
    assert!((10..=18).contains(&times.len()), "{times:?}");
}

#[test]
fn a_node_that_was_away_at_the_grant_soon_counts() {
    let mut without_it = World::warm(3);
    without_it.close(2);
    for (mut world, lock) in [granted_by_two_in(without_it), granted_by_two()] {
        if world.nodes[2].epoch.is_some() {
            world.close_late(2);
        }
        live_among(&mut world, ms(2_000), &[0, 1]);
        assert_eq!(rounds(&world).len(), 1, "a node that is away is not waited for");
        world.accept(2);
        world.execute_late(2);
        live(&mut world, ms(150));
        assert_eq!(rounds(&world).len(), 3, "{:?}", rounds(&world));
        live_among(&mut world, ms(12_000), &[1, 2]);
        assert!(world.client.check(lock, ms(5_000), world.now).is_ok());
    }
}

/// Returns a watched lease of which every node has the key, long before its next round.
fn watched() -> (World, LockId) {
    let keep_alive = Some(ms(600_000));
    let (mut world, lock) = kept_with(LockConfig { keep_alive, watched: true, ..lock_config(3) });
    live(&mut world, ms(4_000));
    (world, lock)
}

/// Asserts that the key of node 2 is soon set again and counts: after it node 0 is not needed.
fn soon_has_it_again((mut world, lock): (World, LockId)) {
    let before = rounds(&world).len();
    live(&mut world, ms(250));
    assert_eq!(rounds(&world).len(), before + 2, "set again, and counted: {:?}", rounds(&world));
    live_among(&mut world, ms(8_000), &[1, 2]);
    assert!(world.client.check(lock, ms(5_000), world.now).is_ok());
}

#[test]
fn a_key_that_has_expired_on_a_stalled_node_is_soon_set_again() {
    let (mut world, lock) = watched();
    world.close(2);
    world.nodes[2].key = None;
    live_among(&mut world, ms(4_000), &[0, 1]);
    world.accept(2);
    soon_has_it_again((world, lock));
}

#[test]
fn a_key_that_is_lost_while_its_round_is_under_way_is_soon_set_again() {
    let (mut world, lock) = watched();
    world.extend(lock).expect("begun");
    world.answer(2);
    world.change(2, None);
    while !world.nodes[2].inbox.is_empty() {
        world.answer(2);
    }
    world.answer_all();
    soon_has_it_again((world, lock));
}

#[test]
fn a_key_that_missed_rounds_is_soon_prolonged() {
    let (mut world, _) = watched();
    world.close(2);
    live_among(&mut world, ms(4_000), &[0, 1]);
    world.accept(2);
    world.nodes[2].written.clear();
    live(&mut world, ms(100));
    assert!(world.nodes[2].written.contains(&World::prolong(1)), "{:?}", world.nodes[2].written);
}

#[test]
fn a_key_that_is_reported_as_gone_is_soon_set_again() {
    let (mut world, lock) = watched();
    world.change(2, None);
    soon_has_it_again((world, lock));
}

#[test]
fn a_key_whose_round_was_lost_is_soon_set_again() {
    let (mut world, lock) = watched();
    world.nodes[2].key = None;
    world.push(2);
    live(&mut world, ms(10));
    // The round that is to set the key again begins, and node 2 is gone.
    world.close(2);
    live_among(&mut world, ms(100), &[0, 1]);
    world.accept(2);
    live(&mut world, ms(450));
    live_among(&mut world, ms(8_000), &[1, 2]);
    assert!(world.client.check(lock, ms(5_000), world.now).is_ok(), "node 0 is not needed");
}

#[test]
fn the_first_round_can_wait_if_every_node_decided() {
    let mut world = World::warm(1);
    let config = LockConfig { keep_alive: Some(TTL * 60), ..lock_config(1) };
    let lock = world.acquire(config, 1);
    world.answer(0);
    world.client.deliver(lock, world.now).expect("granted");
    live_among(&mut world, ms(2_700), &[0]);
    assert_eq!(rounds(&world), []);
}

#[test]
fn nothing_is_extended_without_being_asked() {
    let (mut world, _) = held_by_three_with(lock_config(3));
    live(&mut world, ms(9_897));
    assert_eq!((rounds(&world), lost(&world.events())), (vec![], Some(LostReason::DeadlinePassed)));
}

#[test]
fn a_keep_alive_round_is_reported_like_any_other() {
    let (mut world, lock) = kept(ms(600_000));
    live(&mut world, ms(100));
    let told = world.events();
    let [Event::ExtensionBegan { t1, ttl: TTL, .. }, Event::Extended { lock: it, deadline, .. }] =
        told[..]
    else {
        panic!("{told:?}");
    };
    assert_eq!((it, deadline), (lock, t1.after(ms(9_898))));
}

#[test]
fn rounds_of_many_leases_spread_over_a_fifth_of_the_period() {
    let begun: Vec<Duration> = [0, u64::MAX / 4, u64::MAX / 2, u64::MAX]
        .into_iter()
        .map(|jitter| {
            let mut world = World::warm(1);
            let config = LockConfig { keep_alive: Some(TTL * 60), ..lock_config(1) };
            let lock = world.client.open(RESOURCE, config, world.now);
            let fresh = crate::Fresh { jitter, ..fresh(1) };
            world.client.begin(lock, fresh, world.now);
            world.drain();
            world.answer(0);
            let granted_at = world.now;
            world.client.deliver(lock, world.now).expect("granted");
            let first = world.client.poll_timeout().expect("a round follows");
            first.since(granted_at)
        })
        .collect();
    let (least, most) = (begun.iter().min().unwrap(), begun.iter().max().unwrap());
    // A round begins between three tenths and eleven thirtieths of the TTL after a T1, less the
    // drift.
    assert!(*least >= ms(3_000 - 102) && *most <= ms(3_667 - 102), "{begun:?}");
    assert!(*most - *least > ms(100), "{begun:?}");
}

#[test]
fn a_round_that_fails_is_tried_again_before_long() {
    let (mut world, lock) = kept(ms(600_000));
    live(&mut world, ms(3_500));
    world.events();
    // No node answers for five seconds: the rounds fail, but the lease is unaffected.
    live_among(&mut world, ms(5_000), &[]);
    let told = world.events();
    let too_few =
        Event::ExtensionFailed { lock, token: token(1), reason: ExtendError::TooFewNodes };
    let (rounds, unfinished) = told.as_chunks::<2>();
    let fails = |&[began, ended]: &[Event; 2]| {
        matches!(began, Event::ExtensionBegan { .. }) && ended == too_few
    };
    assert!(!rounds.is_empty() && rounds.iter().all(fails), "{told:?}");
    assert!(unfinished.iter().all(|it| matches!(it, Event::ExtensionBegan { .. })), "{told:?}");
    let dialled = (0..3).filter(|&index| world.nodes[index].dialed.is_some()).collect::<Vec<_>>();
    dialled.into_iter().for_each(|index| world.accept(index));
    live(&mut world, ms(1_000));
    assert!(world.events().iter().any(|event| matches!(event, Event::Extended { .. })));
}

#[test]
fn a_lease_whose_rounds_all_fail_is_lost_in_time() {
    let (mut world, lock) = kept(ms(600_000));
    let epochs = [0, 1, 2].map(|index| world.nodes[index].epoch.expect("open"));
    for (index, epoch) in epochs.into_iter().enumerate() {
        world.client.handle_writable(node(index), epoch, false, world.now);
    }
    world.pass(ms(9_895));
    assert_eq!(lost(&world.events()), None);
    world.pass(ms(1));
    assert_eq!(lost(&world.events()), Some(LostReason::KeepAliveFailed));
    assert!(world.client.check(lock, Duration::ZERO, world.now).is_err());
    world.pass(TTL);
    assert_eq!(world.events(), [], "nothing is begun once it is lost");
}

#[test]
fn nothing_is_asked_for_beyond_the_limit() {
    for limit_ms in [0, 1, 5_000, 9_999, 12_000, 12_345, 29_000] {
        let (mut world, lock) = kept(ms(limit_ms));
        let begun = world.now;
        live(&mut world, ms(40_000));
        for (at, ttl) in rounds(&world) {
            assert!(at + ttl <= ms(limit_ms), "{limit_ms}: {ttl:?} asked for at {at:?}");
        }
        let events = world.events();
        assert_eq!(lost(&events), Some(LostReason::KeepAliveEnded), "{limit_ms}");
        let mut ends = events.iter().filter_map(|event| match *event {
            Event::Extended { deadline, .. } => Some(deadline.since(begun)),
            _ => None,
        });
        let end = ends.next_back().unwrap_or(ms(9_898));
        let least = ms(limit_ms).min(ms(9_898)).max(ms(limit_ms).saturating_sub(ms(104)));
        assert!(least <= end, "{limit_ms}: kept until {end:?} only");
        let over = world.client.check(lock, Duration::ZERO, world.now);
        assert_eq!(over, Err(LostReason::KeepAliveEnded), "{limit_ms}");
    }
}

#[test]
fn a_last_round_that_failed_is_not_the_last() {
    let (mut world, lock) = kept(ms(20_000));
    let begun = world.now;
    while rounds(&world).last().is_none_or(|&(_, ttl)| ttl == TTL) {
        live(&mut world, ms(1));
    }
    (0..3).for_each(|index| world.answer_with(index, Reply::Error));
    // The caller's own round succeeds, and asks for less than the limit allows.
    let left = world.client.deadline(lock).expect("held").since(world.now);
    world.client.extend(lock, left + ms(200), world.now).expect("begun");
    world.drain();
    live(&mut world, ms(1));
    let deadline = world.client.deadline(lock).expect("held").since(begun);
    assert!(deadline < ms(19_700), "{deadline:?}");
    live(&mut world, ms(12_000));
    let mut extended = world.events().into_iter().filter_map(|event| match event {
        Event::Extended { deadline, .. } => Some(deadline.since(begun)),
        _ => None,
    });
    let end = extended.next_back().expect("extended");
    assert!(end >= ms(19_890), "kept until {end:?} only");
}

#[test]
fn a_lease_that_ends_for_another_reason_than_its_limit_says_so() {
    let (mut world, lock) = kept(ms(600_000));
    live(&mut world, ms(5_000));
    world.now = world.now.after(ms(20_000));
    let over = world.client.check(lock, Duration::ZERO, world.now);
    assert_eq!(over, Err(LostReason::DeadlinePassed), "stopped for longer than it lasts");
    world.events();
    world.fire();
    assert_eq!(lost(&world.events()), Some(LostReason::DeadlinePassed));
}

#[test]
fn a_ttl_that_the_drift_eats_is_no_limit() {
    // Of 5 ms, 2.95 ms are left after drift. A third of the TTL less the drift is negative: the
    // first round would be due before the lease began.
    let config = LockConfig { ttl: ms(5), keep_alive: Some(ms(600_000)), ..lock_config(3) };
    let (mut world, lock) = kept_with(config);
    world.pass(ms(5));
    assert_eq!(lost(&world.events()), Some(LostReason::DeadlinePassed));
    assert!(world.client.check(lock, Duration::ZERO, world.now).is_err());
}

#[test]
fn the_rounds_of_the_machine_do_not_count_against_the_callers() {
    let config = LockConfig { extensions_max: 1, keep_alive: Some(TTL * 60), ..lock_config(3) };
    let (mut world, lock) = kept_with(config);
    live(&mut world, ms(20_000));
    assert!(rounds(&world).len() > 3);
    world.extend(lock).expect("the first of its own");
    live(&mut world, ms(1_000));
    assert_eq!(world.extend(lock), Err(ExtendError::TooMany));
    live(&mut world, ms(20_000));
    assert_eq!(lost(&world.events()), None, "it is kept alive all the same");
}

#[test]
fn the_callers_round_comes_first_and_puts_the_next_off() {
    let (mut world, lock) = kept(ms(600_000));
    live(&mut world, ms(1_000));
    let due = world.client.poll_timeout().expect("the next round");
    world.pass(due.since(world.now) - ms(10));
    world.extend(lock).expect("begun");
    world.answer(0);
    // The machine's own round falls due while the caller's round is under way.
    world.pass(ms(45));
    assert_eq!(rounds(&world).len(), 2);
    world.answer(1);
    live(&mut world, ms(2_700));
    assert_eq!(rounds(&world).len(), 2, "a third of the TTL after that");
    live(&mut world, ms(900));
    assert_eq!(rounds(&world).len(), 3);
}

#[test]
fn a_longer_extension_by_the_caller_is_not_shortened() {
    let config = LockConfig { ttl: ms(2_000), keep_alive: Some(TTL * 60), ..lock_config(3) };
    let (mut world, lock) = kept_with(config);
    live(&mut world, ms(100));
    world.extend(lock).expect("to ten seconds");
    live(&mut world, ms(8_000));
    assert_eq!(rounds(&world).len(), 2, "there is nothing to do for the machine");
    live(&mut world, ms(8_000));
    assert!(rounds(&world).len() > 5, "it goes on when the TTL has come near");
    assert_eq!(lost(&world.events()), None);
}

#[test]
fn a_lease_that_is_released_left_or_lost_is_not_kept_alive() {
    for end in 0..3 {
        let (mut world, lock) = kept(ms(600_000));
        live(&mut world, ms(5_000));
        match end {
            0 => world.release(lock),
            1 => world.client.leave(lock, world.now),
            _ => world.nodes.iter_mut().for_each(|node| node.key = None),
        }
        world.drain();
        let before = rounds(&world).len() + usize::from(end == 2);
        live(&mut world, ms(20_000));
        assert_eq!(rounds(&world).len(), before, "{end}");
    }
}

#[test]
fn an_attempt_begins_without_what_the_last_lease_was_kept_by() {
    let config = LockConfig { keep_alive: Some(ms(12_000)), ..lock_config(1) };
    let mut world = World::warm(1);
    for byte in 1..=2 {
        let lock = world.acquire(config, byte);
        world.answer(0);
        world.client.deliver(lock, world.now).expect("granted");
        live_among(&mut world, ms(13_000), &[0]);
        assert_eq!(lost(&world.events()), Some(LostReason::KeepAliveEnded));
        world.release(lock);
        live_among(&mut world, ms(5), &[0]);
    }
}

#[test]
fn an_error_of_every_node_is_a_round_that_failed() {
    let (mut world, lock) = kept(ms(600_000));
    let due = world.client.poll_timeout().expect("a round follows");
    world.pass(due.since(world.now));
    (0..2).for_each(|index| world.answer_with(index, Reply::Error));
    let told = world.events();
    let [Event::ExtensionBegan { .. }, failed] = told[..] else { panic!("{told:?}") };
    let reason = ExtendError::TooFewNodes;
    assert_eq!(failed, Event::ExtensionFailed { lock, token: token(1), reason });
}
