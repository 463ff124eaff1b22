//! Effects of faults, seen in the histories of small scenarios.

use super::Engine;
use crate::history::{
    Answer, AttemptId, ClientId, ClockKind, Event, EventKind, HostId, KeyEnd, NodeId, OpKind,
    Settlement,
};
use crate::scenario::{Case, Scenario};

mod durability;
mod failover;
mod memory;

const MS: u64 = 1_000_000;
const C1: AttemptId = AttemptId { client: ClientId(0), number: 1 };

/// Runs one client that holds the lock from 0 to 2 s over the nodes A, B and C, with 1 ms of
/// one-way delay, and `more`.
fn play(more: &str) -> Vec<Event> {
    play_in("", more)
}

/// Runs the scenario of [`play`] in a cluster with `settings`.
fn play_in(settings: &str, more: &str) -> Vec<Event> {
    let text = format!(
        r#"
        schema = 1
        name = "test"
        title = "test"
        {settings}
        [cluster]
        nodes = ["A", "B", "C"]
        [[client]]
        id = "c1"
        steps = [
            {{ at = "0s", acquire = {{}} }}, {{ enter = {{}} }}, {{ sleep = "2s" }},
            {{ leave = {{}} }}, {{ release = {{}} }},
        ]
        {more}"#
    );
    let scenario: Scenario = toml::from_str(&text).unwrap();
    let case = Case { slug: None, name: None, scenario, overrides: Vec::new() };
    let mut kept = Vec::new();
    Engine::new(&case).unwrap().run(0, Some(&mut kept));
    kept
}

fn fault(kind: &str) -> String {
    format!("[[fault]]\nid = \"f\"\n{kind}\n")
}

fn find(events: &[Event], wanted: impl Fn(&EventKind) -> bool) -> Option<u64> {
    events.iter().find(|event| wanted(&event.kind)).map(|event| event.at_ns)
}

fn count(events: &[Event], wanted: impl Fn(&EventKind) -> bool) -> usize {
    events.iter().filter(|event| wanted(&event.kind)).count()
}

fn executed(at_node: u8, of: OpKind) -> impl Fn(&EventKind) -> bool {
    // The probe's commands are excluded.
    move |kind| {
        matches!(kind, EventKind::Executed { node, op, attempt, .. }
            if (*node, *op, attempt.client) == (NodeId(at_node), of, ClientId(0)))
    }
}

fn ended(at_node: u8, why: KeyEnd) -> impl Fn(&EventKind) -> bool {
    move |kind| matches!(kind, EventKind::KeyEnded { node, cause, .. } if (*node, *cause) == (NodeId(at_node), why))
}

fn introduces_itself(kind: &EventKind) -> bool {
    matches!(kind, EventKind::Written { node: NodeId(0), op: OpKind::Introduce, attempt, .. }
        if attempt.client == ClientId(0))
}

#[test]
fn without_faults_times_are_those_of_the_catalogue() {
    let events = play("");
    assert_eq!(find(&events, executed(0, OpKind::Set)), Some(MS));
    let decided = |kind: &EventKind| matches!(kind, EventKind::GrantDecided { .. });
    assert_eq!(find(&events, decided), Some(2 * MS));
    let deadline = events.iter().find_map(|event| match event.kind {
        EventKind::GrantDelivered { deadline_local_ns, .. } => Some(deadline_local_ns),
        _ => None,
    });
    assert_eq!(deadline, Some(crate::world::BOOT_AT_START_NS + 9_898 * MS));
}

#[test]
fn a_stalled_node_executes_afterwards_in_order() {
    let stall = "at = \"0s\"\nuntil = \"30ms\"\nstall = { host = \"A\" }";
    let events = play(&fault(stall));
    assert_eq!(find(&events, executed(0, OpKind::Set)), Some(30 * MS));
    let unstalled = |kind: &EventKind| matches!(kind, EventKind::NodeUnstalled { node: NodeId(0) });
    assert_eq!(find(&events, unstalled), Some(30 * MS));
}

#[test]
fn a_killed_node_says_goodbye_and_a_dark_one_does_not() {
    let redialled = |events: &[Event]| find(events, introduces_itself);
    let kill = "at = \"500ms\"\nkill = { host = \"A\", restart-after = \"100ms\" }";
    let killed = play(&fault(kill));
    assert!(redialled(&killed).is_some_and(|at_ns| at_ns < 1_000 * MS), "the client hears of it");
    let power = "at = \"500ms\"\npower = { host = \"A\" }";
    let dark = play(&fault(power));
    assert_eq!(redialled(&dark), None);
    assert_eq!(count(&dark, executed(0, OpKind::Release)), 0);
}

#[test]
fn a_restarted_node_without_persistence_has_lost_its_keys() {
    let kill = "at = \"500ms\"\nkill = { host = \"A\", restart-after = \"100ms\" }";
    assert_eq!(find(&play(&fault(kill)), ended(0, KeyEnd::Restarted)), Some(600 * MS));
    let always = format!("{}\n[cluster.node.A]\npersistence = \"always\"", fault(kill));
    assert_eq!(find(&play(&always), ended(0, KeyEnd::Restarted)), None);
}

#[test]
fn eviction_and_flush_end_the_key() {
    let evict = "at = \"500ms\"\nevict = { host = \"A\" }";
    assert_eq!(find(&play(&fault(evict)), ended(0, KeyEnd::Evicted)), Some(500 * MS));
    let flush = "at = \"500ms\"\nflush = { host = \"A\" }";
    assert_eq!(find(&play(&fault(flush)), ended(0, KeyEnd::Flushed)), Some(500 * MS));
}

#[test]
fn holding_partition_retransmits_after_the_heal() {
    let partition = "at = \"0s\"\nuntil = \"100ms\"\npartition = { between = [[\"c1\"], [\"A\"]] }";
    let at_ns = find(&play(&fault(partition)), executed(0, OpKind::Set)).expect("it arrives");
    assert!((100 * MS..400 * MS).contains(&at_ns), "{at_ns}");
}

#[test]
fn a_reset_discards_what_a_partition_holds() {
    let partition = "at = \"0s\"\nuntil = \"1s\"\npartition = { between = [[\"c1\"], [\"A\"]] }";
    let events = play(&fault(partition));
    assert_eq!(count(&events, executed(0, OpKind::Set)), 0, "the client gave up after 500 ms");
}

#[test]
fn resetting_partition_loses_messages_and_both_ends_notice() {
    let partition = "at = \"500us\"\nuntil = \"300ms\"\n\
                     partition = { between = [[\"c1\"], [\"A\"]], lost = \"reset\" }";
    let events = play(&fault(partition));
    assert_eq!(count(&events, executed(0, OpKind::Set)), 0);
    let release = find(&events, executed(0, OpKind::Release)).expect("the release is owed");
    assert!(release > 300 * MS);
}

#[test]
fn a_silent_partition_is_noticed_by_its_silence() {
    // The SET is written before the partition, or into it.
    for at in ["500us", "0s"] {
        let partition = "until = \"100ms\"\n\
                         partition = { between = [[\"c1\"], [\"A\"]], lost = \"silent\" }";
        let events = play(&fault(&format!("at = \"{at}\"\n{partition}")));
        assert_eq!(count(&events, executed(0, OpKind::Set)), 0, "{at}");
        let redialled = find(&events, introduces_itself).expect("the client dials again");
        assert!(redialled >= 500 * MS, "{at}: it gives up after 500 ms, not before");
    }
}

#[test]
fn one_way_lets_the_request_through_and_holds_the_reply() {
    let partition = "at = \"0s\"\nuntil = \"300ms\"\n\
                     partition = { between = [[\"A\"], [\"c1\"]], one-way = true }";
    let events = play(&fault(partition));
    assert_eq!(find(&events, executed(0, OpKind::Set)), Some(MS));
    let delivered = |kind: &EventKind| {
        matches!(
            kind,
            EventKind::Delivered { node: NodeId(0), answer: Answer::Yes, op: OpKind::Set, .. }
        )
    };
    assert!(find(&events, delivered).is_some_and(|at_ns| at_ns >= 300 * MS));
}

#[test]
fn a_rate_comes_on_top_of_the_usual_drift_and_leaves_it() {
    let rate = "at = \"500ms\"\nuntil = \"1s\"\nclock-rate = { host = \"HOST\", ppm = 300 }";
    for (host, name) in [(0, "A"), (3, "c1")] {
        let usual = format!("[cluster.clocks.{name}]\nrate-ppm = -100");
        let events = play_in(&usual, &fault(&rate.replace("HOST", name)));
        let rates = events.iter().filter_map(|event| match event.kind {
            EventKind::Clock { host: HostId(at), clock: ClockKind::Wall, rate_ppb, .. }
                if at == host =>
            {
                Some((event.at_ns / MS, rate_ppb))
            }
            _ => None,
        });
        let expected = [(0, -100_000), (500, 200_000), (1_000, -100_000)];
        assert_eq!(rates.collect::<Vec<_>>(), expected, "{name}");
    }
}

#[test]
fn a_slew_moves_all_clocks_by_its_amount() {
    let slew = "at = \"0s\"\nuntil = \"1s\"\nclock-slew = { host = \"c1\", by = \"100ms\" }";
    let events = play(&fault(slew));
    let read = |wanted: ClockKind| {
        events.iter().rev().find_map(|event| match event.kind {
            EventKind::Clock { host: HostId(3), clock, local_ns, rate_ppb: 0 }
                if clock == wanted =>
            {
                Some(local_ns)
            }
            _ => None,
        })
    };
    let boot = crate::world::BOOT_AT_START_NS;
    assert_eq!(read(ClockKind::Boot), Some(boot + 1_100 * MS));
    assert_eq!(read(ClockKind::Monotonic), Some(boot + 1_100 * MS));
}

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
    let text = include_str!("../../../../benches/two_clients.toml");
    let mut scenario: Scenario = toml::from_str(text).unwrap();
    scenario.cluster.connections = crate::scenario::Start::Cold;
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
    let text = include_str!("../../../../benches/two_clients.toml");
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
fn who_has_the_lease_does_not_ask_again_whatever_the_lock() {
    for subject in crate::scenario::SUBJECTS {
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
                assert_eq!(usize::from(round), began_ns.len() + 1);
                assert!(event.at_ns + ttl_ns <= 25_002 * MS, "beyond the limit");
                began_ns.push(event.at_ns);
            }
            EventKind::Written { op: OpKind::Extend, .. } => {
                assert_eq!(began_ns.last(), Some(&event.at_ns), "written before it began");
            }
            EventKind::ExtensionSettled { round, extended, .. } => {
                assert!(extended && usize::from(round) == began_ns.len());
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
fn who_waits_a_quarantine_out_asks_twice() {
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
