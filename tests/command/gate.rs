//! `gate`: what is known passes, what is new does not.

use std::fs;
use std::path::{Path, PathBuf};

use snapbox::cmd::Command;

use crate::{GOOD, folder, redlock_sim};

/// Settings under which the case departs from its expectation.
const WRONG: [&str; 4] = ["run", "--seeds", "0..2", "--set"];

/// Plays the scenario with the setting, and returns its folder.
fn played(test: &str, setting: &str) -> PathBuf {
    let folder = folder(test, &[("clock-jump.toml", GOOD)]);
    redlock_sim(&folder, &[&WRONG[..], &[setting]].concat());
    folder
}

fn gate(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_redlock-sim"));
    for variable in ["CI", "GITHUB_STEP_SUMMARY"] {
        command = command.env_remove(variable);
    }
    let command = command.current_dir(folder).arg("gate").args(arguments);
    let output = command.assert().get_output().clone();
    let text = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap()).concat();
    (output.status.code().unwrap(), text)
}

const JUMP_THAT_DOES_NO_HARM: &str = "fault.jump.clock-jump.by=1ms";

#[test]
fn a_departure_fails_the_gate_until_it_is_accepted() {
    let folder = played("gate", JUMP_THAT_DOES_NO_HARM);
    let (code, text) = gate(&folder, &[]);
    assert!(code == 1 && text.contains("NEW      clock-jump  mutual-exclusion holds"), "{text}");

    let known = ["--baseline", "known.toml"];
    let (code, text) = gate(&folder, &known);
    assert!(code == 2 && text.contains("`--bless --reason TEXT` creates it"), "{text}");
    let bless = [&known[..], &["--bless"]].concat();
    let (code, text) = gate(&folder, &bless);
    assert!(code == 2 && text.contains("`--reason TEXT` accepts it"), "{text}");
    assert!(!folder.join("known.toml").exists());
    assert_eq!(gate(&folder, &[&bless[..], &["--reason", "a small jump"]].concat()).0, 0);
    let (code, text) = gate(&folder, &known);
    assert!(code == 0 && text.contains("0 changes fail"), "{text}");

    // The departure is over.
    redlock_sim(&folder, &["run", "--seeds", "0..2"]).code(0);
    let (code, text) = gate(&folder, &known);
    assert!(code == 0 && text.contains("mended   clock-jump"), "{text}");
    assert!(text.contains("a small jump"), "{text}");
    assert_eq!(gate(&folder, &bless).0, 0);
    assert!(!fs::read_to_string(folder.join("known.toml")).unwrap().contains("a small jump"));
}

#[test]
fn a_case_that_left_the_suite_is_red() {
    let folder = played("gate-gone", "lock.ttl=10s");
    let bless = ["--baseline", "known.toml", "--bless", "--reason", "all"];
    assert_eq!(gate(&folder, &bless).0, 0);
    redlock_sim(&folder, &["run", "clock-jump", "--seeds", "0..2"]);
    let text = fs::read_to_string(folder.join("known.toml")).unwrap();
    let more = text.replacen("cases = [", "cases = [\n    \"another\",", 1);
    fs::write(folder.join("known.toml"), more).unwrap();
    let (code, text) = gate(&folder, &["--baseline", "known.toml"]);
    assert!(code == 1 && text.contains("GONE     another  was not played"), "{text}");
}

#[test]
fn changes_have_the_formats_of_ci_systems() {
    let folder = played("gate-formats", JUMP_THAT_DOES_NO_HARM);
    let (_, json) = gate(&folder, &["--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["met"], &json["changes"][0]["kind"]), (&false.into(), &"new".into()));
    let (_, markdown) = gate(&folder, &["--format", "markdown"]);
    assert!(markdown.contains("| clock-jump | mutual-exclusion | holds |"), "{markdown}");
    let (_, github) = gate(&folder, &["--format", "github", "--junit", "junit.xml"]);
    assert!(github.starts_with("::error title=redlock-sim::NEW      clock-jump"), "{github}");
    let junit = fs::read_to_string(folder.join("junit.xml")).unwrap();
    for part in [
        "<testsuites name=\"redlock-sim\" tests=\"3\" skipped=\"0\" failures=\"1\"",
        "<testsuite name=\"clock-jump\"",
        "<testcase name=\"clock-jump, seeds 0..2\"",
        "<failure",
    ] {
        assert!(junit.contains(part), "{junit}");
    }
}

#[test]
fn bad_input_is_pointed_at_and_nothing_is_written() {
    let folder = played("gate-bad", JUMP_THAT_DOES_NO_HARM);
    let bless = ["--baseline", "known.toml", "--bless", "--reason", "x"];
    let command = Command::new(env!("CARGO_BIN_EXE_redlock-sim")).current_dir(&folder);
    command.env("CI", "true").arg("gate").args(bless).assert().code(2);
    assert!(!folder.join("known.toml").exists());
    let (code, text) = gate(&folder, &["nothing.json"]);
    assert!(code == 2 && text.contains("nothing.json"), "{text}");
    for (content, message) in [
        ("schema = 9\ncases = []\n", "schema 9 is not known"),
        ("schema = 1\ncases = []\nknwon = []\n", "unknown field `knwon`"),
        ("schema = ", "known.toml"),
    ] {
        fs::write(folder.join("known.toml"), content).unwrap();
        let (code, text) = gate(&folder, &["--baseline", "known.toml"]);
        assert!(code == 2 && text.contains(message), "{text}");
    }
    // A sparse file needs no room on the disk.
    fs::File::create(folder.join("huge")).unwrap().set_len((256 << 20) + 1).unwrap();
    for arguments in [&["huge"][..], &["--baseline", "huge"]] {
        let (code, text) = gate(&folder, arguments);
        let message = "the file is larger than 256 MiB";
        assert!(code == 2 && text.contains(message), "{text}");
    }
}
