//! `--message-format json`: every line on standard output is a JSON object.

use serde_json::Value;

use crate::{GOOD, folder, redlock_sim};

/// Returns the kinds of the messages, and the messages.
fn messages(folder: &std::path::Path, code: i32, arguments: &[&str]) -> Vec<(String, Value)> {
    let arguments = [arguments, &["--message-format", "json"]].concat();
    let output = redlock_sim(folder, &arguments).code(code).get_output().stdout.clone();
    let text = String::from_utf8(output).unwrap();
    let parsed = text.lines().map(|line| serde_json::from_str::<Value>(line).expect(line));
    parsed.map(|it| (it["kind"].as_str().expect("it has a kind").to_owned(), it)).collect()
}

fn kinds(messages: &[(String, Value)]) -> Vec<&str> {
    messages.iter().map(|(kind, _)| kind.as_str()).collect()
}

#[test]
fn programs_read_results_as_they_come() {
    let folder = folder("messages", &[("clock-jump.toml", GOOD)]);
    let wrong = ["--set", "expect.mutual-exclusion=holds"];
    let run = messages(&folder, 1, &[&["run", "--seeds", "0..3"], &wrong[..]].concat());
    assert_eq!(kinds(&run), ["case", "case", "case", "summary"]);
    let (first, summary) = (&run[0].1, &run[3].1);
    assert_eq!((&first["exit-code"], &summary["exit-code"]), (&1.into(), &1.into()));
    let violated = &first["result"]["properties"]["mutual-exclusion"];
    assert_eq!(violated["observed"], "violated");
    assert_eq!(violated["failures"][0], "expected to hold, violated by 3 of 3 seeds");

    let replay = messages(&folder, 0, &["replay", "clock-jump", "--seed", "1"]);
    assert_eq!((kinds(&replay), &replay[0].1["result"]["seeds"]), (vec!["case"], &"1..2".into()));
    let history = "reports/clock-jump/base.0.jsonl.gz";
    assert_eq!(kinds(&messages(&folder, 1, &["check", history])), ["case"]);

    let listed = messages(&folder, 0, &["list"]);
    assert_eq!((kinds(&listed), &listed[0].1["name"]), (vec!["scenario"], &"clock-jump".into()));
    let shown = messages(&folder, 0, &["show", "clock-jump"]);
    let (kind, shown) = &shown[0];
    assert_eq!((kind.as_str(), &shown["text"]), ("scenario", &GOOD.into()));
    assert_eq!(shown["path"], "scenarios/clock-jump.toml");
    for field in ["name", "title", "story", "tags", "source"] {
        assert_eq!(shown[field], listed[0].1[field], "{field}");
    }

    let shard = ["run", "--seeds", "0..9", "--shard", "1/2", "--out", "parts"];
    assert_eq!(kinds(&messages(&folder, 0, &shard)), ["shard"]);
    let merged = messages(&folder, 3, &["merge", "parts"]);
    assert_eq!(kinds(&merged), ["incomplete", "case", "case", "case", "summary"]);
    assert_eq!(merged[4].1["exit-code"], 3);

    let explore = ["explore", "--subject", "redlock-quorum-2", "--plans", "60", "--out", "found"];
    let explored = messages(&folder, 1, &explore);
    let (kind, last) = explored.last().unwrap();
    assert_eq!((kind.as_str(), &last["sums"]["plans"]), ("explored", &60.into()));
    assert!(kinds(&explored)[..explored.len() - 1].iter().all(|kind| *kind == "found"));
}
