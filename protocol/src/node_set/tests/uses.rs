//! Uses of the lock: their names, their resources, and the client without them.

use super::*;

#[test]
fn every_resource_that_is_spoken_of_is_named() {
    let mut world = World::warm(3);
    let named = |world: &World| {
        let mut named = Vec::new();
        world.client.for_each_resource(|it| named.push(it));
        named.sort_unstable();
        named.dedup();
        named
    };
    assert_eq!(named(&world), []);
    let lock = world.acquire(lock_config(3), 1);
    let other = world.client.open(ResourceId(1), lock_config(3), world.now);
    assert_eq!(named(&world), [ResourceId(1), RESOURCE], "by uses");
    world.release(lock);
    world.release(other);
    (0..2).for_each(|index| answer(&mut world, index));
    assert_eq!(named(&world), [RESOURCE], "by what node 2 has not answered");
    world.pass(NODE_TIMEOUT);
    world.close(2);
    assert_eq!(named(&world), [RESOURCE], "by what it is owed");
    world.pass(TTL);
    assert_eq!(named(&world), []);
}

#[test]
fn finished_use_of_a_lock_is_not_mistaken_for_its_successor() {
    let mut world = World::warm(1);
    let old = world.acquire(lock_config(1), 1);
    world.answer_with(0, held_by(9));
    (0..2).for_each(|_| world.answer(0));
    let new = world.acquire(lock_config(1), 2);
    assert_eq!((old.slot, old.generation + 1), (new.slot, new.generation));
    world.answer(0);
    world.client.release(old, world.now);
    assert!(world.client.deliver(old, world.now).is_err());
    assert!(world.client.deliver(new, world.now).is_ok());
    assert!(world.client.check(old, Duration::ZERO, world.now).is_err());
}

#[test]
fn no_name_is_given_twice_when_generations_are_used_up() {
    let World { mut client, now, .. } = World::warm(1);
    let mut use_once = |generation: Option<u32>| {
        let lock = client.open(RESOURCE, lock_config(1), now);
        client.release(lock, now);
        if let Some(generation) = generation {
            client.slots[0].generation = generation;
        }
        lock
    };
    use_once(Some(u32::MAX - 1));
    let names = [(); 3].map(|()| use_once(None));
    assert_eq!(names.map(|name| name.slot), [0, 1, 1], "{names:?}");
    assert_ne!(names[1], names[2]);
}

#[test]
fn a_reset_client_is_as_good_as_new() {
    let (mut world, lock) = held();
    world.release(lock);
    world.close(4);
    let new = NodeSet::new(&[crate::testing::link_config(); 5]);
    world.client.reset_to(&new);
    assert_eq!(format!("{:?}", world.client), format!("{new:?}"));
    let warm = World::warm(5).client;
    world.client.reset_to(&warm);
    assert_eq!(format!("{:?}", world.client), format!("{warm:?}"));
}
