//! Attribution of requests to the lock and to attempts.

use lock_judge::history::{Answer, EventKind, OpKind};
use lock_judge::scenario::Property;
use redis_sim::profile::REDIS_8_4;
use redlock_sim::search::Observed;
use redlock_sim::serve::{Fleet, Setup};

use crate::leases::{Client, begin, enter, held};
use crate::talk::{Talk, await_fault, until};
use crate::verdicts::{found, told, violated};
use crate::{scenario, serve, setup};

const SET_IF_FREE_OR_OWN: &str = "EVAL \"local v = redis.call('get',KEYS[1]) if v and v ~= ARGV[1] then \
    return 0 end redis.call('set',KEYS[1],ARGV[1],'PX',10000) return 1\" 1 res";

#[test]
fn keys_with_names_that_end_alike_are_not_the_lock() {
    let verdict = held(10_000, |observer, c1, c2| {
        assert_eq!(c2.ask("SET info:res c2"), ["+OK"; 5]);
        assert_eq!(c1.ask("INCR fence:res"), [":1"; 5]);
        assert_eq!(c2.ask("INCR fence:res"), [":2"; 5]);
        enter(observer, "c1");
    });
    assert_eq!(found(&verdict, Property::OwnerOnly).0, Observed::Holds);
}

#[test]
fn another_key_without_a_ttl_prolongs_no_lease() {
    for others in [["INCR stats:res", "PING"], ["SELECT 1", "SET res one"]] {
        let verdict = held(100, |observer, c1, c2| {
            enter(observer, "c1");
            others.iter().for_each(|request| _ = c1.ask(request));
            until("it has expired", || c2.ask("EXISTS res") == [":0"; 5]);
        });
        let found = found(&verdict, Property::SectionWithinLease);
        assert_eq!(found, violated("application"), "{others:?}");
    }
}

#[test]
fn a_number_can_be_the_value_of_a_script() {
    let (fleet, mut observer, mut c1, _) = begin();
    let set = "EVAL \"return redis.call('SET',KEYS[1],ARGV[2],'NX','PX',ARGV[1])\" 1 res";
    assert_eq!(c1.ask(&format!("{set} 10000 4611686018427387904")), ["+OK"; 5]);
    enter(&mut observer, "c1 4611686018427387904");
    assert_eq!(observer.ask("LEAVE res c1"), "+OK");
    let delete =
        "EVAL \"return redis.call('GET',KEYS[1]) == ARGV[1] and redis.call('DEL',KEYS[1])\" 1 res";
    assert_eq!(c1.ask(&format!("{delete} 4611686018427387904")), [":1"; 5]);
    let verdict = fleet.finish();
    assert_eq!(found(&verdict, Property::OwnerOnly).0, Observed::Holds);
    assert_eq!(found(&verdict, Property::SoundGrant).0, Observed::Holds);
}

#[test]
fn a_script_may_be_told_the_key_among_its_arguments() {
    let (fleet, mut observer, mut c1, _) = begin();
    let set = "EVAL \"return redis.call('SET',ARGV[1],ARGV[2],'NX','PX',10000)\" 0 res one";
    assert_eq!(c1.ask(set), ["+OK"; 5]);
    enter(&mut observer, "c1 one");
    assert_eq!(found(&fleet.finish(), Property::SoundGrant).0, Observed::Holds);
}

#[test]
fn a_lease_that_is_still_there_is_extended_by_the_same_request() {
    let (fleet, mut observer, mut c1, _) = begin();
    for _ in 0..2 {
        assert_eq!(c1.ask(&format!("{SET_IF_FREE_OR_OWN} one")), [":1"; 5]);
        enter(&mut observer, "c1 one");
        assert_eq!(observer.ask("LEAVE res c1"), "+OK");
    }
    let verdict = fleet.finish();
    assert_eq!(found(&verdict, Property::OwnerOnly).0, Observed::Holds);
    assert_eq!(found(&verdict, Property::SoundGrant).0, Observed::Holds);
}

#[test]
fn a_script_that_finds_the_own_key_can_vote() {
    let (fleet, _, mut c1, _) = begin();
    let ask = "EVAL \"return redis.call('set',KEYS[1],ARGV[1],'NX','PX',10000) and 1 or \
        redis.call('get',KEYS[1]) == ARGV[1] and 1 or 0\" 1 res one";
    assert_eq!([c1.ask(ask), c1.ask(ask)], [[":1"; 5]; 2]);
    let verdict = fleet.finish();
    let is_vote = |kind: &&EventKind| {
        let op = (OpKind::Set, Answer::Yes);
        matches!(kind, EventKind::Delivered { op: it, answer, .. } if (*it, *answer) == op)
    };
    assert_eq!(told(&verdict).filter(is_vote).count(), 10);
}

#[test]
fn a_comparison_that_sets_another_value_extends_the_lease() {
    let fleet = Fleet::start(&Setup { profile: &REDIS_8_4, ..setup(scenario("")) }).unwrap();
    let mut observer = Talk::to(fleet.observer());
    let mut c1 = Client::named(&fleet.addresses(), "c1");
    assert_eq!(c1.ask("SET res one NX PX 10000"), ["+OK"; 5]);
    enter(&mut observer, "c1 one");
    assert_eq!(c1.ask("SET res two IFEQ one PX 10000"), ["+OK"; 5]);
    assert_eq!(c1.ask("SET res three IFEQ two PX 10000"), ["+OK"; 5]);
    assert_eq!(observer.ask("LEAVE res c1"), "+OK");
    assert_eq!(c1.ask("DELEX res IFEQ three"), [":1"; 5]);
    assert_eq!(found(&fleet.finish(), Property::OwnerOnly).0, Observed::Holds);
}

#[test]
fn a_flush_by_a_client_is_no_fault_of_the_masters() {
    let verdict = held(10_000, |observer, _, c2| {
        enter(observer, "c1");
        assert_eq!(c2.ask("FLUSHDB"), ["+OK"; 5]);
        assert_eq!(c2.ask("SET res two NX PX 10000"), ["+OK"; 5]);
        enter(observer, "c2");
    });
    for property in [Property::MutualExclusion, Property::OwnerOnly] {
        assert_eq!(found(&verdict, property), violated("none"), "{property:?}");
    }
}

#[test]
fn a_transaction_is_of_the_attempt_whose_key_it_deletes() {
    let verdict = held(10_000, |observer, c1, _| {
        enter(observer, "c1 one");
        assert_eq!(c1.ask("SET res two NX PX 10000"), ["$-1"; 5]);
        ["MULTI", "DEL res"].iter().for_each(|request| _ = c1.ask(request));
        c1.ask("EXEC");
    });
    assert_eq!(found(&verdict, Property::OwnerOnly).0, Observed::Holds);
}

#[test]
fn a_new_connection_has_time_to_say_whose_it_is() {
    let fleet = serve(
        "[[fault]]\nid = \"cut\"\nat = \"0s\"\n\
         partition = { between = [[\"c1\"], [\"A\"]], lost = \"reset\" }",
    );
    let mut observer = Talk::to(fleet.observer());
    assert_eq!(observer.ask("START"), "+OK");
    await_fault(&mut observer, "cut", "begun");
    let mut c2 = Talk::to(fleet.addresses()[0]);
    assert_eq!(c2.ask("CLIENT SETNAME c2"), "+OK");
    assert_eq!(c2.ask("GET res"), "$-1");
    let mut nobody = Talk::to(fleet.addresses()[0]);
    nobody.say("GET res");
    assert!(nobody.is_closed());
}
