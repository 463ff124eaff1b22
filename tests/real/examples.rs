//! The programs in `examples/`: each does what it says on real servers, and ends by itself.

use std::path::PathBuf;
use std::process::Command;

use crate::fleet::Fleet;
use crate::{Test, on_threads};

pub(crate) const TESTS: &[Test] = &[
    on_threads!(quick_start_acquires_and_leaves_nothing),
    on_threads!(keep_alive_outlives_the_ttl),
    on_threads!(fenced_sqlite_loses_no_update),
    on_threads!(cron_runs_once_and_keeps_the_lock),
    on_threads!(leader_leads_alone),
    on_threads!(blocking_works_without_a_runtime),
    on_threads!(failed_example_prints_the_message_of_its_error),
];

/// Path of an example from the build that this test belongs to.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a program that runs");
    let target = test.ancestors().nth(2).expect("tests are in `deps`, below the target directory");
    let example = target.join("examples").join(name);
    assert!(example.exists(), "`cargo build --examples` has not been run");
    example
}

/// Runs an example and returns its output. The servers are new and have no leases to forget.
fn output(name: &str, fleet: &Fleet) -> String {
    let output = Command::new(example(name))
        .env("REDLOCK_NODES", fleet.urls().join(","))
        .env("REDLOCK_RESTART_GUARD", "delayed-restart")
        .output()
        .expect("an example that can be run");
    let (said, complained) = (&output.stdout[..], &output.stderr[..]);
    let (said, complained) = (String::from_utf8_lossy(said), String::from_utf8_lossy(complained));
    assert!(output.status.success(), "{said}\n{complained}");
    said.into_owned()
}

fn quick_start_acquires_and_leaves_nothing() {
    let fleet = Fleet::of(3);
    let said = output("quick_start", &fleet);
    for line in [
        "acquired, 9.",
        "invoice 42 is being sent",
        "released",
        "closed, commands pending on 0 nodes",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert_eq!(fleet.keys(), [0; 3]);
}

fn keep_alive_outlives_the_ttl() {
    let fleet = Fleet::of(3);
    let said = output("keep_alive", &fleet);
    assert!(said.contains("imported 1500 rows under one lease"), "{said}");
    assert!(said.contains("imported 1500 rows again"), "{said}");
    assert_eq!(fleet.keys(), [0; 3]);
    let calls = |name| fleet.iter().map(|server| server.calls(name)).sum::<usize>();
    // A server that compares by itself extends with a SET, in addition to the two SETs of the
    // acquisitions.
    assert!(calls("evalsha") > 0 || calls("set") > 2 * 3, "it was extended");
}

fn fenced_sqlite_loses_no_update() {
    let said = output("fenced_sqlite", &Fleet::of(3));
    assert!(said.contains("slow: refused"), "{said}");
    assert!(said.contains("balance 150 after 2 writes"), "{said}");
}

fn leader_leads_alone() {
    let fleet = Fleet::of(3);
    let said = output("leader", &fleet);
    let lines: Vec<&str> = said.lines().collect();
    for (epoch, term) in (1..).zip(lines[..6].chunks(2)) {
        let (leader, rest) = term[0].split_once(' ').expect("a name and more");
        assert_eq!(rest, format!("leads in epoch {epoch}"), "{said}");
        assert_eq!(term[1], format!("{leader} steps down"), "{said}");
    }
    assert_eq!(lines[6..], ["a late command of epoch 1 is refused"]);
    assert_eq!(fleet.keys(), [0; 3]);
}

fn cron_runs_once_and_keeps_the_lock() {
    let fleet = Fleet::of(3);
    let said = output("cron", &fleet);
    assert_eq!(said.matches("reported 7 pages").count(), 1, "{said}");
    assert_eq!(said.matches("another machine has it").count(), 2, "{said}");
    assert_eq!(fleet.keys().iter().filter(|&&keys| keys == 1).count(), 3, "{:?}", fleet.keys());
    let again = output("cron", &fleet);
    assert_eq!(again.matches("another machine has it").count(), 3, "{again}");
}

fn blocking_works_without_a_runtime() {
    let fleet = Fleet::of(3);
    let said = output("blocking", &fleet);
    assert!(said.contains("12 batches under one lease"), "{said}");
    assert!(said.contains("released on every node"), "{said}");
    assert_eq!(fleet.keys(), [0; 3]);
}

fn failed_example_prints_the_message_of_its_error() {
    for name in ["blocking", "cron", "fenced_sqlite", "keep_alive", "leader", "quick_start"] {
        let output = Command::new(example(name)).env_remove("REDLOCK_NODES").output();
        let output = output.expect("an example that can be run");
        let complained = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{name}: {complained}");
        assert!(complained.starts_with("error: no node was given: "), "{name}: {complained}");
    }
}
