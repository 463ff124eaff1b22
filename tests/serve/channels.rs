//! Publish/subscribe: lock clients, written by hand, that wait until the holder publishes its
//! release; and subscriptions under faults.

use redlock_sim::serve::Fleet;

use crate::serve;
use crate::talk::{Talk, await_fault, until};

const TAKEN: &str = "$-1";
const MESSAGE: &str = "message\nwake:res\nreleased";

/// Releases the lock of this token as many home-made clients do: returns the number of subscribers.
fn release(holder: &mut Talk, token: &str) -> String {
    let script = "if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('del', KEYS[1]) \
                  return redis.call('publish', KEYS[2], 'released') end return -1";
    holder.ask(&format!("EVAL \"{script}\" 2 res wake:res {token}"))
}

fn acquire(client: &mut Talk, token: &str) -> String {
    client.ask(&format!("SET res {token} NX PX 60000"))
}

/// Returns masters, the holder of the lock, and a client that was refused.
fn taken() -> (Fleet, Talk, Talk) {
    let fleet = serve("");
    let address = fleet.addresses()[0];
    let (mut holder, mut waiter) = (Talk::of(address, "c1"), Talk::of(address, "c2"));
    assert_eq!(acquire(&mut holder, "t1"), "+OK");
    assert_eq!(acquire(&mut waiter, "t2"), TAKEN);
    (fleet, holder, waiter)
}

#[test]
fn a_waiter_gets_the_lock_right_after_the_release() {
    let (fleet, mut holder, mut waiter) = taken();
    let address = fleet.addresses()[0];
    let mut wakes = Talk::of(address, "c2");
    assert_eq!(wakes.ask("SUBSCRIBE wake:res"), "subscribe\nwake:res\n:1");
    assert_eq!(acquire(&mut waiter, "t2"), TAKEN, "it may have been released in between");
    assert!(wakes.is_silent());
    assert_eq!(release(&mut holder, "t1"), ":1");
    assert_eq!(wakes.hear(), MESSAGE);
    assert_eq!(acquire(&mut waiter, "t2"), "+OK");
    assert_eq!(release(&mut holder, "t1"), ":-1", "it is not its own any more");
    assert!(wakes.is_silent());
}

/// The lost wake-up: a client that does not try again after it has subscribed sleeps while the lock
/// is free.
#[test]
fn a_waiter_that_subscribes_too_late_hears_nothing() {
    let (fleet, mut holder, mut waiter) = taken();
    let address = fleet.addresses()[0];
    assert_eq!(release(&mut holder, "t1"), ":0", "nobody is subscribed yet");
    let mut wakes = Talk::of(address, "c2");
    wakes.ask("SUBSCRIBE wake:res");
    assert!(wakes.is_silent());
    assert_eq!(acquire(&mut waiter, "t2"), "+OK");
}

#[test]
fn an_expired_lock_wakes_who_hears_its_events() {
    let fleet = serve("");
    let address = fleet.addresses()[0];
    let (mut holder, mut wakes) = (Talk::of(address, "c1"), Talk::to(address));
    assert_eq!(holder.ask("CONFIG SET notify-keyspace-events Kgx"), "+OK");
    wakes.ask("SUBSCRIBE __keyspace@0__:res");
    assert_eq!(holder.ask("SET res t1 NX PX 20"), "+OK");
    assert_eq!(wakes.hear(), "message\n__keyspace@0__:res\nexpire");
    assert_eq!(wakes.hear(), "message\n__keyspace@0__:res\nexpired", "the active expiry cycle");
    assert_eq!(acquire(&mut holder, "t2"), "+OK");
    assert_eq!(wakes.hear(), "message\n__keyspace@0__:res\nexpire");
    assert_eq!(release(&mut holder, "t2"), ":0");
    assert_eq!(wakes.hear(), "message\n__keyspace@0__:res\ndel");
}

#[test]
fn the_end_of_a_connection_and_of_a_process_end_subscriptions() {
    let fleet = serve(
        "[[fault]]\nid = \"kill\"\nat = \"0s\"\nkill = { host = \"A\", restart-after = \"50ms\" }",
    );
    let address = fleet.addresses()[0];
    let mut other = Talk::to(address);
    drop(Talk::to(address).ask("SUBSCRIBE wake:res"));
    until("the subscriber is gone", || other.ask("PUBLISH wake:res x") == ":0");
    let mut wakes = Talk::to(address);
    wakes.ask("SUBSCRIBE wake:res");
    assert_eq!(other.ask("PUBLISH wake:res released"), ":1");
    assert_eq!(wakes.hear(), MESSAGE);
    let mut observer = Talk::to(fleet.observer());
    observer.ask("START");
    assert!(wakes.is_closed());
    await_fault(&mut observer, "kill", "over");
    assert_eq!(Talk::to(address).ask("PUBLISH wake:res x"), ":0");
}

#[test]
fn a_partition_holds_messages_or_loses_them() {
    for (lost, arrives) in [("hold", true), ("silent", false)] {
        let fleet = serve(&format!(
            "[[fault]]\nid = \"cut\"\nat = \"0s\"\nuntil = \"300ms\"\n\
             partition = {{ between = [[\"c1\"], [\"A\"]], lost = \"{lost}\" }}"
        ));
        let address = fleet.addresses()[0];
        let (mut wakes, mut other) = (Talk::of(address, "c1"), Talk::of(address, "c2"));
        wakes.ask("SUBSCRIBE wake:res");
        let mut observer = Talk::to(fleet.observer());
        observer.ask("START");
        await_fault(&mut observer, "cut", "begun");
        // The server does not know that the connection is cut.
        assert_eq!(other.ask("PUBLISH wake:res released"), ":1");
        assert!(wakes.is_silent());
        await_fault(&mut observer, "cut", "over");
        if arrives {
            assert_eq!(wakes.hear(), MESSAGE);
        } else {
            assert!(wakes.is_silent());
        }
    }
}
