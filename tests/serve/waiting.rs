//! Clients that wait for an element of a list.

use crate::serve;
use crate::talk::{Talk, await_fault, until};

/// As python-redis-lock releases: those who wait get an element.
const RELEASE: &str = "EVAL \"if redis.call('get',KEYS[1])~=ARGV[1] then return 1 end \
    redis.call('del',KEYS[2]) redis.call('lpush',KEYS[2],1) redis.call('pexpire',KEYS[2],ARGV[2]) \
    redis.call('del',KEYS[1]) return 0\" 2 res signal:res";

#[test]
fn a_waiter_is_woken_by_an_element_and_takes_the_lock() {
    let fleet = serve("");
    let address = fleet.addresses()[0];
    let (mut holder, mut waiter) = (Talk::of(address, "c1"), Talk::of(address, "c2"));
    assert_eq!(holder.ask("SET res t1 NX PX 60000"), "+OK");
    assert_eq!(waiter.ask("SET res t2 NX PX 60000"), "$-1");
    waiter.say("BLPOP signal:res 60");
    // It waits until the other request is answered.
    waiter.say("SET res t2 NX PX 60000");
    assert!(waiter.is_silent());
    assert_eq!(holder.ask(&format!("{RELEASE} t1 60000")), ":0");
    assert_eq!(waiter.hear(), "signal:res\n1");
    assert_eq!(waiter.hear(), "+OK");
    assert_eq!(holder.ask("EXISTS signal:res"), ":0");
}

#[test]
fn a_wait_ends_after_its_timeout_or_with_its_connection() {
    let fleet = serve("");
    let address = fleet.addresses()[0];
    let (mut waiter, mut other) = (Talk::to(address), Talk::to(address));
    assert_eq!(waiter.ask("BRPOP signal:res 0.01"), "", "a null array");
    assert_eq!(waiter.ask("PING"), "+PONG");
    let mut gone = Talk::to(address);
    gone.say("BLPOP signal:res 0");
    assert!(gone.is_silent());
    assert!(other.ask("CLIENT LIST").contains("flags=b"));
    drop(gone);
    until("the waiter is gone", || !other.ask("CLIENT LIST").contains("flags=b"));
    assert_eq!(other.ask("RPUSH signal:res 1"), ":1");
    assert_eq!(other.ask("LLEN signal:res"), ":1", "nobody took it");
}

#[test]
fn the_end_of_a_process_ends_waits() {
    let fleet = serve(
        "[[fault]]\nid = \"kill\"\nat = \"0s\"\nkill = { host = \"A\", restart-after = \"50ms\" }",
    );
    let address = fleet.addresses()[0];
    let mut waiter = Talk::to(address);
    waiter.say("BLPOP queue 0");
    until("it waits", || Talk::to(address).ask("CLIENT LIST").contains("flags=b"));
    let mut observer = Talk::to(fleet.observer());
    observer.ask("START");
    assert!(waiter.is_closed());
    await_fault(&mut observer, "kill", "over");
    let mut other = Talk::to(address);
    assert_eq!(other.ask("RPUSH queue 1"), ":1");
    assert_eq!(other.ask("LPOP queue"), "1");
}
