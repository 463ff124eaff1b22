//! Tests of clients' steps, and of faults at their hosts.

use super::*;

#[test]
fn a_dead_client_takes_no_step_and_what_it_wrote_is_executed() {
    let kill = "at = \"500us\"\nkill = { host = \"c1\" }";
    let events = play(&fault(kill));
    assert_eq!(count(&events, executed(0, OpKind::Set)), 1);
    assert_eq!(count(&events, |kind| matches!(kind, EventKind::Delivered { attempt: C1, .. })), 0);
    assert_eq!(count(&events, executed(0, OpKind::Release)), 0);
}

#[test]
fn a_pause_before_t2_makes_the_attempt_too_slow() {
    let pause =
        "at = { client = \"c1\", before = \"t2\" }\nlasts = \"12s\"\npause = { host = \"c1\" }";
    let events = play(&fault(pause));
    let too_slow = |kind: &EventKind| {
        matches!(kind, EventKind::AttemptSettled { outcome: Settlement::TooSlow, .. })
    };
    assert_eq!(find(&events, too_slow), Some(12_002 * MS));
    assert_eq!(
        count(&events, |kind| matches!(kind, EventKind::GrantDelivered { attempt: C1, .. })),
        0
    );
}

#[test]
fn every_point_of_an_attempt_can_be_reached() {
    for point in ["t1", "write", "execute", "reply", "t2", "deliver", "look", "enter"] {
        let at = format!("at = {{ client = \"c1\", before = \"{point}\" }}");
        let pause = format!("{at}\nlasts = \"1ms\"\npause = {{ host = \"c1\" }}");
        let events = play(&fault(&pause));
        let stopped = |kind: &EventKind| matches!(kind, EventKind::Stopped { .. });
        assert_eq!(count(&events, stopped), 1, "{point}");
    }
}

#[test]
fn a_fault_that_is_off_changes_nothing() {
    let off = fault("at = \"0s\"\nenabled = false\nevict = { host = \"A\" }");
    assert_eq!(play(&off), play(""));
}

#[test]
fn a_cold_client_dials_and_introduces_itself_before_it_locks() {
    let text = include_str!("../../../../../benches/two_clients.toml");
    let mut scenario: Scenario = toml::from_str(text).unwrap();
    scenario.cluster.connections = lock_judge::scenario::Start::Cold;
    let case = Case { slug: None, name: None, scenario, overrides: Vec::new() };
    let mut kept = Vec::new();
    Engine::new(&case).unwrap().run(0, Some(&mut kept));
    let written: Vec<OpKind> = kept
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::Written { op, node: NodeId(0), attempt, .. }
                if attempt.client == ClientId(0) =>
            {
                Some(op)
            }
            _ => None,
        })
        .collect();
    assert_eq!(written, [OpKind::Introduce, OpKind::Set, OpKind::Release]);
}

#[test]
fn a_subject_of_one_node_minds_only_that_node() {
    let text = include_str!("../../../../../benches/two_clients.toml");
    let mut scenario: Scenario = toml::from_str(text).unwrap();
    scenario.clients.iter_mut().for_each(|client| client.subject = String::from("unique-id"));
    let kill = "id = \"f\"\nat = \"5ms\"\nkill = { host = \"E\" }";
    scenario.faults.push(toml::from_str(kill).unwrap());
    let case = Case { slug: None, name: None, scenario, overrides: Vec::new() };
    let mut kept = Vec::new();
    Engine::new(&case).unwrap().run(0, Some(&mut kept));
    let elsewhere = |kind: &EventKind| matches!(kind, EventKind::Written { node: NodeId(1..), .. });
    assert_eq!(count(&kept, elsewhere), 0);
}

#[test]
fn a_holder_does_not_ask_again() {
    for subject in lock_judge::scenario::subject_names() {
        let text = format!(
            r#"
            schema = 1
            name = "test"
            title = "test"
            [lock]
            ttl = "1s"
            [[client]]
            id = "c1"
            subject = "{subject}"
            steps = [
                {{ at = "0s", acquire = {{ attempts = 3 }} }}, {{ acquire = {{}} }},
                {{ sleep = "3s" }}, {{ acquire = {{}} }}, {{ acquire = {{}} }}, {{ release = {{}} }},
            ]"#
        );
        let scenario: Scenario = toml::from_str(&text).unwrap();
        let case = Case { slug: None, name: None, scenario, overrides: Vec::new() };
        let mut kept = Vec::new();
        Engine::new(&case).unwrap().run(0, Some(&mut kept));
        let granted = count(&kept, |kind| matches!(kind, EventKind::GrantDelivered { .. }));
        let released = count(&kept, |kind| matches!(kind, EventKind::ReleaseCalled { .. }));
        assert!((1..=2).contains(&granted) || subject == "unique-id-wait", "{subject}: {granted}");
        assert_eq!(granted, released, "{subject}");
    }
}

// ---- actions that the client takes by itself

#[test]
fn a_client_that_keeps_its_lease_alive_tells_of_every_round() {
    let text = r#"
        schema = 1
        name = "test"
        title = "test"
        [cluster]
        nodes = ["A", "B", "C"]
        [[client]]
        id = "c1"
        steps = [{ at = "0s", acquire = { keep-alive = "25s" } }, { hold = "until-deadline" }]
    "#;
    let scenario: Scenario = toml::from_str(text).unwrap();
    let case = Case { slug: None, name: None, scenario, overrides: Vec::new() };
    let mut events = Vec::new();
    Engine::new(&case).unwrap().run(0, Some(&mut events));
    let (mut began_ns, mut rounds) = (Vec::new(), 0);
    for event in &events {
        match event.kind {
            EventKind::ExtensionBegan { round, ttl_ns, .. } => {
                assert_eq!(usize::from(round.0), began_ns.len() + 1);
                assert!(event.at_ns + ttl_ns <= 25_002 * MS, "beyond the limit");
                began_ns.push(event.at_ns);
            }
            EventKind::Written { op: OpKind::Extend, .. } => {
                assert_eq!(began_ns.last(), Some(&event.at_ns), "written before it began");
            }
            EventKind::ExtensionSettled { round, extended, .. } => {
                assert!(extended && usize::from(round.0) == began_ns.len());
                rounds += 1;
            }
            _ => {}
        }
    }
    assert!((5..=8).contains(&rounds) && rounds == began_ns.len(), "{began_ns:?}");
    let lost = find(&events, |kind| matches!(kind, EventKind::LostDelivered { .. }));
    assert!((24_800 * MS..25_000 * MS).contains(&lost.expect("the limit ends it")));
}

#[test]
fn plain_extension_to_less_shortens_the_lease_if_supported() {
    let left_ms = |settings: &str| {
        let text = format!(
            r#"
            schema = 1
            name = "test"
            title = "test"
            [lock]
            plain-extensions = true
            [cluster]
            nodes = ["A"]
            {settings}
            [[client]]
            id = "c1"
            subject = "redlock-literal"
            steps = [{{ at = "0s", acquire = {{}} }}, {{ extend = {{ ttl = "1s" }} }}, {{ sleep = "11s" }}]
            "#
        );
        let scenario: Scenario = toml::from_str(&text).unwrap();
        let case = Case { slug: None, name: None, scenario, overrides: Vec::new() };
        let mut events = Vec::new();
        Engine::new(&case).unwrap().run(0, Some(&mut events));
        let ended_ns = find(&events, ended(0, KeyEnd::Expired)).expect("nobody releases it");
        ended_ns / MS
    };
    assert!((1_000..1_010).contains(&left_ms("server = \"redis-8.4\"")));
    assert!((10_000..10_010).contains(&left_ms("")));
}

#[test]
fn waiting_out_a_quarantine_takes_two_attempts() {
    let text = r#"
        schema = 1
        name = "test"
        title = "test"
        [cluster]
        nodes = ["A", "B", "C"]
        uptime = "1s"
        [[client]]
        id = "c1"
        steps = [{ at = "0s", acquire = { wait = "30s" } }, { release = {} }]
    "#;
    let scenario: Scenario = toml::from_str(text).unwrap();
    let case = Case { slug: None, name: None, scenario, overrides: Vec::new() };
    let mut events = Vec::new();
    Engine::new(&case).unwrap().run(0, Some(&mut events));
    let began = |kind: &EventKind| matches!(kind, EventKind::AttemptBegan { .. });
    assert_eq!(count(&events, began), 2, "the one that learns of it, and the one that is granted");
    let decided = find(&events, |kind| matches!(kind, EventKind::GrantDecided { .. }));
    assert!((9_102 * MS..9_112 * MS).contains(&decided.expect("when a majority counts")));
}
