//! `replay` and `check`: reports one run in full.

use std::io;
use std::path::Path;

use lock_judge::history::Event;
use lock_judge::history::file;
use lock_judge::oracle::Oracle;
use lock_judge::scenario;
use redlock_sim::engine::Outcome;
use redlock_sim::search::{self, CaseResult, Engine};
use redlock_sim::serve;

use super::arguments::{Check, Replay};
use super::exit::{Exit, Stop};
use super::lines;
use super::say::{emit_result, say};
use super::select::{self, Selected};
use crate::report::{self, Results};

/// Replays one run and reports what happened. Plays it twice, to detect nondeterminism.
pub(super) fn replay(arguments: &Replay) -> Result<Exit, Stop> {
    let Replay { which, seed, engine, settings, out, amount, .. } = arguments;
    let (cases, _) = select::select(core::slice::from_ref(which), &settings.overrides)?;
    let Selected { case, which, .. } = the_one(which, cases)?;
    let unsupported = |error: redlock_sim::engine::Unsupported| Stop {
        exit: Exit::Inconclusive,
        message: error.to_string(),
    };
    let (outcome, events) = search::replay(&case, *engine, *seed).map_err(unsupported)?;
    let (again, _) = search::replay(&case, *engine, *seed).map_err(unsupported)?;
    let result = search::judge_one(&case, engine.name(), &outcome);
    let (told, mut exit) = hash_lines(&result, &outcome, out);
    exit = exit.max(Exit::of(&result));
    emit_result(&result, exit);
    let is_same = again == outcome;
    if amount.quiet && exit == Exit::Met && is_same {
        return Ok(exit);
    }
    say(format_args!("{}  {engine}  seed {seed}", case.full_name()));
    say(told);
    let history = out.join(result.history_file(*seed));
    tell(&result, &which, &events, &history, amount.verbose);
    if amount.verbose {
        say(format_args!("\n{}", report::events_table(&case, &events)));
    }
    if !is_same {
        say(format_args!(
            "hash    {:016x} when repeated: one seed gave two different runs",
            again.hash
        ));
        exit = exit.max(Exit::Nondeterminism);
    }
    Ok(exit)
}

/// Judges a stored history again.
pub(super) fn check(arguments: &Check) -> Result<Exit, Stop> {
    let path = &arguments.file;
    let stored = file::read_path(path).map_err(|error| unreadable(path, &error))?;
    let file::Header { case, engine, seed, .. } = &stored.header;
    let result = judged(path, &stored)?;
    let exit = Exit::of(&result);
    emit_result(&result, exit);
    if arguments.amount.quiet && exit == Exit::Met {
        return Ok(exit);
    }
    say(format_args!("{}  {engine}  seed {seed}", case.full_name()));
    say(format_args!("hash    {:016x}, equal to that of its events", stored.hash));
    tell(&result, &case.full_name(), &stored.events, path, arguments.amount.verbose);
    if arguments.amount.verbose {
        say(format_args!("\n{}", report::events_table(case, &stored.events)));
    }
    Ok(exit)
}

/// Names the file `path`, which is no history, and where histories are.
pub(super) fn unreadable(path: &Path, error: &file::ReadError) -> Stop {
    let name = path.display();
    let message = match &error.problem {
        file::Problem::Io(io) if io.kind() == io::ErrorKind::NotFound => {
            format!("there is no file {name}")
        }
        _ if Results::read(path).is_ok() => {
            format!("{name} is a file of results, not a history")
        }
        file::Problem::Header(why) => format!("{name} is no history: {why}"),
        _ => return Stop::usage(format!("error: {error}")),
    };
    let help = "histories are the files `*.jsonl.gz` that a run stores, such as \
                `reports/SCENARIO/base.0.jsonl.gz`";
    Stop::usage(format!("error: {message}\n  = help: {help}"))
}

/// Judges the history in the file `path`.
pub(super) fn judged(path: &Path, stored: &file::Stored) -> Result<CaseResult, Stop> {
    let file::Header { case, engine, seed, .. } = &stored.header;
    if let Some(complaint) = scenario::complaints(&case.scenario).first() {
        let scenario::Complaint { place, message, expected, .. } = complaint;
        let place = format!("{}:1: the scenario's `{place}`", path.display());
        return Err(Stop::usage(format!("error: {place}: {message}: {expected}")));
    }
    let (engine, unjudged) = if engine == serve::ENGINE {
        (serve::ENGINE, serve::unjudged())
    } else {
        let known: Result<Engine, String> = engine.parse();
        let named = |error| Stop::usage(format!("error: {}:1: {error}", path.display()));
        (known.map_err(named)?.name(), Vec::new())
    };
    let mut oracle = Oracle::new(&case.scenario, &unjudged);
    stored.events.iter().for_each(|event| oracle.observe(event));
    let verdicts = oracle.finish();
    let (counters, faults_begun) = (oracle.counters(), oracle.faults_begun());
    let (seed, hash, mut measured) = (*seed, stored.hash, oracle.measured());
    if engine == serve::ENGINE {
        measured = serve::from_outside(measured);
    }
    let ended_ns = stored.events.last().map_or(0, |event| event.at_ns);
    let outcome = Outcome { seed, hash, verdicts, counters, faults_begun, measured, ended_ns };
    Ok(search::judge_one(case, engine, &outcome))
}

/// Prints all verdicts, the quantities, and the story of each violation. `history` is the path of
/// the run's history; the file need not exist. `which` is the selector of the case. `all` adds the
/// quantities that nothing is expected of.
fn tell(result: &CaseResult, which: &str, events: &[Event], history: &Path, all: bool) {
    say(lines::verdicts(result));
    for line in lines::quantities(result, |it| all || it.expected.is_some()) {
        say(format_args!("  {line}"));
    }
    for found in &result.properties {
        if let Some((seed, violation)) = &found.shown {
            let history = history.display().to_string();
            let again = report::replay_command(&result.case, which, result.engine, *seed, &history);
            let told = (events, again.as_str());
            let block = lines::block(result, found.property, (*seed, violation), told);
            say(format_args!("\n{}", block.trim_end()));
        }
    }
    for found in &result.quantities {
        for failure in &found.failures {
            say(format_args!("{}: {failure}", found.quantity.name()));
        }
        report::left_keys(&result.case, found, events).iter().for_each(say);
    }
    for failure in &result.failures {
        say(report::results::failure(&result.case, failure));
    }
}

/// Compares the hash of the run with the stored history of an earlier run, if there is one. Returns
/// what is to be said.
fn hash_lines(result: &CaseResult, outcome: &Outcome, out: &Path) -> (String, Exit) {
    let actual = outcome.hash;
    let path = out.join(result.history_file(outcome.seed));
    match file::read_path(&path) {
        Ok(stored) if stored.header.case != result.case => {
            let other = format!("{} is of another setting", path.display());
            (format!("hash    {actual:016x}; {other}"), Exit::Met)
        }
        Ok(stored) if stored.hash == actual => {
            (format!("hash    {actual:016x}, as in {}", path.display()), Exit::Met)
        }
        Ok(stored) => {
            let changed = format!("the code has changed since {} was stored", path.display());
            let expected = format!("hash    {actual:016x}, expected {:016x}", stored.hash);
            (format!("{expected}\n        {changed}"), Exit::Inconclusive)
        }
        Err(error) if path.exists() => {
            let unread = format!("{} cannot be read: {error}", path.display());
            (format!("hash    {actual:016x}; {unread}"), Exit::Inconclusive)
        }
        Err(_) => (format!("hash    {actual:016x}; no history of this run is stored"), Exit::Met),
    }
}

/// Returns the one case that `which` selects: the base case, or else the only case.
///
/// # Errors
///
/// If there is no case, if the cases are of several scenarios, or if there are several and none is the
/// base.
pub(super) fn the_one(which: &str, mut cases: Vec<Selected>) -> Result<Selected, Stop> {
    if cases.is_empty() {
        let message = format!("error: `{which}` has no scenarios");
        return Err(Stop { exit: Exit::Nothing, message });
    }
    let mut scenarios: Vec<&str> = cases.iter().map(|it| it.case.scenario.name.as_str()).collect();
    scenarios.dedup();
    if scenarios.len() > 1 {
        let message = format!("error: `{which}` has {} scenarios; name one", scenarios.len());
        scenarios.truncate(20);
        return Err(Stop::usage(format!("{message}\n  = help: {}", scenarios.join(", "))));
    }
    if let Some(base) = cases.iter().position(|it| it.case.slug.is_none()) {
        return Ok(cases.swap_remove(base));
    }
    if cases.len() == 1 {
        return Ok(cases.remove(0));
    }
    let names: Vec<String> = cases.iter().take(20).map(|it| it.case.full_name()).collect();
    let message = format!("error: `{which}` has {} cases; name one", cases.len());
    Err(Stop::usage(format!("{message}\n  = help: {}", names.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_is_of_one_scenario() {
        let select = |word: &str| select::select(&[word.to_owned()], &[]).expect("it is known").0;
        let stop = the_one("tag:K1", select("tag:K1")).expect_err("several scenarios");
        assert!(stop.message.contains("scenarios; name one"), "{}", stop.message);
        assert!(stop.message.contains("pause-after-the-check"), "{}", stop.message);
        let one = the_one("canonical", select("canonical")).expect("it has a base case");
        assert_eq!(one.case.full_name(), "canonical");
        assert_eq!(the_one("empty", Vec::new()).expect_err("none").exit, Exit::Nothing);
    }
}
