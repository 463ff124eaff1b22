//! `explore`: runs random plans, and stores the findings.

mod figures;
mod found;

use core::ops::Range;
use std::collections::BTreeMap;
use std::path::Path;

use lock_judge::scenario::{self, OURS, Property, RESOURCES_MAX, nearest};
use lock_judge::text::count;
use redlock_sim::explore::{
    Assumption, Assumptions, Change, Exploration, Finding, Found, Frame, Situation, Tally, draw,
    upper_bound_95,
};
use redlock_sim::part::Part;
use redlock_sim::search::Engine;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::figures::Baseline;
use self::found::{Folder, Kept, keep_smallest};
use super::arguments::Explore;
use super::exit::{Exit, Stop};
use super::progress;
use super::say::{emit, say};
use super::stop_signal;
use super::sums::{self, unreadable};
use crate::report::Staged;
use crate::shard::{Kind, Shard};

/// Plans that are played if neither a number nor a time is given.
const PLANS: u64 = 100_000;

/// Explores, stores the findings and prints the sums.
pub(super) fn explore(arguments: &Explore) -> Result<Exit, Stop> {
    let baseline = arguments.baseline.as_deref().map(Baseline::read).transpose()?;
    let plan = baseline.as_ref().map_or_else(|| planned(arguments), |it| Ok(it.plan.clone()))?;
    let part = part(arguments)?;
    // The sums of a shard have the numbers of such plans, and `merge` draws these again.
    let folder = part.is_none().then(|| Folder::open(&arguments.out)).transpose()?;
    let stop = stop_signal::install()?;
    if let Some(limit) = arguments.limit {
        stop_signal::after(limit.duration());
    }
    let Plan { frame, seed, plans } = &plan;
    let Frame { subject, broken, engine, resources } = frame;
    let mut of = format!("subject `{subject}` on {engine}, may break: {broken}");
    if *resources > 1 {
        of += &format!(", up to {resources} resources");
    }
    if let Some(part) = part {
        of += &format!(", shard {part}");
    }
    say(format_args!("exploring with seed {seed}: {of}"));
    let template = "{elapsed_precise} {human_pos} plans, {per_sec}";
    let played = part.unwrap_or(Part::WHOLE);
    let parts = u64::from(played.of());
    let is_endless = plans.end == u64::MAX;
    let length = (!is_endless).then(|| (plans.end - plans.start) / parts);
    let bar = progress::bar(length, false, template);
    let unwritten = std::sync::Mutex::new(None);
    let exploration = Exploration {
        frame: frame.clone(),
        seed: *seed,
        plans: plans.clone(),
        part: played,
        keeps_figures: baseline.is_some() || arguments.figures.is_some(),
        stop,
        progress: &|played| bar.inc(played),
        found: &|finding, found| {
            emit("found", || json!({ "finding": finding.name(), "plan": found.number }));
            let again = command_of(frame, *seed, found.number);
            bar.suspend(|| say(format_args!("FOUND  plan {}: {finding}\n  {again}", found.number)));
            if let Some(Err(error)) = folder.as_ref().map(|it| it.store(finding, found)) {
                *unwritten.lock().expect("no thread panics here") = Some(error);
                stop_signal::request();
            }
        },
    };
    let (tally, found) = exploration.explore();
    bar.finish_and_clear();
    if let Some(error) = unwritten.into_inner().expect("no thread panics here") {
        return Err(Stop::unwritable(&arguments.out, &error));
    }
    let is_interrupted = stop_signal::was_interrupted();
    let Some(folder) = folder else {
        return store_part(&arguments.out, played, &plan, (tally, found), !is_interrupted);
    };
    let least = if is_interrupted { Exit::Inconclusive } else { Exit::Met };
    if is_interrupted {
        say("stopped before the end");
    }
    let exit = report((&arguments.out, &folder), &plan, (&tally, found, baseline), least)?;
    if let (Some(path), false) = (&arguments.figures, is_interrupted) {
        figures::write(path, &plan, &tally.figures)?;
    }
    Ok(exit)
}

/// Returns what the arguments ask for.
fn planned(arguments: &Explore) -> Result<Plan, Stop> {
    let Explore { subject, engine, seed, resources, .. } = arguments;
    let broken: Assumptions = arguments.broken.iter().copied().collect();
    let frame = Frame { subject: subject.clone(), broken, engine: *engine, resources: *resources };
    check(&frame)?;
    let end = if arguments.limit.is_some() { u64::MAX } else { PLANS };
    let plans = arguments.plans.clone().map_or(0..end, |plans| plans.0);
    Ok(Plan { frame, seed: *seed, plans })
}

/// Returns the part to play. Without a number of plans, parts would not have the same plans.
fn part(arguments: &Explore) -> Result<Option<Part>, Stop> {
    let part = arguments.shard.part()?;
    if part.is_some() && (arguments.plans.is_none() || arguments.limit.is_some()) {
        let message = "error: a shard needs the number of all plans, and no `--for`";
        return Err(Stop::usage(format!("{message}\n  = help: add `--plans N`")));
    }
    Ok(part)
}

/// Work that all parts of an exploration share.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Plan {
    frame: Frame,
    seed: u64,
    plans: Range<u64>,
}

/// Sums over a part of an exploration, and the first plan of each finding.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanSums {
    tally: Tally,
    found: Vec<(Finding, u64)>,
}

/// Stores the sums of a part for `merge`.
fn store_part(
    out: &Path,
    part: Part,
    plan: &Plan,
    (tally, found): (Tally, BTreeMap<Finding, Found>),
    is_complete: bool,
) -> Result<Exit, Stop> {
    let runs = tally.plans;
    let found = found.into_iter().map(|(finding, found)| (finding, found.number)).collect();
    let (what, sums) = ((Kind::Explore, part), PlanSums { tally, found });
    let path = sums::store(out, what, plan, &sums, (runs, is_complete))?;
    say(format_args!("shard {part}: {runs} plans, stored in {}", path.display()));
    Ok(if is_complete { Exit::Met } else { Exit::Inconclusive })
}

/// Adds up the parts of an exploration, and reports the whole. The exit code is `least` or worse.
pub(super) fn merge(out: &Path, shards: &[Shard], least: Exit) -> Result<Exit, Stop> {
    let first = &shards[0];
    let plan: Plan = first.plan().map_err(|error| unreadable(first, &error))?;
    let mut sum = Tally::default();
    let mut found: BTreeMap<Finding, u64> = BTreeMap::new();
    for shard in shards {
        let part: PlanSums = shard.sums().map_err(|error| unreadable(shard, &error))?;
        sum = sum.merge(part.tally);
        for (finding, number) in part.found {
            let first = found.entry(finding).or_insert(number);
            *first = number.min(*first);
        }
    }
    let drawn = |number| Found { number, plan: draw::plan(&plan.frame, plan.seed, number) };
    let found = found.into_iter().map(|(it, number)| (it, drawn(number))).collect();
    report((out, &Folder::open(out)?), &plan, (&sum, found, None), least)
}

/// Shrinks the findings, and writes and prints the sums. The exit code is `least` or worse.
fn report(
    (out, folder): (&Path, &Folder),
    plan: &Plan,
    (tally, found, baseline): (&Tally, BTreeMap<Finding, Found>, Option<Baseline>),
    least: Exit,
) -> Result<Exit, Stop> {
    let changes = baseline.as_ref().map(|it| it.changes(&tally.figures)).unwrap_or_default();
    let has = |wanted: Finding| found.contains_key(&wanted);
    let exit = match () {
        () if has(Finding::Panicked) => Exit::Internal,
        () if has(Finding::Differed) => Exit::Nondeterminism,
        () if !found.is_empty() || changes.iter().any(Change::is_dearer) => Exit::Failed,
        () => Exit::Met,
    };
    let exit = exit.max(least);
    let kept = keep_smallest(folder, plan.frame.engine, found)
        .map_err(|it| Stop::unwritable(&folder.path, &it))?;
    tell(plan, tally, &kept);
    if let Some(baseline) = baseline {
        baseline.tell(&changes);
    }
    let (file, sums) = (out.join("explore.json"), sums(tally, &kept, &changes));
    emit("explored", || json!({ "exit-code": exit.code(), "sums": sums }));
    let text = format!("{sums:#}\n");
    Staged::write_one(&file, &text).map_err(|error| Stop::unwritable(&file, &error))?;
    Ok(exit)
}

/// Checks that there is such a subject, and that the engine runs it with so many resources.
fn check(frame: &Frame) -> Result<(), Stop> {
    let Frame { subject, engine, resources, .. } = frame;
    if scenario::subject(subject).is_none() {
        let message = format!("error: `{subject}` is not a lock client");
        return Err(Stop::usage(match nearest(subject, scenario::subject_names()) {
            Some(other) => format!("{message}\n  = help: did you mean `{other}`?"),
            None => format!("{message}\n  = help: `scenarios/README.md` lists the subjects"),
        }));
    }
    if *engine == Engine::Turmoil && subject != OURS {
        return Err(Stop::usage(format!("error: the engine `{engine}` runs `{OURS}` alone")));
    }
    if !(1..=RESOURCES_MAX).contains(resources) {
        let message = format!("error: {resources} resources, expected 1 to {RESOURCES_MAX}");
        return Err(Stop::usage(message));
    }
    if *resources > 1 && (*engine != Engine::Event || subject != OURS) {
        let message = format!("`{subject}` on the engine `{engine}` has one lock");
        let help = format!("several resources are for `{OURS}` on the engine `{}`", Engine::Event);
        return Err(Stop::usage(format!("error: {message}\n  = help: {help}")));
    }
    Ok(())
}

/// Returns the command that plays the plan `number` again.
fn command_of(frame: &Frame, seed: u64, number: u64) -> String {
    let mut command = String::from("redlock-sim explore");
    if frame.subject != OURS {
        command += &format!(" --subject {}", frame.subject);
    }
    command += engine_of(frame.engine);
    if frame.resources > 1 {
        command += &format!(" --resources {}", frame.resources);
    }
    for assumption in Assumption::ALL.into_iter().filter(|it| frame.broken.has(*it)) {
        command += &format!(" --break {}", assumption.name());
    }
    command + &format!(" --seed {seed} --plans {number}..{}", number + 1)
}

/// Returns the option that names the engine, if it is not the usual one.
const fn engine_of(engine: Engine) -> &'static str {
    match engine {
        Engine::Event => "",
        Engine::Turmoil => " --engine turmoil",
    }
}

fn tell(plan: &Plan, tally: &Tally, kept: &[Kept]) {
    let simulated_h = tally.simulated_ns / 3_600_000_000_000;
    say(format_args!(
        "{}, {} distinct histories, {simulated_h} h of simulated time",
        count(tally.plans, "plan"),
        tally.distinct_histories(),
    ));
    if tally.panicked > 0 {
        say(format_args!("{} plans panicked", tally.panicked));
    }
    let unplayed: u64 = tally.unsupported.values().sum();
    if let Some((reason, _)) = tally.unsupported.iter().max_by_key(|(_, count)| **count) {
        let plans = count(unplayed, "plan");
        say(format_args!("{plans} could not be played, such as one with {reason}"));
    }
    let faults: Vec<String> =
        tally.faults.iter().map(|(kind, plans)| format!("{kind} {plans}")).collect();
    say(format_args!("\nplans in which a fault began: {}", faults.join(", ")));
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
    say(format_args!("\n{} findings", kept.len()));
    let engine = engine_of(plan.frame.engine);
    for kept in kept {
        let again = command_of(&plan.frame, plan.seed, kept.number);
        say(format_args!("\n{kept}{engine}\n  {again}"));
    }
}

/// Returns the sums as JSON.
fn sums(tally: &Tally, kept: &[Kept], changes: &[Change]) -> Value {
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
    let findings = kept.iter().map(|it| {
        json!({
            "finding": it.finding.name(),
            "plan": it.number,
            "clients": it.clients,
            "faults": it.faults,
            "events": it.events,
        })
    });
    json!({
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
        "costs": figures::json(changes),
    })
}
