//! Draws the clients and their work.

use lock_judge::scenario::{
    self, Acquire, Client, Connections, Enter, Extend, Hold, Nothing, Span, SpanRange, Step, Write,
};

use super::Sketch;
use crate::explore::assumptions::Assumption;

/// Most rounds of acquiring and working that a client takes.
const ROUNDS_MAX: u64 = 4;

impl Sketch {
    pub(super) fn clients(&mut self, subject: &str) {
        let count = self.dice.weighted(&[(4, 2), (3, 3), (1, 1), (1, 4), (1, 5), (1, 8)]);
        for number in 1..=count {
            let own = Client {
                id: format!("c{number}"),
                subject: subject.to_owned(),
                connections: self.connections(subject),
                ttl: self.own_ttl(),
                nodes: self.own_nodes(),
                deaf: self.is_ours && self.dice.percent(15),
                steps: Vec::new(),
            };
            self.plan.clients.push(own);
            self.rounds();
        }
        self.differences();
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

    /// Returns a list of nodes that is the client's own, in a plan that may break the assumption that
    /// there is one.
    fn own_nodes(&mut self) -> Option<Vec<String>> {
        let has_own = self.may_break(Assumption::Membership) && self.dice.percent(50);
        let nodes = self.names_of_nodes();
        has_own.then(|| self.dice.some(&nodes))
    }

    fn own_ttl(&mut self) -> Option<Span> {
        let longest_ms = self.plan.lock.fleet_max_ttl.unwrap_or(self.plan.lock.ttl).0 / 1_000_000;
        self.dice
            .percent(20)
            .then(|| Span::from_ms(self.dice.between(longest_ms.div_ceil(2), longest_ms)))
    }

    /// Adds rounds of steps to the newest client.
    fn rounds(&mut self) {
        let first = if self.dice.percent(50) { Span(0) } else { self.dice.instant(self.horizon) };
        for round in 0..self.dice.between(1, ROUNDS_MAX) {
            let acquire = self.acquire();
            let begin = (round == 0).then_some(SpanRange::exactly(first));
            self.step(Step { at: begin, acquire: Some(acquire), ..Step::default() });
            for _ in 0..self.dice.between(1, 2) {
                self.work();
            }
            if self.dice.percent(80) {
                self.step(Step { release: Some(Nothing {}), ..Step::default() });
            }
            if self.dice.percent(30) {
                let sleep = SpanRange::exactly(self.dice.length(Span::from_ms(1), self.ttls(10)));
                self.step(Step { sleep: Some(sleep), ..Step::default() });
            }
        }
    }

    fn step(&mut self, step: Step) {
        let client = self.plan.clients.last_mut().expect("steps are drawn for a client");
        client.steps.push(step);
    }

    fn acquire(&mut self) -> Acquire {
        let mut acquire = Acquire::default();
        match self.dice.below(10) {
            0..4 => acquire.wait = Some(self.dice.length(self.ttls(1), self.ttls(25))),
            4..7 => acquire.attempts = Some(self.dice.between(1, 6) as u32),
            7 if self.is_ours => acquire.at_once = true,
            _ => {}
        }
        if self.is_ours && self.dice.percent(20) {
            acquire.keep_alive = Some(self.dice.length(self.ttls(1), self.ttls(40)));
        }
        acquire
    }

    /// Adds one piece of work under the lease.
    fn work(&mut self) {
        match self.dice.below(10) {
            0..3 => {
                let length = SpanRange::exactly(self.dice.length(self.ttls(0), self.ttls(20)));
                let or_lost = self.dice.percent(80);
                let hold = Some(Hold::For { length, or_lost });
                self.step(Step { hold, ..Step::default() });
            }
            3 => self.step(Step { hold: Some(Hold::UntilDeadline), ..Step::default() }),
            4..7 => self.extend(),
            7 => self.write(),
            8 => self.step(Step { check: Some(Nothing {}), ..Step::default() }),
            _ => {
                let sleep = SpanRange::exactly(self.dice.length(Span::from_ms(1), self.ttls(12)));
                self.step(Step { sleep: Some(sleep), ..Step::default() });
            }
        }
    }

    fn extend(&mut self) {
        let longest = self.plan.lock.fleet_max_ttl.unwrap_or(self.plan.lock.ttl).0 / 1_000_000;
        let shorter = self.dice.percent(25);
        let ttl = shorter.then(|| Span::from_ms(self.dice.between(longest / 3, longest)));
        let every = Some(self.dice.length(Span::from_ms(1), self.ttls(11)));
        let times = Some(self.dice.between(1, 4) as u32);
        self.step(Step { extend: Some(Extend { ttl, every, times }), ..Step::default() });
    }

    /// Adds a section that reads and writes the resource.
    fn write(&mut self) {
        let unchecked = self.dice.percent(10);
        self.step(Step { enter: Some(Enter { unchecked }), ..Step::default() });
        self.step(Step { read: Some(Nothing {}), ..Step::default() });
        if self.dice.percent(40) {
            let sleep = SpanRange::exactly(self.dice.length(Span::from_ms(1), self.ttls(8)));
            self.step(Step { sleep: Some(sleep), ..Step::default() });
        }
        let blind = self.dice.percent(10);
        self.step(Step { write: Some(Write { blind }), ..Step::default() });
        self.step(Step { leave: Some(Nothing {}), ..Step::default() });
    }
}
