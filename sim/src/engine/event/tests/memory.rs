//! Effects on keys, roles and connections of faults that close no connection.

use lock_judge::scenario::File;

use super::*;

const SEEDS: u64 = 20;

const DEMOTED: &str =
    include_str!("../../../../../scenarios/failover/demoted-on-a-live-connection.toml");
const HIDDEN: &str =
    include_str!("../../../../../scenarios/durability/restart-behind-a-proxy.toml");
const NOTHING_LOST: &str = include_str!("../../../../../scenarios/rules/nothing-was-lost.toml");

fn cases(name: &str, text: &str) -> Vec<Case> {
    File::parse(&format!("{name}.toml"), text).unwrap().cases(&[]).unwrap()
}

/// Returns the histories of a case with several seeds.
fn play_case(name: &str, text: &str, slug: &str) -> Vec<Vec<Event>> {
    let cases = cases(name, text);
    let case = cases.iter().find(|it| it.slug.as_deref().unwrap_or("") == slug).unwrap();
    let mut engine = Engine::new(case).unwrap();
    let mut play = |seed| {
        let mut kept = Vec::new();
        engine.run(seed, Some(&mut kept));
        kept
    };
    (0..SEEDS).map(&mut play).collect()
}

fn granted_at(events: &[Event], client: ClientId) -> Option<u64> {
    find(
        events,
        |kind| matches!(kind, EventKind::GrantDecided { attempt, .. } if attempt.client == client),
    )
}

fn eligible_from(events: &[Event], of_client: u8, of_node: u8) -> Option<u64> {
    let told = events.iter().rev().filter_map(|event| match event.kind {
        EventKind::Eligible { client, node, from_local_ns } => {
            ((client.0, node.0) == (of_client, of_node)).then_some(from_local_ns)
        }
        _ => None,
    });
    told.filter(|from_ns| *from_ns != u64::MAX).max()
}

fn demoted(options: &str) -> Vec<Event> {
    let at = "at = \"500ms\"\nuntil = \"1s\"";
    play(&fault(&format!("{at}\ndemote = {{ host = \"A\"{options} }}")))
}

#[test]
fn full_resynchronisation_ends_the_keys_partial_one_does_not() {
    assert_eq!(find(&demoted(""), ended(0, KeyEnd::Flushed)), Some(500 * MS));
    assert_eq!(find(&demoted(", keeps-keys = true"), ended(0, KeyEnd::Flushed)), None);
}

#[test]
fn a_server_that_is_a_replica_refuses_and_is_no_new_process() {
    let released =
        "at = \"1900ms\"\nuntil = \"2100ms\"\ndemote = { host = \"A\", keeps-keys = true }";
    let events = play(&fault(released));
    let refused = |kind: &EventKind| {
        matches!(
            kind,
            EventKind::Executed { node: NodeId(0), answer: Answer::Error, changed: false, .. }
        )
    };
    let obeyed = |kind: &EventKind| {
        matches!(
            kind,
            EventKind::Executed { node: NodeId(0), op: OpKind::Release, changed: true, .. }
        )
    };
    assert!(find(&events, refused).is_some_and(|at_ns| at_ns < 2_100 * MS));
    assert!(find(&events, obeyed).is_some_and(|at_ns| at_ns > 2_100 * MS), "it is still owed");
    let restarted = |kind: &EventKind| matches!(kind, EventKind::NodeUp { incarnation: 1.., .. });
    assert_eq!(find(&events, restarted), None);
}

#[test]
fn a_process_that_dies_as_a_replica_comes_back_as_a_master() {
    let kill = "[[fault]]\nid = \"k\"\nat = \"600ms\"\n\
                kill = { host = \"A\", restart-after = \"50ms\" }";
    let until = "at = \"500ms\"\nuntil = \"3s\"\ndemote = { host = \"A\" }";
    let events = play(&format!("{}{kill}", fault(until)));
    let released = |kind: &EventKind| {
        matches!(kind, EventKind::Executed { node: NodeId(0), op: OpKind::Release, answer, .. }
            if *answer != Answer::Error)
    };
    assert!(find(&events, released).is_some_and(|at_ns| at_ns < 3_000 * MS));
}

#[test]
fn a_demotion_keeps_a_node_out_for_a_quarantine_and_no_longer() {
    let (quarantine_ns, promoted_ns) = (10_102 * MS, 1_500 * MS);
    for slug in [
        "",
        "a-promise-about-restarts-covers-no-demotion",
        "filled-again-by-its-own-former-replica",
        "resynchronised-in-part-and-this-client",
    ] {
        for events in play_case("demoted-on-a-live-connection", DEMOTED, slug) {
            let from_ns = eligible_from(&events, 1, 2).expect("it counts again");
            let from_ns = from_ns - crate::world::BOOT_AT_START_NS;
            assert!(from_ns > promoted_ns + quarantine_ns, "`{slug}`: {from_ns}");
            // The client asks the node again when it dials again: after a second at most.
            assert!(from_ns < promoted_ns + quarantine_ns + 1_100 * MS, "`{slug}`: {from_ns}");
        }
    }
    let slug = "a-majority-is-demoted-and-votes-again-after-a-quarantine";
    for events in play_case("demoted-on-a-live-connection", DEMOTED, slug) {
        let at_ns = granted_at(&events, ClientId(1)).expect("before it gives up");
        assert!(at_ns < promoted_ns + quarantine_ns + 1_200 * MS, "{at_ns}");
    }
}

#[test]
fn a_proxy_keeps_connections_and_an_idle_client_asks_again() {
    let dialled = |events: &[Event]| {
        let before = |event: &&Event| event.at_ns < 1_600 * MS;
        events.iter().filter(before).filter(|it| introduces_itself_to_c(&it.kind)).count()
    };
    for events in play_case("restart-behind-a-proxy", HIDDEN, "") {
        assert_eq!(dialled(&events), 0, "nobody notices");
        let restarted = |kind: &EventKind| {
            matches!(kind, EventKind::NodeUp { node: NodeId(2), incarnation: 1 })
        };
        assert_eq!(find(&events, restarted), Some(500 * MS));
        let from_ns = eligible_from(&events, 1, 2).expect("it counts again");
        let from_ns = from_ns - crate::world::BOOT_AT_START_NS;
        assert!(from_ns > 11_700 * MS && from_ns < 11_710 * MS, "{from_ns}");
    }
    let slug = "connections-that-the-restart-closes";
    let closed = play_case("restart-behind-a-proxy", HIDDEN, slug);
    assert!(closed.iter().all(|events| dialled(events) > 0));
}

fn introduces_itself_to_c(kind: &EventKind) -> bool {
    matches!(kind, EventKind::Written { node: NodeId(2), op: OpKind::Introduce, .. })
}

#[test]
fn requests_to_a_proxy_without_a_server_are_lost() {
    let kill = "at = \"0s\"\n\
                kill = { host = \"A\", restart-after = \"20ms\", behind-a-proxy = true }";
    let events = play(&fault(kill));
    let set_on_a = |kind: &EventKind| {
        matches!(kind, EventKind::Executed { node: NodeId(0), op: OpKind::Set, attempt: C1, .. })
    };
    assert_eq!(find(&events, set_on_a), None);
    assert!(granted_at(&events, ClientId(0)).is_some(), "by the others");
}

#[test]
fn a_process_behind_a_proxy_does_not_know_who_listens() {
    let is_told = |options: &str| {
        let kill = format!("kill = {{ host = \"A\", restart-after = \"50ms\"{options} }}");
        let flush = "[[fault]]\nid = \"e\"\nat = \"1s\"\nflush = { host = \"A\" }";
        let events = play(&format!("{}{flush}", fault(&format!("at = \"100ms\"\n{kill}"))));
        let behind = 1_000 * MS..1_010 * MS;
        events.iter().any(|it| introduces_itself(&it.kind) && behind.contains(&it.at_ns))
    };
    assert!(is_told(""));
    assert!(!is_told(", behind-a-proxy = true"));
}

#[test]
fn events_without_a_loss_cause_no_quarantine() {
    for case in cases("nothing-was-lost", NOTHING_LOST) {
        let slug = case.slug.as_deref().unwrap_or("");
        for events in play_case("nothing-was-lost", NOTHING_LOST, slug) {
            let at_ns =
                granted_at(&events, ClientId(1)).unwrap_or_else(|| panic!("`{slug}`: never"));
            assert!(at_ns < 3_010 * MS, "`{slug}`: {at_ns}");
        }
    }
}
