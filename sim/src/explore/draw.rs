//! Draws plans.

mod clients;
mod cluster;
mod faults;
mod keeping;
mod overtaking;
mod resources;

use std::collections::BTreeMap;

use lock_judge::scenario::{
    At, Cluster, CountRange, Expectations, Lock, OURS, Run, Scenario, SeedRange, Span, SpanRange,
    Store,
};
use serde::{Deserialize, Serialize};

use super::assumptions::{Assumption, Assumptions};
use super::dice::Dice;
use crate::plan::steps;
use crate::search::Engine;

/// Shortest node timeout on the engine `turmoil`, whose messages take a millisecond each way.
const TIMEOUT_OF_TURMOIL: Span = Span::from_ms(3);

/// Share of the plans in which processes have further tasks.
const TASKS_PERCENT: u64 = 30;

/// Subject and engine of all plans, and the assumptions that they may break.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Frame {
    /// Name of the lock client that every client of a plan runs.
    pub subject: String,
    /// Assumptions that a plan may break.
    pub broken: Assumptions,
    /// Engine that plays the plans. Plans for `turmoil` are the same, without what that engine cannot
    /// play.
    pub engine: Engine,
    /// Most resources that the clients of a plan lock. With 1, plans are the same as if there
    /// were no resources to draw.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub resources: usize,
}

fn one() -> usize {
    1
}

fn is_one(resources: &usize) -> bool {
    *resources == 1
}

impl Default for Frame {
    fn default() -> Self {
        Self {
            subject: String::from(OURS),
            broken: Assumptions::NONE,
            engine: Engine::Event,
            resources: 1,
        }
    }
}

/// Returns the plan `number` of `seed`. It depends on the three arguments alone, is valid, and breaks
/// no other assumption than `frame` allows.
#[must_use]
pub fn plan(frame: &Frame, seed: u64, number: u64) -> Scenario {
    let mut sketch = Sketch {
        dice: Dice::new(seed, number),
        broken: Assumptions::NONE,
        is_ours: frame.subject == OURS,
        horizon: Span(0),
        plan: empty(number),
    };
    // A plan that breaks everything at once says little about each.
    let allowed = Assumption::ALL.into_iter().filter(|it| frame.broken.has(*it));
    sketch.broken = allowed.filter(|_| sketch.dice.percent(80)).collect();
    sketch.lock();
    sketch.cluster();
    sketch.clients(&frame.subject);
    sketch.differences();
    sketch.faults();
    match frame.engine {
        Engine::Event if frame.resources > 1 => sketch.resources(frame.resources),
        Engine::Event => sketch.tasks(TASKS_PERCENT),
        Engine::Turmoil => sketch.suit_turmoil(),
    }
    sketch.window();
    if frame.engine == Engine::Event {
        sketch.overtakings();
    }
    sketch.versions();
    if frame.engine == Engine::Event {
        sketch.keepers();
        sketch.rights();
    }
    sketch.plan
}

/// Returns the scenario of a file that says nothing.
pub(super) fn unspecified() -> Scenario {
    Scenario {
        schema: 1,
        name: String::new(),
        title: String::new(),
        tags: Vec::new(),
        source: String::new(),
        story: String::new(),
        cluster: Cluster::default(),
        lock: Lock::default(),
        store: Store::default(),
        clients: Vec::new(),
        faults: Vec::new(),
        run: Run::default(),
        expect: Expectations::default(),
        cases: Vec::new(),
        sweep: BTreeMap::new(),
        zip: BTreeMap::new(),
    }
}

fn empty(number: u64) -> Scenario {
    let seeds = SeedRange(number..number.saturating_add(1));
    Scenario {
        name: format!("plan-{number}"),
        title: format!("Plan {number}"),
        run: Run { seeds, ..Run::default() },
        ..unspecified()
    }
}

/// A plan that is being drawn.
struct Sketch {
    dice: Dice,
    /// Assumptions that this plan may break.
    broken: Assumptions,
    /// True if the clients run the production client, which has more ways to acquire.
    is_ours: bool,
    /// Latest instant of a fault and of a first step.
    horizon: Span,
    plan: Scenario,
}

impl Sketch {
    /// Returns the TTL times `tenths` / 10.
    fn ttls(&self, tenths: u64) -> Span {
        Span(self.plan.lock.ttl.0 / 10 * tenths)
    }

    /// Returns a length from `min` to `max`; now and then a range of them, from which the run draws.
    fn lengths(&mut self, min: Span, max: Span) -> SpanRange {
        let one = self.dice.length(min, max);
        let other = if self.dice.percent(15) { self.dice.length(min, max) } else { one };
        SpanRange { min: one.min(other), max: one.max(other) }
    }

    /// Returns a number from `min` to `max`, or a range of them, from which the run draws.
    fn counts(&mut self, min: u32, max: u32) -> CountRange {
        let mut count = || self.dice.between(min.into(), max.into()) as u32;
        let (one, other) = (count(), count());
        CountRange { min: one.min(other), max: one.max(other) }
    }

    /// Takes away what the engine `turmoil` cannot play of the lock and its clients.
    fn suit_turmoil(&mut self) {
        let Scenario { lock, cluster, clients, faults, .. } = &mut self.plan;
        lock.plain_extensions = cluster.server.extends_plainly();
        lock.node_timeout = lock.node_timeout.max(TIMEOUT_OF_TURMOIL);
        clients.iter_mut().for_each(|client| client.deaf = false);
        faults.retain(|fault| match &fault.at {
            At::Point(point) => steps::is_seen_by_turmoil(point.before),
            At::Time(_) => true,
        });
    }

    fn may_break(&self, assumption: Assumption) -> bool {
        self.broken.has(assumption)
    }

    fn names_of_nodes(&self) -> Vec<String> {
        self.plan.cluster.nodes.clone()
    }

    fn names_of_clients(&self) -> Vec<String> {
        self.plan.clients.iter().map(|client| client.id.clone()).collect()
    }

    fn names_of_replicas(&self) -> Vec<String> {
        self.plan.cluster.replicas.iter().map(|replica| replica.id.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::limits;
    use super::*;
    use lock_judge::scenario::{At, Client, FaultKind, RESOURCES_MAX, Rights, Step, complaints};

    fn frames() -> Vec<Frame> {
        let mut frames = vec![Frame::default()];
        for assumption in Assumption::ALL {
            frames.push(Frame { broken: [assumption].into_iter().collect(), ..Frame::default() });
        }
        for subject in ["getset", "redlock-literal", "unique-id"] {
            frames.push(Frame { subject: String::from(subject), ..Frame::default() });
        }
        for subject in ["redlock-literal", "setnx", "getset", "php-redlock"] {
            frames.push(Frame {
                subject: String::from(subject),
                broken: Assumption::ALL.into_iter().collect(),
                ..Frame::default()
            });
        }
        frames.push(Frame { engine: Engine::Turmoil, ..Frame::default() });
        frames.push(Frame {
            broken: Assumption::ALL.into_iter().collect(),
            resources: RESOURCES_MAX,
            ..Frame::default()
        });
        frames
    }

    #[test]
    fn every_plan_is_valid_and_breaks_no_more_than_allowed() {
        for frame in frames() {
            for number in 0..1_500 {
                let plan = plan(&frame, 7, number);
                assert_eq!(complaints(&plan), [], "plan {number} of {frame:?}");
                assert!(limits::are_kept(&plan), "plan {number} of {frame:?}");
                let broken = Assumptions::broken_by(&plan);
                assert!(broken.is_within(frame.broken), "plan {number} of {frame:?}: {broken}");
            }
        }
    }

    #[test]
    fn a_plan_depends_on_seed_and_number_alone() {
        let frame = Frame::default();
        assert_eq!(plan(&frame, 1, 5), plan(&frame, 1, 5));
        assert_ne!(plan(&frame, 1, 5).clients, plan(&frame, 2, 5).clients);
    }

    #[test]
    fn every_feature_of_clients_and_faults_is_drawn() {
        let frame = Frame { broken: Assumption::ALL.into_iter().collect(), ..Frame::default() };
        let plans: Vec<Scenario> = (0..600).map(|number| plan(&frame, 3, number)).collect();
        let has = |is: fn(&Scenario) -> bool| plans.iter().any(is);
        assert!(has(|it| it.clients.len() == 16));
        assert!(has(|it| it.faults.iter().any(|fault| fault.times.is_some())));
        assert!(has(|it| it.faults.iter().any(|fault| !fault.chance.is_certain())));
        assert!(has(|it| it.clients.iter().any(|client| client.copy_of.is_some())));
        assert!(has(|it| !it.cluster.aliases.is_empty()));
        assert!(has(|it| it.cluster.rights == Rights::NoInfo));
        assert!(has(|it| it.cluster.node.values().any(|node| node.rights.is_some())));
        assert!(has(|it| it.clients.iter().any(|client| client.task_of.is_some())));
        assert!(has(|it| it.faults.iter().any(|fault| match &fault.at {
            At::Point(point) => point.client == "t1",
            At::Time(_) => false,
        })));
        let has_step = |is: fn(&Step) -> bool| {
            plans.iter().flat_map(|it| &it.clients).flat_map(Client::all_steps).any(is)
        };
        assert!(has_step(|it| it.repeat.is_some()));
        assert!(has_step(|it| it.sleep.is_some_and(|sleep| !sleep.is_exact())));
        assert!(has_step(|it| {
            let every = it.extend.and_then(|extend| extend.every);
            every.is_some_and(|every| !every.is_exact())
        }));
    }

    #[test]
    fn clients_of_one_membership_may_list_it_in_another_order() {
        let lists = |number| {
            let plan = plan(&Frame::default(), 3, number);
            let lists = plan.client_ids().map(|client| plan.members(client));
            (lists.collect::<BTreeSet<_>>().len(), plan.cluster.nodes.len())
        };
        assert!((0..300).map(lists).any(|(lists, nodes)| lists > 1 && nodes > 1));
    }

    #[test]
    fn every_kind_of_fault_is_drawn() {
        let frame = Frame { broken: Assumption::ALL.into_iter().collect(), ..Frame::default() };
        let plans = (0..3_000).map(|number| plan(&frame, 3, number));
        let faults = plans.flat_map(|plan| plan.faults);
        let kinds: BTreeSet<&str> = faults.map(|fault| fault.kind.descriptor().name).collect();
        let missing: Vec<_> = FaultKind::NAMES.iter().filter(|it| !kinds.contains(*it)).collect();
        assert_eq!(missing, [] as [&&str; 0]);
    }
}
