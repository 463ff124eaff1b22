//! Releases of a lease that was extended or repaired.

use super::*;

#[test]
fn a_release_goes_behind_a_repair_without_an_answer() {
    let (mut world, lock) = held_by_three();
    forget(&mut world, 2);
    world.pass(ms(1_000));
    world.extend(lock).expect("begun");
    [2, 0, 1].into_iter().for_each(|index| world.answer(index));
    world.nodes[2].written.clear();
    world.release(lock);
    assert_eq!(world.nodes[2].written, [World::del(1)], "behind the SET, on the same connection");
    world.answer(2);
    world.answer(2);
    assert_eq!(world.nodes[2].key, None);
}

#[test]
fn a_repair_on_a_lost_connection_leaves_a_release_owed() {
    let (mut world, lock) = held_by_three();
    forget(&mut world, 2);
    world.pass(ms(1_000));
    world.extend(lock).expect("begun");
    [2, 0, 1].into_iter().for_each(|index| world.answer(index));
    world.close(2);
    world.release(lock);
    assert_eq!(world.client.owed(node(2)), 1);
}

#[test]
fn node_with_an_unwritten_repair_is_released_like_the_others() {
    let (mut world, lock) = held_by_three();
    forget(&mut world, 2);
    world.pass(ms(1_000));
    world.extend(lock).expect("begun");
    (0..2).for_each(|index| world.answer(index));
    let epoch = world.nodes[2].epoch.expect("connected");
    world.client.handle_writable(node(2), epoch, false, world.now);
    world.answer(2);
    world.pass(NODE_TIMEOUT);
    world.client.handle_writable(node(2), epoch, true, world.now);
    world.nodes[2].written.clear();
    world.release(lock);
    assert_eq!(world.nodes[2].written, [World::del(1)]);
}

#[test]
fn a_release_during_a_round_ends_it_and_late_answers_do_nothing() {
    let (mut world, lock) = held_by_three();
    world.pass(ms(1_000));
    world.extend(lock).expect("begun");
    world.answer(0);
    world.release(lock);
    let reason = ExtendError::Cancelled;
    let cancelled = Event::ExtensionFailed { lock, token: token(1), reason };
    assert_eq!(world.events(), [cancelled]);
    for index in [1, 2, 0, 1, 2] {
        world.answer(index);
    }
    let outcome = ReleaseOutcome { deleted: mask(&[0, 1, 2]), ..ReleaseOutcome::default() };
    assert_eq!(world.events(), [Event::Released { lock, outcome }]);
    assert!(world.nodes.iter().all(|node| node.key.is_none()));
}

#[test]
fn a_release_is_owed_for_as_long_as_the_longest_key_may_live() {
    let mut world = World::warm(1);
    let lock = world.acquire(LockConfig { ttl: ms(1_000), ..lock_config(1) }, 1);
    world.answer(0);
    world.client.deliver(lock, world.now).expect("granted");
    world.pass(ms(500));
    world.extend(lock).expect("begun");
    world.answer(0);
    world.release(lock);
    world.close(0);
    world.pass(ms(9_999));
    assert_eq!(world.client.owed(node(0)), 1);
    world.pass(ms(1));
    assert_eq!(world.client.owed(node(0)), 0);
    assert!(matches!(world.nodes[0].written[..], [_, Op::Extend { ttl: TTL, .. }, _]));
}
