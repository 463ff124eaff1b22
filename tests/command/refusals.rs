//! Wrong usage and bad input: exit codes, and messages that point at the mistake.

use std::fs;

use snapbox::str;

use crate::{GOOD, folder, redlock_sim};

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
fn two_formats_of_one_list_are_an_error() {
    let folder = folder("two-formats", &[("clock-jump.toml", GOOD)]);
    let both = ["list", "--format", "json", "--message-format", "json"];
    let said = redlock_sim(&folder, &both).code(2).stdout_eq("");
    let said = String::from_utf8(said.get_output().stderr.clone()).unwrap();
    assert!(said.contains("'--format <FORMAT>' cannot be used with '--message-format"), "{said}");
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
fn the_example_of_show_makes_a_file_that_runs() {
    let folder = folder("show", &[("clock-jump.toml", GOOD)]);
    let help = redlock_sim(&folder, &["show", "--help"]).code(0).get_output().stdout.clone();
    let help = String::from_utf8(help).unwrap();
    let (_, behind) = help.split_once("redlock-sim show node-clock-jump > ").unwrap();
    let copy = behind.split_whitespace().next().unwrap();
    fs::write(folder.join(copy), crate::NODE_CLOCK_JUMP).unwrap();
    redlock_sim(&folder, &["run", &format!("./{copy}"), "--seeds", "0..2"]).code(0);
}

#[test]
fn a_file_that_is_no_history_is_told_from_one() {
    let folder = folder("no-history", &[("clock-jump.toml", GOOD)]);
    redlock_sim(&folder, &["run", "--seeds", "0..2"]).code(0);
    for (file, said) in [
        (
            "nofile",
            "error: there is no file nofile\n  = help: histories are the files `*.jsonl.gz`",
        ),
        ("scenarios/clock-jump.toml", "error: scenarios/clock-jump.toml is no history: "),
        ("reports/results.json", "error: reports/results.json is a file of results, not a history"),
    ] {
        let output = redlock_sim(&folder, &["check", file]).code(2).get_output().stderr.clone();
        let text = String::from_utf8(output).unwrap();
        assert!(text.starts_with(said) && text.contains("= help: histories are"), "{text}");
    }
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
    redlock_sim(&folder, &["show", "clock-jmp"]).code(2).stderr_eq(str![[r#"
error: there is no scenario `clock-jmp` (./scenarios)
  = help: did you mean `clock-jump`?

"#]]);
    redlock_sim(&folder, &["show", "clock-jump::five"]).code(2).stderr_eq(str![[r#"
error: `clock-jump::five` is a case
  = help: a case is a part of its file: `redlock-sim show clock-jump`

"#]]);
    redlock_sim(&folder, &["show", "tag:nothing"]).code(4).stderr_eq(str![[r#"
error: no scenario has the tag `nothing` (./scenarios)
  = help: `redlock-sim list` shows the tags of each scenario

"#]]);
    redlock_sim(&folder, &["run", "there/is/nothing.toml"]).code(2);
    for arguments in [
        &["run", "--seeds", "5..5"][..],
        &["run", "--engine", "exhaustive"],
        &["run", "--jobs", "0"],
        &["run", "--set", "lock.ttl"],
        &["replay", "clock-jump", "--seed", "-1"],
        &["replay", "clock-jump"],
        &["explore", "--engine", "turmoil", "--subject", "unique-id"],
        &["serve", "--resource", ""],
        &["explain"],
    ] {
        redlock_sim(&folder, arguments).code(2);
    }
    redlock_sim(&folder, &["check", "nothing.jsonl.gz"]).code(2).stderr_eq(str![[r#"
error: there is no file nothing.jsonl.gz
  = help: histories are the files `*.jsonl.gz` that a run stores, such as [..]

"#]]);
    redlock_sim(&folder, &["gate"]).code(2).stderr_eq(str![[r#"
error: there is no file reports/results.json
  = help: `redlock-sim run` writes `reports/results.json`

"#]]);
    let text = redlock_sim(&folder, &["gate", "scenarios/clock-jump.toml"]).code(2);
    text.stderr_eq(str![[r#"
error: scenarios/clock-jump.toml is no file of results: [..]
  = help: `redlock-sim run` writes `reports/results.json`

"#]]);
    let subject = ["run", "--set", "client.c1.subject=redis"];
    let said = redlock_sim(&folder, &subject).code(2).get_output().stderr.clone();
    let said = String::from_utf8(said).unwrap();
    assert!(said.contains("= help: the table of subjects in `scenarios/README.md`"), "{said}");
    assert!(!folder.join("reports").exists());
}

#[cfg(unix)]
#[test]
fn two_scenarios_of_one_name_are_an_error_wherever_they_are() {
    let folder = folder("namesakes", &[("clock-jump.toml", GOOD)]);
    fs::create_dir(folder.join("other")).unwrap();
    fs::write(folder.join("other/clock-jump.toml"), GOOD).unwrap();
    fs::create_dir(folder.join("linked")).unwrap();
    let original = folder.join("scenarios/clock-jump.toml");
    std::os::unix::fs::symlink(original, folder.join("linked/clock-jump.toml")).unwrap();
    let drive = ["drive", "./scenarios/", "./other/", "--worker", "true"];
    for arguments in [
        &["run", "./scenarios/", "./other/"][..],
        &["run", "./scenarios/clock-jump.toml", "./other/clock-jump.toml"],
        &["run", "clock-jump", "./other/"],
        &["run", "tag:K2", "./other/clock-jump.toml::five-votes-survive-one-forgetful-node"],
        &["show", "clock-jump", "./other/clock-jump.toml"],
        &drive,
    ] {
        redlock_sim(&folder, arguments).code(2).stdout_eq("").stderr_eq(str![[r#"
error: `clock-jump` is also the name of scenarios/clock-jump.toml
 --> other/clock-jump.toml

"#]]);
    }
    assert!(!folder.join("reports").exists());
    let twice = ["./scenarios/", "clock-jump", "./scenarios/../linked/", "tag:K2"];
    let run = ["run", "--seeds", "0..1", "-q", "./linked/clock-jump.toml"];
    redlock_sim(&folder, &[&run[..], &twice].concat()).code(0);
    let results = fs::read_to_string(folder.join("reports/results.json")).unwrap();
    let results: serde_json::Value = serde_json::from_str(&results).unwrap();
    assert_eq!(results["cases"].as_array().unwrap().len(), 3);
}

#[cfg(unix)]
#[test]
fn no_scenario_in_a_folder_is_left_out() {
    use std::os::unix::fs::symlink;
    let folder = folder("left-out", &[("clock-jump.toml", GOOD)]);
    let deep = folder.join("scenarios/1/2/3/4/5/6/7/8/9/10/11/12");
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("deep.toml"), GOOD.replace("\"clock-jump\"", "\"deep\"")).unwrap();
    // A folder within itself, and a file under two paths.
    symlink(folder.join("scenarios"), folder.join("scenarios/1/loop")).unwrap();
    symlink(deep.join("deep.toml"), folder.join("scenarios/deep.toml")).unwrap();
    redlock_sim(&folder, &["list"]).code(0).stdout_eq(str![[r#"
scenarios: ./scenarios

deep [..]
...
clock-jump [..]
...
"#]]);
    symlink("nowhere.toml", folder.join("scenarios/1/dangling.toml")).unwrap();
    redlock_sim(&folder, &["run"]).code(2).stderr_eq(str![[r#"
error: the link leads to no file
 --> scenarios/1/dangling.toml

"#]]);
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
