//! Behaviour of `redlock-sim explore` as its user sees it.

use std::fs;
use std::path::{Path, PathBuf};

use snapbox::cmd::{Command, OutputAssert};

fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("explore").join(test);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn redlock_sim(folder: &Path, threads: &str, arguments: &[&str]) -> OutputAssert {
    let command = Command::new(env!("CARGO_BIN_EXE_redlock-sim"));
    command.current_dir(folder).env("RAYON_NUM_THREADS", threads).args(arguments).assert()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn production_client_keeps_its_promises_within_the_assumptions() {
    let folder = folder("ours");
    redlock_sim(&folder, "2", &["explore", "--plans", "3000", "--seed", "1"]).code(0);
    let sums = fs::read_to_string(folder.join("reports/explore.json")).unwrap();
    let sums: serde_json::Value = serde_json::from_str(&sums).unwrap();
    assert_eq!((&sums["plans"], &sums["findings"]), (&3_000.into(), &serde_json::json!([])));
    assert!(sums["properties"]["mutual-exclusion"]["tested"].as_u64() > Some(2_500));
    assert!(fs::read_dir(folder.join("reports/found")).unwrap().next().is_none());
}

#[test]
fn a_known_defect_is_found_and_its_small_scenario_is_red() {
    let folder = folder("defect");
    let explore = ["explore", "--subject", "redlock-quorum-2", "--plans", "600"];
    let output = redlock_sim(&folder, "2", &explore).code(1);
    let printed = text(&output.get_output().stdout);
    assert!(printed.contains("`mutual-exclusion` is violated by the client alone"), "{printed}");
    let file = "reports/found/mutual-exclusion-none.toml";
    let scenario = fs::read_to_string(folder.join(file)).unwrap();
    assert!(scenario.matches("[[fault]]").count() <= 3, "{scenario}");
    let output = redlock_sim(&folder, "2", &["run", file, "--out", "again"]).code(1);
    let printed = text(&output.get_output().stdout);
    assert!(printed.contains("expected to hold, violated by 1 of 1 seeds"), "{printed}");
}

#[test]
fn findings_of_earlier_explorations_stay() {
    let folder = folder("earlier");
    let explore = ["explore", "--subject", "redlock-quorum-2", "--plans", "100"];
    let found = || -> Vec<(PathBuf, String)> {
        let files = fs::read_dir(folder.join("reports/found")).unwrap();
        let mut paths: Vec<PathBuf> = files.map(|it| it.unwrap().path()).collect();
        paths.sort();
        paths.into_iter().map(|it| (it.clone(), fs::read_to_string(it).unwrap())).collect()
    };
    redlock_sim(&folder, "2", &explore).code(1);
    let first = found();
    redlock_sim(&folder, "2", &explore).code(1);
    assert_eq!(found(), first, "the same findings again");
    first.iter().for_each(|(path, _)| fs::write(path, "earlier").unwrap());
    redlock_sim(&folder, "2", &explore).code(1);
    let both = found();
    assert_eq!(both.len(), 2 * first.len());
    for (path, text) in first {
        assert_eq!(fs::read_to_string(&path).unwrap(), "earlier");
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let second = fs::read_to_string(path.with_file_name(format!("{name}-2.toml"))).unwrap();
        assert_eq!(second, text.replacen(&name, &format!("{name}-2"), 1));
    }
}

#[test]
fn a_plan_is_played_again_by_its_number() {
    let folder = folder("again");
    let explore = |arguments: &[&str]| {
        let output = redlock_sim(&folder, "2", &[&["explore"], arguments].concat()).code(1);
        let sums = fs::read_to_string(folder.join("reports/explore.json")).unwrap();
        let sums = serde_json::from_str::<serde_json::Value>(&sums).unwrap();
        (text(&output.get_output().stdout), sums["plans"].clone(), sums["findings"][0].clone())
    };
    let subject = ["--subject", "redlock-quorum-2", "--break", "clock"];
    let (printed, _, finding) =
        explore(&[&subject[..], &["--seed", "3", "--plans", "600"]].concat());
    let number = finding["plan"].as_u64().unwrap();
    let plans = format!("--seed 3 --plans {number}..{}", number + 1);
    let command = format!("{} {plans}", subject.join(" "));
    assert!(printed.contains(&format!("redlock-sim explore {command}\n")), "{printed}");
    let (_, plans, alone) = explore(&command.split(' ').collect::<Vec<_>>());
    assert_eq!((plans, &alone["plan"]), (1.into(), &finding["plan"]));
    for nonsense in ["0", "5..5", "x", "5..", "7..3"] {
        let refused = redlock_sim(&folder, "1", &["explore", "--plans", nonsense]).code(2);
        let printed = text(&refused.get_output().stderr);
        assert!(
            printed.contains("expected a number of plans, at least 1, or a range"),
            "{printed}"
        );
    }
}

#[test]
fn findings_do_not_depend_on_the_number_of_threads() {
    let folder = folder("threads");
    let explore = |threads: &str| {
        let explore = ["explore", "--subject", "redlock-no-release", "--plans", "400"];
        redlock_sim(&folder, threads, &[&explore[..], &["--out", threads]].concat()).code(1);
        let found = fs::read_dir(folder.join(threads).join("found")).unwrap();
        let mut files: Vec<_> = found.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let read = |path: &PathBuf| fs::read_to_string(path).unwrap();
        let sums = fs::read_to_string(folder.join(threads).join("explore.json")).unwrap();
        (files.iter().map(read).collect::<Vec<_>>(), sums)
    };
    assert_eq!(explore("1"), explore("4"));
}

#[test]
fn what_plans_cost_is_compared_with_another_build() {
    let folder = folder("costs");
    let explore = |code: i32, arguments: &[&str]| {
        let output = redlock_sim(&folder, "2", &[&["explore"], arguments].concat()).code(code);
        text(&output.get_output().stdout) + &text(&output.get_output().stderr)
    };
    explore(
        0,
        &["--seed", "3", "--plans", "64..832", "--break", "clock", "--figures", "costs.json"],
    );
    let figures = fs::read_to_string(folder.join("costs.json")).unwrap();
    let printed = explore(0, &["--baseline", "costs.json", "--figures", "again.json"]);
    assert!(
        printed.contains("exploring with seed 3: subject `redlock` on event, may break: clock")
    );
    assert_eq!(printed.matches(" equal ").count(), 7, "{printed}");
    assert_eq!(fs::read_to_string(folder.join("again.json")).unwrap(), figures);

    // The other build wrote a command less in each block.
    let cheaper = figures.lines().map(|line| match line.split_once(":[") {
        Some((block, sums)) if !block.contains("costs") => {
            let (commands, others) = sums.split_once(',').unwrap();
            format!("{block}:[{},{others}\n", commands.parse::<u64>().unwrap() - 1)
        }
        _ => format!("{line}\n"),
    });
    fs::write(folder.join("cheaper.json"), cheaper.collect::<String>()).unwrap();
    let printed = explore(1, &["--baseline", "cheaper.json"]);
    let dearer: Vec<_> = printed.lines().filter(|line| line.contains("DEARER")).collect();
    assert_eq!(dearer.len(), 1, "{printed}");
    assert!(dearer[0].starts_with("commands ") && dearer[0].contains(" 12 "), "{printed}");
    let printed = explore(2, &["--baseline", "costs.json", "--seed", "4"]);
    assert!(printed.contains("cannot be used with"), "{printed}");
}

#[test]
fn unusable_figures_are_refused() {
    let folder = folder("figures");
    let explore =
        |arguments: &[&str]| redlock_sim(&folder, "1", &[&["explore"], arguments].concat()).code(2);
    redlock_sim(&folder, "1", &["explore", "--plans", "64", "--figures", "good.json"]).code(0);
    let good = fs::read_to_string(folder.join("good.json")).unwrap();
    for (is, was, why) in [
        ("\"schema\":1", "\"schema\":2", "schema 2 is not known; this build knows 1"),
        ("\"start\":0", "\"start\":64", "it has no plans"),
        ("\"commands\",", "", "the costs are not commands, wait-without-holder"),
        ("\"subject\":\"redlock\"", "\"subject\":\"redlok\"", "did you mean `redlock`?"),
        ("\"engine\"", "\"resources\":9,\"engine\"", "9 resources, expected 1 to 8"),
        ("}}", "}", "EOF while parsing"),
        ("\"0\":[", "\"0\":[-", "invalid"),
    ] {
        assert!(good.contains(is), "{is} in {good}");
        fs::write(folder.join("bad.json"), good.replacen(is, was, 1)).unwrap();
        let refused = explore(&["--baseline", "bad.json"]);
        let printed = text(&refused.get_output().stderr);
        assert!(printed.contains(why), "{why}: {printed}");
    }
    let refused = explore(&["--baseline", "missing.json"]);
    assert!(
        text(&refused.get_output().stderr).contains("no figures can be read from missing.json")
    );
    let refused = explore(&["--plans", "1", "--figures", "good.json/inside.json"]);
    let printed = text(&refused.get_output().stderr);
    assert!(printed.contains("figures cannot be written to good.json/inside.json"), "{printed}");
    assert!(folder.join("reports/explore.json").exists(), "what was found is stored");
}

#[test]
fn unknown_names_are_answered_with_the_nearest_one() {
    let folder = folder("names");
    for (arguments, help) in [
        (["--break", "memroy"], "did you mean `memory`?"),
        (["--break", "weather"], "expected one of `clock`, `memory`, `operator`, `membership`"),
        (["--subject", "redlok"], "did you mean `redlock`?"),
    ] {
        let output = redlock_sim(&folder, "1", &[&["explore"], &arguments[..]].concat()).code(2);
        let printed = text(&output.get_output().stderr);
        assert!(printed.contains(help), "{printed}");
    }
    assert!(!folder.join("reports").exists());
}

#[test]
fn a_time_limit_ends_the_exploration() {
    let folder = folder("time");
    let output = redlock_sim(&folder, "1", &["explore", "--for", "100ms"]).code(0);
    let printed = text(&output.get_output().stdout);
    assert!(printed.contains("0 findings"), "{printed}");
}

#[test]
fn a_finding_stays_if_its_smaller_form_cannot_be_stored() {
    let folder = folder("half");
    let found = folder.join("reports/found/mutual-exclusion-none.toml");
    fs::create_dir_all(found.with_file_name("mutual-exclusion-none-2.toml.redlock-sim.part"))
        .unwrap();
    fs::write(&found, "earlier").unwrap();
    let explore = ["explore", "--subject", "redlock-quorum-2", "--plans", "600"];
    let output = redlock_sim(&folder, "2", &explore).code(2);
    let printed = text(&output.get_output().stderr);
    assert!(printed.contains("`--out` names another directory"), "{printed}");
    assert_eq!(fs::read_to_string(found).unwrap(), "earlier");
}

#[test]
fn violations_are_explained_by_the_assumptions_that_are_broken() {
    let folder = folder("broken");
    for assumption in ["clock", "memory", "operator", "membership", "randomness"] {
        let explore = ["explore", "--plans", "1500", "--break", assumption];
        redlock_sim(&folder, "2", &explore).code(0);
        let sums = fs::read_to_string(folder.join("reports/explore.json")).unwrap();
        let sums: serde_json::Value = serde_json::from_str(&sums).unwrap();
        let violated = sums["properties"]["mutual-exclusion"]["violated"].as_u64();
        assert!(violated > Some(0), "{assumption}: {violated:?}");
    }
}

#[cfg(unix)]
#[test]
fn findings_that_cannot_be_stored_are_an_error() {
    let folder = folder("unwritable");
    fs::write(folder.join("reports"), "a file").unwrap();
    let output = redlock_sim(&folder, "1", &["explore", "--plans", "1"]).code(2);
    let printed = text(&output.get_output().stderr);
    assert!(printed.contains("`--out` names another directory"), "{printed}");
}

#[test]
fn merged_shards_have_the_bytes_of_one_process() {
    let folder = folder("shards");
    let explore = ["explore", "--subject", "redlock-quorum-2", "--plans", "300"];
    let play = |more: &[&str]| redlock_sim(&folder, "2", &[&explore[..], more].concat());
    play(&["--out", "whole"]).code(1);
    for (shard, out) in [("2/3", "parts"), ("3/3", "parts"), ("1/3", "parts"), ("1/3", "first")] {
        play(&["--shard", shard, "--out", out]).code(0);
    }
    redlock_sim(&folder, "2", &["merge", "parts", "first", "--out", "parts"]).code(1);
    let files = |out: &str| {
        let found = fs::read_dir(folder.join(out).join("found")).unwrap();
        let mut files: Vec<PathBuf> = found.map(|entry| entry.unwrap().path()).collect();
        files.push(folder.join(out).join("explore.json"));
        files.sort();
        let name = |path: &PathBuf| path.file_name().unwrap().to_owned();
        files.iter().map(|path| (name(path), fs::read(path).unwrap())).collect::<Vec<_>>()
    };
    assert!(files("whole").len() > 1);
    assert_eq!(files("parts"), files("whole"));

    let output = redlock_sim(&folder, "2", &["merge", "first", "--out", "third"]).code(1);
    let printed = text(&output.get_output().stdout);
    assert!(printed.contains("incomplete: missing: shards 2/3, 3/3"), "{printed}");
    let endless = ["explore", "--for", "1s", "--shard", "1/2"];
    let output = redlock_sim(&folder, "2", &endless).code(2);
    let told = text(&output.get_output().stderr);
    assert!(told.contains("add `--plans N`"), "{told}");
}
