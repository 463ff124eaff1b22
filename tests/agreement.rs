//! The list of the cases that the engine `turmoil` can play. The tests `turmoil::…` of
//! `scenarios.rs`, which play the cases, check that each line is true and that the engines agree.
//!
//! `BLESS=1` rewrites the list.

use std::path::Path;
use std::{env, fs};

use lock_judge::scenario::Case;
use rayon::prelude::*;
use redlock_sim::library;
use redlock_sim::search::Engine;

const LIST: &str = "../tests/golden/turmoil.txt";

#[test]
fn the_list_has_every_case_once_in_order() {
    let files = library::load(Path::new("../scenarios")).expect("the scenarios are valid");
    let cases = files.iter().flat_map(|file| file.cases(&[]).expect("the cases are valid"));
    let cases: Vec<Case> = cases.collect();
    if env::var_os("BLESS").is_some() {
        assert!(env::var_os("CI").is_none(), "nothing is blessed in CI");
        let lines = cases.par_iter().map(|case| match Engine::Turmoil.check(case) {
            Ok(()) => format!("{}\n", case.full_name()),
            Err(unsupported) => format!("- {}: {}\n", case.full_name(), unsupported.what),
        });
        fs::write(LIST, lines.collect::<Vec<_>>().concat()).expect("the list is written");
    }
    let list = fs::read_to_string(LIST).expect("the list is there");
    let name = |line: &str| match line.strip_prefix("- ") {
        Some(unsupported) => unsupported.split(": ").next().map(String::from),
        None => Some(String::from(line)),
    };
    let listed: Vec<String> = list.lines().filter_map(name).collect();
    let cases: Vec<String> = cases.iter().map(Case::full_name).collect();
    assert_eq!(listed, cases);
}
