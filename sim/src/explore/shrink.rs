//! Makes the scenario of a finding smaller as long as it still shows the same finding.
//!
//! Works on the scenario's tree of values, as in a file: it removes items of lists, keys of tables
//! and digits of times anywhere, so that this code need not know the format. A candidate must be a
//! valid scenario, and must not break an assumption that the plan kept.

use std::panic::{AssertUnwindSafe, catch_unwind};

use lock_judge::scenario::{Scenario, SeedRange, Span, complaints};
use serde_json::Value;

use super::assumptions::Assumptions;
use super::case;
use super::contract::{Finding, findings};
use super::limits;
use crate::engine::event;

/// Maximum number of candidates that are played for one finding.
const CANDIDATES_MAX: u64 = 6_000;

/// Seeds with which a candidate is played besides the plan's own: taking a host away gives the
/// others new numbers, and with them new message delays.
const OTHER_SEEDS: u64 = 3;

/// A finding with the smallest scenario that shows it.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The scenario. Its `run.seeds` is the one seed that shows the finding.
    pub scenario: Scenario,
    /// Number of candidates that were played.
    pub candidates: u64,
}

/// Returns the smallest scenario found that shows `finding`, beginning with `plan`, which shows it
/// with the seed in its `run.seeds`.
#[must_use]
pub fn shrink(plan: &Scenario, finding: &Finding) -> Shrunk {
    let tree = serde_json::to_value(plan).expect("a scenario is a tree of values");
    let mut shrinking = Shrinking {
        finding,
        broken: Assumptions::broken_by(plan),
        seed: plan.run.seeds.0.start,
        tree,
        candidates: 0,
    };
    loop {
        let before = shrinking.tree.clone();
        shrinking.take_away_hosts();
        shrinking.take_away_parts();
        shrinking.round_times();
        if shrinking.tree == before || shrinking.candidates >= CANDIDATES_MAX {
            break;
        }
    }
    let scenario = parsed(&shrinking.tree).expect("only valid scenarios are kept");
    Shrunk { scenario, candidates: shrinking.candidates }
}

/// Path of a value in a tree.
type Path = Vec<Step>;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Item(usize),
    Key(String),
}

struct Shrinking<'f> {
    finding: &'f Finding,
    broken: Assumptions,
    seed: u64,
    tree: Value,
    candidates: u64,
}

impl Shrinking<'_> {
    /// Takes each client, node and replica away, with everything that names it.
    fn take_away_hosts(&mut self) {
        let scenario = parsed(&self.tree).expect("only valid scenarios are kept");
        let clients = scenario.clients.iter().map(|it| it.id.clone());
        let replicas = scenario.cluster.replicas.iter().map(|it| it.id.clone());
        let nodes = scenario.cluster.nodes.iter().rev().cloned();
        for host in clients.chain(replicas).chain(nodes).collect::<Vec<_>>() {
            let mut tree = self.tree.clone();
            forget(&mut tree, &host);
            self.consider(tree);
        }
    }

    /// Takes items and keys away, the last of a list first: what comes later matters less.
    fn take_away_parts(&mut self) {
        let mut parts = Vec::new();
        collect_parts(&self.tree, &mut Vec::new(), &mut parts);
        // Whole faults and clients come before their details.
        parts.sort_by_key(Vec::len);
        for path in parts.iter().rev().filter(|path| path.len() <= 2).chain(parts.iter().rev()) {
            let mut tree = self.tree.clone();
            if remove(&mut tree, path) {
                self.consider(tree);
            }
        }
    }

    /// Rounds times to fewer digits.
    fn round_times(&mut self) {
        let mut times = Vec::new();
        collect_times(&self.tree, &mut Vec::new(), &mut times);
        for path in times {
            for digits in 1..=3 {
                let mut tree = self.tree.clone();
                let Some(time) = at(&mut tree, &path) else { continue };
                let Some(text) = time.as_str().and_then(|text| rounded(text, digits)) else {
                    continue;
                };
                *time = Value::String(text);
                if self.consider(tree) {
                    break;
                }
            }
        }
    }

    /// Keeps `tree` if it is smaller and shows the finding. Returns true if it was kept.
    fn consider(&mut self, tree: Value) -> bool {
        if tree == self.tree || self.candidates >= CANDIDATES_MAX {
            return false;
        }
        let Some(scenario) = parsed(&tree) else { return false };
        if !complaints(&scenario).is_empty()
            || !limits::are_kept(&scenario)
            || !Assumptions::broken_by(&scenario).is_within(self.broken)
        {
            return false;
        }
        let others = (0..OTHER_SEEDS).filter(|seed| *seed != self.seed);
        for seed in [self.seed].into_iter().chain(others) {
            self.candidates += 1;
            if shows(&scenario, seed, self.finding) {
                self.tree = tree;
                self.seed = seed;
                self.tree["run"]["seeds"] = Value::String(SeedRange(seed..seed + 1).to_string());
                return true;
            }
        }
        false
    }
}

/// Returns true if the run of `scenario` with `seed` shows `finding`.
fn shows(scenario: &Scenario, seed: u64, finding: &Finding) -> bool {
    let run = || {
        let mut engine = event::Engine::new(&case(scenario)).ok()?;
        let outcome = engine.run(seed, None);
        Some(match finding {
            Finding::Violated { .. } => findings(scenario, &outcome).contains(finding),
            Finding::Differed => engine.run(seed, None) != outcome,
            Finding::Panicked => false,
        })
    };
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(shows) => shows.unwrap_or(false),
        Err(_) => *finding == Finding::Panicked,
    }
}

fn parsed(tree: &Value) -> Option<Scenario> {
    serde_json::from_value(tree.clone()).ok()
}

/// Takes everything away that names `host`.
fn forget(tree: &mut Value, host: &str) {
    match tree {
        Value::Array(items) => {
            items.retain(|it| !is_named(it, host));
            items.iter_mut().for_each(|it| forget(it, host));
            // A group of hosts that is empty now takes its fault or its link with it.
            items.retain(|it| !has_an_empty_group(it));
        }
        Value::Object(fields) => {
            fields.remove(host);
            fields.values_mut().for_each(|it| forget(it, host));
        }
        _ => {}
    }
}

fn is_named(value: &Value, host: &str) -> bool {
    let named = |key: &str| value.get(key).and_then(Value::as_str) == Some(host);
    // A fault on this host alone, or at one of its steps, goes too.
    let is_struck = value.as_object().is_some_and(|fields| {
        fields.values().any(|it| it.get("host").and_then(Value::as_str) == Some(host))
    });
    let waits = value.get("at").is_some_and(|at| {
        ["client", "node"].iter().any(|key| at.get(key).and_then(Value::as_str) == Some(host))
    });
    value.as_str() == Some(host) || named("id") || named("of") || is_struck || waits
}

fn has_an_empty_group(value: &Value) -> bool {
    let Value::Object(fields) = value else { return false };
    let is_group = |key: &str| ["host", "from", "to", "between"].contains(&key);
    let is_empty = |it: &Value| it.as_array().is_some_and(Vec::is_empty);
    fields.iter().any(|(key, it)| {
        let groups = it.as_array().is_some_and(|groups| groups.iter().any(is_empty));
        is_group(key) && (is_empty(it) || groups) || has_an_empty_group(it)
    })
}

/// Lists the paths of all items and keys.
fn collect_parts(tree: &Value, path: &mut Path, found: &mut Vec<Path>) {
    let mut below = |step: Step, inner: &Value| {
        path.push(step);
        found.push(path.clone());
        collect_parts(inner, path, found);
        path.pop();
    };
    match tree {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(item, it)| below(Step::Item(item), it));
        }
        Value::Object(fields) => {
            fields.iter().for_each(|(key, it)| below(Step::Key(key.clone()), it));
        }
        _ => {}
    }
}

/// Lists the paths of all times.
fn collect_times(tree: &Value, path: &mut Path, found: &mut Vec<Path>) {
    let mut parts = Vec::new();
    collect_parts(tree, path, &mut parts);
    let mut tree = tree.clone();
    let is_time = |path: &Path| {
        at(&mut tree, path)
            .is_some_and(|it| it.as_str().is_some_and(|text| rounded(text, 1).is_some()))
    };
    found.extend(parts.into_iter().filter(is_time));
}

fn at<'t>(tree: &'t mut Value, path: &[Step]) -> Option<&'t mut Value> {
    path.iter().try_fold(tree, |value, step| match step {
        Step::Item(item) => value.get_mut(*item),
        Step::Key(key) => value.get_mut(key),
    })
}

/// Removes the value at `path`. Returns false if there is none.
fn remove(tree: &mut Value, path: &[Step]) -> bool {
    let Some((last, outer)) = path.split_last() else { return false };
    match (at(tree, outer), last) {
        (Some(Value::Array(items)), Step::Item(item)) if *item < items.len() => {
            items.remove(*item);
            true
        }
        (Some(Value::Object(fields)), Step::Key(key)) => fields.remove(key).is_some(),
        _ => false,
    }
}

/// Returns the time `text` rounded to `digits` significant digits; `None` if `text` is no time, or
/// has no more digits than that. The bounds of a range become equal.
fn rounded(text: &str, digits: u32) -> Option<String> {
    if let Some((min, _)) = text.split_once("..") {
        let min: Span = min.parse().ok()?;
        return Some(rounded(&min.to_string(), digits).unwrap_or_else(|| min.to_string()));
    }
    let (sign, size) = match text.strip_prefix('-') {
        Some(size) => ("-", size),
        None => ("", text),
    };
    let ns = size.parse::<Span>().ok()?.0;
    let grain = 10_u64.pow((ns.checked_ilog10()? + 1).checked_sub(digits)?);
    let round = (ns + grain / 2) / grain * grain;
    (round != ns).then(|| format!("{sign}{}", Span(round)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_to_significant_digits() {
        assert_eq!(rounded("1234ms", 1).as_deref(), Some("1s"));
        assert_eq!(rounded("1264ms", 2).as_deref(), Some("1300ms"));
        assert_eq!(rounded("-15230us", 2).as_deref(), Some("-15ms"));
        assert_eq!(rounded("2s", 1), None);
        assert_eq!(rounded("0ns", 1), None);
        assert_eq!(rounded("c1", 1), None);
        assert_eq!(rounded("1230us..5ms", 1).as_deref(), Some("1ms"));
    }

    #[test]
    fn a_host_is_forgotten_with_everything_that_names_it() {
        let mut tree = serde_json::json!({
            "cluster": { "nodes": ["A", "B"], "clocks": { "B": { "rate-ppm": 1 } } },
            "fault": [
                { "id": "f", "at": "1s", "kill": { "host": "B" } },
                { "id": "g", "at": "1s", "pause": { "host": ["B", "A"] } },
                { "id": "h", "at": { "client": "c1", "before": "write", "node": "B" } },
                { "id": "i", "at": "1s", "partition": { "between": [["c1"], ["B"]] } },
            ],
        });
        forget(&mut tree, "B");
        let expected = serde_json::json!({
            "cluster": { "nodes": ["A"], "clocks": {} },
            "fault": [{ "id": "g", "at": "1s", "pause": { "host": ["A"] } }],
        });
        assert_eq!(tree, expected);
    }
}
