//! Draws the clients and their work.

use lock_judge::ids::NODES_MAX;
use lock_judge::scenario::{
    self, Acquire, At, Client, Connections, Enter, Extend, Hold, Nothing, OURS, Repeat, Span,
    SpanRange, Step, Write,
};

use super::Sketch;
use crate::explore::assumptions::Assumption;
use crate::subject::kind;

/// Most rounds of acquiring and working that a client takes, besides the repetitions of a loop.
const ROUNDS_MAX: u64 = 4;

/// Number of clients from which on each takes at most half as many rounds.
const CROWD: u64 = 9;

const CLIENTS_MAX: u64 = 16;

/// Most tasks that a plan adds to the processes of its clients.
const TASKS_MAX: u64 = 3;

impl Sketch {
    pub(super) fn clients(&mut self, subject: &str) {
        let count =
            self.dice.weighted(&[(8, 2), (6, 3), (2, 1), (2, 4), (2, 5), (2, 8), (1, CROWD)]);
        let count = if count == CROWD { self.dice.between(CROWD, CLIENTS_MAX) } else { count };
        let rounds = if count < CROWD { ROUNDS_MAX } else { ROUNDS_MAX / 2 };
        for number in 1..=count {
            let own = Client {
                id: format!("c{number}"),
                task_of: None,
                resource: None,
                subject: subject.to_owned(),
                connections: self.connections(subject),
                ttl: self.own_ttl(),
                nodes: None,
                copy_of: None,
                deaf: self.is_ours && self.dice.percent(15),
                steps: Vec::new(),
            };
            self.plan.clients.push(own);
            self.rounds(rounds);
        }
        self.lists(subject);
        self.copies();
    }

    /// Adds tasks to processes in `percent` of the plans, mostly to one, and lets faults wait for their
    /// attempts. Tasks come last and take nothing from the other draws, so plans without them are as
    /// they would be if there were no tasks.
    pub(super) fn tasks(&mut self, percent: u64) {
        let count = self.plan.clients.len() as u64;
        if !self.is_ours || count + TASKS_MAX > CLIENTS_MAX || !self.dice.percent(percent) {
            return;
        }
        let clients = self.plan.clients.iter();
        let copied = clients.clone().filter_map(|client| client.copy_of.clone());
        let copied: Vec<String> = copied.collect();
        let alone = clients.filter(|it| it.copy_of.is_none() && !copied.contains(&it.id));
        let processes: Vec<String> = alone.map(|client| client.id.clone()).collect();
        if processes.is_empty() {
            return;
        }
        let mut process = self.dice.pick(&processes);
        for number in 1..=self.dice.between(1, TASKS_MAX) {
            if self.dice.percent(25) {
                process = self.dice.pick(&processes);
            }
            let id = format!("t{number}");
            let ttl = self.own_ttl();
            self.plan.clients.push(Client {
                id: id.clone(),
                task_of: Some(process.clone()),
                resource: None,
                subject: String::from(OURS),
                connections: None,
                ttl,
                nodes: None,
                copy_of: None,
                deaf: false,
                steps: Vec::new(),
            });
            self.rounds(ROUNDS_MAX / 2);
            self.wait_for_attempts_of(&id, &process);
        }
    }

    /// Lets some of the faults that wait for an attempt of `process` wait for one of `task`.
    fn wait_for_attempts_of(&mut self, task: &str, process: &str) {
        for fault in &mut self.plan.faults {
            if let At::Point(point) = &mut fault.at
                && point.client == process
                && self.dice.percent(40)
            {
                point.client = task.to_owned();
            }
        }
    }

    fn connections(&mut self, subject: &str) -> Option<Connections> {
        let owns_them = scenario::subject(subject).is_some_and(|it| it.owns_connections);
        if owns_them || self.dice.percent(60) {
            return None;
        }
        let all =
            [Connections::FreshPerCommand, Connections::Pooled, Connections::SecondForRelease];
        Some(self.dice.pick(&all))
    }

    /// Draws the clients' lists of nodes. All have the same nodes, in any order, unless the plan may
    /// break the assumption that they do. For a lock on one node all have the same first node.
    fn lists(&mut self, subject: &str) {
        let kind = kind(subject);
        // A service of its own is at one node.
        if kind.is_some_and(|it| it.needs_ideal_server()) {
            return;
        }
        let uses_one_node = kind.is_some_and(|it| it.uses_one_node());
        let nodes = self.names_of_nodes();
        let has_spare = self.dice.percent(10);
        let count = nodes.len() as u64;
        let count = if has_spare { self.dice.between(1, count) } else { count };
        let shared = self.dice.several(&nodes, count);
        let has_all = shared.len() == nodes.len();
        // A client without a list of its own has the nodes in the cluster's order.
        let first = if has_all { nodes[0].clone() } else { shared[0].clone() };
        for client in 0..self.plan.clients.len() {
            let own = if self.may_break(Assumption::Membership) && self.dice.percent(50) {
                Some(self.another_list(&nodes))
            } else if !has_all || self.dice.percent(15) {
                let mut list = self.dice.several(&shared, count);
                if uses_one_node {
                    list.sort_by_key(|node| *node != first);
                }
                Some(list)
            } else {
                None
            };
            self.plan.clients[client].nodes = own;
        }
    }

    /// Returns any list of nodes; now and then one that has two names of a node.
    fn another_list(&mut self, nodes: &[String]) -> Vec<String> {
        let mut list = self.dice.some(nodes);
        if list.len() < NODES_MAX && self.dice.percent(25) {
            let node = self.dice.pick(&list);
            let alias = format!("{node}-too");
            list.push(alias.clone());
            self.plan.cluster.aliases.insert(alias, node);
        }
        list
    }

    /// Lets a client draw another's random numbers, in a plan that may break the assumption that each
    /// has its own.
    fn copies(&mut self) {
        let clients = self.plan.clients.len() as u64;
        if clients > 1 && self.may_break(Assumption::Randomness) && self.dice.percent(70) {
            let copy = self.dice.between(1, clients - 1) as usize;
            let original = self.dice.below(copy as u64) as usize;
            self.plan.clients[copy].copy_of = Some(self.plan.clients[original].id.clone());
        }
    }

    fn own_ttl(&mut self) -> Option<Span> {
        let longest_ms = self.plan.lock.fleet_max_ttl.unwrap_or(self.plan.lock.ttl).0 / 1_000_000;
        self.dice
            .percent(20)
            .then(|| Span::from_ms(self.dice.between(longest_ms.div_ceil(2), longest_ms)))
    }

    /// Adds rounds of steps to the newest client; some of them are loops.
    fn rounds(&mut self, most: u64) {
        let first = if self.dice.percent(50) { Span(0) } else { self.dice.instant(self.horizon) };
        for round in 0..self.dice.between(1, most) {
            let begin = (round == 0).then_some(SpanRange::exactly(first));
            let before = self.steps().len();
            self.round(begin, first);
            if self.dice.percent(12) {
                let times = self.counts(2, 4);
                let steps = self.steps().split_off(before);
                self.step(Step { repeat: Some(Repeat { times, steps }), ..Step::default() });
            }
        }
    }

    /// Adds a round, which begins at `begin` or later, but not before `earliest`.
    fn round(&mut self, begin: Option<SpanRange>, earliest: Span) {
        let acquire = self.acquire(earliest);
        self.step(Step { at: begin, acquire: Some(acquire), ..Step::default() });
        for _ in 0..self.dice.between(1, 2) {
            self.work();
        }
        if self.dice.percent(80) {
            self.step(Step { release: Some(Nothing {}), ..Step::default() });
        }
        if self.dice.percent(30) {
            self.sleep(self.ttls(10));
        }
    }

    fn sleep(&mut self, longest: Span) {
        let sleep = Some(self.lengths(Span::from_ms(1), longest));
        self.step(Step { sleep, ..Step::default() });
    }

    /// Returns the steps of the newest client.
    fn steps(&mut self) -> &mut Vec<Step> {
        &mut self.plan.clients.last_mut().expect("steps are drawn for a client").steps
    }

    fn step(&mut self, step: Step) {
        self.steps().push(step);
    }

    /// Returns an acquisition that begins at `earliest` or later.
    fn acquire(&mut self, earliest: Span) -> Acquire {
        let mut acquire = Acquire::default();
        match self.dice.below(10) {
            0..4 => acquire.wait = Some(self.lengths(self.ttls(1), self.ttls(25))),
            4..7 => acquire.attempts = Some(self.dice.between(1, 6) as u32),
            7 if self.is_ours => acquire.at_once = true,
            8 => {
                let length = self.dice.length(Span::from_ms(1), self.ttls(25));
                acquire.until = Some(Span(earliest.0 + length.0));
            }
            _ => {}
        }
        if self.is_ours && self.dice.percent(20) {
            let at_most = self.dice.length(self.ttls(1), self.ttls(40));
            let client = self.plan.clients.last().expect("steps are drawn for a client");
            acquire.keep_alive = Some(at_most).filter(|it| *it > self.plan.ttl_of(client));
        }
        acquire
    }

    /// Adds one piece of work under the lease.
    fn work(&mut self) {
        match self.dice.below(10) {
            0..3 => {
                let length = self.lengths(self.ttls(0), self.ttls(20));
                let or_lost = self.dice.percent(80);
                let hold = Some(Hold::For { length, or_lost });
                self.step(Step { hold, ..Step::default() });
            }
            3 => self.step(Step { hold: Some(Hold::UntilDeadline), ..Step::default() }),
            4..7 => self.extend(),
            7 => self.write(),
            8 => self.step(Step { check: Some(Nothing {}), ..Step::default() }),
            _ => self.sleep(self.ttls(12)),
        }
    }

    fn extend(&mut self) {
        let longest = self.plan.lock.fleet_max_ttl.unwrap_or(self.plan.lock.ttl).0 / 1_000_000;
        let shorter = self.dice.percent(25);
        let ttl = shorter.then(|| Span::from_ms(self.dice.between(longest / 3, longest)));
        let every = Some(self.lengths(Span::from_ms(1), self.ttls(11)));
        let times = Some(self.dice.between(1, 4) as u32);
        self.step(Step { extend: Some(Extend { ttl, every, times }), ..Step::default() });
    }

    /// Adds a section that reads and writes the resource.
    fn write(&mut self) {
        let unchecked = self.dice.percent(10);
        self.step(Step { enter: Some(Enter { unchecked }), ..Step::default() });
        self.step(Step { read: Some(Nothing {}), ..Step::default() });
        if self.dice.percent(40) {
            self.sleep(self.ttls(8));
        }
        let blind = self.dice.percent(10);
        self.step(Step { write: Some(Write { blind }), ..Step::default() });
        self.step(Step { leave: Some(Nothing {}), ..Step::default() });
    }
}
