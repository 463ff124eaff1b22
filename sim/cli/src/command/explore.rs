//! `explore`: runs random plans, and stores the findings.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::{Path, PathBuf};

use lock_judge::scenario::{self, Property, nearest};
use redlock_sim::explore::{
    Assumptions, Exploration, Finding, Found, Frame, Shrunk, Situation, Tally, case, explained,
    shrink, text, upper_bound_95,
};
use redlock_sim::search::{Engine, replay_checked};
use serde_json::json;

use super::arguments::Explore;
use super::exit::{Exit, Stop};
use super::lines::say;
use super::progress;
use super::stop_signal;

/// Plans that are played if neither a number nor a time is given.
const PLANS: u64 = 100_000;

/// Explores, stores the findings and prints the sums.
pub(super) fn explore(arguments: &Explore) -> Result<Exit, Stop> {
    let frame = frame(arguments)?;
    let folder = arguments.out.out.join("found");
    fs::create_dir_all(&folder).map_err(|error| Stop::unwritable(&folder, &error))?;
    let stop = stop_signal::install()?;
    let limit = arguments.limit.map(|limit| limit.duration());
    if let Some(limit) = limit {
        stop_signal::after(limit);
    }
    let plans = arguments.plans.unwrap_or(if limit.is_some() { u64::MAX } else { PLANS });
    let of = format!("subject `{}`, may break: {}", frame.subject, frame.broken);
    say(format_args!("exploring with seed {}: {of}", arguments.seed));
    let template = "{elapsed_precise} {human_pos} plans, {per_sec}";
    let bar = progress::bar(arguments.plans, false, template);
    let unwritten = std::sync::Mutex::new(None);
    let exploration = Exploration {
        frame,
        seed: arguments.seed,
        plans: 0..plans,
        stop,
        progress: &|played| bar.inc(played),
        found: &|finding, found| {
            bar.suspend(|| say(format_args!("FOUND  plan {}: {finding}", found.number)));
            if let Err(error) = store(&folder, finding, found) {
                *unwritten.lock().expect("no thread panics here") = Some(error);
                stop_signal::request();
            }
        },
    };
    let (tally, found) = exploration.explore();
    bar.finish_and_clear();
    if let Some(error) = unwritten.into_inner().expect("no thread panics here") {
        return Err(Stop::unwritable(&folder, &error));
    }
    let files = keep_smallest(&folder, &found).map_err(|it| Stop::unwritable(&folder, &it))?;
    tell(&tally, &files);
    let sums = sums(&tally, &found);
    let file = arguments.out.out.join("explore.json");
    fs::write(&file, sums).map_err(|error| Stop::unwritable(&file, &error))?;
    Ok(match () {
        () if found.contains_key(&Finding::Panicked) => Exit::Internal,
        () if found.contains_key(&Finding::Differed) => Exit::Nondeterminism,
        () if !found.is_empty() => Exit::Failed,
        () if stop_signal::was_interrupted() => Exit::Inconclusive,
        () => Exit::Met,
    })
}

fn frame(arguments: &Explore) -> Result<Frame, Stop> {
    let subject = arguments.subject.clone();
    if scenario::subject(&subject).is_none() {
        let message = format!("error: `{subject}` is no lock client");
        return Err(Stop::usage(match nearest(&subject, scenario::subject_names()) {
            Some(other) => format!("{message}\n  = help: did you mean `{other}`?"),
            None => format!("{message}\n  = help: `scenarios/README.md` lists the subjects"),
        }));
    }
    let broken: Assumptions = arguments.broken.iter().copied().collect();
    Ok(Frame { subject, broken })
}

/// Stores the plan of a finding as it is, in case the process does not live to shrink it.
fn store(folder: &Path, finding: &Finding, found: &Found) -> io::Result<PathBuf> {
    let name = finding.name();
    let path = folder.join(format!("{name}.toml"));
    fs::write(&path, text(&found.plan, &name, finding, &[]))?;
    Ok(path)
}

/// Replaces each stored plan by the smallest scenario that shows the same.
fn keep_smallest(folder: &Path, found: &BTreeMap<Finding, Found>) -> io::Result<Vec<String>> {
    let mut told = Vec::new();
    for (finding, found) in found {
        let path = store(folder, finding, found)?;
        let Shrunk { scenario, candidates } = quietly(|| shrink(&found.plan, finding));
        let seed = scenario.run.seeds.0.start;
        let run = || replay_checked(&case(&scenario), Engine::Event, seed).ok();
        let (others, events) = match quietly(|| catch_unwind(AssertUnwindSafe(run))) {
            Ok(Some((outcome, events))) => (explained(&scenario, &outcome), events.len()),
            Ok(None) | Err(_) => (Vec::new(), 0),
        };
        fs::write(&path, text(&scenario, &finding.name(), finding, &others))?;
        let (number, file) = (found.number, path.display());
        let (faults, clients) = (scenario.faults.len(), scenario.clients.len());
        told.push(format!(
            "{finding}\n  plan {number}; shrunk to {clients} clients, {faults} faults, {events} \
             events ({candidates} candidates)\n  redlock-sim replay {file} --seed {seed}",
        ));
    }
    Ok(told)
}

/// Runs `work` without messages of panics: shrinking a panic repeats it many times.
fn quietly<T>(work: impl FnOnce() -> T) -> T {
    let usual = take_hook();
    set_hook(Box::new(|_| {}));
    let done = work();
    set_hook(usual);
    done
}

fn tell(tally: &Tally, files: &[String]) {
    let simulated_h = tally.simulated_ns / 3_600_000_000_000;
    say(format_args!(
        "{} plans, {} distinct histories, {simulated_h} h of simulated time",
        tally.plans,
        tally.distinct_histories(),
    ));
    if tally.panicked > 0 {
        say(format_args!("{} plans panicked", tally.panicked));
    }
    for (reason, count) in &tally.unsupported {
        say(format_args!("{count} plans could not be played: {reason}"));
    }
    say("\nproperty               tested  violated     found  95 % bound on finding one more");
    for property in Property::ALL {
        let sum = tally.of(property);
        let bound = upper_bound_95(sum.found, sum.tested);
        let bound = bound.map_or_else(|| String::from("-"), |bound| format!("{bound:.1e}"));
        let (tested, violated, found) = (sum.tested, sum.violated, sum.found);
        say(format_args!("{:20} {tested:8} {violated:9} {found:9}  {bound}", property.name()));
    }
    let never = tally.never_seen();
    if !never.is_empty() {
        say("\nnever seen:");
        never.into_iter().for_each(|it| say(format_args!("  {}", it.words())));
    }
    say(format_args!("\n{} findings", files.len()));
    files.iter().for_each(|file| say(format_args!("\n{file}")));
}

/// Returns the sums as JSON.
fn sums(tally: &Tally, found: &BTreeMap<Finding, Found>) -> String {
    let properties: serde_json::Map<_, _> = Property::ALL
        .into_iter()
        .map(|property| {
            let sum = tally.of(property);
            let value = json!({
                "tested": sum.tested,
                "violated": sum.violated,
                "found": sum.found,
                "upper-bound-95": upper_bound_95(sum.found, sum.tested),
            });
            (property.name().to_owned(), value)
        })
        .collect();
    let situations = Situation::ALL.into_iter().map(|it| {
        let count = tally.situations.get(&it).copied().unwrap_or_default();
        json!({ "situation": it.words(), "plans": count })
    });
    let findings = found
        .iter()
        .map(|(finding, found)| json!({ "finding": finding.name(), "plan": found.number }));
    let value = json!({
        "plans": tally.plans,
        "panicked": tally.panicked,
        "unsupported": tally.unsupported,
        "distinct-histories": tally.distinct_histories(),
        "simulated-ms": (tally.simulated_ns / 1_000_000) as u64,
        "faults": tally.faults,
        "properties": properties,
        "watched-plans": tally.watched,
        "situations": situations.collect::<Vec<_>>(),
        "findings": findings.collect::<Vec<_>>(),
    });
    format!("{value:#}\n")
}
