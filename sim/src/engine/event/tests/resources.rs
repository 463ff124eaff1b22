//! Several resources: their keys, pushes, registers and probes.

use super::*;
use crate::engine::Unsupported;
use lock_judge::oracle::Judgement;
use lock_judge::scenario::Property;

const T1: AttemptId = AttemptId { client: ClientId(1), number: 1 };

/// A further task of c1's process that locks another resource for as long as c1.
const TASK: &str = r#"
    [[client]]
    id = "t1"
    task-of = "c1"
    resource = "mail"
    steps = [{ acquire = {} }, { hold = { for = "2s", or-lost = true } }, { release = {} }]
    [lock]
    resource = "stock"
    further-resources = ["mail"]
"#;

fn play_two(more: &str) -> Vec<Event> {
    play(&format!("{TASK}\n{more}"))
}

#[test]
fn one_process_holds_both_locks_at_once() {
    let events = play_two("");
    for attempt in [C1, T1] {
        let delivered = |kind: &EventKind| matches!(kind, EventKind::GrantDelivered { attempt: it, .. } if *it == attempt);
        assert_eq!(count(&events, delivered), 1, "{attempt:?}");
    }
    let refused = |kind: &EventKind| {
        matches!(kind, EventKind::Executed { answer: Answer::No, op: OpKind::Set, .. })
    };
    assert_eq!(count(&events, refused), 0);
}

#[test]
fn a_fault_about_a_key_strikes_the_lock_that_it_names() {
    let ended = |resource: &str, kind: &str| {
        let fault = fault(&format!("at = \"1s\"\n{kind} = {{ host = \"A\"{resource} }}"));
        let events = play_two(&fault);
        events.iter().find_map(|event| match event.kind {
            EventKind::KeyEnded { node: NodeId(0), writer: Writer::Attempt(id), .. }
                if event.at_ns == 1_000 * MS =>
            {
                Some(id)
            }
            _ => None,
        })
    };
    for kind in ["delete", "evict"] {
        assert_eq!(ended("", kind), Some(C1), "{kind}");
        assert_eq!(ended(", resource = \"mail\"", kind), Some(T1), "{kind}");
    }
}

/// A push names the key that changed, so only the lease of this key is read again.
#[test]
fn a_push_is_read_by_the_lock_of_its_key() {
    let push = "at = \"1s\"\nspurious-push = { host = [\"A\", \"B\", \"C\"], resource = \"mail\" }";
    let events = play_two(&fault(push));
    let reads = |attempt: AttemptId| {
        let late = events.iter().filter(|event| event.at_ns >= 1_000 * MS);
        let reads = late.filter(|event| {
            matches!(event.kind, EventKind::Written { op: OpKind::Read, attempt: it, .. } if it == attempt)
        });
        reads.count()
    };
    assert_eq!(reads(C1), 0);
    assert!(reads(T1) >= 3, "{}", reads(T1));
}

#[test]
fn each_lock_has_a_probe() {
    let events = play_two(&fault("at = \"1s\"\nlasts = \"1ms\"\npause = { host = \"c1\" }"));
    for probe in [ClientId(2), ClientId(3)] {
        let granted = |kind: &EventKind| matches!(kind, EventKind::GrantDelivered { attempt, .. } if attempt.client == probe);
        assert_eq!(count(&events, granted), 1, "{probe}");
    }
}

#[test]
fn each_lock_protects_a_register_of_its_own() {
    let write = r#"
        [[client]]
        id = "c2"
        resource = "mail"
        steps = [{ acquire = { until = "10s" } }, { write = {} }, { release = {} }]
        [[client]]
        id = "c3"
        steps = [{ acquire = { until = "10s" } }, { write = {} }, { release = {} }]
    "#;
    let events = play_two(write);
    let versions = events.iter().filter_map(|event| match event.kind {
        EventKind::WriteApplied { version, .. } => Some(version),
        _ => None,
    });
    assert_eq!(versions.collect::<Vec<_>>(), [1, 1]);
}

#[test]
fn verdicts_are_of_both_locks() {
    let delete = fault("at = \"1s\"\ndelete = { host = [\"A\", \"B\"], resource = \"mail\" }");
    let rival = r#"
        [[client]]
        id = "c2"
        resource = "mail"
        steps = [{ at = "1s", acquire = { attempts = 1 } }, { hold = "1s" }, { release = {} }]
    "#;
    let case = case_of(&format!("{TASK}\n{rival}\n{delete}"));
    let outcome = Engine::new(&case).unwrap().run(0, None);
    let Judgement::Violated(found) = outcome.verdicts.of(Property::MutualExclusion) else {
        panic!("the leases of `mail` overlap for a round trip: {outcome:?}")
    };
    assert_eq!(found.first, T1);
    assert_eq!(found.blamed.names(&case.scenario), ["operator"]);
}

#[test]
fn what_cannot_be_played_is_named() {
    let mut case = case_of(TASK);
    case.scenario.clients.pop();
    let turmoil = crate::engine::turmoil::check(&case);
    let words = |it: Result<(), Unsupported>| it.unwrap_err().to_string();
    assert!(words(turmoil).contains("`lock.further-resources`"));
    case.scenario.clients[0].subject = String::from("redlock-literal");
    let weaker = Engine::new(&case).map(|_| ());
    let expected = "`lock.further-resources` with the subject `redlock-literal`";
    assert!(words(weaker).contains(expected));
}
