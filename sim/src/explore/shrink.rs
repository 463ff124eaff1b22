//! Makes the scenario of a finding smaller as long as it still shows the same finding.
//!
//! Works on the scenario's tree of values, as in a file: it removes items of lists, keys of tables
//! and digits of times anywhere, so that this code need not know the format. A candidate must be a
//! valid scenario, and must not break an assumption that the plan kept.
//!
//! The measure is the number of hosts, faults and steps, then the number of events that lead to the
//! violation: a file without a key is no gain if the default makes the run longer.

mod quieter;
mod tree;

use std::panic::{AssertUnwindSafe, catch_unwind};

use lock_judge::history::Event;
use lock_judge::oracle::Violation;
use lock_judge::scenario::{Scenario, SeedRange, complaints};
use serde_json::Value;

use self::quieter::changes;
use self::tree::{
    at, calmer, collect_parts, collect_times, forget, merge_resource, remove, rounded, shorter,
};
use super::assumptions::Assumptions;
use super::case;
use super::contract::{Finding, findings};
use super::length::events_up_to;
use super::limits;
use crate::search::{Engine, Player};

/// Maximum number of candidates that are played for one finding. A run on `turmoil` takes fifty times
/// as long.
const fn candidates_max(engine: Engine) -> u64 {
    match engine {
        Engine::Event => 6_000,
        Engine::Turmoil => 1_000,
    }
}

/// TTLs in place of the default.
const SHORT_TTLS: [&str; 3] = ["100ms", "500ms", "2s"];

/// Numbers by which times are divided.
const DIVISORS: [u64; 3] = [100, 10, 2];

/// Seeds with which a candidate is played besides the plan's own: taking a host away gives the
/// others new numbers, and with them new message delays.
const OTHER_SEEDS: u64 = 3;

/// Seeds among which the quietest run of a scenario is looked for.
const QUIET_SEEDS: u64 = 16;

/// A finding with the smallest scenario that shows it.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The scenario. Its `run.seeds` is the one seed that shows the finding.
    pub scenario: Scenario,
    /// Number of candidates that were played.
    pub candidates: u64,
}

/// Returns the smallest scenario found that shows `finding` on `engine`, beginning with `plan`, which
/// shows it with the seed in its `run.seeds`.
#[must_use]
pub fn shrink(plan: &Scenario, engine: Engine, finding: &Finding) -> Shrunk {
    let seed = plan.run.seeds.0.start;
    let sought = Sought { finding, engine };
    let mut shrinking = Shrinking {
        sought,
        broken: Assumptions::broken_by(plan),
        seed,
        tree: serde_json::to_value(plan).expect("a scenario is a tree of values"),
        size: sought.size(plan, seed).unwrap_or(Size::UNKNOWN),
        candidates: 0,
    };
    loop {
        let before = shrinking.tree.clone();
        shrinking.take_away_resources();
        shrinking.take_away_hosts();
        shrinking.quieten();
        shrinking.take_away_parts();
        shrinking.calm_down();
        shrinking.shorten_times();
        shrinking.quieten();
        shrinking.round_times();
        if shrinking.tree == before || shrinking.candidates >= candidates_max(engine) {
            break;
        }
    }
    let scenario = parsed(&shrinking.tree).expect("only valid scenarios are kept");
    Shrunk { scenario, candidates: shrinking.candidates }
}

/// Size of a scenario and of its run.
#[derive(Clone, Copy)]
struct Size {
    /// Number of clients, replicas, faults and steps.
    parts: usize,
    nodes: usize,
    /// Number of events up to the violation.
    events: usize,
}

impl Size {
    /// Larger than any other size.
    const UNKNOWN: Self = Self { parts: usize::MAX, nodes: usize::MAX, events: usize::MAX };
}

struct Shrinking<'f> {
    sought: Sought<'f>,
    broken: Assumptions,
    seed: u64,
    tree: Value,
    size: Size,
    candidates: u64,
}

impl Shrinking<'_> {
    /// Lets the clients of each further resource lock the first one.
    fn take_away_resources(&mut self) {
        let scenario = parsed(&self.tree).expect("only valid scenarios are kept");
        for resource in scenario.lock.further_resources.iter().rev() {
            let mut tree = self.tree.clone();
            merge_resource(&mut tree, resource);
            self.consider(tree);
        }
    }

    /// Takes each client, node and replica away, with everything that names it; then two nodes at
    /// once, because a majority of four nodes is no smaller than one of five.
    fn take_away_hosts(&mut self) {
        let scenario = parsed(&self.tree).expect("only valid scenarios are kept");
        let clients = scenario.clients.iter().map(|it| it.id.clone());
        let replicas = scenario.cluster.replicas.iter().map(|it| it.id.clone());
        let nodes = scenario.cluster.nodes.iter().rev();
        for host in clients.chain(replicas).chain(nodes.clone().cloned()).collect::<Vec<_>>() {
            let mut tree = self.tree.clone();
            forget(&mut tree, &host);
            self.consider(tree);
        }
        for (place, one) in nodes.clone().enumerate() {
            for other in nodes.clone().skip(place + 1) {
                let mut tree = self.tree.clone();
                forget(&mut tree, one);
                forget(&mut tree, other);
                self.consider(tree);
            }
        }
    }

    /// Makes runs shorter that need not be: clients wait and poll less.
    fn quieten(&mut self) {
        let scenario = parsed(&self.tree).expect("only valid scenarios are kept");
        let Some(shown) = self.sought.shown(&scenario, self.seed) else { return };
        let violation = shown.violation.as_ref();
        for change in changes(&self.tree, &scenario, violation, &shown.events) {
            if let Some(tree) = change.of(&self.tree) {
                self.consider_if(tree, |new, old| new.events < old.events);
            }
        }
        let scenario = parsed(&self.tree).expect("only valid scenarios are kept");
        for seed in 0..QUIET_SEEDS {
            self.candidates += 1;
            let size = self.sought.size(&scenario, seed);
            if let Some(size) = size.filter(|size| size.events < self.size.events) {
                self.keep(self.tree.clone(), seed, size);
            }
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

    /// Lets loops and faults come once, or less often.
    fn calm_down(&mut self) {
        let mut parts = Vec::new();
        collect_parts(&self.tree, &mut Vec::new(), &mut parts);
        for path in parts.iter().rev() {
            for calmer in calmer(&self.tree, path) {
                if self.consider(calmer) {
                    break;
                }
            }
        }
    }

    /// Shortens times: a client that polls meanwhile polls less often.
    fn shorten_times(&mut self) {
        if self.tree.pointer("/lock/ttl").is_none() {
            SHORT_TTLS.into_iter().any(|ttl| {
                let mut tree = self.tree.clone();
                tree["lock"]["ttl"] = Value::String(ttl.to_owned());
                self.consider(tree)
            });
        }
        self.replace_times(|text| DIVISORS.map(|divisor| shorter(text, divisor)));
    }

    /// Rounds times to fewer digits.
    fn round_times(&mut self) {
        self.replace_times(|text| [1, 2, 3].map(|digits| rounded(text, digits)));
    }

    /// Replaces each time by the first of its candidates with which the finding shows.
    fn replace_times<const N: usize>(&mut self, candidates: impl Fn(&str) -> [Option<String>; N]) {
        let mut times = Vec::new();
        collect_times(&self.tree, &mut Vec::new(), &mut times);
        for path in times {
            let mut tree = self.tree.clone();
            let Some(text) = at(&mut tree, &path).and_then(|time| time.as_str()) else { continue };
            for candidate in candidates(text).into_iter().flatten() {
                let mut tree = self.tree.clone();
                if let Some(time) = at(&mut tree, &path) {
                    *time = Value::String(candidate);
                }
                if self.consider(tree) {
                    break;
                }
            }
        }
    }

    /// Keeps `tree` if it shows the finding and is no larger. Returns true if it was kept.
    fn consider(&mut self, tree: Value) -> bool {
        self.consider_if(tree, |new, old| {
            new.parts < old.parts || new.events <= old.events && new.nodes <= old.nodes
        })
    }

    /// Keeps `tree` if it shows the finding and its size compares well with the present one. Returns
    /// true if it was kept.
    fn consider_if(&mut self, tree: Value, is_better: impl Fn(&Size, &Size) -> bool) -> bool {
        if tree == self.tree || self.candidates >= candidates_max(self.sought.engine) {
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
            let size = self.sought.size(&scenario, seed);
            if let Some(size) = size.filter(|size| is_better(size, &self.size)) {
                self.keep(tree, seed, size);
                return true;
            }
        }
        false
    }

    fn keep(&mut self, tree: Value, seed: u64, size: Size) {
        self.tree = tree;
        self.seed = seed;
        self.size = size;
        self.tree["run"]["seeds"] = Value::String(SeedRange(seed..seed + 1).to_string());
    }
}

/// A run that shows a finding.
struct Shown {
    violation: Option<Violation>,
    events: Vec<Event>,
}

/// A finding that a scenario must still show, and the engine that plays the scenario.
#[derive(Clone, Copy)]
struct Sought<'f> {
    finding: &'f Finding,
    engine: Engine,
}

impl Sought<'_> {
    /// Returns the run of `scenario` with `seed` if it shows the finding. A run that panics has no
    /// events.
    fn shown(self, scenario: &Scenario, seed: u64) -> Option<Shown> {
        let Self { finding, engine } = self;
        let case = case(scenario);
        let run = || {
            let mut player = Player::new(&case, engine).ok()?;
            let mut events = Vec::new();
            let outcome = player.play(seed, Some(&mut events)).ok()?;
            let shows = match finding {
                Finding::Violated { .. } | Finding::Exceeded { .. } => {
                    findings(scenario, engine, &outcome).contains(finding)
                }
                Finding::Differed => player.play(seed, None).ok()? != outcome,
                Finding::Panicked => false,
            };
            shows.then(|| Shown { violation: finding.violation(&outcome), events })
        };
        let panicked = Shown { violation: None, events: Vec::new() };
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(shown) => shown,
            Err(_) => (*finding == Finding::Panicked).then_some(panicked),
        }
    }

    /// Returns the size of the run of `scenario` with `seed` if it shows the finding.
    fn size(self, scenario: &Scenario, seed: u64) -> Option<Size> {
        let shown = self.shown(scenario, seed)?;
        let events = match &shown.violation {
            Some(violation) => events_up_to(violation, &shown.events),
            None => shown.events.len(),
        };
        Some(Size { events, parts: parts_of(scenario), nodes: scenario.cluster.nodes.len() })
    }
}

/// Returns the number of clients, replicas, faults and steps.
fn parts_of(scenario: &Scenario) -> usize {
    let steps: usize = scenario.clients.iter().map(|client| client.all_steps().count()).sum();
    scenario.clients.len() + scenario.cluster.replicas.len() + scenario.faults.len() + steps
}

fn parsed(tree: &Value) -> Option<Scenario> {
    serde_json::from_value(tree.clone()).ok()
}
