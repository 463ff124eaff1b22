//! Leases as the masters saw them: workers that are wrong although nobody else comes.

use std::net::SocketAddr;

use lock_judge::history::EventKind;
use lock_judge::scenario::Property;
use redlock_sim::search::Observed;
use redlock_sim::serve::{Fleet, Verdict};

use crate::talk::{Talk, await_fault, until};
use crate::verdicts::{found, told, violated};
use crate::{case, serve, setup};

const COMPARE_AND_DELETE: &str = "EVAL \"if redis.call('get',KEYS[1])==ARGV[1] then return \
    redis.call('del',KEYS[1]) end return 0\" 1 res";
const COMPARE_AND_EXPIRE: &str = "EVAL \"if redis.call('get',KEYS[1])==ARGV[1] then return \
    redis.call('pexpire',KEYS[1],ARGV[2]) end return 0\" 1 res";

/// A client's connections to all masters.
pub(crate) struct Client(Vec<Talk>);

impl Client {
    pub(crate) fn named(addresses: &[SocketAddr], name: &str) -> Self {
        Self(addresses.iter().map(|it| Talk::of(*it, name)).collect())
    }

    pub(crate) fn ask(&mut self, request: &str) -> Vec<String> {
        self.0.iter_mut().map(|talk| talk.ask(request)).collect()
    }
}

/// Starts five masters with the clients c1 and c2, and connects to the observer.
pub(crate) fn begin() -> (Fleet, Talk, Client, Client) {
    let fleet = serve("");
    let addresses = fleet.addresses();
    let observer = Talk::to(fleet.observer());
    let [c1, c2] = ["c1", "c2"].map(|name| Client::named(&addresses, name));
    (fleet, observer, c1, c2)
}

/// Plays a run in which c1 acquires the lock, and `then` happens.
pub(crate) fn held(ttl_ms: u32, then: impl FnOnce(&mut Talk, &mut Client, &mut Client)) -> Verdict {
    let (fleet, mut observer, mut c1, mut c2) = begin();
    assert_eq!(c1.ask(&format!("SET res one NX PX {ttl_ms}")), ["+OK"; 5]);
    then(&mut observer, &mut c1, &mut c2);
    assert_eq!(observer.ask("LEAVE res c1"), "+OK");
    fleet.finish()
}

pub(crate) fn enter(observer: &mut Talk, who: &str) {
    assert_eq!(observer.ask(&format!("ENTER res {who}")), "+OK");
}

#[test]
fn one_value_of_two_workers_keeps_two_sections() {
    for names in [["c1", "c2"], ["", ""]] {
        let fleet = serve("");
        let addresses = fleet.addresses();
        let mut observer = Talk::to(fleet.observer());
        let [mut first, mut second] = names.map(|name| match name {
            "" => Client(addresses.iter().map(|it| Talk::to(*it)).collect()),
            name => Client::named(&addresses, name),
        });
        assert_eq!(first.ask("SET res host NX PX 10000"), ["+OK"; 5]);
        assert_eq!(observer.ask("ENTER res c1 host"), "+OK");
        assert_eq!(second.ask("SET res host NX PX 10000"), ["$-1"; 5]);
        assert_eq!(observer.ask("ENTER res c2 host"), "+OK");
        assert_eq!(observer.ask("LEAVE res c1"), "+OK");
        assert_eq!(observer.ask("LEAVE res c2"), "+OK");
        let verdict = fleet.finish();
        for property in [Property::ExclusiveSection, Property::SoundGrant] {
            assert_eq!(found(&verdict, property), violated("none"), "{names:?} {property:?}");
        }
    }
}

#[test]
fn a_release_of_an_equal_value_is_of_anothers_key() {
    let verdict = held(10_000, |observer, _, c2| {
        enter(observer, "c1");
        assert_eq!(c2.ask("SET res one NX PX 10000"), ["$-1"; 5]);
        assert_eq!(c2.ask(&format!("{COMPARE_AND_DELETE} one")), [":1"; 5]);
    });
    assert_eq!(found(&verdict, Property::OwnerOnly), violated("none"));
}

#[test]
fn deleting_anothers_keys_is_a_violation_without_a_rival() {
    let verdict = held(10_000, |observer, _, c2| {
        enter(observer, "c1");
        assert_eq!(c2.ask("DEL res"), [":1"; 5]);
    });
    assert_eq!(found(&verdict, Property::OwnerOnly), violated("none"));
    assert_eq!(found(&verdict, Property::SectionWithinLease).0, Observed::Holds);
}

/// A worker takes the place of any subject: its lease is not measured by another client's rules.
#[test]
fn a_worker_may_have_the_name_of_a_client_of_another_kind() {
    let other = "schema = 1\nname = \"inline\"\ntitle = \"t\"\n[cluster]\nnetwork = { delay = \"0ms\" }\n\
        [[client]]\nid = \"c1\"\nsteps = [{ acquire = {} }, { release = {} }]";
    let fleet = Fleet::start(&setup(case(other))).unwrap();
    let mut observer = Talk::to(fleet.observer());
    let mut c1 = Client::named(&fleet.addresses(), "c1");
    assert_eq!(c1.ask("SET res one NX PX 10000"), ["+OK"; 5]);
    enter(&mut observer, "c1");
    assert_eq!(observer.ask("LEAVE res c1"), "+OK");
    assert_eq!(c1.ask(&format!("{COMPARE_AND_DELETE} one")), [":1"; 5]);
    let verdict = fleet.finish();
    for property in [Property::SoundGrant, Property::SectionWithinLease, Property::OwnerOnly] {
        assert_eq!(found(&verdict, property).0, Observed::Holds, "{property:?}");
    }
}

#[test]
fn entering_without_keys_is_a_violation() {
    let verdict = held(100, |observer, _, c2| {
        until("the keys are gone", || c2.ask("GET res") == ["$-1"; 5]);
        enter(observer, "c1");
    });
    for property in [Property::SoundGrant, Property::SectionWithinLease] {
        assert_eq!(found(&verdict, property), violated("none"), "{property:?}");
    }
}

#[test]
fn entering_by_one_vote_of_five_is_a_violation() {
    let (fleet, mut observer, mut c1, _c2) = begin();
    assert_eq!(c1.0[0].ask("SET res one NX PX 10000"), "+OK");
    enter(&mut observer, "c1");
    assert_eq!(observer.ask("LEAVE res c1"), "+OK");
    let verdict = fleet.finish();
    for property in [Property::SoundGrant, Property::SectionWithinLease] {
        assert_eq!(found(&verdict, property), violated("none"), "{property:?}");
    }
    assert_eq!(found(&verdict, Property::ExclusiveSection).0, Observed::Holds);
}

#[test]
fn entering_before_the_answers_is_a_violation() {
    let fleet = serve(
        "[[fault]]\nid = \"slow\"\nat = \"0s\"\n\
         delay = { from = [\"A\", \"B\", \"C\"], to = [\"c1\"], by = \"60s\", only = \"answer\" }",
    );
    let addresses = fleet.addresses();
    let mut observer = Talk::to(fleet.observer());
    let [mut c1, mut c2] = ["c1", "c2"].map(|name| Client::named(&addresses, name));
    observer.ask("START");
    await_fault(&mut observer, "slow", "begun");
    c1.0.iter_mut().for_each(|talk| talk.say("SET res one NX PX 60000"));
    until("all have the key", || c2.ask("GET res") == ["one"; 5]);
    enter(&mut observer, "c1");
    assert_eq!(observer.ask("LEAVE res c1"), "+OK");
    let verdict = fleet.finish();
    assert_eq!(found(&verdict, Property::SoundGrant), violated("none"));
    assert_eq!(found(&verdict, Property::SectionWithinLease).0, Observed::Holds);
}

#[test]
fn a_stranger_is_known_by_the_name_of_its_connection() {
    let fleet = serve("");
    let address = fleet.addresses()[0];
    let mut observer = Talk::to(fleet.observer());
    for name in ["A", "pool", "1x"] {
        assert_eq!(Talk::of(address, name).ask("DEL res"), ":0");
    }
    enter(&mut observer, "c3");
    let verdict = fleet.finish();
    let clients = verdict.played.result.case.scenario.clients.iter();
    let names: Vec<&str> = clients.map(|it| &it.id[..]).collect();
    assert_eq!(names, ["c1", "c2", "c3", "pool", "unnamed"]);
}

/// Entering takes much less than two seconds.
#[test]
fn outlasting_the_keys_is_a_violation() {
    let verdict = held(2_000, |observer, _, c2| {
        enter(observer, "c1");
        until("the keys are gone", || c2.ask("GET res") == ["$-1"; 5]);
    });
    assert_eq!(found(&verdict, Property::SoundGrant).0, Observed::Holds);
    assert_eq!(found(&verdict, Property::SectionWithinLease), violated("application"));
}

#[test]
fn a_release_before_leave_is_a_violation() {
    let verdict = held(10_000, |observer, c1, _| {
        enter(observer, "c1");
        assert_eq!(c1.ask(&format!("{COMPARE_AND_DELETE} one")), [":1"; 5]);
    });
    assert_eq!(found(&verdict, Property::OwnerOnly).0, Observed::Holds);
    assert_eq!(found(&verdict, Property::SectionWithinLease), violated("application"));
}

#[test]
fn an_extension_makes_the_lease_longer() {
    let verdict = held(10_000, |observer, c1, _| {
        enter(observer, "c1");
        assert_eq!(c1.ask(&format!("{COMPARE_AND_EXPIRE} one 60000")), [":1"; 5]);
    });
    let is_round = |it: &&EventKind| matches!(it, EventKind::ExtensionBegan { .. });
    assert_eq!(told(&verdict).filter(is_round).count(), 1);
    let deadlines = told(&verdict).filter_map(|it| match *it {
        EventKind::GrantDelivered { deadline_local_ns, .. }
        | EventKind::ExtensionDelivered { deadline_local_ns, .. } => Some(deadline_local_ns),
        _ => None,
    });
    let deadlines: Vec<u64> = deadlines.collect();
    assert!(deadlines.is_sorted() && deadlines[1] >= deadlines[0] + 50_000_000_000);
}

/// c1 leaves after its lease is over, and before the keys that c2 keeps alive are gone.
#[test]
fn anothers_extension_hides_no_section_beyond_its_lease() {
    let verdict = held(500, |observer, c1, c2| {
        enter(observer, "c1");
        assert_eq!(c2.ask("PEXPIRE res 60000"), [":1"; 5]);
        assert_eq!(c1.ask("SET timer 1 PX 500"), ["+OK"; 5]);
        until("the lease is over", || c1.ask("GET timer") == ["$-1"; 5]);
    });
    assert_eq!(found(&verdict, Property::OwnerOnly), violated("none"));
    assert_eq!(found(&verdict, Property::SectionWithinLease), violated("application"));
}

/// A client may extend its lease by setting its keys again, even after they have expired.
#[test]
fn keys_that_are_set_again_extend_the_lease() {
    let verdict = held(500, |observer, c1, c2| {
        enter(observer, "c1");
        until("the keys are gone", || c2.ask("GET res") == ["$-1"; 5]);
        assert_eq!(c1.ask("SET res one PX 10000"), ["+OK"; 5]);
    });
    let rounds = told(&verdict).filter_map(|it| match it {
        EventKind::ExtensionBegan { .. } => Some("began"),
        EventKind::ExtensionDelivered { .. } => Some("delivered"),
        _ => None,
    });
    assert_eq!(rounds.take(2).collect::<Vec<_>>(), ["began", "delivered"]);
}

#[test]
fn a_script_may_set_the_key_first_and_time_it_then() {
    let lock = "EVAL \"if redis.call('setnx',KEYS[1],ARGV[1])==1 then \
        return redis.call('pexpire',KEYS[1],ARGV[2]) end return 0\" 1 res";
    let (fleet, mut observer, mut c1, _c2) = begin();
    assert_eq!(c1.ask(&format!("{lock} one 10000")), [":1"; 5]);
    enter(&mut observer, "c1");
    assert_eq!(observer.ask("LEAVE res c1"), "+OK");
    assert_eq!(found(&fleet.finish(), Property::SoundGrant).0, Observed::Holds);
}

/// Redisson's scripts answer nothing when they have set the key, and its TTL when they have not.
#[test]
fn a_vote_is_what_a_script_did_whatever_it_answers() {
    let lock = "EVAL \"if redis.call('exists',KEYS[1])==0 then \
        redis.call('set',KEYS[1],ARGV[1],'PX',ARGV[2]) return nil end \
        return redis.call('pttl',KEYS[1])\" 1 res";
    let (fleet, mut observer, mut c1, mut c2) = begin();
    assert_eq!(c1.ask(&format!("{lock} one 10000")), ["$-1"; 5]);
    assert_eq!(observer.ask("ENTER res c1 one"), "+OK");
    assert_eq!(observer.ask("LEAVE res c1"), "+OK");
    assert!(c2.ask(&format!("{lock} two 10000")).iter().all(|it| it.starts_with(':')));
    assert!(observer.ask("VERDICT").contains("sound-grant Holds"));
    assert_eq!(observer.ask("ENTER res c2 two"), "+OK");
    assert_eq!(found(&fleet.finish(), Property::SoundGrant), violated("none"));
}
