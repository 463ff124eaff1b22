//! Effects of deaths, of disks, and of the clocks that measure restarts.

use lock_judge::history::Writer;

use super::*;

/// Runs a scenario in which node A has this `persistence` and syncs 100 ms past each second, with
/// the fault `more`.
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
fn slow_sync_delays_answers_and_later_requests_share_the_next() {
    let events =
        play_with_disk("always", "at = \"1s\"\nevict = { host = \"B\" }", "sync-takes = \"7ms\"");
    assert_eq!(find(&events, executed(0, OpKind::Set)), Some(MS));
    let answered = |kind: &EventKind| {
        matches!(kind, EventKind::Delivered { node: NodeId(0), op: OpKind::Set, attempt: C1, .. })
    };
    assert_eq!(find(&events, answered), Some(9 * MS));
}

#[test]
fn answers_that_wait_for_a_sync_die_but_the_key_does_not() {
    let kill = "at = \"5ms\"\nkill = { host = \"A\", restart-after = \"10ms\" }";
    let events = play_with_disk("always", kill, "sync-takes = \"7ms\"");
    assert!(!forgets(&events));
    let answered = |kind: &EventKind| {
        matches!(kind, EventKind::Delivered { node: NodeId(0), op: OpKind::Set, attempt: C1, .. })
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
    let returned =
        |kind: &EventKind| matches!(kind, EventKind::KeyReturned { node: NodeId(0), .. });
    assert_eq!(find(&events, returned), Some(2_150 * MS));
    let before = "at = \"2100ms\"\nkill = { host = \"A\", restart-after = \"50ms\" }";
    assert_eq!(find(&play_with_disk("always", before, ""), returned), None);
}

#[test]
fn a_hanging_disk_postpones_the_write_for_two_seconds() {
    // The client's first attempt gives the node data to sync; by then the disk hangs.
    let hang = "at = \"50ms\"\nuntil = \"9s\"\ndisk-stall = { host = \"A\" }";
    let client = "[[client]]\nid = \"c2\"\n\
                  steps = [{ at = \"2050ms\", acquire = {} }, { sleep = \"5s\" }]";
    let kill = "kill = { host = \"A\", restart-after = \"50ms\" }";
    let second = Writer::Attempt(AttemptId { client: ClientId(1), number: 1 });
    let lost_at = |at: &str| {
        let more = format!("{hang}\n[[fault]]\nid = \"k\"\nat = \"{at}\"\n{kill}\n{client}");
        let events = play_with_disk("everysec", &more, "");
        events.iter().any(|event| {
            ended(0, KeyEnd::Restarted)(&event.kind)
                && matches!(event.kind, EventKind::KeyEnded { writer, .. } if writer == second)
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
        matches!(
            kind,
            EventKind::Executed { node: NodeId(0), op: OpKind::Set, answer: Answer::Error, .. }
        )
    };
    assert_eq!(find(&events, refused), Some(MS));
    assert!(find(&events, executed(0, OpKind::Release)).is_some());
}

#[test]
fn a_restart_is_due_by_its_own_clock() {
    let up = |more: &str| {
        let events = play(&fault(more));
        find(&events, |kind| matches!(kind, EventKind::NodeUp { node: NodeId(0), incarnation: 1 }))
    };
    let kill = |clock: &str| {
        let kill = "at = \"1s\"\nkill = { host = \"A\", restart-after = \"10s\", measured-on = ";
        format!("{kill}\"{clock}\" }}")
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
fn no_grant_while_a_majority_is_away_and_one_soon_after() {
    let text = include_str!("../../../../../scenarios/durability/majority-crash.toml");
    let file = lock_judge::scenario::File::parse("majority-crash.toml", text).unwrap();
    let case = &file.cases(&[]).unwrap()[0];
    let mut kept = Vec::new();
    Engine::new(case).unwrap().run(0, Some(&mut kept));
    let second = |kind: &EventKind| {
        matches!(
            kind,
            EventKind::GrantDecided { attempt: AttemptId { client: ClientId(1), .. }, .. }
        )
    };
    let at_ns = find(&kept, second).expect("it is granted in the end");
    // The nodes are back after 10.1 s.
    assert!((10_100 * MS..12_000 * MS).contains(&at_ns), "{at_ns}");
}
