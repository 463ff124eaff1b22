//! The results of many cases: printed as they come, reported at the end.

use std::path::Path;
use std::thread;

use indicatif::ProgressBar;
use lock_judge::text;
use redlock_sim::engine::Unsupported;
use redlock_sim::search::Played;
use serde_json::json;

use super::arguments::Amount;
use super::exit::{Exit, Stop};
use super::lines;
use super::say::{emit, emit_case, say};
use super::select::Selected;
use crate::report;

/// Result of a case; an error if the simulator panicked.
pub(super) type Outcome = thread::Result<Result<Played, Unsupported>>;

/// The results so far.
pub(super) struct Session<'a> {
    out: &'a Path,
    /// True if `results.json` alone is written.
    results_only: bool,
    amount: Amount,
    bar: ProgressBar,
    played: Vec<Played>,
    unsupported: usize,
    exit: Exit,
}

impl<'a> Session<'a> {
    pub(super) fn new(out: &'a Path, results_only: bool, amount: Amount, bar: ProgressBar) -> Self {
        let (played, unsupported, exit) = (Vec::new(), 0, Exit::Met);
        Self { out, results_only, amount, bar, played, unsupported, exit }
    }

    /// Keeps the worse of the exit code so far and `exit`.
    pub(super) fn exit(&mut self, exit: Exit) {
        self.exit = self.exit.max(exit);
    }

    fn say(&self, text: &str) {
        self.bar.suspend(|| say(text));
    }

    /// Takes the result of one case.
    pub(super) fn take(&mut self, selected: &Selected, outcome: Outcome) {
        let name = selected.case.full_name();
        match outcome {
            Ok(Ok(played)) => {
                self.add(selected.adopt(played));
            }
            Ok(Err(unsupported)) => {
                self.unsupported += 1;
                emit("skipped", || json!({ "case": name, "reason": unsupported.to_string() }));
                if selected.by_name {
                    self.exit(Exit::Inconclusive);
                }
                if selected.by_name || !self.amount.quiet {
                    self.say(&format!("skipped {name}  {unsupported}"));
                }
            }
            Err(_) => {
                self.exit(Exit::Internal);
                self.say(&format!(
                    "BROKEN  {name}  the simulator has a defect: see the panic above"
                ));
            }
        }
    }

    fn add(&mut self, played: Played) {
        let result = &played.result;
        if result.runs == 0 && result.failures.is_empty() {
            return;
        }
        self.exit(Exit::of(result));
        emit_case(&played, Exit::of(result));
        let Amount { quiet, verbose } = self.amount;
        if verbose {
            self.say(&lines::told_in_full(&played, self.out));
        } else if !quiet || Exit::of(result) != Exit::Met {
            self.say(&lines::told(&played));
        }
        self.played.push(played);
    }

    /// Writes the reports and prints the sums.
    pub(super) fn finish(mut self, is_stopped: bool) -> Result<Exit, Stop> {
        self.bar.finish_and_clear();
        if is_stopped {
            self.exit(Exit::Inconclusive);
        }
        if self.played.is_empty() {
            let nothing = if self.exit == Exit::Met { Exit::Nothing } else { self.exit };
            say("nothing was played");
            return Ok(nothing);
        }
        let write = if self.results_only { report::write_results } else { report::write };
        write(self.out, &self.played).map_err(|error| Stop::unwritable(self.out, &error))?;
        let first = self.out.join(if self.results_only { "results.json" } else { "index.html" });
        emit("summary", || json!({ "exit-code": self.exit.code(), "reports": first }));
        if !self.amount.quiet || self.exit != Exit::Met {
            say(format_args!("{}; reports: {}", self.summary(is_stopped), first.display()));
        }
        Ok(self.exit)
    }

    fn summary(&self, is_stopped: bool) -> String {
        let met = self.played.iter().filter(|played| played.result.is_met()).count();
        let runs: u64 = self.played.iter().map(|played| played.result.runs).sum();
        let is_unclear =
            |it: &&Played| !it.result.is_met() && Exit::of(&it.result) == Exit::Inconclusive;
        let unclear = self.played.iter().filter(is_unclear).count();
        let failed = self.played.len() - met - unclear;
        let mut summary = format!("\n{} met, {failed} failed", text::count(met as u64, "case"));
        if unclear > 0 {
            summary += &format!(", {unclear} inconclusive");
        }
        if self.unsupported > 0 {
            summary += &format!(", {} skipped", self.unsupported);
        }
        if is_stopped {
            summary += ", stopped before the end";
        }
        let granted: u64 = self.played.iter().map(|it| it.result.counters.granted).sum();
        let seconds = self.bar.elapsed().as_secs_f64();
        let (runs, leases) = (text::count(runs, "run"), text::count(granted, "lease"));
        summary + &format!("; {runs}, {leases} in {seconds:.1} s")
    }
}
