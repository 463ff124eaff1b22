//! Rules of the queue in which uses of one resource wait for each other, one per test.

use super::*;
use crate::command::Reply;
use crate::quorum::NodeIndex;
use crate::testing::{
    RESOURCE, TTL, World, decided, failed, fresh, held_by, held_by_three, lock_config, mask, ms,
    token,
};

/// A configuration that tries for ten seconds.
fn patient(world: &World) -> LockConfig {
    LockConfig { limit: Limit::Until(world.now.after(TTL)), ..lock_config(3) }
}

fn open(world: &mut World, config: LockConfig) -> LockId {
    let lock = world.client.open(RESOURCE, config, world.now);
    world.drain();
    lock
}

/// A world of three nodes, a lease held by the client, and a use that waits behind the lease.
fn one_waits() -> (World, LockId, LockId) {
    let mut world = World::warm(3);
    let config = patient(&world);
    let holder = world.acquire(config, 1);
    (0..3).for_each(|index| world.answer(index));
    world.client.deliver(holder, world.now).expect("granted");
    let next = open(&mut world, config);
    world.events();
    (world, holder, next)
}

/// Returns the uses whose attempt is due, in order.
fn due(events: &[Event]) -> Vec<LockId> {
    let due = events.iter().filter_map(|event| match *event {
        Event::AttemptDue(lock) => Some(lock),
        _ => None,
    });
    due.collect()
}

#[test]
fn only_the_head_of_the_line_attempts() {
    let mut world = World::warm(3);
    let config = patient(&world);
    let locks = [1, 2, 3].map(|_| open(&mut world, config));
    assert_eq!(due(&world.events()), [locks[0]]);
    world.client.begin(locks[1], fresh(2), world.now);
    world.drain();
    assert!(world.nodes.iter().all(|node| node.written.is_empty()), "it is not its turn");
}

#[test]
fn other_resources_do_not_wait() {
    let mut world = World::warm(3);
    let config = patient(&world);
    let one = open(&mut world, config);
    let other = world.client.open(ResourceId(0), config, world.now);
    world.drain();
    assert_eq!(due(&world.events()), [one, other]);
}

#[test]
fn a_limit_of_attempts_does_not_queue() {
    let (mut world, holder, next) = one_waits();
    let hasty = open(&mut world, lock_config(3));
    assert_eq!(due(&world.events()), [hasty]);
    world.begin(hasty, 3);
    (0..2).for_each(|index| world.answer(index));
    let taken_for = Some(world.client.deadline(holder).expect("held").since(world.now));
    let gave_up = Event::GaveUp { lock: hasty, reason: AttemptError::Taken, taken_for };
    assert_eq!(world.events().last(), Some(&gave_up));
    world.release(holder);
    assert_eq!(due(&world.events()), [next], "its end has moved nobody");
}

#[test]
fn the_head_of_the_queue_stays_under_any_limit() {
    let mut world = World::warm(3);
    let hasty = open(&mut world, lock_config(3));
    let config = patient(&world);
    let next = open(&mut world, config);
    assert_eq!(due(&world.events()), [hasty]);
    world.release(hasty);
    assert_eq!(due(&world.events()), [next]);
}

#[test]
fn next_sets_follow_the_releases_and_find_the_keys_gone() {
    let (mut world, holder, next) = one_waits();
    world.release(holder);
    assert_eq!(due(&world.events()), [next]);
    world.begin(next, 2);
    for index in 0..3 {
        assert_eq!(world.nodes[index].written[1..], [World::del(1), World::set(2)], "{index}");
        world.answer(index);
        world.answer(index);
    }
    assert_eq!(decided(&world.events()).expect("granted").0, mask(&[0, 1]));
}

#[test]
fn the_next_one_is_due_when_the_lease_is_lost() {
    let (mut world, holder, next) = one_waits();
    world.pass(ms(9_895));
    assert_eq!(due(&world.events()), []);
    world.pass(ms(1));
    let lost = Event::Lost { lock: holder, reason: LostReason::DeadlinePassed };
    assert_eq!(world.events(), [lost, Event::AttemptDue(next)]);
    // The release of the lost lease does not advance the queue a second time.
    let config = patient(&world);
    let third = open(&mut world, config);
    world.release(holder);
    assert_eq!(due(&world.events()), []);
    world.release(next);
    assert_eq!(due(&world.events()), [third]);
}

#[test]
fn the_next_one_is_due_when_the_lease_is_left() {
    let (mut world, holder, next) = one_waits();
    world.client.leave(holder, world.now);
    world.drain();
    assert_eq!(due(&world.events()), [next]);
}

#[test]
fn the_next_one_is_due_when_the_head_is_cancelled_or_gives_up() {
    for cancelled in [true, false] {
        let mut world = World::warm(3);
        let config = patient(&world);
        let soon = LockConfig { limit: Limit::Until(world.now.after(ms(1))), ..config };
        let head = world.acquire(soon, 1);
        let next = open(&mut world, config);
        world.events();
        if cancelled {
            world.release(head);
        } else {
            (0..2).for_each(|index| world.answer_with(index, held_by(9)));
            world.pass(ms(1));
            assert_eq!(due(&world.events[..]), [], "it knows of another client now");
            world.pass(ms(5));
        }
        let events = world.events();
        assert_eq!(due(&events), [next], "{cancelled}");
        assert!(matches!(events[0], Event::AttemptFailed { .. }), "{cancelled}");
    }
}

#[test]
fn the_head_keeps_its_place_between_its_attempts() {
    let mut world = World::warm(3);
    let config = patient(&world);
    let head = world.acquire(config, 1);
    open(&mut world, config);
    world.events();
    (0..2).for_each(|index| world.answer_with(index, held_by(9)));
    (0..3).for_each(|index| (0..world.nodes[index].inbox.len()).for_each(|_| world.answer(index)));
    world.pass(ms(10));
    assert_eq!(due(&world.events()), [head]);
}

#[test]
fn an_unfetched_grant_does_not_block_the_queue() {
    let mut world = World::warm(3);
    let until = Limit::Until(world.now.after(ms(5_000)));
    let config = LockConfig { min_validity: ms(2_500), limit: until, ..lock_config(3) };
    let head = world.acquire(config, 1);
    let config = patient(&world);
    let next = open(&mut world, config);
    (0..3).for_each(|index| world.answer(index));
    world.events();
    // 9 898 ms, less the minimum validity.
    world.pass(ms(7_397));
    assert_eq!(world.events(), []);
    world.pass(ms(1));
    let events = world.events();
    let ballot = match events[0] {
        Event::AttemptFailed { reason: AttemptError::TooSlow, ballot, .. } => ballot,
        other => panic!("{other:?}"),
    };
    assert_eq!(ballot.of(NodeIndex::new(0)).0, crate::NodeVerdict::Granted);
    let gave_up = Event::GaveUp { lock: head, reason: AttemptError::TooSlow, taken_for: None };
    assert_eq!(events[1..], [gave_up, Event::AttemptDue(next)]);
    assert!(world.nodes.iter().all(|node| node.written.contains(&World::del(1))));
    assert_eq!(world.client.deliver(head, world.now), Err(AttemptError::Cancelled));
}

#[test]
fn a_queued_use_times_out_without_asking_a_node() {
    let (mut world, holder, next) = one_waits();
    let config = LockConfig { limit: Limit::Until(world.now.after(ms(20))), ..lock_config(3) };
    let hurried = open(&mut world, config);
    world.pass(ms(19));
    assert_eq!(world.events(), []);
    world.pass(ms(1));
    let taken_for = Some(world.client.deadline(holder).expect("held").since(world.now));
    let reason = AttemptError::Taken;
    assert_eq!(world.events(), [Event::GaveUp { lock: hurried, reason, taken_for }]);
    assert!(world.client.uses(RESOURCE) && world.client.token(next).is_some());
}

/// A head that tries for a second, and a use that waits behind it for 20 ms.
fn hurried_behind(world: &mut World) -> (LockId, LockId) {
    let until = |wait| Limit::Until(world.now.after(ms(wait)));
    let [head, hurried] =
        [1_000, 20].map(|wait| LockConfig { limit: until(wait), ..lock_config(3) });
    let head = world.acquire(head, 1);
    let hurried = open(world, hurried);
    world.events();
    (head, hurried)
}

#[test]
fn a_queued_use_that_times_out_learns_why_the_head_failed() {
    for (reply, reason) in
        [(held_by(9), AttemptError::Taken), (Reply::Error, AttemptError::TooFewNodes)]
    {
        let mut world = World::warm(3);
        let (_, hurried) = hurried_behind(&mut world);
        (0..2).for_each(|index| world.answer_with(index, reply));
        assert_eq!(failed(&world.events()), Some(reason));
        world.pass(ms(20));
        assert!(
            world.events().contains(&Event::GaveUp { lock: hurried, reason, taken_for: None }),
            "{reply:?}"
        );
    }
}

#[test]
fn a_queued_use_fails_for_the_reason_of_the_head() {
    let mut world = World::warm(3);
    let (_, hurried) = hurried_behind(&mut world);
    world.pass(ms(20));
    let reason = AttemptError::TooFewNodes;
    assert_eq!(world.events(), [Event::GaveUp { lock: hurried, reason, taken_for: None }]);
}

#[test]
fn a_lease_of_this_client_is_in_the_way_whatever_the_nodes_show() {
    let (mut world, _, _) = one_waits();
    let hasty = open(&mut world, lock_config(3));
    world.begin(hasty, 3);
    (0..2).for_each(|index| world.answer_with(index, Reply::Error));
    assert_eq!(failed(&world.events()), Some(AttemptError::Taken));
}

#[test]
fn a_lease_that_is_over_is_not_in_the_way_before_its_timeout() {
    let (mut world, _, _) = one_waits();
    let hasty = open(&mut world, lock_config(3));
    // The process is suspended: no timer fires before the answers are read.
    world.now = world.now.after(TTL);
    world.begin(hasty, 3);
    (0..2).for_each(|index| world.answer_with(index, Reply::Error));
    assert_eq!(failed(&world.events()), Some(AttemptError::TooFewNodes));
}

#[test]
fn a_use_too_late_for_its_turn_is_skipped() {
    let (mut world, holder, _) = one_waits();
    let [late, last] = [30, 9_000].map(|wait| {
        let limit = Limit::Until(world.now.after(ms(wait)));
        open(&mut world, LockConfig { limit, ..lock_config(3) })
    });
    world.release(holder);
    let next = due(&world.events())[0];
    // The process is suspended: no timer fires before the head is cancelled.
    world.now = world.now.after(ms(30));
    world.release(next);
    let reason = AttemptError::Cancelled;
    let taken = AttemptError::Taken;
    assert_eq!(
        world.events(),
        [
            Event::GaveUp { lock: next, reason, taken_for: None },
            Event::GaveUp { lock: late, reason: taken, taken_for: None },
            Event::AttemptDue(last),
        ]
    );
}

#[test]
fn a_use_cancelled_while_queued_leaves_the_queue() {
    let (mut world, holder, next) = one_waits();
    let config = patient(&world);
    let last = open(&mut world, config);
    world.release(next);
    let reason = AttemptError::Cancelled;
    assert_eq!(world.events(), [Event::GaveUp { lock: next, reason, taken_for: None }]);
    world.release(holder);
    assert_eq!(due(&world.events()), [last]);
}

#[test]
fn a_thousand_that_wait_are_served_in_the_order_of_their_coming() {
    let mut world = World::warm(3);
    let config = LockConfig { limit: Limit::Until(world.now.after(TTL * 1_000)), ..lock_config(3) };
    let locks: Vec<LockId> = (0..1_000).map(|_| open(&mut world, config)).collect();
    let mut served = Vec::new();
    while let [lock] = due(&world.events())[..] {
        world.begin(lock, served.len() as u8);
        for index in 0..3 {
            while !world.nodes[index].inbox.is_empty() {
                world.answer(index);
            }
        }
        let grant = world.client.deliver(lock, world.now).expect("nobody is in the way");
        assert_eq!(grant.token, token(served.len() as u8));
        world.release(lock);
        served.push(lock);
    }
    assert_eq!(served, locks);
}

#[test]
fn without_a_lease_there_is_nothing_to_leave() {
    let mut world = World::warm(3);
    let lock = world.acquire(lock_config(3), 1);
    world.client.leave(lock, world.now);
    (0..3).for_each(|index| world.answer(index));
    assert!(decided(&world.events()).is_some(), "the attempt goes on");
    world.client.leave(lock, world.now);
    assert!(world.client.deliver(lock, world.now).is_ok(), "so does the grant");
}

#[test]
fn lease_left_to_expire_keeps_its_keys_and_sends_nothing() {
    let (mut world, lock) = held_by_three();
    world.pass(ms(1_000));
    world.extend(lock).expect("begun");
    world.client.leave(lock, world.now);
    world.drain();
    let reason = ExtendError::Cancelled;
    assert_eq!(world.events(), [Event::ExtensionFailed { lock, token: token(1), reason }]);
    (0..3).for_each(|index| world.answer(index));
    world.pass(TTL);
    assert_eq!(world.events(), []);
    assert!(world.nodes.iter().all(|node| !node.written.contains(&World::del(1))));
    assert!(!world.client.uses(RESOURCE));
}
