//! The judge: reads a history, knows the scenario, and knows nothing else.
//!
//! An [`Oracle`] is an online fold over the events of one run. Each property is a file of its own.

mod beliefs;
mod blame;
mod counters;
mod exclusive_section;
mod facts;
mod leases;
mod mutual_exclusion;
mod overlaps;
mod processes;
mod setting;
mod sound_grant;
#[cfg(test)]
mod tests;
mod verdict;

pub use counters::Counters;
pub use verdict::{Blame, Blamed, Judgement, Verdicts, Violation};

use self::exclusive_section::ExclusiveSection;
use self::facts::Facts;
use self::leases::just;
use self::sound_grant::SoundGrant;
use crate::history::{Answer, Event, EventKind, OpKind, Writer};
use crate::scenario::{Property, Scenario};

/// The fold over one run.
#[derive(Debug)]
pub struct Oracle {
    unjudged: Vec<Property>,
    counters: Counters,
    facts: Facts,
    exclusive_section: ExclusiveSection,
    sound_grant: SoundGrant,
}

impl Oracle {
    /// A judge of runs of `scenario`. An engine that cannot record what some properties speak of
    /// names them in `unjudged`.
    ///
    /// # Panics
    ///
    /// If the scenario has more nodes or clients than a valid one may have.
    #[must_use]
    pub fn new(scenario: &Scenario, unjudged: &[Property]) -> Self {
        Self {
            unjudged: unjudged.to_vec(),
            counters: Counters::default(),
            facts: Facts::new(scenario),
            exclusive_section: ExclusiveSection::new(),
            sound_grant: SoundGrant::default(),
        }
    }

    /// Ready for another run, keeping what is allocated.
    pub fn reset(&mut self) {
        self.counters = Counters::default();
        self.facts.reset();
        self.exclusive_section.reset();
        self.sound_grant.reset();
    }

    /// Takes in the next event. What speaks of hosts or attempts that cannot be is passed over.
    pub fn observe(&mut self, event: &Event) {
        self.counters.observe(event);
        let facts = &mut self.facts;
        facts.now_ns = facts.now_ns.max(event.at_ns);
        let now_ns = facts.now_ns;
        match event.kind {
            EventKind::Clock { host, clock, local_ns, rate_ppb } => {
                facts.clock(host, clock, local_ns, rate_ppb);
            }
            EventKind::Stopped { host, .. } => {
                if let Some(client) = facts.setting.client_of(host) {
                    facts.processes.stopped(client, now_ns);
                }
            }
            EventKind::Continued { host } => {
                if let Some(client) = facts.setting.client_of(host) {
                    facts.processes.continued(client, now_ns);
                }
            }
            EventKind::Killed { host, .. } => {
                if let Some(client) = facts.setting.client_of(host) {
                    facts.processes.killed(client);
                    facts.beliefs.end_all_of(host, now_ns);
                    self.exclusive_section.killed(facts, client);
                }
            }
            EventKind::AttemptBegan { attempt, clock, t1_local_ns, ttl_ns, drift_ns, needed } => {
                if let Some(it) = facts.leases.ensure(attempt) {
                    it.began_ns = now_ns;
                    (it.clock, it.t1_local_ns) = (clock, t1_local_ns);
                    (it.ttl_ns, it.drift_ns) = (ttl_ns, drift_ns);
                    it.needed = u32::from(needed);
                }
            }
            EventKind::Written { attempt, .. } => {
                if let Some(it) = facts.leases.ensure(attempt) {
                    it.wrote_early |= it.began_ns == leases::NEVER;
                }
            }
            EventKind::Executed { attempt, node, op: OpKind::Set, answer: Answer::Yes, .. } => {
                facts.set(attempt, node);
            }
            EventKind::Delivered {
                attempt, node, op: OpKind::Set, answer: Answer::Yes, ..
            } => {
                if let Some(it) = facts.leases.get_mut(attempt) {
                    it.confirmed_by |= it.set_on & just(node);
                }
            }
            EventKind::KeyEnded { node, writer: Writer::Attempt(id), cause, by, .. } => {
                facts.key_ended(id, node, cause, by);
            }
            EventKind::GrantDecided { attempt, counted, t2_local_ns, deadline_local_ns } => {
                facts.decided(attempt, counted, deadline_local_ns);
                if facts.setting.is_judged(attempt.client) {
                    self.sound_grant.decided(facts, attempt, t2_local_ns, deadline_local_ns);
                }
            }
            EventKind::GrantDelivered { attempt, clock, deadline_local_ns, .. }
                if facts.setting.is_judged(attempt.client) =>
            {
                facts.delivered(attempt, clock, deadline_local_ns);
            }
            EventKind::ReleaseCalled { attempt } | EventKind::LostDelivered { attempt } => {
                facts.beliefs.end(attempt, now_ns);
            }
            EventKind::Looked { attempt, .. } => facts.looked(attempt),
            EventKind::SectionEntered { attempt } if facts.setting.is_judged(attempt.client) => {
                self.exclusive_section.entered(facts, attempt);
            }
            EventKind::SectionLeft { attempt } => self.exclusive_section.left(facts, attempt),
            _ => {}
        }
    }

    /// What was found. The last event was [`EventKind::Ended`].
    #[must_use]
    pub fn finish(&mut self) -> Verdicts {
        let facts = &mut self.facts;
        facts.beliefs.finish(facts.now_ns);
        let mut verdicts = Verdicts::default();
        verdicts.set(Property::MutualExclusion, mutual_exclusion::judge(facts));
        verdicts.set(Property::ExclusiveSection, self.exclusive_section.judge(facts));
        verdicts.set(Property::SoundGrant, self.sound_grant.judge());
        for &property in &self.unjudged {
            verdicts.set(property, Judgement::Unjudged);
        }
        verdicts
    }

    /// What happened how often.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }
}
