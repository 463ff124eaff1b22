//! Compares a single run with its scenario's expectations.

use lock_judge::scenario::Case;

use super::compare;
use super::result::CaseResult;
use super::tally::Tally;
use crate::engine::Outcome;

/// Returns the result of `case` on the engine named `engine`, based on `outcome` alone.
#[must_use]
pub fn judge_one(case: &Case, engine: &'static str, outcome: &Outcome) -> CaseResult {
    let mut tally = Tally::default();
    tally.add(outcome);
    let seeds = outcome.seed..outcome.seed.saturating_add(1);
    compare::result(case, engine, seeds, &tally).of_a_sample()
}
