//! Faults that begin when the observer is asked for them, and faults of workers.

use std::process::{Child, Command, Stdio};

use lock_judge::history::EventKind;
use lock_judge::scenario::Property;

use crate::serve;
use crate::talk::{Talk, await_fault, until};
use crate::verdicts::{found, told, violated};

#[test]
fn a_fault_begins_when_it_is_asked_for() {
    let fleet = serve(
        "[[fault]]\nid = \"jump\"\nat = \"60m\"\nclock-jump = { host = [\"A\", \"B\"], by = \"20s\" }",
    );
    let mut observer = Talk::to(fleet.observer());
    assert!(observer.ask("FAULT jump").contains("send START first"));
    observer.ask("START");
    assert!(observer.ask("FAULT other").contains("no such fault"));
    assert_eq!(observer.ask("FAULT jump"), "+OK");
    await_fault(&mut observer, "jump", "over");
    assert!(observer.ask("FAULT jump").contains("has begun"));
    let verdict = fleet.finish();
    let is_jump = |it: &&EventKind| matches!(it, EventKind::Clock { host, .. } if host.0 < 2);
    assert_eq!(told(&verdict).filter(is_jump).count(), 4, "at the beginning and at the jump");
}

#[test]
fn a_repeated_fault_begins_once_for_each_request() {
    let fleet = serve(
        "[[fault]]\nid = \"lose\"\nat = \"10m\"\nevery = \"1m\"\ntimes = 2\n\
         delete = { host = \"A\" }",
    );
    let mut observer = Talk::to(fleet.observer());
    let mut talk = Talk::to(fleet.addresses()[0]);
    for turn in 0..2 {
        assert_eq!(talk.ask(&format!("SET res {turn} NX PX 60000")), "+OK");
        assert_eq!(observer.ask("FAULT lose"), "+OK");
        until("the key is gone", || talk.ask("GET res") == "$-1");
    }
    await_fault(&mut observer, "lose", "over");
}

/// A process that does nothing.
struct Idle(Child);

impl Idle {
    fn start() -> Self {
        Self(Command::new("cat").stdin(Stdio::piped()).spawn().unwrap())
    }

    /// Returns the state of the process in one letter, `T` if it is stopped.
    fn state(&self) -> char {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        stat.rsplit(") ").next().unwrap().chars().next().unwrap()
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const PAUSE: &str =
    "[[fault]]\nid = \"gc\"\nat = \"60m\"\nlasts = \"3s\"\npause = { host = \"c1\" }";

/// The worker's process is another than the one that locks here. Entering takes much less than two
/// seconds.
#[test]
#[cfg(target_os = "linux")]
fn a_worker_that_a_fault_stops_is_paused() {
    let worker = Idle::start();
    let fleet = serve(PAUSE);
    let addresses = fleet.addresses();
    let mut observer = Talk::to(fleet.observer());
    let mut c1: Vec<Talk> = addresses.iter().map(|it| Talk::of(*it, "c1")).collect();
    assert_eq!(observer.ask(&format!("WORKER c1 {}", worker.0.id())), "+OK");
    for talk in &mut c1 {
        assert_eq!(talk.ask("SET res one NX PX 2000"), "+OK");
    }
    assert_eq!(observer.ask("ENTER res c1"), "+OK");
    assert_eq!(observer.ask("FAULT gc"), "+OK");
    until("the process is stopped", || worker.state() == 'T');
    await_fault(&mut observer, "gc", "over");
    until("the process goes on", || worker.state() != 'T');
    assert_eq!(observer.ask("LEAVE res c1"), "+OK");
    let verdict = fleet.finish();
    assert_eq!(found(&verdict, Property::SectionWithinLease), violated("pause"));
}

#[test]
#[cfg(target_os = "linux")]
fn a_pause_waits_for_its_process_and_ends_with_the_run() {
    let worker = Idle::start();
    let fleet = serve(PAUSE);
    let mut observer = Talk::to(fleet.observer());
    observer.ask("START");
    assert_eq!(observer.ask("FAULT gc"), "+OK");
    for (line, error) in [
        ("WORKER c2 2", "no fault of this scenario pauses"),
        ("WORKER c1 0", "expected the id"),
        ("WORKER c1 many", "expected the id"),
    ] {
        assert!(observer.ask(line).contains(error), "{line}");
    }
    assert!(observer.ask("FAULTS").contains("gc waiting"));
    assert_eq!(observer.ask(&format!("WORKER c1 {}", worker.0.id())), "+OK");
    until("the process is stopped", || worker.state() == 'T');
    assert!(observer.ask(&format!("WORKER c1 {}", worker.0.id())).contains("is stopped"));
    drop(fleet);
    until("the process goes on", || worker.state() != 'T');
}
