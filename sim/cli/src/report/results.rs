//! `results.json`: expected and observed verdicts, for programs.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use lock_judge::oracle::Counters;
use lock_judge::scenario::{Case, Expectation, Property, Quantity};
use redlock_sim::search::{Failure, Observed, PropertyResult, QuantityResult};
use serde::{Deserialize, Serialize};

use super::Played;
use crate::{build, text_file};

/// Version of the format.
const SCHEMA: u32 = 1;

/// The whole file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Results {
    /// Version of the format: [`SCHEMA`].
    pub(crate) schema: u32,
    /// Build of the harness.
    pub(crate) build: String,
    /// True if all cases met their expectations.
    pub(crate) met: bool,
    /// Cases, in the order in which they were played.
    pub(crate) cases: Vec<CaseReport>,
}

/// One case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct CaseReport {
    /// Name of the scenario.
    pub(crate) scenario: String,
    /// Slug of the case; `None` for the base case.
    pub(crate) case: Option<String>,
    /// Name of the engine.
    pub(crate) engine: String,
    /// Requested seeds, as `a..b`, `b` excluded.
    pub(crate) seeds: String,
    /// Number of seeds that were played.
    pub(crate) runs: u64,
    /// Number of distinct histories.
    pub(crate) distinct_histories: u64,
    /// Hash of the first seed's history, in hexadecimal.
    pub(crate) first_hash: String,
    /// True if the case met its expectations.
    pub(crate) met: bool,
    /// Failures of the case as a whole, apart from its properties.
    pub(crate) failures: Vec<String>,
    /// Report of each property.
    pub(crate) properties: BTreeMap<Property, PropertyReport>,
    /// Report of each quantity that was measured or expected.
    #[serde(default)]
    pub(crate) quantities: BTreeMap<Quantity, QuantityReport>,
    /// Counters, summed over all runs.
    pub(crate) counters: Counters,
    /// Page of the scenario, relative to the directory of this file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) page: Option<String>,
    /// Stored histories, relative to the directory of this file.
    pub(crate) histories: Vec<String>,
}

/// One property of one case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct PropertyReport {
    /// Verdict that the scenario expects.
    pub(crate) expected: Expectation,
    /// Observed verdict: `holds`, `sometimes`, `unjudged`, `vacuous` or `violated`.
    pub(crate) observed: String,
    /// Number of seeds that violated the property.
    pub(crate) violating_seeds: u64,
    /// First seed that violated the property.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) first_violating_seed: Option<u64>,
    /// Every blame that was found.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub(crate) blame: Vec<String>,
    /// Shortest overlap among the violating runs, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) shortest_overlap_ns: Option<u64>,
    /// If there was no violation: upper bound, with 95 % confidence, on the share of all seeds that
    /// violate the property. Seeds vary message delays and clock phases, so this is no failure rate
    /// of a deployment.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) bound_95: Option<f64>,
    /// Differences between the observed and the expected verdict.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub(crate) failures: Vec<String>,
}

/// One quantity of one case. Times are in nanoseconds; quotients, such as commands per lock, are in
/// thousandths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct QuantityReport {
    /// Bounds that the scenario expects, as it has them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    expected: Option<String>,
    /// Number of seeds that measured the quantity.
    measured_seeds: u64,
    /// Figures over these seeds; missing if there are none.
    #[serde(skip_serializing_if = "Option::is_none", flatten)]
    figures: Option<FiguresReport>,
    /// Differences between the values and the bounds.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub(crate) failures: Vec<String>,
}

/// Values of a quantity over the seeds, and the first seeds with the extremes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct FiguresReport {
    min: u64,
    /// Of the first 1024 seeds that measured it.
    median: u64,
    max: u64,
    min_seed: u64,
    max_seed: u64,
}

impl Results {
    /// Builds the file's content from the cases of a run.
    #[must_use]
    pub(super) fn new<'a>(played: impl IntoIterator<Item = &'a Played>) -> Self {
        let cases: Vec<CaseReport> = played.into_iter().map(CaseReport::new).collect();
        let met = cases.iter().all(|case| case.met);
        Self { schema: SCHEMA, build: build::NAME.to_owned(), met, cases }
    }

    /// Reads the file `path`.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or is no `results.json` of this version.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let text = text_file::read(path)?;
        let results: Self = serde_json::from_str(&text)?;
        if results.schema != SCHEMA {
            let message =
                format!("schema {} is not known; this build knows {SCHEMA}", results.schema);
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(results)
    }

    /// Returns the content for a run of which no page and no history is stored.
    #[must_use]
    pub(super) fn without_files(mut self) -> Self {
        for case in &mut self.cases {
            (case.page, case.histories) = (None, Vec::new());
        }
        self
    }

    /// Returns the text of the file.
    #[must_use]
    pub(super) fn to_json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self).expect("plain structs serialize");
        json.push('\n');
        json
    }
}

impl CaseReport {
    pub(crate) fn new(played: &Played) -> Self {
        let Played { result, kept, .. } = played;
        let property = |it: &PropertyResult| (it.property, PropertyReport::new(it, result.runs));
        Self {
            scenario: result.case.scenario.name.clone(),
            case: result.case.slug.clone(),
            engine: result.engine.to_owned(),
            seeds: format!("{}..{}", result.seeds.start, result.seeds.end),
            runs: result.runs,
            distinct_histories: result.distinct_histories,
            first_hash: format!("{:016x}", result.first_hash),
            met: result.is_met(),
            failures: result.failures.iter().map(|it| failure(&result.case, it)).collect(),
            properties: result.properties.iter().map(property).collect(),
            quantities: result.quantities.iter().filter_map(QuantityReport::new).collect(),
            counters: result.counters,
            page: Some(super::page_file(&result.case.scenario.name)),
            histories: kept.iter().map(|(seed, _)| result.history_file(*seed)).collect(),
        }
    }
}

impl PropertyReport {
    fn new(result: &PropertyResult, runs: u64) -> Self {
        Self {
            expected: result.expected.clone(),
            observed: word(result.observed).to_owned(),
            violating_seeds: result.violating_seeds,
            first_violating_seed: result.first_seed,
            blame: result.blames.clone(),
            shortest_overlap_ns: result.shortest_overlap_ns,
            bound_95: result.bound_95(runs),
            failures: result.failures.clone(),
        }
    }
}

impl QuantityReport {
    /// Returns the entry of a quantity; `None` if it was neither measured nor expected.
    fn new(result: &QuantityResult) -> Option<(Quantity, Self)> {
        let quantity = result.quantity;
        if result.figures.is_none() && result.expected.is_none() {
            return None;
        }
        let report = Self {
            expected: result.expected.map(|bounds| quantity.written(bounds)),
            measured_seeds: result.measured,
            figures: result.figures.map(|it| FiguresReport {
                min: it.min,
                median: it.median,
                max: it.max,
                min_seed: it.min_seed,
                max_seed: it.max_seed,
            }),
            failures: result.failures.clone(),
        };
        Some((quantity, report))
    }
}

/// Returns a verdict as one word.
#[must_use]
pub(super) const fn word(observed: Observed) -> &'static str {
    match observed {
        Observed::Holds => "holds",
        Observed::Sometimes => "sometimes",
        Observed::Unjudged => "unjudged",
        Observed::Vacuous => "vacuous",
        Observed::Violated => "violated",
    }
}

/// Describes a failure of a case as a whole.
pub(crate) fn failure(case: &Case, failure: &Failure) -> String {
    match failure {
        Failure::FaultNeverBegan { fault } => {
            let id = case.scenario.fault(*fault).map_or("?", |it| it.id.as_str());
            format!(
                "the fault `{id}` began in no seed: give `at` a time or a step that runs reach, or \
                 disable the fault"
            )
        }
        Failure::OneHistory => String::from(
            "every seed gave the same history: vary something, e.g. give `cluster.network.delay` a range",
        ),
        Failure::Nondeterminism { seed } => {
            format!("two runs of seed {seed} differ: the harness is not deterministic")
        }
        Failure::Panicked { seed, message } => {
            format!("the run of seed {seed} panicked: {message}")
        }
        Failure::Incomplete { why } => why.clone(),
        Failure::NothingHappened => String::from(
            "no client asked for the lock in any run: add a step `acquire`, or let the workers lock",
        ),
    }
}
