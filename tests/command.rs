//! Behaviour of the command as its user sees it: output, exit codes, files.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use snapbox::cmd::{Command, OutputAssert};
use snapbox::str;

const GOOD: &str = include_str!("../sim/judge/src/scenario/testdata/clock-jump.toml");

const NODE_CLOCK_JUMP: &str = include_str!("../scenarios/exchange/node-clock-jump.toml");

/// Creates a folder for one test, with these scenarios in it.
fn folder(test: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("command").join(test);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("scenarios")).unwrap();
    for (name, text) in files {
        fs::write(folder.join("scenarios").join(name), text).unwrap();
    }
    folder
}

fn redlock_sim(folder: &Path, arguments: &[&str]) -> OutputAssert {
    let command = Command::new(env!("CARGO_BIN_EXE_redlock-sim"));
    command.current_dir(folder).args(arguments).assert()
}

#[test]
fn a_run_says_what_was_expected_and_what_happened() {
    let folder = folder("run", &[("clock-jump.toml", GOOD)]);
    redlock_sim(&folder, &["run", "--seeds", "0..40", "--jobs", "2"]).code(0).stdout_eq(str![[r#"
scenarios: ./scenarios, 3 cases
met     clock-jump  event 0..40  mutual-exclusion violated (clock(C)), as expected; exclusive-section violated (clock(C)), as expected  (40 distinct runs, 120 of [..] attempts granted)
met     clock-jump::a-jump-inside-the-drift-allowance-is-harmless  event 0..40  everything holds  (40 distinct runs, 120 of [..] attempts granted)
met     clock-jump::five-votes-survive-one-forgetful-node  event 0..40  everything holds  (40 distinct runs, 120 of [..] attempts granted)

3 cases met, 0 failed; 120 runs, [..] leases in [..] s; reports: reports/index.html

"#]]);
    assert!(folder.join("reports/results.json").is_file());
    assert!(folder.join("reports/clock-jump/base.0.jsonl.gz").is_file());
}

#[test]
fn a_case_prints_the_quantities_that_it_bounds() {
    let folder = folder("quantities", &[("clock-jump.toml", GOOD)]);
    let run = ["run", "clock-jump", "--seeds", "0..4", "--set"];
    let bounded = |bounds: &'static str| [&run[..], &[bounds]].concat();
    redlock_sim(&folder, &bounded("expect.section-overlap=..60s")).code(0).stdout_eq(str![[r#"
scenarios: ./scenarios, 3 cases
met     clock-jump  event 0..4 [..]
  section-overlap          [..], expected ..60s
met     clock-jump::a-jump-inside-the-drift-allowance-is-harmless  event 0..4 [..]
  section-overlap          0 s, expected ..60s
...
"#]]);
    redlock_sim(&folder, &bounded("expect.section-overlap=..1s")).code(1).stdout_eq(str![[r#"
scenarios: ./scenarios, 3 cases
FAILED  clock-jump  event 0..4 [..]
        section-overlap: expected ..1s, seed [..] has [..]
...
"#]]);
}

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

#[test]
fn unexpected_violation_is_explained_and_can_be_replayed() {
    let good = GOOD.replace("{ verdict = \"violated\", blame = [\"clock(C)\"] }", "\"holds\"");
    let folder = folder("violation", &[("clock-jump.toml", &good)]);
    let told = redlock_sim(&folder, &["run", "clock-jump", "--seeds", "7..9"]).code(1);
    told.stdout_eq(str![[r#"
scenarios: ./scenarios, 3 cases
FAILED  clock-jump  event 7..9  mutual-exclusion violated (clock(C)), as expected; exclusive-section violated (clock(C)), expected to hold  (2 distinct runs, 6 of [..] attempts granted)
        exclusive-section: expected to hold, violated by 2 of 2 seeds

VIOLATION exclusive-section  clock-jump  seed 7
...
  blame   clock(C)
  replay  redlock-sim replay clock-jump --seed 7

met     clock-jump::a-jump-inside-the-drift-allowance-is-harmless  event 7..9  everything holds  (2 distinct runs, 6 of [..] attempts granted)
met     clock-jump::five-votes-survive-one-forgetful-node  event 7..9  everything holds  (2 distinct runs, 6 of [..] attempts granted)

2 cases met, 1 failed; 6 runs, [..] leases in [..] s; reports: reports/index.html

"#]]);
    redlock_sim(&folder, &["replay", "clock-jump", "--seed", "7"]).code(1).stdout_eq(str![[r#"
clock-jump  event  seed 7
hash    [..], as in reports/clock-jump/base.7.jsonl.gz
  mutual-exclusion     violated (clock(C))              expected violated (clock(C))
! exclusive-section    violated (clock(C))              expected to hold
...
"#]]);
    let stored = "reports/clock-jump/base.7.jsonl.gz";
    redlock_sim(&folder, &["check", stored]).code(1).stdout_eq(str![[r#"
clock-jump  event  seed 7
hash    [..], equal to that of its events
  mutual-exclusion     violated (clock(C))              expected violated (clock(C))
! exclusive-section    violated (clock(C))              expected to hold
...
"#]]);
}

#[test]
fn the_replay_of_a_file_names_the_file() {
    let good = GOOD.replace("{ verdict = \"violated\", blame = [\"clock(C)\"] }", "\"holds\"");
    let folder = folder("path", &[]);
    fs::create_dir(folder.join("my own")).unwrap();
    fs::write(folder.join("my own/clock-jump.toml"), good).unwrap();
    for which in ["./my own/", "my own/clock-jump.toml"] {
        redlock_sim(&folder, &["run", which, "--seeds", "7..8"]).code(1).stdout_eq(str![[r#"
...
  replay  redlock-sim replay 'my own/clock-jump.toml' --seed 7
...
"#]]);
    }
    let replay = ["replay", "my own/clock-jump.toml", "--seed", "7"];
    redlock_sim(&folder, &replay).code(1).stdout_eq(str![[r#"
...
  replay  redlock-sim replay 'my own/clock-jump.toml' --seed 7
...
"#]]);
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
fn a_run_replaces_the_reports_of_the_run_before_and_nothing_else() {
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
fn quiet_says_only_what_is_not_as_expected() {
    let bad = GOOD.replace("{ verdict = \"violated\", blame = [\"clock(C)\"] }", "\"holds\"");
    let bad = bad.replace("\"clock-jump\"", "\"bad\"");
    let folder = folder("quiet", &[("clock-jump.toml", GOOD), ("bad.toml", &bad)]);
    redlock_sim(&folder, &["run", "clock-jump", "--seeds", "0..2", "-q"]).code(0).stdout_eq("");
    redlock_sim(&folder, &["replay", "clock-jump", "--seed", "1", "-q"]).code(0).stdout_eq("");
    redlock_sim(&folder, &["run", "--seeds", "0..2", "--quiet"]).code(1).stdout_eq(str![[r#"
FAILED  bad  event 0..2 [..]
...
5 cases met, 1 failed; 12 runs, [..] leases in [..] s; reports: reports/index.html

"#]]);
}

#[test]
fn verbose_says_every_verdict_story_and_event() {
    let folder = folder("verbose", &[("clock-jump.toml", GOOD)]);
    redlock_sim(&folder, &["run", "clock-jump", "--seeds", "0..2", "-v"]).code(0).stdout_eq(str![
        [r#"
scenarios: ./scenarios, 3 cases
met     clock-jump  event 0..2 [..]
  mutual-exclusion     violated (clock(C))              expected violated (clock(C))
...
VIOLATION mutual-exclusion  clock-jump  seed 0
...
"#]
    ]);
    redlock_sim(&folder, &["replay", "clock-jump", "--seed", "0", "-v"]).code(0).stdout_eq(str![[
        r#"
...
     0     0.000 000 000  A         wall clock: new reading or rate from here; it runs true
...
 [..]  —         the run is over

"#
    ]]);
}

#[test]
fn colours_are_for_terminals_or_for_those_who_ask() {
    let folder = folder("colours", &[("clock-jump.toml", GOOD)]);
    let said = |color: &str| {
        let run = ["run", "clock-jump", "--seeds", "0..2", "--color", color];
        let run = redlock_sim(&folder, &run).code(0);
        String::from_utf8(run.get_output().stdout.clone()).unwrap()
    };
    assert!(!said("auto").contains('\u{1b}') && !said("never").contains('\u{1b}'));
    assert!(said("always").contains("\u{1b}[32mmet\u{1b}[0m     clock-jump  event"));
}

#[test]
fn a_typo_is_answered_with_the_nearest_word() {
    let folder = folder("typos", &[("clock-jump.toml", GOOD)]);
    for (arguments, tip) in [
        (&["rnu"][..], "'run'"),
        (&["run", "--engine", "turmoul"], "'turmoil'"),
        (&["run", "--sed", "1"], "'--seeds'"),
        (&["serve", "--profile", "valkey-8"], "'valkey-9'"),
        (&["list", "--format", "jsn"], "'json'"),
    ] {
        let said = redlock_sim(&folder, arguments).code(2);
        let said = String::from_utf8(said.get_output().stderr.clone()).unwrap();
        assert!(said.contains("tip: ") && said.contains(tip), "{said}");
    }
}

#[test]
fn help_of_each_command_has_examples() {
    let folder = folder("help", &[("clock-jump.toml", GOOD)]);
    for command in ["run", "replay", "check", "list", "serve", "master"] {
        let said = redlock_sim(&folder, &[command, "--help"]).code(0);
        let said = String::from_utf8(said.get_output().stdout.clone()).unwrap();
        let (_, examples) = said.split_once("Examples:\n").expect(command);
        let all = format!("  redlock-sim {command}");
        assert!(examples.lines().all(|line| line.starts_with(&all)), "{examples}");
    }
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

#[cfg(target_os = "linux")]
#[test]
fn a_list_that_cannot_be_printed_is_an_error() {
    let folder = folder("unprinted", &[("clock-jump.toml", GOOD)]);
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let list = std::process::Command::new(env!("CARGO_BIN_EXE_redlock-sim"))
        .current_dir(&folder)
        .arg("list")
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(list.status.code(), Some(2));
    let said = String::from_utf8(list.stderr).unwrap();
    assert!(said.starts_with("error: standard output cannot be written: "), "{said}");
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
fn bad_file_is_pointed_at_and_nothing_runs_or_is_overwritten() {
    let bad = GOOD.replace("clock-jump = {", "clock-jmp = {").replace("\"clock-jump\"", "\"bad\"");
    let folder = folder("bad", &[("clock-jump.toml", GOOD), ("bad.toml", &bad)]);
    fs::create_dir_all(folder.join("reports")).unwrap();
    fs::write(folder.join("reports/results.json"), "what was there").unwrap();
    let said = redlock_sim(&folder, &[]).code(2).stdout_eq(str![[""]]);
    said.stderr_eq(str![[r#"
error: unknown key `clock-jmp`
  --> scenarios/bad.toml:32:1
   |
32 | clock-jmp = { host = "C", by = "10s" }
   | ^^^^^^^^^ expected one of [..]
   |
   = help: did you mean `clock-jump`?

"#]]);
    let there = fs::read_to_string(folder.join("reports/results.json")).unwrap();
    assert_eq!(there, "what was there");
    assert_eq!(fs::read_dir(folder.join("reports")).unwrap().count(), 1);
}

#[test]
fn a_file_under_another_name_than_its_scenario_is_an_error() {
    let folder = folder("misnamed", &[("jump.toml", GOOD)]);
    redlock_sim(&folder, &["run", "scenarios/jump.toml"]).code(2).stderr_eq(str![[r#"
error: the scenario is named `clock-jump`, but its file `jump`
 --> scenarios/jump.toml:2:[..]
  |
2 | name   = "clock-jump"
  |          ^^^^^^^^^^^^ expected `jump`
  |
  = help: use one name for both

"#]]);
}

#[test]
fn a_wrong_setting_is_pointed_at_and_nothing_is_written() {
    let folder = folder("setting", &[("clock-jump.toml", GOOD)]);
    let said = redlock_sim(&folder, &["run", "clock-jump", "--set", "lock.ttl=0s"]).code(2);
    said.stderr_eq(str![[r#"
error: the duration is zero
 --> --set:1:10
  |
1 | lock.ttl=0s
  |          ^^ expected more than 0
...
"#]]);
    assert!(!folder.join("reports").exists());
}

#[test]
fn unknown_names_are_usage_errors_with_the_nearest_name() {
    let folder = folder("names", &[("clock-jump.toml", GOOD)]);
    redlock_sim(&folder, &["run", "clock-jmp"]).code(2).stderr_eq(str![[r#"
error: there is no scenario `clock-jmp` (./scenarios)
  = help: did you mean `clock-jump`?

"#]]);
    let case = "clock-jump::five-votes-survive-a-forgetful-node";
    redlock_sim(&folder, &["replay", case, "--seed", "1"]).code(2).stderr_eq(str![[r#"
error: scenarios/clock-jump.toml has no case `five-votes-survive-a-forgetful-node`
  = help: did you mean `clock-jump::five-votes-survive-one-forgetful-node`?

"#]]);
    redlock_sim(&folder, &["run", "scenarios"]).code(2).stderr_eq(str![[r#"
error: there is no scenario `scenarios` (./scenarios)
  = help: for the scenarios in the folder, write `./scenarios/`

"#]]);
    redlock_sim(&folder, &["run", "there/is/nothing.toml"]).code(2);
    for arguments in [
        &["run", "--seeds", "5..5"][..],
        &["run", "--engine", "exhaustive"],
        &["run", "--jobs", "0"],
        &["run", "--set", "lock.ttl"],
        &["replay", "clock-jump"],
        &["explain"],
    ] {
        redlock_sim(&folder, arguments).code(2);
    }
    assert!(!folder.join("reports").exists());
}

#[test]
fn nothing_selected_is_an_exit_code_of_its_own() {
    let folder = folder("nothing", &[("clock-jump.toml", GOOD)]);
    redlock_sim(&folder, &["run", "tag:no-such-tag"]).code(4);
    fs::remove_file(folder.join("scenarios/clock-jump.toml")).unwrap();
    redlock_sim(&folder, &[]).code(4);
    assert!(!folder.join("reports").exists());
}

#[test]
fn unsupported_case_is_reported_and_inconclusive_if_named() {
    let literal = GOOD.replace("id    = \"c1\"", "id    = \"c1\"\nsubject = \"setnx\"");
    let folder = folder("unsupported", &[("clock-jump.toml", &literal)]);
    let named = redlock_sim(&folder, &["run", "clock-jump", "--engine", "turmoil"]);
    named.code(3).stdout_eq(str![[r#"
scenarios: ./scenarios, 3 cases
skipped clock-jump  the engine `turmoil` does not support [..]
...
"#]]);
    redlock_sim(&folder, &["run", "--engine", "turmoil"]).code(4);
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
truncated.jsonl:[..]: [..]the file is truncated

"#]]);
    redlock_sim(&folder, &["check", "foreign.jsonl"]).code(2).stderr_eq(str![[r#"
foreign.jsonl:1: expected the header of a stored history: [..]

"#]]);
    let spoilt = text.replacen("\"ttl\":\"10s\"", "\"ttl\":\"0s\"", 1);
    assert_ne!(spoilt, text);
    fs::write(folder.join("spoilt.jsonl"), spoilt).unwrap();
    redlock_sim(&folder, &["check", "spoilt.jsonl"]).code(2).stderr_eq(str![[r#"
spoilt.jsonl:1: [..]`lock.ttl`: the duration is zero: expected more than 0

"#]]);
}

#[test]
fn a_list_is_for_people_or_for_programs() {
    let folder = folder("list", &[("clock-jump.toml", GOOD)]);
    redlock_sim(&folder, &["list"]).code(0).stdout_eq(str![[r#"
scenarios: ./scenarios

clock-jump  [K2 clock]
  A master's clock jumps forward: two clients hold the lock
    clock-jump::a-jump-inside-the-drift-allowance-is-harmless
    clock-jump::five-votes-survive-one-forgetful-node

"#]]);
    let printed = redlock_sim(&folder, &["list", "--format", "json"]).code(0);
    let printed = printed.get_output().stdout.clone();
    let entries: serde_json::Value = serde_json::from_slice(&printed).unwrap();
    assert_eq!(entries[0]["cases"][2]["seeds"], "0..100");
}

#[test]
fn without_a_folder_the_scenarios_of_the_build_are_played() {
    let folder = folder("embedded", &[]);
    fs::remove_dir(folder.join("scenarios")).unwrap();
    redlock_sim(&folder, &["run", "canonical", "--seeds", "0..2"]).code(0).stdout_eq(str![[r#"
scenarios: built in, [..] cases
met     canonical  event 0..2  everything holds  (2 distinct runs, 4 of [..] attempts granted)
...
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

#[test]
fn the_safety_page_shows_what_is_printed() {
    let page = include_str!("../docs/safety.md");
    let command = "$ cargo run --release -- replay node-clock-jump --seed 0\n";
    let (_, shown) = page.split_once(command).expect("the page shows a replay");
    let (shown, _) = shown.split_once("\n…\n").expect("the page cuts it short");
    let folder = folder("safety", &[("node-clock-jump.toml", NODE_CLOCK_JUMP)]);
    let printed = redlock_sim(&folder, &["replay", "node-clock-jump", "--seed", "0"]).code(0);
    let printed = String::from_utf8_lossy(&printed.get_output().stdout).into_owned();
    assert!(printed.starts_with(shown), "{printed}");
}
