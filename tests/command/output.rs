//! Output of the command on the terminal.

use std::fs;

use snapbox::str;

use crate::{GOOD, NODE_CLOCK_JUMP, folder, redlock_sim};

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
  mutual-exclusion     violated (clock(C))              expected violated (clock(C)) for 1 s or more
! exclusive-section    violated (clock(C))              expected to hold
...
"#]]);
    let stored = "reports/clock-jump/base.7.jsonl.gz";
    redlock_sim(&folder, &["check", stored]).code(1).stdout_eq(str![[r#"
clock-jump  event  seed 7
hash    [..], equal to that of its events
  mutual-exclusion     violated (clock(C))              expected violated (clock(C)) for 1 s or more
! exclusive-section    violated (clock(C))              expected to hold
...
"#]]);
}

#[test]
fn a_stored_history_that_is_damaged_is_not_taken_for_none() {
    let folder = folder("damaged", &[("clock-jump.toml", GOOD)]);
    redlock_sim(&folder, &["run", "clock-jump", "--seeds", "7..8"]).code(0);
    let stored = folder.join("reports/clock-jump/base.7.jsonl.gz");
    let bytes = fs::read(&stored).unwrap();
    fs::write(&stored, &bytes[..100]).unwrap();
    redlock_sim(&folder, &["replay", "clock-jump", "--seed", "7"]).code(3).stdout_eq(str![[r#"
clock-jump  event  seed 7
hash    [..]; reports/clock-jump/base.7.jsonl.gz cannot be read: [..]
...
"#]]);
    fs::remove_file(&stored).unwrap();
    redlock_sim(&folder, &["replay", "clock-jump", "--seed", "7"]).code(0).stdout_eq(str![[r#"
clock-jump  event  seed 7
hash    [..]; no history of this run is stored
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
  mutual-exclusion     violated (clock(C))              expected violated (clock(C)) for 1 s or more
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
fn colours_are_for_terminals_or_on_request() {
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
fn help_of_each_command_has_examples() {
    let folder = folder("help", &[("clock-jump.toml", GOOD)]);
    for command in ["run", "replay", "check", "list", "show", "serve", "drive", "init", "master"] {
        let said = redlock_sim(&folder, &[command, "--help"]).code(0);
        let said = String::from_utf8(said.get_output().stdout.clone()).unwrap();
        let (_, examples) = said.split_once("Examples:\n").expect(command);
        let all = format!("  redlock-sim {command}");
        assert!(examples.lines().all(|line| line.starts_with(&all)), "{examples}");
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
    assert!(entries[0]["story"].is_string());
}

#[test]
fn scenarios_are_shown_as_they_are_written() {
    let folder = folder("show", &[("clock-jump.toml", GOOD)]);
    let shown = |arguments: &[&str]| {
        let output = redlock_sim(&folder, &[&["show"], arguments].concat()).code(0);
        String::from_utf8(output.get_output().stdout.clone()).unwrap()
    };
    assert_eq!(shown(&["clock-jump"]), GOOD);
    assert_eq!(shown(&["clock-jump", "./scenarios/"]), GOOD, "each once");
    fs::write(folder.join("node-clock-jump.toml"), NODE_CLOCK_JUMP).unwrap();
    let both = shown(&["tag:clock", "./node-clock-jump.toml"]);
    let [one, other] = ["scenarios/clock-jump.toml", "node-clock-jump.toml"];
    assert_eq!(both, format!("# {one}\n{GOOD}\n# {other}\n{NODE_CLOCK_JUMP}"));
    fs::remove_dir_all(folder.join("scenarios")).unwrap();
    assert_eq!(shown(&["node-clock-jump"]), NODE_CLOCK_JUMP, "built in");
}

#[test]
fn without_a_folder_the_scenarios_of_the_build_are_played() {
    let folder = folder("embedded", &[]);
    fs::remove_dir(folder.join("scenarios")).unwrap();
    redlock_sim(&folder, &["run", "canonical", "--seeds", "0..2"]).code(0).stdout_eq(str![[r#"
scenarios: built in, 1 case
met     canonical  event 0..2  everything holds  (2 distinct runs, 4 of [..] attempts granted)
...
"#]]);
}

#[test]
fn the_safety_page_shows_what_is_printed() {
    let page = include_str!("../../docs/safety.md");
    let command = "$ cargo run -- replay node-clock-jump --seed 0\n";
    let (_, shown) = page.split_once(command).expect("the page shows a replay");
    let (shown, _) = shown.split_once("\n…\n").expect("the page cuts it short");
    let folder = folder("safety", &[("node-clock-jump.toml", NODE_CLOCK_JUMP)]);
    let printed = redlock_sim(&folder, &["replay", "node-clock-jump", "--seed", "0"]).code(0);
    let printed = String::from_utf8_lossy(&printed.get_output().stdout).into_owned();
    assert!(printed.starts_with(shown), "{printed}");
}

#[test]
fn shells_complete_commands_and_options() {
    let folder = folder("completions", &[]);
    for (shell, word) in
        [("bash", "--message-format"), ("zsh", "_redlock-sim"), ("fish", "explore")]
    {
        let output = redlock_sim(&folder, &["completions", shell]).code(0).get_output().clone();
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(script.contains(word) && script.contains("show"), "{shell}");
        assert!(!script.contains("watchdog"), "{shell} offers a hidden command");
    }
}

#[test]
fn a_node_that_only_extended_a_lease_did_not_vote_for_both() {
    let file = include_str!("../../scenarios/found/extended-in-quarantine.toml");
    let folder = folder("extended", &[("extended-in-quarantine.toml", file)]);
    let replay = ["replay", "extended-in-quarantine", "--seed", "0"];
    redlock_sim(&folder, &replay).code(0).stdout_eq(str![[r#"
...
  Then  - L1 counted B, L2 counted A and C: no node voted for both, so none could refuse

  blame   membership
...
"#]]);
}
