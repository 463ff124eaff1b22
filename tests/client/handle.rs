//! A lease and its names.

use tokio::time::Instant;

use crate::world::{MS, TTL, World};

#[test]
fn a_lease_knows_its_resource() {
    let world = World::new();
    let redlock = world.client();
    let name = String::from("in\u{1b}voice");
    let lease = world.block_on(redlock.acquire(&name)).unwrap();
    assert_eq!(lease.resource(), b"in\x1bvoice");
    let shown = format!("{lease:?}");
    assert!(shown.contains(r"resource: in\x1bvoice, owner"), "{shown}");
    let pool = redlock.semaphore("pool", 1);
    assert_eq!(world.block_on(pool.acquire()).unwrap().resource(), b"pool#0");
}

#[test]
fn a_deadline_for_tokio_is_never_later_than_that_of_the_lease() {
    let world = World::new();
    let redlock = world.client();
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    let (before, left) = (Instant::now(), lease.remaining());
    let until = lease.tokio_deadline();
    assert!((before + left..=Instant::now() + left).contains(&until), "{until:?}");
    world.pass(TTL);
    let before = Instant::now();
    let until = lease.tokio_deadline();
    assert!((before..=before + 1_000 * MS).contains(&until), "an ended lease ends now: {until:?}");
}
