//! State of replicas, and the state of a node after its replica takes over.

use lock_judge::history::Writer;
use lock_judge::scenario::File;

use super::*;

/// Runs a case of a scenario family with the seed 0.
fn play_case(text: &str, name: &str, case: &str) -> Vec<Event> {
    let file = File::parse(&format!("{name}.toml"), text).unwrap();
    let cases = file.cases(&[]).unwrap();
    let case = cases.iter().find(|it| it.slug.as_deref().unwrap_or("") == case).unwrap();
    let mut kept = Vec::new();
    Engine::new(case).unwrap().run(0, Some(&mut kept));
    kept
}

/// Runs a scenario in which node A has the replica R, 5 ms away.
fn play_replicated(more: &str) -> Vec<Event> {
    play(&format!("{}\n[[cluster.replica]]\nid = \"R\"\nof = \"A\"\ndelay = \"5ms\"", fault(more)))
}

/// Host of R: three nodes, a client, the probe and the store come before it.
const R: HostId = HostId(6);

fn took_over(host: HostId) -> impl Fn(&EventKind) -> bool {
    move |kind| *kind == EventKind::FailedOver { node: NodeId(0), host }
}

#[test]
fn a_replica_without_faults_changes_nothing_for_clients() {
    let of_clients = |events: Vec<Event>| -> Vec<Event> {
        // The replica has clocks of its own, and its last event may end the run.
        let is_own = |kind: &EventKind| matches!(kind, EventKind::Clock { .. } | EventKind::Ended);
        events.into_iter().filter(|event| !is_own(&event.kind)).collect()
    };
    let off = "at = \"0s\"\nenabled = false\nevict = { host = \"B\" }";
    assert_eq!(of_clients(play_replicated(off)), of_clients(play(&fault(off))));
}

#[test]
fn a_promoted_replica_has_what_has_reached_it() {
    let promoted = |at: &str| {
        play_replicated(&format!("at = \"{at}\"\nfailover = {{ node = \"A\", to = \"R\" }}"))
    };
    // The SET is executed after 1 ms, and reaches the replica 5 ms later.
    let (early, late) = (promoted("5ms"), promoted("7ms"));
    assert_eq!(find(&early, took_over(R)), Some(5 * MS));
    assert_eq!(find(&early, ended(0, KeyEnd::FailedOver)), Some(5 * MS));
    assert_eq!(find(&late, took_over(R)), Some(7 * MS));
    assert_eq!(find(&late, ended(0, KeyEnd::FailedOver)), None);
    assert!(find(&late, introduces_itself).is_some_and(|at_ns| at_ns < 600 * MS), "redialled");
    assert_eq!(count(&late, executed(0, OpKind::Release)), 1, "by the new master");
}

#[test]
fn a_promoted_replica_expires_keys_by_its_own_clock() {
    let expired = |clock: &str| {
        let more = "at = \"100ms\"\nfailover = { node = \"A\", to = \"R\" }\n\
                    [[fault]]\nid = \"k\"\nat = \"200ms\"\nkill = { host = \"c1\" }";
        let events = play_replicated(&format!("{more}\n{clock}"));
        find(&events, ended(0, KeyEnd::Expired)).expect("nobody releases it")
    };
    let ahead = "[cluster.clocks.R]\noffset = \"4s\"";
    assert!((10_000 * MS..10_010 * MS).contains(&expired("")));
    assert!((6_000 * MS..6_010 * MS).contains(&expired(ahead)));
}

#[test]
fn stream_to_the_replica_dies_with_the_power_not_the_process() {
    let after = |death: &str| {
        let more = format!(
            "at = \"3ms\"\n{death} = {{ host = \"A\" }}\n[[fault]]\nid = \"p\"\nat = \"1s\"\n\
             failover = {{ node = \"A\", to = \"R\" }}"
        );
        find(&play_replicated(&more), ended(0, KeyEnd::FailedOver)).is_some()
    };
    assert!(after("power"));
    assert!(!after("kill"));
}

#[test]
fn a_failover_makes_a_dead_node_answer_again() {
    let more = "at = \"500ms\"\npower = { host = \"A\", restart-after = \"3s\" }\n\
                [[fault]]\nid = \"p\"\nat = \"1s\"\nfailover = { node = \"A\", to = \"R\" }";
    let events = play_replicated(more);
    let up =
        |kind: &EventKind| matches!(kind, EventKind::NodeUp { node: NodeId(0), incarnation: 1.. });
    assert_eq!(find(&events, up), Some(1_000 * MS));
    assert_eq!(count(&events, up), 1, "the old master comes back as a replica");
    assert_eq!(count(&events, executed(0, OpKind::Release)), 1);
}

#[test]
fn the_old_master_can_return_with_its_replicated_data() {
    let more = "at = \"500ms\"\nfailover = { node = \"A\", to = \"R\" }\n\
                [[fault]]\nid = \"b\"\nat = \"1s\"\nfailover = { node = \"A\", to = \"A\" }";
    let events = play_replicated(more);
    assert_eq!(find(&events, took_over(HostId(0))), Some(1_000 * MS));
    assert_eq!(find(&events, ended(0, KeyEnd::FailedOver)), None);
    assert_eq!(count(&events, executed(0, OpKind::Release)), 1);
}

#[test]
fn a_write_to_a_deposed_master_is_not_on_its_node() {
    let text = include_str!("../../../../../scenarios/failover/isolated-master.toml");
    let events = play_case(text, "isolated-master", "");
    let second = |kind: &EventKind| {
        matches!(
            kind,
            EventKind::GrantDecided { attempt: AttemptId { client: ClientId(1), .. }, .. }
        )
    };
    assert!(find(&events, second).is_some_and(|at_ns| at_ns < 1_200 * MS));
    let of_first = |kind: &EventKind| {
        matches!(
            kind,
            EventKind::KeyEnded { writer: Writer::Attempt(C1), cause: KeyEnd::FailedOver, .. }
        )
    };
    let set = |kind: &EventKind| {
        matches!(
            kind,
            EventKind::Executed { attempt: C1, op: OpKind::Set, answer: Answer::Yes, .. }
        )
    };
    assert!(find(&events, set).is_some());
    assert_eq!(find(&events, of_first), find(&events, set), "in the same instant");
}

#[test]
fn wait_ends_with_an_acknowledgement_or_its_timeout() {
    let text = include_str!("../../../../../scenarios/failover/wait-for-a-replica.toml");
    let waited = |case: &str| {
        let events = play_case(text, "wait-for-a-replica", case);
        let at = |op| {
            let is = |kind: &EventKind| match kind {
                EventKind::Executed { attempt, op: it, .. } => (*attempt, *it) == (C1, op),
                _ => false,
            };
            find(&events, is).expect("it is executed")
        };
        let yes = |kind: &EventKind| {
            matches!(
                kind,
                EventKind::Executed { attempt: C1, op: OpKind::Wait, answer: Answer::Yes, .. }
            )
        };
        (at(OpKind::Wait) - at(OpKind::Set), find(&events, yes).is_some())
    };
    let (took_ns, yes) = waited("the-replica-that-acknowledged-is-promoted");
    assert!(yes && took_ns < 5 * MS, "{took_ns}");
    let (took_ns, yes) = waited("too-few-replicas-are-a-failure");
    assert!(!yes && took_ns > 25 * MS, "half the node timeout, after the way there and back");
}

#[test]
fn a_restarted_replica_gets_the_whole_stream_again() {
    let more = "at = \"100ms\"\nkill = { host = \"R\", restart-after = \"50ms\" }\n\
                [[fault]]\nid = \"p\"\nat = \"1s\"\nfailover = { node = \"A\", to = \"R\" }";
    assert_eq!(find(&play_replicated(more), ended(0, KeyEnd::FailedOver)), None);
    let cut = "[[fault]]\nid = \"c\"\nat = \"90ms\"\nuntil = \"2s\"\n\
               partition = { between = [[\"A\"], [\"R\"]] }";
    let events = play_replicated(&format!("{more}\n{cut}"));
    assert_eq!(find(&events, ended(0, KeyEnd::FailedOver)), Some(1_000 * MS), "it could not be");
}
