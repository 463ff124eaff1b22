//! The files that the command writes and reads.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use snapbox::cmd::Command;
use snapbox::str;

use crate::{GOOD, folder, redlock_sim};

#[test]
fn the_same_run_writes_the_same_reports() {
    let folder = folder("same", &[("clock-jump.toml", GOOD)]);
    redlock_sim(&folder, &["run", "--jobs", "1", "--out", "one"]).code(0);
    redlock_sim(&folder, &["run", "--jobs", "3", "--out", "two"]).code(0);
    for file in ["results.json", "index.html", "clock-jump.html", "clock-jump/base.0.jsonl.gz"] {
        let read = |out: &str| fs::read(folder.join(out).join(file)).unwrap();
        assert!(read("one") == read("two"), "{file} differs");
    }
}

/// Returns every file below `folder`, with its content.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path.clone(), fs::read(path).unwrap());
        }
    }
    found
}

#[test]
fn a_full_disk_leaves_the_reports_as_they_were() {
    let folder = folder("full", &[("clock-jump.toml", GOOD)]);
    redlock_sim(&folder, &["run", "--seeds", "0..2"]).code(0);
    let before = files(&folder);
    // A limit of 16 KiB on the size of files stands in for a full disk.
    let limited = "trap '' XFSZ; ulimit -f 32; exec \"$0\" \"$@\"";
    let arguments = ["-c", limited, env!("CARGO_BIN_EXE_redlock-sim"), "run", "--seeds", "5..7"];
    let run = Command::new("sh").current_dir(&folder).args(arguments).assert();
    run.code(2).stderr_eq(str![[r#"
error: reports cannot be written to reports: File too large (os error 27)
  = help: `--out` names another directory

"#]]);
    assert!(files(&folder) == before, "the reports have changed");
}

#[test]
fn a_run_replaces_only_the_reports_of_the_run_before() {
    let other = GOOD.replace("\"clock-jump\"", "\"other\"");
    let folder = folder("replaced", &[("clock-jump.toml", GOOD), ("other.toml", &other)]);
    redlock_sim(&folder, &["run", "--seeds", "0..2"]).code(0);
    fs::write(folder.join("reports/notes.html"), "mine").unwrap();
    fs::write(folder.join("reports/other/notes.txt"), "mine").unwrap();
    redlock_sim(&folder, &["run", "clock-jump", "--seeds", "1..2"]).code(0);
    let left: Vec<PathBuf> = files(&folder.join("reports")).into_keys().collect();
    let left = left.iter().map(|it| it.strip_prefix(folder.join("reports")).unwrap());
    let left: Vec<&str> = left.map(|it| it.to_str().unwrap()).collect();
    assert_eq!(
        left,
        [
            "clock-jump/a-jump-inside-the-drift-allowance-is-harmless.1.jsonl.gz",
            "clock-jump/base.1.jsonl.gz",
            "clock-jump/five-votes-survive-one-forgetful-node.1.jsonl.gz",
            "clock-jump.html",
            "index.html",
            "notes.html",
            "other/notes.txt",
            "results.json",
        ]
    );
}

#[test]
fn results_alone_replace_all_reports_of_the_run_before() {
    let folder = folder("results-only", &[("clock-jump.toml", GOOD)]);
    redlock_sim(&folder, &["run", "--seeds", "0..2"]).code(0);
    let all = files(&folder.join("reports"));
    redlock_sim(&folder, &["run", "--seeds", "0..2", "--results-only"]).code(0);
    let left = files(&folder.join("reports"));
    let names: Vec<_> = left.keys().map(|it| it.file_name().unwrap()).collect();
    assert_eq!((all.len() > 2, names), (true, vec![std::ffi::OsStr::new("results.json")]));
    let results: serde_json::Value = serde_json::from_slice(left.values().next().unwrap()).unwrap();
    assert_eq!(results["cases"][0]["histories"], serde_json::json!([]));
    assert!(results["cases"][0].get("page").is_none());
    // And the other way round.
    redlock_sim(&folder, &["run", "--seeds", "0..2"]).code(0);
    assert_eq!(files(&folder.join("reports")), all);
}

#[test]
fn a_directory_with_an_index_of_others_is_refused() {
    let folder = folder("foreign", &[("clock-jump.toml", GOOD)]);
    fs::create_dir(folder.join("site")).unwrap();
    for name in ["index.html", "results.json"] {
        fs::write(folder.join("site").join(name), "{}").unwrap();
        let said = redlock_sim(&folder, &["run", "--out", "site"]).code(2).stdout_eq("");
        said.stderr_eq(format!(
            "error: reports cannot be written to site: site/{name} was not written by redlock-sim\n  \
             = help: `--out` names another directory\n"
        ));
    }
}

#[test]
fn a_page_of_others_is_refused_and_stays() {
    let folder = folder("foreign-page", &[("clock-jump.toml", GOOD)]);
    fs::create_dir(folder.join("site")).unwrap();
    let page = folder.join("site/clock-jump.html");
    fs::write(&page, "mine").unwrap();
    let refused = "error: reports cannot be written to site: site/clock-jump.html was not written \
                   by redlock-sim\n  = help: `--out` names another directory\n";
    let run = ["run", "--seeds", "0..1", "--out", "site"];
    let drive = ["drive", "clock-jump", "--worker", "true", "--out", "site"];
    for arguments in [&run[..], &drive, &["serve", "clock-jump", "--out", "site"]] {
        redlock_sim(&folder, arguments).code(2).stdout_eq("").stderr_eq(refused);
    }
    // Without pages there is nothing to replace.
    redlock_sim(&folder, &[&run[..], &["--results-only"]].concat()).code(0);
    redlock_sim(&folder, &run).code(2).stderr_eq(refused);
    assert_eq!(fs::read_to_string(&page).unwrap(), "mine");
    fs::remove_file(page).unwrap();
    redlock_sim(&folder, &run).code(0);
    redlock_sim(&folder, &run).code(0);
}

#[test]
fn a_history_of_others_is_refused_and_stays() {
    let folder = folder("foreign-history", &[("clock-jump.toml", GOOD)]);
    let history = folder.join("site/clock-jump/base.0.jsonl.gz");
    fs::create_dir_all(history.parent().unwrap()).unwrap();
    fs::write(&history, "mine").unwrap();
    let said = redlock_sim(&folder, &["run", "--seeds", "0..1", "--out", "site"]).code(2);
    said.stderr_eq(str![[r#"
error: reports cannot be written to site: site/clock-jump/base.0.jsonl.gz was not written by redlock-sim
  = help: `--out` names another directory

"#]]);
    let left: Vec<_> = files(&folder.join("site")).into_values().collect();
    assert_eq!(left, [b"mine"]);
}

#[test]
fn a_run_goes_on_over_what_a_killed_run_left() {
    let folder = folder("killed", &[("clock-jump.toml", GOOD)]);
    let run = ["run", "--seeds", "0..1"];
    redlock_sim(&folder, &run).code(0);
    let whole = files(&folder);
    let report = |name: &str| folder.join("reports").join(name);
    // These two are the last to get their final names.
    for parts in [&["results.json"][..], &["index.html", "results.json"]] {
        for name in parts {
            fs::rename(report(name), report(&format!("{name}.redlock-sim.part"))).unwrap();
        }
        redlock_sim(&folder, &run).code(0);
        assert!(files(&folder) == whole, "killed before {parts:?}");
    }
}

#[test]
fn a_file_of_others_is_no_part_of_a_report() {
    let folder = folder("foreign-part", &[("clock-jump.toml", GOOD)]);
    fs::create_dir(folder.join("reports")).unwrap();
    let notes = folder.join("reports/results.json.part");
    fs::write(&notes, "mine").unwrap();
    redlock_sim(&folder, &["run", "--seeds", "0..1"]).code(0);
    assert_eq!(fs::read_to_string(notes).unwrap(), "mine");
}

#[cfg(target_os = "linux")]
#[test]
fn nothing_is_played_if_reports_cannot_be_written() {
    let folder = folder("unwritable", &[("clock-jump.toml", GOOD)]);
    for arguments in [&["run", "--out", "/proc"][..], &["serve", "--out", "/proc"]] {
        let said = redlock_sim(&folder, arguments).code(2).stdout_eq("");
        said.stderr_eq(str![[r#"
error: reports cannot be written to /proc: [..]
  = help: `--out` names another directory

"#]]);
    }
}

#[test]
fn replay_that_differs_from_the_stored_history_is_inconclusive() {
    let folder = folder("stale", &[("clock-jump.toml", GOOD)]);
    redlock_sim(&folder, &["run", "clock-jump", "--seeds", "0..2"]).code(0);
    // Simulate a change of the code: the same case, another history.
    let at = |seed: u64| folder.join(format!("reports/clock-jump/base.{seed}.jsonl.gz"));
    fs::write(at(5), fs::read(at(0)).unwrap()).unwrap();
    let replay = ["replay", "clock-jump", "--seed", "5"];
    redlock_sim(&folder, &replay).code(3).stdout_eq(str![[r#"
clock-jump  event  seed 5
hash    [..], expected [..]
        the code has changed since reports/clock-jump/base.5.jsonl.gz was stored
...
"#]]);
}

#[test]
fn a_truncated_or_foreign_history_is_refused_with_its_line() {
    let folder = folder("history", &[("clock-jump.toml", GOOD)]);
    redlock_sim(&folder, &["run", "clock-jump", "--seeds", "0..2"]).code(0);
    let stored = fs::File::open(folder.join("reports/clock-jump/base.0.jsonl.gz")).unwrap();
    let text = std::io::read_to_string(flate2::read::GzDecoder::new(stored)).unwrap();
    fs::write(folder.join("plain.jsonl"), &text).unwrap();
    redlock_sim(&folder, &["check", "plain.jsonl"]).code(0);
    let (head, _) = text.trim_end().rsplit_once('\n').unwrap();
    fs::write(folder.join("truncated.jsonl"), head).unwrap();
    fs::write(folder.join("foreign.jsonl"), GOOD).unwrap();
    redlock_sim(&folder, &["check", "truncated.jsonl"]).code(2).stderr_eq(str![[r#"
error: truncated.jsonl:[..]: [..]the file is truncated

"#]]);
    redlock_sim(&folder, &["check", "foreign.jsonl"]).code(2).stderr_eq(str![[r#"
error: foreign.jsonl is no history: [..]
  = help: histories are the files `*.jsonl.gz` that a run stores, such as [..]

"#]]);
    let spoilt = text.replacen("\"ttl\":\"10s\"", "\"ttl\":\"0s\"", 1);
    assert_ne!(spoilt, text);
    fs::write(folder.join("spoilt.jsonl"), spoilt).unwrap();
    redlock_sim(&folder, &["check", "spoilt.jsonl"]).code(2).stderr_eq(str![[r#"
error: spoilt.jsonl:1: [..]`lock.ttl`: the duration is zero: expected more than 0

"#]]);
}

#[test]
fn an_interrupted_run_writes_what_is_done_and_is_inconclusive() {
    let short = GOOD.replace("0..100", "0..10").replace("\"clock-jump\"", "\"a-short\"");
    let long = GOOD.replace("0..100", "0..1000000000000").replace("\"clock-jump\"", "\"b-long\"");
    let files = [("a-short.toml", short.as_str()), ("b-long.toml", long.as_str())];
    let folder = folder("interrupted", &files);
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_redlock-sim"))
        .current_dir(&folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.starts_with("met     a-short ")));
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    assert!(lines.any(|line| line.contains("stopped before the end")));
    assert_eq!(child.wait().unwrap().code(), Some(3));
    let results = fs::read_to_string(folder.join("reports/results.json")).unwrap();
    assert!(results.contains("a-short"));
}
