//! Effects of faults, seen in the histories of small scenarios.

use lock_judge::history::{
    Answer, AttemptId, ClientId, ClockKind, Event, EventKind, HostId, KeyEnd, NodeId, OpKind,
    Settlement, Writer,
};
use lock_judge::scenario::{Case, Scenario};

use super::Engine;

mod clients;
mod drawn;
mod durability;
mod failover;
mod memory;
mod resources;

const MS: u64 = 1_000_000;
const C1: AttemptId = AttemptId { client: ClientId(0), number: 1 };

/// Runs one client that holds the lock from 0 to 2 s over the nodes A, B and C, with 1 ms of
/// one-way delay, and `more`.
fn play(more: &str) -> Vec<Event> {
    play_in("", more)
}

/// Runs the scenario of [`play`] in a cluster with `settings`.
fn play_in(settings: &str, more: &str) -> Vec<Event> {
    let mut kept = Vec::new();
    Engine::new(&case_in(settings, more)).unwrap().run(0, Some(&mut kept));
    kept
}

/// Returns the scenario of [`play`].
fn case_of(more: &str) -> Case {
    case_in("", more)
}

fn case_in(settings: &str, more: &str) -> Case {
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
    Case { slug: None, name: None, scenario, overrides: Vec::new() }
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
fn without_faults_times_are_those_of_the_arithmetic() {
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
