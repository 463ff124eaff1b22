//! Verdicts on what workers report and masters observe.

use lock_judge::history::{EventKind, NodeId, OpKind};
use lock_judge::scenario::Property;
use redlock_sim::search::Observed;
use redlock_sim::serve::{Verdict, unjudged};

use crate::serve;
use crate::talk::{Talk, await_fault, until};

/// Returns the verdict on a property, and its blame.
pub(crate) fn found(verdict: &Verdict, property: Property) -> (Observed, String) {
    let mut all = verdict.played.result.properties.iter();
    let found = all.find(|it| it.property == property).unwrap();
    (found.observed, found.blames.join(";"))
}

pub(crate) fn violated(by: &str) -> (Observed, String) {
    (Observed::Violated, by.to_owned())
}

const C1_SEES_ABC: &str = "[[fault]]\nid = \"cut\"\nat = \"0s\"\n\
    partition = { between = [[\"c1\"], [\"D\", \"E\"]] }\n";

/// Plays a run in which both clients hold the lock, because C loses the first client's key in
/// between.
fn two_holders(fault: &str) -> Verdict {
    let fleet = serve(&format!("{C1_SEES_ABC}{fault}"));
    let addresses = fleet.addresses();
    let mut observer = Talk::to(fleet.observer());
    let mut first: Vec<Talk> = addresses.iter().map(|it| Talk::of(*it, "c1")).collect();
    observer.ask("START");
    await_fault(&mut observer, "cut", "begun");
    first.iter_mut().for_each(|talk| talk.say("SET res one NX PX 10000"));
    for talk in &mut first[..3] {
        assert_eq!(talk.hear(), "+OK");
    }
    assert_eq!(observer.ask("ENTER res c1"), "+OK");
    await_fault(&mut observer, "lose", "over");
    let mut second: Vec<Talk> = addresses.iter().map(|it| Talk::of(*it, "c2")).collect();
    let votes = second.iter_mut().map(|talk| talk.ask("SET res two NX PX 10000"));
    assert_eq!(votes.collect::<Vec<_>>(), ["$-1", "$-1", "+OK", "+OK", "+OK"]);
    assert!(first[3].is_silent(), "D answers c1 through the partition");
    assert_eq!(observer.ask("ENTER res c2"), "+OK");
    assert_eq!(observer.ask("LEAVE res c2"), "+OK");
    assert_eq!(observer.ask("LEAVE res c1"), "+OK");
    fleet.finish()
}

#[test]
fn a_clock_that_jumps_is_blamed() {
    let verdict = two_holders(
        "[[fault]]\nid = \"lose\"\nat = \"700ms\"\nclock-jump = { host = \"C\", by = \"20s\" }",
    );
    assert_eq!(found(&verdict, Property::MutualExclusion), violated("clock(C)"));
    assert_eq!(found(&verdict, Property::ExclusiveSection), violated("clock(C)"));
    for property in [Property::SectionWithinLease, Property::SoundGrant, Property::OwnerOnly] {
        assert_eq!(found(&verdict, property).0, Observed::Holds, "{property:?}");
    }
    assert_eq!(found(&verdict, Property::Tidy).0, Observed::Unjudged);
}

#[test]
fn a_restart_without_memory_is_blamed() {
    let verdict = two_holders(
        "[[fault]]\nid = \"lose\"\nat = \"700ms\"\nkill = { host = \"C\", restart-after = \"10ms\" }",
    );
    assert_eq!(found(&verdict, Property::MutualExclusion), violated("amnesia(C)"));
}

#[test]
fn an_operator_is_blamed() {
    let verdict =
        two_holders("[[fault]]\nid = \"lose\"\nat = \"700ms\"\ndelete = { host = \"C\" }");
    assert_eq!(found(&verdict, Property::MutualExclusion), violated("operator"));
}

/// Counterexample K5: the replies are correct, but too late to be worth anything.
#[test]
fn entering_by_late_answers_is_a_violation() {
    let fleet = serve(
        "[[fault]]\nid = \"slow\"\nat = \"0s\"\n\
         delay = { from = [\"A\", \"B\", \"C\", \"D\", \"E\"], to = [\"c1\"], by = \"1s\", only = \"answer\" }",
    );
    let addresses = fleet.addresses();
    let mut observer = Talk::to(fleet.observer());
    let mut first: Vec<Talk> = addresses.iter().map(|it| Talk::of(*it, "c1")).collect();
    let mut second: Vec<Talk> = addresses.iter().map(|it| Talk::of(*it, "c2")).collect();
    observer.ask("START");
    await_fault(&mut observer, "slow", "begun");
    first.iter_mut().for_each(|talk| talk.say("SET res one NX PX 100"));
    until("all nodes have the first key", || {
        second.iter_mut().all(|talk| talk.ask("GET res") == "one")
    });
    until("the first key is gone", || second.iter_mut().all(|talk| talk.ask("GET res") == "$-1"));
    for talk in &mut second {
        assert_eq!(talk.ask("SET res two NX PX 10000"), "+OK");
    }
    assert_eq!(observer.ask("ENTER res c2"), "+OK");
    for talk in &mut first {
        assert_eq!(talk.hear(), "+OK");
    }
    assert_eq!(observer.ask("ENTER res c1"), "+OK");
    assert!(observer.ask("VERDICT").contains("exclusive-section Violated"));
    let verdict = fleet.finish();
    assert_eq!(found(&verdict, Property::MutualExclusion).0, Observed::Holds);
    for property in [Property::ExclusiveSection, Property::SoundGrant] {
        assert_eq!(found(&verdict, property), violated("none"), "{property:?}");
    }
}

#[test]
fn workers_that_take_turns_break_nothing() {
    let fleet = serve("");
    let mut observer = Talk::to(fleet.observer());
    let mut talks: Vec<Talk> = fleet.addresses().into_iter().map(Talk::to).collect();
    for (turn, who) in ["c1", "stranger", "c1"].into_iter().enumerate() {
        for talk in &mut talks {
            assert_eq!(talk.ask(&format!("SET res {who}-{turn} NX PX 10000")), "+OK");
        }
        assert_eq!(observer.ask(&format!("ENTER res {who} {}", turn + 1)), "+OK");
        assert_eq!(observer.ask(&format!("LEAVE res {who}")), "+OK");
        talks.iter_mut().for_each(|talk| assert_eq!(talk.ask("DEL res"), ":1"));
    }
    let verdict = fleet.finish();
    let properties = verdict.played.result.properties.iter();
    for found in properties.filter(|it| !unjudged().contains(&it.property)) {
        assert_eq!(found.observed, Observed::Holds, "{:?}", found.property);
    }
    let clients = &verdict.played.result.case.scenario.clients;
    assert_eq!(clients.iter().map(|it| &it.id[..]).collect::<Vec<_>>(), ["c1", "c2", "stranger"]);
    assert_eq!(verdict.played.result.counters.granted, 3);
}

#[test]
fn fencing_tokens_that_go_back_are_a_violation() {
    let fleet = serve("");
    let mut observer = Talk::to(fleet.observer());
    let mut talks: Vec<Talk> = fleet.addresses().into_iter().map(Talk::to).collect();
    for token in [7, 5] {
        talks.iter_mut().for_each(|talk| drop(talk.ask(&format!("SET res v{token} NX PX 9000"))));
        assert_eq!(observer.ask(&format!("ENTER res c1 {token}")), "+OK");
        assert_eq!(observer.ask("LEAVE res c1"), "+OK");
        talks.iter_mut().for_each(|talk| drop(talk.ask("DEL res")));
    }
    assert_eq!(found(&fleet.finish(), Property::FencedOrder).0, Observed::Violated);
}

#[test]
fn malformed_reports_to_the_observer_are_refused() {
    let fleet = serve("");
    let mut observer = Talk::to(fleet.observer());
    for (line, error) in [
        ("ENTER other c1", "another resource"),
        ("ENTER res 1x", "a worker's name"),
        ("LEAVE res c1", "ENTER first"),
        ("ENTER res", "expected ENTER"),
    ] {
        let answer = observer.ask(line);
        assert!(answer.starts_with("-ERR") && answer.contains(error), "{line}: {answer}");
    }
    assert_eq!(observer.ask("ENTER res c1"), "+OK");
    assert!(observer.ask("ENTER res c1").contains("LEAVE first"));
}

#[test]
fn a_run_in_which_nobody_asked_is_empty() {
    let verdict = serve("").finish();
    assert!(verdict.is_empty());
}

#[test]
fn a_run_in_which_workers_entered_and_nobody_asked_is_empty() {
    let fleet = serve("");
    let mut observer = Talk::to(fleet.observer());
    assert_eq!(observer.ask("START"), "+OK");
    assert_eq!(Talk::to(fleet.addresses()[0]).ask("SET wrong token NX PX 10000"), "+OK");
    assert_eq!(observer.ask("ENTER res c1"), "+OK");
    assert_eq!(observer.ask("LEAVE res c1"), "+OK");
    assert!(fleet.finish().is_empty());
}

/// Returns the events of a run, in order.
pub(crate) fn told(verdict: &Verdict) -> impl Iterator<Item = &EventKind> {
    verdict.played.kept[0].1.iter().map(|event| &event.kind)
}

/// Each command comes over its own connection, as from workers that are shell scripts.
#[test]
fn deleting_anothers_keys_is_not_taken_for_an_operator() {
    let fleet = serve("");
    let addresses = fleet.addresses();
    let mut observer = Talk::to(fleet.observer());
    let ask = |who: &str, request: &str| {
        addresses.iter().map(|it| Talk::of(*it, who).ask(request)).collect::<Vec<_>>()
    };
    assert_eq!(ask("c1", "SET res one NX PX 10000"), ["+OK"; 5]);
    assert_eq!(observer.ask("ENTER res c1"), "+OK");
    assert_eq!(ask("c2", "DEL res"), [":1"; 5]);
    assert_eq!(ask("c2", "SET res two NX PX 10000"), ["+OK"; 5]);
    assert_eq!(observer.ask("ENTER res c2"), "+OK");
    assert_eq!(found(&fleet.finish(), Property::MutualExclusion), violated("none"));
}

#[test]
fn commands_without_an_answer_are_noted() {
    let fleet = serve("");
    let address = fleet.addresses()[0];
    let mut talk = Talk::of(address, "c1");
    let set = |talk: &mut Talk| assert_eq!(talk.ask("SET res one NX PX 10000"), "+OK");
    set(&mut talk);
    talk.say("CLIENT REPLY SKIP");
    talk.say("DEL res");
    set(&mut talk);
    assert_eq!(
        talk.ask("EVAL \"redis.call('DEL', KEYS[1]) return {ok='QUEUED'}\" 1 res one"),
        "+QUEUED"
    );
    set(&mut talk);
    let id = talk.ask("CLIENT ID").replace(':', "");
    assert_eq!(talk.ask("MULTI"), "+OK");
    assert_eq!(talk.ask("DEL res"), "+QUEUED");
    assert_eq!(talk.ask(&format!("CLIENT KILL ID {id} SKIPME no")), "+QUEUED");
    talk.say("EXEC");
    assert!(talk.is_closed());
    let verdict = fleet.finish();
    let deleted = told(&verdict).filter(|kind| {
        matches!(kind, EventKind::Executed { op: OpKind::Release, changed: true, .. })
    });
    assert_eq!(deleted.count(), 3);
}

/// A transaction reads the clock once, so a clock jump does not affect the rest of it.
#[test]
fn a_clock_jumps_before_or_after_what_is_executed() {
    let fleet = serve(
        "[[fault]]\nid = \"jump\"\nat = \"100ms\"\nclock-jump = { host = \"A\", by = \"20s\" }\n\
         [[fault]]\nid = \"fast\"\nat = \"100ms\"\nclock-rate = { host = \"A\", ppm = 1000 }\n\
         [[fault]]\nid = \"other\"\nat = \"200ms\"\nclock-jump = { host = \"B\", by = \"20s\" }",
    );
    let mut observer = Talk::to(fleet.observer());
    let address = fleet.addresses()[0];
    let (mut talk, mut killer) = (Talk::of(address, "c1"), Talk::to(address));
    assert_eq!(talk.ask("CONFIG SET busy-reply-threshold 20"), "+OK");
    observer.ask("START");
    for request in ["MULTI", "SET res one NX PX 10000", "EVAL \"while true do end\" 0"] {
        talk.ask(request);
    }
    talk.say("EXEC");
    until("the script runs", || killer.ask("GET key").starts_with("-BUSY"));
    await_fault(&mut observer, "other", "over");
    assert_eq!(killer.ask("SCRIPT KILL"), "+OK");
    await_fault(&mut observer, "jump", "over");
    let verdict = fleet.finish();
    let place = |what: fn(&EventKind) -> bool| told(&verdict).skip(10).position(what).unwrap();
    let executed = place(|kind| matches!(kind, EventKind::Executed { node: NodeId(0), .. }));
    let jumped = place(|kind| matches!(kind, EventKind::Clock { host, .. } if host.0 == 0));
    assert!(executed < jumped);
}
