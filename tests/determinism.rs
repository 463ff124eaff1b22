//! A run depends on scenario, seed and build, and on nothing else.
//!
//! The hashes of the first seeds of every scenario are stored in `tests/golden/hashes.txt`. An
//! intended change of behaviour changes them: `BLESS=1 cargo test --test determinism` rewrites the
//! file (never in CI).

use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use lock_judge::scenario::{self, Case};
use redlock_sim::engine::{event, turmoil};
use redlock_sim::library;

const GOLDEN: &str = "../tests/golden/hashes.txt";
const SEEDS: u64 = 3;

/// The hashes of this process's first runs, with which all others are compared.
static HASHES: LazyLock<String> = LazyLock::new(hashes);

/// Returns the base case of every scenario.
fn bases() -> Vec<Case> {
    let files = library::load(Path::new("../scenarios")).expect("the scenarios are valid");
    let first = |file: &scenario::File| file.cases(&[]).expect("valid cases").swap_remove(0);
    files.iter().map(first).collect()
}

fn hashes() -> String {
    let mut text = String::new();
    for case in bases() {
        let mut engine = event::Engine::new(&case).expect("every scenario runs on `event`");
        for seed in 0..SEEDS {
            let hash = engine.run(seed, None).hash;
            writeln!(text, "event {} {seed} {hash:016x}", case.full_name()).unwrap();
        }
        if let Ok(outcome) = turmoil::run(&case, 0, None) {
            writeln!(text, "turmoil {} 0 {:016x}", case.full_name(), outcome.hash).unwrap();
        }
    }
    text
}

#[test]
fn the_same_seed_plays_the_same_run_twice_in_one_process() {
    assert_eq!(hashes(), *HASHES);
}

#[test]
fn an_engine_that_has_played_other_seeds_plays_the_same_run() {
    for case in bases() {
        let mut used = event::Engine::new(&case).unwrap();
        (0..7).for_each(|seed| _ = used.run(seed, None));
        let mut fresh = event::Engine::new(&case).unwrap();
        assert_eq!(used.run(3, None), fresh.run(3, None), "{}", case.full_name());
    }
}

#[test]
fn keeping_the_history_changes_nothing() {
    for case in bases() {
        let mut engine = event::Engine::new(&case).unwrap();
        let mut kept = Vec::new();
        let outcome = engine.run(1, Some(&mut kept));
        assert_eq!(engine.run(1, None), outcome, "{}", case.full_name());
        assert!(!kept.is_empty());
        assert!(kept.is_sorted_by_key(|event| event.at_ns), "{}", case.full_name());
        if let Ok(outcome) = turmoil::run(&case, 1, None) {
            assert_eq!(
                turmoil::run(&case, 1, Some(&mut kept)),
                Ok(outcome),
                "{}",
                case.full_name()
            );
        }
    }
}

#[test]
fn a_fresh_process_plays_the_same_run() {
    let this = std::env::current_exe().unwrap();
    let arguments = ["--exact", "prints_the_hashes", "--ignored", "--nocapture"];
    let output = Command::new(this).args(arguments).output().unwrap();
    assert!(output.status.success());
    let printed = String::from_utf8(output.stdout).unwrap();
    let is_hash = |line: &&str| line.starts_with("event ") || line.starts_with("turmoil ");
    let printed: Vec<&str> = printed.lines().filter(is_hash).collect();
    assert_eq!(printed, HASHES.lines().collect::<Vec<_>>());
}

#[test]
#[ignore = "called by `a_fresh_process_plays_the_same_run`"]
fn prints_the_hashes() {
    println!("\n{}", hashes());
}

#[test]
fn the_hashes_are_the_golden_ones() {
    let found = &*HASHES;
    if std::env::var_os("BLESS").is_some() {
        assert!(std::env::var_os("CI").is_none(), "nothing is blessed in CI");
        std::fs::write(GOLDEN, found).unwrap();
    }
    let golden = std::fs::read_to_string(GOLDEN).unwrap_or_default();
    let golden: Vec<&str> = golden.lines().collect();
    let differing = found.lines().filter(|line| !golden.contains(line)).collect::<Vec<_>>();
    assert!(differing.is_empty(), "not in {GOLDEN}:\n{}", differing.join("\n"));
    assert_eq!(found.lines().count(), golden.len(), "{GOLDEN} has more");
}
