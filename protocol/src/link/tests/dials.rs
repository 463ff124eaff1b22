//! Dials: their timeout, and the waits between them.

use super::*;

/// A client whose first connection is being dialled.
fn dialling() -> World {
    let mut world = World::cold(1);
    world.client.connect(world.now);
    world.drain();
    world
}

#[test]
fn dial_has_the_whole_connect_timeout_from_its_request() {
    let mut world = dialling();
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
    let mut world = dialling();
    for wait_ms in [10, 20, 40, 80, 160, 320, 640, 1_000, 1_000] {
        world.close(0);
        assert_dialled_after(&mut world, wait_ms);
    }
}

#[test]
fn node_that_only_introduces_itself_is_dialled_less_often() {
    let mut world = dialling();
    for wait_ms in [10, 20, 40, 80] {
        world.accept(0);
        world.close(0);
        assert_dialled_after(&mut world, wait_ms);
    }
}

#[test]
fn node_that_closes_idle_connections_is_dialled_soon_each_time() {
    let mut world = dialling();
    for lasted_ms in [999, 1_000, 1_000, 60_000] {
        world.accept(0);
        world.pass(ms(lasted_ms));
        world.close(0);
        assert_dialled_after(&mut world, 10);
    }
    world.close(0);
    assert_dialled_after(&mut world, 20);
    world.accept(0);
    world.pass(ms(999));
    world.close(0);
    assert_dialled_after(&mut world, 40);
}

#[test]
fn node_that_answered_a_command_is_dialled_soon_after_a_loss() {
    let mut world = dialling();
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
