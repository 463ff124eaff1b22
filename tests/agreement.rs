//! Which cases the engine `turmoil` plays: a case that leaves the list is red, and so is one that
//! joins it unseen. That the engines agree on each of them is asserted where they are played, by
//! the tests `turmoil::…` of `scenarios.rs`.
//!
//! `BLESS=1` writes the list anew.

use std::path::Path;
use std::{env, fs};

use rayon::prelude::*;
use redlock_sim::scenario::{self, Case};
use redlock_sim::search::Engine;

const LIST: &str = "../tests/golden/turmoil.txt";

#[test]
fn the_engine_turmoil_plays_the_cases_of_the_list_and_no_others() {
    let files = scenario::load(Path::new("../scenarios")).expect("the scenarios are valid");
    let cases = files.iter().flat_map(|file| file.cases(&[]).expect("the cases are valid"));
    let cases: Vec<Case> = cases.collect();
    let lines = cases.par_iter().map(|case| match Engine::Turmoil.check(case) {
        Ok(()) => format!("{}\n", case.full_name()),
        Err(unsupported) => format!("- {}: {}\n", case.full_name(), unsupported.what),
    });
    let list: String = lines.collect::<Vec<_>>().concat();
    if env::var_os("BLESS").is_some() {
        assert!(env::var_os("CI").is_none(), "nothing is blessed in CI");
        fs::write(LIST, &list).expect("the list is written");
    }
    let known = fs::read_to_string(LIST).expect("the list is there");
    let (known, found): (Vec<&str>, Vec<&str>) = (known.lines().collect(), list.lines().collect());
    let gone: Vec<&&str> = known.iter().filter(|line| !found.contains(line)).collect();
    let new: Vec<&&str> = found.iter().filter(|line| !known.contains(line)).collect();
    assert!(
        gone.is_empty() && new.is_empty(),
        "not any more: {gone:#?}, not in the list: {new:#?}"
    );
}
