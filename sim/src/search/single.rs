//! One run, compared with what its scenario expects.

use super::compare;
use super::result::CaseResult;
use super::tally::Tally;
use crate::engine::Outcome;
use crate::scenario::Case;

/// What `outcome`, of the engine called `engine`, alone says of `case`.
#[must_use]
pub fn judge_one(case: &Case, engine: &'static str, outcome: &Outcome) -> CaseResult {
    let mut tally = Tally::default();
    tally.add(outcome);
    let seeds = outcome.seed..outcome.seed.saturating_add(1);
    compare::result(case, engine, seeds, &tally).of_a_sample()
}
