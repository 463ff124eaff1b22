//! `--shard` and `merge`: parts of a run are one run, and what is missing is told.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use snapbox::cmd::Command;

use crate::{GOOD, NODE_CLOCK_JUMP, folder, redlock_sim};

fn scenarios(test: &str) -> PathBuf {
    folder(test, &[("clock-jump.toml", GOOD), ("node-clock-jump.toml", NODE_CLOCK_JUMP)])
}

/// Plays the part of the run.
fn play(folder: &Path, shard: &str, out: &str, more: &[&str]) {
    let play = ["run", "--seeds", "0..12", "--shard", shard, "--out", out];
    redlock_sim(folder, &[&play[..], more].concat()).code(0);
}

fn merge(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let output = redlock_sim(folder, &[&["merge"], arguments].concat()).get_output().clone();
    let text = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap()).concat();
    (output.status.code().unwrap(), text)
}

/// Returns the contents of all files below `folder`.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_owned();
                found.insert(name, fs::read(path).unwrap());
            }
        }
    }
    found
}

#[test]
fn merged_shards_have_the_bytes_of_one_process() {
    let folder = scenarios("shards");
    redlock_sim(&folder, &["run", "--seeds", "0..12", "--out", "whole"]);
    for shard in ["1/3", "2/3", "3/3"] {
        play(&folder, shard, "parts", &[]);
    }
    let whole = files(&folder.join("whole"));
    assert!(whole.len() > 5);
    assert_eq!(merge(&folder, &["parts", "--out", "merged"]).0, 0);
    assert!(files(&folder.join("merged")) == whole);
    let names = [3, 1, 2, 1].map(|number| format!("parts/shard-{number}-of-3.json.gz"));
    let [one, two, three, four] = names.each_ref().map(String::as_str);
    assert_eq!(merge(&folder, &[one, two, three, four, "--out", "again"]).0, 0);
    assert!(files(&folder.join("again")) == whole);
    let (code, text) = merge(&folder, &["parts", "--results-only", "--out", "results"]);
    assert!(code == 0 && text.contains("results.json"), "{text}");
    assert_eq!(files(&folder.join("results")).len(), 1);
}

#[test]
fn cases_that_an_engine_cannot_play_are_skipped_in_all_shards() {
    let folder = scenarios("shards-turmoil");
    let engine = ["--engine", "turmoil"];
    let whole = ["run", "--seeds", "0..2", "--out", "whole"];
    let output = redlock_sim(&folder, &[&whole[..], &engine].concat()).get_output().clone();
    let skipped = |text: &str| text.lines().filter(|it| it.starts_with("skipped")).count();
    let known = skipped(&String::from_utf8(output.stdout).unwrap());
    for shard in ["1/2", "2/2"] {
        let play = ["run", "--seeds", "0..2", "--shard", shard, "--out", "parts"];
        redlock_sim(&folder, &[&play[..], &engine].concat()).code(0);
    }
    let (_, text) = merge(&folder, &["parts", "--out", "merged"]);
    assert!(known > 0 && skipped(&text) == known, "{text}");
    assert!(files(&folder.join("merged")) == files(&folder.join("whole")));
}

#[test]
fn a_missing_shard_makes_the_result_inconclusive() {
    let folder = scenarios("shards-missing");
    play(&folder, "1/3", "parts", &[]);
    play(&folder, "3/3", "parts", &[]);
    let (code, text) = merge(&folder, &["parts"]);
    assert!(code == 3 && text.contains("missing: shard 2/3"), "{text}");
    assert!(text.contains("of 12 seeds were played"), "{text}");
    let results = fs::read_to_string(folder.join("reports/results.json")).unwrap();
    assert!(results.contains("of 12 seeds were played") && results.contains("\"met\": false"));
    let gate = redlock_sim(&folder, &["gate"]).get_output().clone();
    assert_ne!(gate.status.code(), Some(0));
}

#[test]
fn shards_that_do_not_belong_together_are_named() {
    let folder = scenarios("shards-strange");
    for shard in ["1/2", "2/2"] {
        play(&folder, shard, "parts", &[]);
    }
    play(&folder, "1/3", "parts", &[]);
    play(&folder, "2/2", "other", &["--set", "lock.ttl=9s"]);
    let whole = fs::read(folder.join("parts/shard-2-of-2.json.gz")).unwrap();
    let strange = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).unwrap();
    strange("parts/shard-cut.json.gz", &whole[..whole.len() / 2]);
    strange("parts/shard-text.json.gz", b"this is a text, and no shard\n");
    strange("parts/shard-future.json.gz", &with_schema_2(&whole));
    let (code, text) = merge(&folder, &["parts", "other"]);
    assert_eq!(code, 3, "{text}");
    for told in [
        "parts/shard-1-of-3.json.gz: it is one of 3 parts, most of the shards are of 2",
        "other/shard-2-of-2.json.gz: it is of other scenarios, seeds or settings",
        "parts/shard-text.json.gz: it is no shard: not compressed with gzip",
        "parts/shard-future.json.gz: its schema is 2; this build knows 1",
    ] {
        assert!(text.contains(&format!("incomplete: {told}")), "{told}\n{text}");
    }
    assert!(text.contains("parts/shard-cut.json.gz: "), "{text}");
    let (code, text) = merge(&folder, &["parts/shard-cut.json.gz", "--out", "cut"]);
    assert!(code == 2 && text.contains("parts/shard-cut.json.gz"), "{text}");
    assert!(!folder.join("cut/results.json").exists());
    let (code, text) = merge(&folder, &["scenarios"]);
    assert!(code == 2 && text.contains("scenarios has no shard"), "{text}");
    let (code, text) = merge(&folder, &["nowhere"]);
    assert!(code == 2 && text.contains("nowhere: it cannot be read"), "{text}");
}

/// Returns a shard with the schema of a later version.
fn with_schema_2(shard: &[u8]) -> Vec<u8> {
    let mut text = String::new();
    std::io::Read::read_to_string(&mut GzDecoder::new(shard), &mut text).unwrap();
    let later = text.replacen("\"schema\":1", "\"schema\":2", 1);
    let mut to = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut to, later.as_bytes()).unwrap();
    to.finish().unwrap()
}

#[test]
fn the_environment_names_the_shard() {
    let folder = scenarios("shards-environment");
    let run = |variables: &[(&str, &str)]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_redlock-sim")).current_dir(&folder);
        for name in ["SHARD", "SHARDS", "JOB_COMPLETION_INDEX", "SLURM_ARRAY_TASK_ID"] {
            command = command.env_remove(name);
        }
        for (name, value) in variables {
            command = command.env(name, value);
        }
        command.args(["run", "--seeds", "0..2", "--shard-from-env"]).assert()
    };
    run(&[("JOB_COMPLETION_INDEX", "1"), ("SHARDS", "2")]).code(0);
    assert!(folder.join("reports/shard-2-of-2.json.gz").exists());
    let output = run(&[]).code(2).get_output().stderr.clone();
    let text = String::from_utf8(output).unwrap();
    assert!(text.contains("the environment names no shard"), "{text}");
}
