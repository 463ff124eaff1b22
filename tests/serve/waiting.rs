//! Clients that wait for an element of a list, and locks that are hashes, as published libraries have
//! them.

use lock_judge::scenario::Property;
use redlock_sim::search::Observed;

use crate::leases::{begin, enter};
use crate::serve;
use crate::talk::{Talk, await_fault, until};
use crate::verdicts::{found, violated};

/// As Redisson locks and unlocks.
const LOCK: &str = "EVAL \"if redis.call('exists',KEYS[1])==0 or \
    redis.call('hexists',KEYS[1],ARGV[2])==1 then redis.call('hincrby',KEYS[1],ARGV[2],1) \
    redis.call('pexpire',KEYS[1],ARGV[1]) return nil end return redis.call('pttl',KEYS[1])\" 1 res";
const UNLOCK: &str = "EVAL \"if redis.call('hexists',KEYS[1],ARGV[3])==0 then return nil end \
    local counter=redis.call('hincrby',KEYS[1],ARGV[3],-1) if counter>0 then \
    redis.call('pexpire',KEYS[1],ARGV[2]) return 0 else redis.call('del',KEYS[1]) \
    redis.call('publish',KEYS[2],ARGV[1]) return 1 end\" 2 res wake:{res} 0 10000";

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

#[test]
fn a_lock_in_a_hash_is_judged_by_its_field() {
    let (fleet, mut observer, mut c1, mut c2) = begin();
    assert_eq!(c1.ask(&format!("{LOCK} 10000 one:1")), ["$-1"; 5]);
    let left = c2.ask(&format!("{LOCK} 10000 two:1"));
    assert!(left.iter().all(|it| it.starts_with(':')), "{left:?}");
    enter(&mut observer, "c1 one:1");
    assert_eq!(observer.ask("LEAVE res c1"), "+OK");
    assert_eq!(c1.ask(&format!("{UNLOCK} one:1")), [":1"; 5]);
    assert_eq!(c2.ask(&format!("{LOCK} 10000 two:1")), ["$-1"; 5]);
    enter(&mut observer, "c2 two:1");
    assert_eq!(observer.ask("LEAVE res c2"), "+OK");
    assert_eq!(c2.ask(&format!("{UNLOCK} two:1")), [":1"; 5]);
    let verdict = fleet.finish();
    for property in [Property::MutualExclusion, Property::OwnerOnly, Property::SoundGrant] {
        assert_eq!(found(&verdict, property).0, Observed::Holds, "{property:?}");
    }
}

#[test]
fn the_key_of_a_hash_that_another_client_deletes_is_not_its_own() {
    let (fleet, mut observer, mut c1, mut c2) = begin();
    assert_eq!(c1.ask(&format!("{LOCK} 10000 one:1")), ["$-1"; 5]);
    enter(&mut observer, "c1 one:1");
    c2.ask("DEL res");
    assert_eq!(observer.ask("LEAVE res c1"), "+OK");
    assert_eq!(found(&fleet.finish(), Property::OwnerOnly), violated("none"));
}
