//! Every case of every scenario, a test under its own name: `scenario::case` on the engine `event`,
//! `turmoil::scenario::case` on the engine `turmoil`, ignored where that engine cannot play it, and
//! where it can both engines must agree. `tests/golden/turmoil.txt` says which cases that engine
//! plays: a case that leaves the list is red, and so is one that joins it unseen.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use redlock_sim::command;
use redlock_sim::scenario::{self, Case, File};
use redlock_sim::search::{Campaign, Engine, disagreements};

static NEVER: AtomicBool = AtomicBool::new(false);

fn main() {
    let trials = match scenario::load(Path::new("../scenarios")) {
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
    let seeds = engine.seeds(case).0;
    let campaign = Campaign { case, engine, seeds, stop: &NEVER, progress: &|_| {} };
    match command::keep(&campaign) {
        Ok(played) if !played.result.is_met() => {
            Err(Failed::from(format!("\n{}", command::told(&played, &case.full_name()))))
        }
        Ok(played) if engine == Engine::Turmoil => {
            is_listed(&case.full_name())?;
            let event = Campaign { engine: Engine::Event, ..campaign }.play()?;
            let told = disagreements(&event, &played.result);
            if told.is_empty() { Ok(Completion::Completed) } else { Err(told.join("\n").into()) }
        }
        Ok(_) => Ok(Completion::Completed),
        Err(unsupported) if engine == Engine::Turmoil => {
            is_listed(&format!("- {}: {}", case.full_name(), unsupported.what))?;
            Ok(Completion::ignored_with(unsupported.what))
        }
        Err(unsupported) => Err(Failed::from(unsupported.to_string())),
    }
}

fn is_listed(line: &str) -> Result<(), Failed> {
    let list = include_str!("golden/turmoil.txt");
    if list.lines().any(|listed| listed == line) {
        return Ok(());
    }
    Err(format!("not in tests/golden/turmoil.txt: {line}\nBLESS=1 cargo test --test agreement")
        .into())
}

fn wrong(name: &str, problems: String) -> Trial {
    Trial::test(name, move || Err(Failed::from(problems)))
}
