//! Every case of every scenario as a test with its own name: `scenario::case` on the engine
//! `event`, and `turmoil::scenario::case` on the engine `turmoil`. The latter is ignored if that
//! engine cannot play the case; otherwise both engines must agree. `tests/golden/turmoil.txt` lists
//! the cases that `turmoil` plays: a case that leaves the list fails, and so does a case that can
//! be played but is not listed.
//!
//! These tests use few seeds of each case. `gallery.rs` and `redlock-sim run` play all seeds. With
//! `MARGINS=all` they take longer: `turmoil` plays as many seeds as `event`, and it is measured for
//! each case whether `turmoil` can play it.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use lock_judge::scenario::{Case, File};
use redlock_sim::library;
use redlock_sim::part::Part;
use redlock_sim::search::{Campaign, Engine, Played, disagreements};
use redlock_sim_cli::command;

/// Number of seeds for each case.
const SEEDS: u64 = 10;

/// Number of seeds that `turmoil` plays of each case; a run takes it a hundred times as long.
const TURMOIL_SEEDS: u64 = 3;

/// The cases that `turmoil` plays, and why it does not play the others.
const LIST: &str = include_str!("golden/turmoil.txt");

static NEVER: AtomicBool = AtomicBool::new(false);

fn main() {
    let trials = match library::load(Path::new("../../scenarios")) {
        Ok(files) => files.iter().flat_map(of_file).collect(),
        Err(problems) => vec![wrong("the files of the scenarios", problems.to_string())],
    };
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn of_file(file: &File) -> Vec<Trial> {
    match file.cases(&[]) {
        Ok(cases) => cases.into_iter().flat_map(of_case).collect(),
        Err(problems) => vec![wrong(file.path(), problems.to_string())],
    }
}

fn of_case(case: Case) -> [Trial; 2] {
    let name = case.full_name();
    let same = case.clone();
    [
        Trial::ignorable_test(name.clone(), move || play(&case, Engine::Event)),
        Trial::ignorable_test(format!("turmoil::{name}"), move || play(&same, Engine::Turmoil)),
    ]
}

fn play(case: &Case, engine: Engine) -> Result<Completion, Failed> {
    let name = case.full_name();
    if engine == Engine::Turmoil
        && !is_measured(&name)
        && let Some(reason) = unplayed(&name)
    {
        return Ok(Completion::ignored_with(reason));
    }
    let all = engine.seeds(case).0;
    let few = if engine == Engine::Turmoil && !takes_longer() { TURMOIL_SEEDS } else { SEEDS };
    let seeds = all.start..all.end.min(all.start + few);
    let is_checked = engine == Engine::Turmoil && !is_measured(&name);
    let (part, progress) = (Part::WHOLE, &|_| {});
    let campaign = Campaign { case, engine, seeds, part, is_checked, stop: &NEVER, progress };
    let played = command::keep(&campaign);
    match played.map(|it| Played { result: it.result.of_a_sample(), ..it }) {
        Ok(played) if !played.result.is_met() => {
            Err(Failed::from(format!("\n{}", command::told(&played))))
        }
        Ok(played) if engine == Engine::Turmoil => {
            is_listed(&name)?;
            let event = Campaign { engine: Engine::Event, ..campaign }.play()?;
            let told = disagreements(&event, &played.result);
            if told.is_empty() { Ok(Completion::Completed) } else { Err(told.join("\n").into()) }
        }
        Ok(_) => Ok(Completion::Completed),
        Err(unsupported) if engine == Engine::Turmoil => {
            is_listed(&format!("- {name}: {}", unsupported.what))?;
            Ok(Completion::ignored_with(unsupported.what))
        }
        Err(unsupported) => Err(Failed::from(unsupported.to_string())),
    }
}

/// Returns true if the test measures whether the engine `turmoil` can play the case, which takes
/// many hundred runs. One case in sixteen; all cases with `MARGINS=all`.
fn is_measured(name: &str) -> bool {
    let sum = name.bytes().fold(0_u8, u8::wrapping_add);
    sum.is_multiple_of(16) || takes_longer()
}

fn takes_longer() -> bool {
    std::env::var("MARGINS").is_ok_and(|it| it == "all")
}

/// Returns the reason, from the list, why `turmoil` does not play the case.
fn unplayed(name: &str) -> Option<&'static str> {
    let reason =
        |line: &'static str| line.strip_prefix("- ")?.strip_prefix(name)?.strip_prefix(": ");
    LIST.lines().find_map(reason)
}

fn is_listed(line: &str) -> Result<(), Failed> {
    if LIST.lines().any(|listed| listed == line) {
        return Ok(());
    }
    Err(format!("not in tests/golden/turmoil.txt: {line}\nBLESS=1 cargo test --test agreement")
        .into())
}

fn wrong(name: &str, problems: String) -> Trial {
    Trial::test(name, move || Err(Failed::from(problems)))
}
