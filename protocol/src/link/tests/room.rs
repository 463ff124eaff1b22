//! Room on the connection: limits of the commands that wait and that are under way.

use super::*;

fn window() -> Window {
    Window::default()
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
    let leases = many_leases(&mut world, window().commands() as u32 + 6);
    leases.iter().for_each(|&lock| world.release(lock));
    assert_eq!((world.nodes[0].inbox.len(), world.client.owed(node(0))), (window().in_flight(), 6));
    for _ in 0..2 {
        while !world.nodes[0].inbox.is_empty() {
            world.answer_with(0, Reply::Integer(1));
        }
        world.pass(NODE_TIMEOUT);
    }
    assert_eq!(world.client.owed(node(0)), 0);
    let released = world.nodes[0].written.iter().filter(|op| matches!(op, Op::Release { .. }));
    assert_eq!(released.count(), window().commands() + 2 * 6, "each that was owed is paid twice");
}

#[test]
fn an_owed_release_without_room_does_not_spin_the_timer() {
    let mut world = World::warm(1);
    let mut leases = many_leases(&mut world, window().commands() as u32 + 1);
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

#[test]
fn beyond_the_limit_a_command_is_refused_and_nothing_is_owed() {
    let mut world = World::warm(1);
    let leases = many_leases(&mut world, window().new_work() as u32);
    world.close(0);
    world.pass(ms(10));
    leases.into_iter().for_each(|lock| world.extend(lock).expect("the lease is alive"));
    world.events();
    let lock = world.client.open(ResourceId(8), lock_config(1), world.now);
    world.begin(lock, 1);
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
    let leases = many_leases(&mut world, 3 * window().in_flight() as u32);
    world.nodes[0].written.clear();
    world.pass(ms(1));
    leases.into_iter().for_each(|lock| world.extend(lock).expect("the lease is alive"));
    assert_eq!(world.nodes[0].written.len(), window().in_flight());
    world.pass(NODE_TIMEOUT / 2);
    (0..window().in_flight()).for_each(|_| world.answer_with(0, Reply::Integer(1)));
    assert_eq!(world.nodes[0].written.len(), 2 * window().in_flight(), "one answered, one written");
    world.events();
    world.pass(NODE_TIMEOUT / 2);
    let events = world.events();
    let failed = |why| {
        let is_why =
            |it: &&Event| matches!(it, Event::ExtensionFailed { reason, .. } if *reason == why);
        events.iter().filter(is_why).count()
    };
    assert_eq!(failed(ExtendError::TooFewNodes), window().in_flight(), "asked, and not answered");
    assert_eq!(
        failed(ExtendError::Overloaded),
        window().in_flight(),
        "not asked, for others were ahead"
    );
}
