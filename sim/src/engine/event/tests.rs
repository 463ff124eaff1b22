//! What faults do, seen in the histories of small scenarios.

use super::Engine;
use crate::history::{
    Answer, AttemptId, ClockKind, Event, EventKind, HostIndex, KeyEnd, OpKind, Settlement,
};
use crate::scenario::{Case, Scenario};

const MS: u64 = 1_000_000;
const C1: AttemptId = AttemptId { client: 0, number: 1 };

/// One client that holds the lock from 0 to 2 s over nodes A, B and C, one way 1 ms, and `more`.
fn play(more: &str) -> Vec<Event> {
    play_in("", more)
}

/// The same in a cluster with `settings`.
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
    // The probe's commands are its own matter.
    move |kind| {
        matches!(kind, EventKind::Executed { node, op, attempt, .. }
            if (*node, *op, attempt.client) == (at_node, of, 0))
    }
}

fn ended(at_node: u8, why: KeyEnd) -> impl Fn(&EventKind) -> bool {
    move |kind| matches!(kind, EventKind::KeyEnded { node, cause, .. } if (*node, *cause) == (at_node, why))
}

fn introduces_itself(kind: &EventKind) -> bool {
    matches!(kind, EventKind::Written { node: 0, op: OpKind::Introduce, attempt, .. }
        if attempt.client == 0)
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
    let unstalled = |kind: &EventKind| matches!(kind, EventKind::NodeUnstalled { node: 0 });
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
fn a_holding_partition_delivers_with_a_retransmission_after_the_heal() {
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
fn a_resetting_partition_loses_what_was_under_way_and_both_ends_know() {
    let partition = "at = \"500us\"\nuntil = \"300ms\"\n\
                     partition = { between = [[\"c1\"], [\"A\"]], lost = \"reset\" }";
    let events = play(&fault(partition));
    assert_eq!(count(&events, executed(0, OpKind::Set)), 0);
    let release = find(&events, executed(0, OpKind::Release)).expect("the release is owed");
    assert!(release > 300 * MS);
}

#[test]
fn a_silent_partition_is_noticed_by_its_silence() {
    let partition = "at = \"500us\"\nuntil = \"100ms\"\n\
                     partition = { between = [[\"c1\"], [\"A\"]], lost = \"silent\" }";
    let events = play(&fault(partition));
    assert_eq!(count(&events, executed(0, OpKind::Set)), 0);
    let redialled = find(&events, introduces_itself).expect("the client dials again");
    assert!(redialled >= 500 * MS, "it gives up after 500 ms, not before");
}

#[test]
fn one_way_lets_the_request_through_and_holds_the_reply() {
    let partition = "at = \"0s\"\nuntil = \"300ms\"\n\
                     partition = { between = [[\"A\"], [\"c1\"]], one-way = true }";
    let events = play(&fault(partition));
    assert_eq!(find(&events, executed(0, OpKind::Set)), Some(MS));
    let delivered = |kind: &EventKind| {
        matches!(kind, EventKind::Delivered { node: 0, answer: Answer::Yes, op: OpKind::Set, .. })
    };
    assert!(find(&events, delivered).is_some_and(|at_ns| at_ns >= 300 * MS));
}

#[test]
fn a_slew_moves_all_clocks_by_its_amount() {
    let slew = "at = \"0s\"\nuntil = \"1s\"\nclock-slew = { host = \"c1\", by = \"100ms\" }";
    let events = play(&fault(slew));
    let read = |wanted: ClockKind| {
        events.iter().rev().find_map(|event| match event.kind {
            EventKind::Clock { host: HostIndex(3), clock, local_ns, rate_ppb: 0 }
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
            EventKind::Written { op, node: 0, attempt, .. } if attempt.client == 0 => Some(op),
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
    let elsewhere = |kind: &EventKind| matches!(kind, EventKind::Written { node: 1.., .. });
    assert_eq!(count(&kept, elsewhere), 0);
}

/// The node at 0 keeps what `persistence` keeps and syncs 100 ms past each second, and `more`.
fn play_with_disk(persistence: &str, more: &str, disk: &str) -> Vec<Event> {
    let cluster = format!("[cluster.disk]\nsync-at = \"100ms\"\n{disk}");
    let node = format!("[cluster.node.A]\npersistence = \"{persistence}\"");
    play_in(&cluster, &format!("{}\n{node}", fault(more)))
}

fn forgets(events: &[Event]) -> bool {
    find(events, ended(0, KeyEnd::Restarted)).is_some()
}

#[test]
fn a_power_cut_takes_what_was_written_and_not_synced() {
    let power =
        |at: &str| format!("at = \"{at}\"\npower = {{ host = \"A\", restart-after = \"50ms\" }}");
    let kill = "at = \"50ms\"\nkill = { host = \"A\", restart-after = \"10ms\" }";
    assert!(forgets(&play_with_disk("everysec", &power("50ms"), "")));
    assert!(!forgets(&play_with_disk("everysec", &power("150ms"), "")), "synced after 100 ms");
    assert!(!forgets(&play_with_disk("everysec", kill, "")));
    assert!(forgets(&play_with_disk("everysec", &power("150ms"), "sync-takes = \"60ms\"")));
    assert!(forgets(&play_with_disk("everysec", &power("150ms"), "lies = true")));
    assert!(forgets(&play_with_disk("no", &power("1500ms"), "")), "nobody syncs");
    assert!(!forgets(&play_with_disk("no", kill, "")));
}

#[test]
fn a_slow_sync_delays_the_answer_and_what_comes_meanwhile_shares_the_next() {
    let events =
        play_with_disk("always", "at = \"1s\"\nevict = { host = \"B\" }", "sync-takes = \"7ms\"");
    assert_eq!(find(&events, executed(0, OpKind::Set)), Some(MS));
    let answered = |kind: &EventKind| {
        matches!(kind, EventKind::Delivered { node: 0, op: OpKind::Set, attempt: C1, .. })
    };
    assert_eq!(find(&events, answered), Some(9 * MS));
}

#[test]
fn answers_that_wait_for_a_sync_die_with_the_process_and_the_key_does_not() {
    let kill = "at = \"5ms\"\nkill = { host = \"A\", restart-after = \"10ms\" }";
    let events = play_with_disk("always", kill, "sync-takes = \"7ms\"");
    assert!(!forgets(&events));
    let answered = |kind: &EventKind| {
        matches!(kind, EventKind::Delivered { node: 0, op: OpKind::Set, attempt: C1, .. })
    };
    assert_eq!(find(&events, answered), None);
}

#[test]
fn a_snapshot_is_what_a_crash_leaves_and_a_clean_stop_takes_one() {
    let kill = "at = \"500ms\"\nkill = { host = \"A\", restart-after = \"50ms\" }";
    let stop = "at = \"500ms\"\nshutdown = { host = \"A\", restart-after = \"50ms\" }";
    let snapshot = "[[fault]]\nid = \"s\"\nat = \"400ms\"\nsnapshot = { host = \"A\" }";
    assert!(forgets(&play_with_disk("rdb", kill, "")));
    assert!(!forgets(&play_with_disk("rdb", &format!("{kill}\n{snapshot}"), "")));
    assert!(!forgets(&play_with_disk("rdb", stop, "")));
    assert!(forgets(&play_with_disk("none", stop, "")));
    let closed = play_with_disk("rdb", stop, "");
    assert!(find(&closed, introduces_itself).is_some_and(|at_ns| at_ns < 1_000 * MS), "a FIN");
}

#[test]
fn a_backup_from_before_the_release_brings_the_key_back() {
    let restored =
        "at = \"2100ms\"\nkill = { host = \"A\", restart-after = \"50ms\", backup-of = \"1s\" }";
    let events = play_with_disk("always", restored, "");
    let returned = |kind: &EventKind| matches!(kind, EventKind::KeyReturned { node: 0, .. });
    assert_eq!(find(&events, returned), Some(2_150 * MS));
    let before = "at = \"2100ms\"\nkill = { host = \"A\", restart-after = \"50ms\" }";
    assert_eq!(find(&play_with_disk("always", before, ""), returned), None);
}

#[test]
fn a_hanging_disk_postpones_the_write_for_two_seconds() {
    // The client's first attempt gives the node something to sync, and the disk hangs by then.
    let hang = "at = \"50ms\"\nuntil = \"9s\"\ndisk-stall = { host = \"A\" }";
    let client = |acquire_ms: u32| {
        format!(
            "[[client]]\nid = \"c2\"\nsteps = [{{ at = \"{acquire_ms}ms\", acquire = {{}} }}, {{ sleep = \"5s\" }}]"
        )
    };
    let kill = |at: &str| {
        format!(
            "[[fault]]\nid = \"k\"\nat = \"{at}\"\nkill = {{ host = \"A\", restart-after = \"50ms\" }}"
        )
    };
    let lost_at = |at: &str| {
        let more = format!("{hang}\n{}\n{}", kill(at), client(2_050));
        let events = play_with_disk("everysec", &more, "");
        events.iter().any(|event| {
            matches!(event.kind, EventKind::KeyEnded { node: 0, cause: KeyEnd::Restarted, writer, .. }
                if writer == crate::history::Writer::Attempt(AttemptId { client: 1, number: 1 }))
        })
    };
    assert!(lost_at("3s"), "within two seconds of the first write that was postponed, the release");
    assert!(!lost_at("4100ms"), "by then it was written");
}

#[test]
fn an_operator_deletes_and_a_full_memory_refuses() {
    let delete = "at = \"500ms\"\ndelete = { host = \"A\" }";
    assert_eq!(find(&play(&fault(delete)), ended(0, KeyEnd::Command)), Some(500 * MS));
    let full = "at = \"0s\"\nuntil = \"1s\"\nmemory-full = { host = \"A\" }";
    let events = play(&fault(full));
    let refused = |kind: &EventKind| {
        matches!(kind, EventKind::Executed { node: 0, op: OpKind::Set, answer: Answer::Error, .. })
    };
    assert_eq!(find(&events, refused), Some(MS));
    assert!(find(&events, executed(0, OpKind::Release)).is_some());
}

#[test]
fn a_restart_comes_when_its_own_clock_says_so() {
    let up = |more: &str| {
        let events = play(&fault(more));
        find(&events, |kind| matches!(kind, EventKind::NodeUp { node: 0, incarnation: 1 }))
    };
    let kill = |clock: &str| {
        format!(
            "at = \"1s\"\nkill = {{ host = \"A\", restart-after = \"10s\", measured-on = \"{clock}\" }}"
        )
    };
    let jump = |by: &str| {
        format!(
            "[[fault]]\nid = \"j\"\nat = \"1100ms\"\nclock-jump = {{ host = \"A\", by = \"{by}\" }}"
        )
    };
    let fast = "[[fault]]\nid = \"r\"\nat = \"0s\"\nclock-rate = { host = \"A\", ppm = 1000000 }";
    assert_eq!(up(&kill("true")), Some(11_000 * MS));
    assert_eq!(up(&kill("wall")), Some(11_000 * MS));
    assert_eq!(up(&format!("{}\n{}", kill("wall"), jump("10s"))), Some(1_100 * MS));
    assert_eq!(up(&format!("{}\n{}", kill("wall"), jump("-5s"))), Some(16_000 * MS));
    assert_eq!(up(&format!("{}\n{}", kill("boot"), jump("10s"))), Some(11_000 * MS));
    assert_eq!(up(&format!("{}\n{fast}", kill("boot"))), Some(6_000 * MS));
    assert_eq!(up(&format!("{}\n{fast}", kill("true"))), Some(11_000 * MS));
}

#[test]
fn while_a_majority_is_away_nobody_is_granted_and_soon_after_somebody_is() {
    let text = include_str!("../../../../scenarios/durability/majority-crash.toml");
    let file = crate::scenario::File::parse("majority-crash.toml", text).unwrap();
    let case = &file.cases(&[]).unwrap()[0];
    let mut kept = Vec::new();
    Engine::new(case).unwrap().run(0, Some(&mut kept));
    let second = |kind: &EventKind| {
        matches!(kind, EventKind::GrantDecided { attempt: AttemptId { client: 1, .. }, .. })
    };
    let at_ns = find(&kept, second).expect("it is granted in the end");
    // The nodes are back after 10.1 s.
    assert!((10_100 * MS..12_000 * MS).contains(&at_ns), "{at_ns}");
}
