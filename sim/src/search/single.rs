//! One run, compared with what its scenario expects.

use super::compare;
use super::result::{CaseResult, Failure};
use super::tally::Tally;
use crate::engine::Outcome;
use crate::scenario::{Case, Verdict};

/// What `outcome`, of the engine called `engine`, alone says of `case`. That a property is violated
/// by *some* seed, and that a fault begins in some, is nothing that one run can fail to show.
#[must_use]
pub fn judge_one(case: &Case, engine: &'static str, outcome: &Outcome) -> CaseResult {
    let mut tally = Tally::default();
    tally.add(outcome);
    let seeds = outcome.seed..outcome.seed.saturating_add(1);
    let mut result = compare::result(case, engine, seeds, &tally);
    result.failures.retain(|it| !matches!(it, Failure::FaultNeverBegan { .. }));
    for found in &mut result.properties {
        if found.expected.verdict == Verdict::Sometimes && found.violating_seeds == 0 {
            found.failures.clear();
        }
    }
    result
}
