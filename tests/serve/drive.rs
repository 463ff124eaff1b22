//! `drive`: workers as processes, and their ends.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::talk::until;

/// A directory of a test, with a scenario and the reports.
struct Place(PathBuf);

const WORKER: &str = include_str!("worker.py");

const SCENARIO: &str = "schema = 1\nname = \"one\"\ntitle = \"t\"\n\
    [cluster]\nnetwork = { delay = \"0ms\" }\n[lock]\nttl = \"20s\"\n\
    [[client]]\nid = \"c1\"\nsubject = \"worker\"\n";

impl Place {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("drive").join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Writes the scenario of one worker, with further `lines`.
    fn with(name: &str, lines: &str) -> Self {
        let place = Self::new(name);
        std::fs::write(place.0.join("one.toml"), format!("{SCENARIO}{lines}")).unwrap();
        std::fs::write(place.0.join("worker.py"), WORKER).unwrap();
        place
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_redlock-sim"));
        command.current_dir(&self.0).args(arguments).stdin(Stdio::null());
        command
    }

    fn drive(&self, worker: &str, options: &[&str]) -> (Option<i32>, String) {
        let arguments = [&["drive", "./one.toml", "--worker", worker], options].concat();
        said(&self.command(&arguments).output().unwrap())
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.0.join(file)).unwrap_or_default()
    }

    /// Waits until a worker has written its process into a file.
    fn pid_in(&self, file: &str) -> u32 {
        let mut pid = None;
        until(file, || {
            pid = self.read(file).strip_suffix('\n').and_then(|it| it.parse().ok());
            pid.is_some()
        });
        pid.unwrap()
    }
}

fn said(output: &Output) -> (Option<i32>, String) {
    let texts = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    (output.status.code(), texts.concat())
}

/// Returns true unless the process has ended; a zombie has ended.
fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|it| !it.is_empty() && !it.starts_with(['Z', 'X']))
}

#[test]
fn merged_shards_are_judged_as_one_drive_judges() {
    let place = Place::with("shards", "");
    let worker = "python3 worker.py lock {client}";
    let drive = |shard: &str, out: &str| {
        let options = ["--seeds", "0..4", "--jobs", "4", "--shard", shard, "--out", out];
        let (code, text) = place.drive(worker, &options);
        assert_eq!(code, Some(0), "{text}");
    };
    let merge = |arguments: &[&str]| {
        said(&place.command(&[&["merge"], arguments].concat()).output().unwrap())
    };
    let verdicts = |out: &str| {
        let results: Value =
            serde_json::from_str(&place.read(&format!("{out}/results.json"))).unwrap();
        let cases = results["cases"].as_array().unwrap().iter();
        cases.map(|it| (it["seeds"].clone(), it["properties"].clone())).collect::<Vec<_>>()
    };
    let (code, text) = place.drive(worker, &["--seeds", "0..4", "--jobs", "4", "--out", "whole"]);
    assert_eq!(code, Some(0), "{text}");
    drive("1/2", "parts");
    drive("2/2", "parts");
    assert!(!place.0.join("parts/results.json").exists(), "the other part would replace it");
    let (code, text) = merge(&["parts", "--out", "merged"]);
    assert!(code == Some(0) && text.contains("4 runs met, 0 failed, 0 inconclusive"), "{text}");
    assert_eq!(verdicts("merged"), verdicts("whole"));
    for file in ["results.json", "one.html", "index.html"] {
        assert!(!place.read(&format!("merged/{file}")).is_empty(), "{file}");
    }
    let logs = |out: &str| {
        (0..4).map(|seed| place.read(&format!("{out}/one/base.{seed}.c1.log"))).collect::<Vec<_>>()
    };
    let before = logs("parts");
    assert_eq!(logs("merged"), before);
    let output = place
        .command(&["merge", "./parts", "--out", "parts", "--message-format", "json"])
        .output()
        .unwrap();
    assert_eq!(logs("parts"), before, "no log is copied onto itself");
    assert!(before.iter().all(|it| !it.is_empty()));
    let text = String::from_utf8(output.stdout).unwrap();
    let cases = text.lines().filter(|line| line.contains(r#""kind":"case""#)).count();
    assert!(cases == 4 && text.lines().all(|line| line.starts_with('{')), "{text}");
    drive("2/2", "two");
    let (code, text) = merge(&["two", "--out", "half"]);
    assert!(code == Some(3) && text.contains("missing: shard 1/2"), "{text}");
}

#[test]
fn a_run_without_a_verdict_is_none_after_merging_either() {
    let place = Place::with("shards-crash", "");
    let (code, _) = place.drive("sh -c 'echo alas; exit 7'", &["--shard", "1/1", "--out", "one"]);
    assert_eq!(code, Some(3));
    let output = place.command(&["merge", "one", "--out", "merged"]).output().unwrap();
    let (code, text) = said(&output);
    assert!(code == Some(3) && text.contains("worker c1 ended with exit code 7"), "{text}");
    let results: Value = serde_json::from_str(&place.read("merged/results.json")).unwrap();
    assert!(results["cases"][0].to_string().contains("exit code 7"), "{results}");
}

#[test]
fn each_seed_is_a_run_of_its_own_with_its_own_masters() {
    let place = Place::with("seeds", "");
    let (code, text) =
        place.drive("python3 worker.py lock {client}", &["--seeds", "3..7", "--jobs", "4"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("4 runs met, 0 failed, 0 inconclusive"), "{text}");
    let mut masters = Vec::new();
    for seed in 3..7 {
        assert!(text.contains(&format!("met     one  serve {seed}..{}", seed + 1)), "{text}");
        let log = place.read(&format!("reports/one/base.{seed}.c1.log"));
        assert!(log.starts_with(&format!("c1 seed {seed} res 20000 127.0.0.1:")), "{log}");
        masters.push(log);
        assert!(place.0.join(format!("reports/one/base.serve.{seed}.jsonl.gz")).is_file());
    }
    masters.sort();
    masters.dedup();
    assert_eq!(masters.len(), 4);
    let page = place.read("reports/one.html");
    assert!(page.contains("id=\"base.serve.3\"") && page.contains("id=\"base.serve.6\""));
}

#[test]
fn a_violation_is_explained_and_fails() {
    let place = Place::with("violation", "[[client]]\nid = \"c2\"\nsubject = \"worker\"\n");
    let (code, text) = place.drive("python3 worker.py enter {client}", &[]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("FAILED  one") && text.contains("VIOLATION sound-grant"), "{text}");
    let replay = text.lines().find_map(|it| it.trim().strip_prefix("replay ")).unwrap();
    let words: Vec<&str> = replay.split_whitespace().skip(1).collect();
    assert_eq!(place.command(&words).output().unwrap().status.code(), Some(1), "{replay}");
}

/// Workers that do not play their part. Each is inconclusive, says why, and ends soon.
#[test]
fn a_worker_that_fails_is_inconclusive_with_its_last_words() {
    let place = Place::with("failures", "");
    let short = ["--timeout", "1s"];
    for (worker, options, parts) in [
        (
            "sh -c 'echo first; echo no such lock >&2; exit 7'",
            &[][..],
            &[
                "worker c1 ended with exit code 7: its last words are “no such lock” (reports/one/base.0.c1.log)",
            ][..],
        ),
        ("sh -c 'kill -SEGV $$'", &[], &["worker c1 ended by signal 11: it printed nothing"]),
        ("true", &[], &["no worker asked for the lock: the masters' addresses are in DRIVE_NODES"]),
        ("python3 worker.py lock-only {client}", &[], &["no worker sent ENTER"]),
        (
            "python3 worker.py stay {client}",
            &[],
            &["worker c1 ended inside its section: send LEAVE first"],
        ),
        (
            "python3 worker.py wrong-port {client}",
            &[],
            &["worker c1 ended with exit code 1", "ConnectionRefusedError"],
        ),
        (
            "sh -c \"printf 'a\\000\\033[31m\\377\\n'; exit 1\"",
            &[],
            &["its last words are “a\\u{0}\\u{1b}[31m\u{fffd}”"],
        ),
        (
            "sleep 1000",
            &short,
            &["worker c1 hangs: it still ran after 1 s (`--timeout`); it printed nothing"],
        ),
        (
            "sh -c 'trap \"\" TERM; echo deaf; while :; do sleep 1; done'",
            &short,
            &["worker c1 hangs", "“deaf”", "note: worker c1 ignored SIGTERM, so drive killed it"],
        ),
    ] {
        let (code, text) = place.drive(worker, options);
        assert_eq!(code, Some(3), "{worker}: {text}");
        assert!(text.contains("UNCLEAR one"), "{worker}: {text}");
        for part in parts {
            assert!(text.contains(part), "{worker}: {part} is not in {text}");
        }
    }
}

#[test]
fn wrong_usage_starts_no_worker() {
    let place = Place::with("usage", "");
    for (worker, part) in [
        (
            "./no-such-program {client}",
            "error: the worker cannot be started: `./no-such-program`: No such file",
        ),
        ("touch {name}", "there is no `{name}`"),
        ("touch 'x", "a quote is not closed"),
        ("", "`--worker` is empty"),
    ] {
        let (code, text) = place.drive(worker, &[]);
        assert_eq!(code, Some(2), "{worker}: {text}");
        assert!(text.contains(part), "{worker}: {text}");
    }
    let arguments = ["drive", "suspend-defeats-step-3", "--worker", "true"];
    let (code, text) = said(&place.command(&arguments).output().unwrap());
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("skipped suspend-defeats-step-3"), "{text}");
    assert!(text.contains("does not support `suspend` of a client"), "{text}");
    assert!(text.ends_with("nothing was played\n"), "{text}");
}

#[test]
fn an_unsupported_scenario_keeps_no_other_from_being_played() {
    let place = Place::with("unsupported", "");
    let folder = place.0.join("all");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::rename(place.0.join("one.toml"), folder.join("one.toml")).unwrap();
    let sleep =
        "[[fault]]\nid = \"sleep\"\nat = \"1s\"\nlasts = \"1s\"\nsuspend = { host = \"c1\" }\n";
    let sleeps = SCENARIO.replace("\"one\"", "\"sleeps\"") + sleep;
    std::fs::write(folder.join("sleeps.toml"), sleeps).unwrap();
    let drive = |worker: &str, options: &[&str]| {
        let arguments = [&["drive", "./all/", "--worker", worker], options].concat();
        said(&place.command(&arguments).output().unwrap())
    };
    let skipped = "skipped sleeps  the engine `serve` does not support `suspend` of a client";
    let (code, text) = drive("python3 worker.py lock {client}", &["--shard", "1/1"]);
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("met     one") && text.contains(skipped), "{text}");
    assert!(text.contains("1 run met, 0 failed, 0 inconclusive, 1 case skipped"), "{text}");
    let output = place.command(&["merge", "reports", "--out", "merged"]).output().unwrap();
    let (code, text) = said(&output);
    assert!(code == Some(3) && text.contains(skipped), "{text}");
    let expects = ["--set", "expect.exclusive-section=violated"];
    let (code, text) = drive("python3 worker.py lock {client}", &expects);
    assert_eq!(code, Some(1), "a failure is worse: {text}");
}

#[test]
fn a_fault_that_never_began_proves_nothing() {
    let place = Place::with(
        "unbegun",
        "[[fault]]\nid = \"late\"\nat = \"50m\"\nclock-jump = { host = \"A\", by = \"1s\" }\n",
    );
    let (code, text) = place.drive("python3 worker.py lock {client}", &[]);
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("the fault `late` never began"), "{text}");
}

#[test]
fn a_fault_that_waits_for_a_client_tells_the_missing_name() {
    let stop = "[[fault]]\nid = \"stop\"\nat = { client = \"c1\", before = \"t2\", attempt = \"any\" }\n\
                lasts = \"1s\"\npause = { host = \"c1\" }\n";
    let place = Place::with("unnamed", stop);
    let worker = WORKER.replace("CLIENT SETNAME {CLIENT}", "CLIENT SETNAME foo");
    std::fs::write(place.0.join("worker.py"), worker).unwrap();
    let (code, text) = place.drive("python3 worker.py lock {client}", &[]);
    assert_eq!(code, Some(3), "{text}");
    let told = "the fault `stop` never began: no connection that asked for the lock was named `c1`";
    assert!(text.contains(told) && !text.contains("takes any"), "{text}");
}

#[test]
fn a_section_of_somebody_else_is_refused_by_name() {
    let place = Place::with("stranger", "");
    let worker = WORKER.replace("ENTER {RESOURCE} {CLIENT}", "ENTER {RESOURCE} zz");
    std::fs::write(place.0.join("worker.py"), worker).unwrap();
    let (code, text) = place.drive("python3 worker.py lock {client}", &[]);
    assert_eq!(code, Some(3), "{text}");
    let told = "a report was refused: `zz` is no client of this scenario";
    assert!(text.contains(told) && !text.contains("client is wrong"), "{text}");
}

#[test]
fn what_is_expected_and_not_judged_is_named() {
    let lines = "[expect]\ndeadlock-free = \"violated\"\ncommands = \"1\"\n";
    let place = Place::with("unjudged", lines);
    let (code, text) = place.drive("python3 worker.py lock {client}", &[]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("note: not judged from outside: deadlock-free, commands\n"), "{text}");
}

#[test]
fn a_quantity_out_of_bounds_is_in_the_headline() {
    let place = Place::with("bounds", "[expect]\nsection-overlap = \"5s..\"\n");
    let (code, text) = place.drive("python3 worker.py lock {client}", &[]);
    assert_eq!(code, Some(1), "{text}");
    let told = "FAILED  one  serve 0..1  section-overlap 0 s, expected 5s..  (";
    assert!(text.starts_with(told), "{text}");
}

/// The expectations that were not put to the test are a consequence.
#[test]
fn the_end_of_a_worker_comes_before_its_consequences() {
    let place = Place::with("order", "[expect]\nexclusive-section = \"violated\"\n");
    let (code, text) = place.drive("sh -c 'exit 7'", &[]);
    assert_eq!(code, Some(3), "{text}");
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("no {part} in {text}"));
    assert!(at("worker c1 ended") < at("exclusive-section: expected a violation"), "{text}");
}

#[test]
fn a_limit_ends_workers_that_would_go_on() {
    let place = Place::with("limit", "");
    let (code, text) =
        place.drive("python3 worker.py lock-and-sleep {client}", &["--for", "200ms"]);
    assert_eq!(code, Some(0), "{text}");
}

/// The section of a worker that is killed is over, and its exit is no failure.
#[test]
fn a_fault_kills_a_worker() {
    let place =
        Place::with("kill", "[[fault]]\nid = \"die\"\nat = \"60m\"\nkill = { host = \"c1\" }\n");
    let (code, text) = place.drive("sh -c 'python3 worker.py die-inside {client}; :'", &[]);
    assert_eq!(code, Some(0), "{text}");
}

/// The worker sees by its own clock that it was stopped: its group, not only the shell.
#[test]
fn a_fault_pauses_the_group_of_a_worker() {
    let place = Place::with(
        "pause",
        "[[fault]]\nid = \"gc\"\nat = \"60m\"\nlasts = \"1500ms\"\npause = { host = \"c1\" }\n",
    );
    let (code, text) = place.drive("sh -c 'python3 worker.py paused {client}; :'", &[]);
    assert_eq!(code, Some(0), "{text}");
    let log = place.read("reports/one/base.0.c1.log");
    assert!(log.contains("was stopped"), "{log}");
}

/// A worker forks: into its group, and into a session of its own.
const FORKS: &str = "sh -c 'echo $$ > leader; sleep 1000 & echo $! > child; \
    setsid sh -c \"echo \\$\\$ > daemon; exec sleep 1000\" & \
    until [ -s daemon ]; do :; done; python3 worker.py lock {client}; END'";

fn forks(end: &str) -> String {
    FORKS.replace("END", end)
}

#[test]
#[cfg(target_os = "linux")]
fn nothing_is_left_of_a_worker_that_forks() {
    let place = Place::with("forks", "");
    let (code, text) = place.drive(&forks("exit 0"), &[]);
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("note: worker c1 left processes behind, which drive killed: 2\n"),
        "{text}"
    );
    for file in ["leader", "child", "daemon"] {
        let pid = place.pid_in(file);
        until(file, || !is_alive(pid));
    }
}

/// However `drive` ends, nothing of its workers is left, even of those that are stopped.
#[test]
#[cfg(target_os = "linux")]
fn workers_end_with_drive() {
    for (signal, code) in [("-KILL", None), ("-TERM", Some(3)), ("-INT", Some(3))] {
        let place = Place::with(
            &format!("end{signal}"),
            "[[fault]]\nid = \"gc\"\nat = \"0s\"\nlasts = \"60m\"\npause = { host = \"c1\" }\n",
        );
        let worker = forks("trap \"\" TERM INT HUP; while :; do sleep 1; done");
        let arguments = ["drive", "./one.toml", "--worker", &worker];
        let mut process = place.command(&arguments).stdout(Stdio::null()).spawn().unwrap();
        let pids = ["leader", "child", "daemon"].map(|file| place.pid_in(file));
        assert!(pids.iter().all(|&pid| is_alive(pid)), "{signal}");
        let pid = process.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        assert_eq!(process.wait().unwrap().code(), code, "{signal}");
        until(signal, || !pids.iter().any(|&pid| is_alive(pid)));
    }
}
