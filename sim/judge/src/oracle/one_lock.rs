//! The oracle of one lock: an online fold over the events that concern it.

mod fold;

use super::Counters;
use super::continuity::Continuity;
use super::deadlock_free::DeadlockFree;
use super::exclusive_section::ExclusiveSection;
use super::facts::Facts;
use super::fault_tolerant::FaultTolerant;
use super::fenced_order::FencedOrder;
use super::measures::Measures;
use super::no_lost_update::NoLostUpdate;
use super::owner_only::OwnerOnly;
use super::section_within_lease::SectionWithinLease;
use super::sound_grant::SoundGrant;
use super::sound_loss::SoundLoss;
use super::sound_refusal::SoundRefusal;
use super::sound_votes::SoundVotes;
use super::tidy::Tidy;
use super::writes::Writes;
use super::{Measured, Verdicts, blame, mutual_exclusion};
use crate::history::{ClientId, Event, EventKind, FaultIds, HostId, NodeId};
use crate::ids::ResourceId;
use crate::scenario::{Property, Scenario};

/// Online fold over the events of one run that concern one lock.
#[derive(Debug)]
pub(super) struct OneLock {
    counters: Counters,
    faults_begun: FaultIds,
    measures: Measures,
    /// In a box, because an oracle is moved several times before a run begins.
    facts: Box<Facts>,
    writes: Writes,
    exclusive_section: ExclusiveSection,
    section_within_lease: SectionWithinLease,
    sound_grant: SoundGrant,
    owner_only: OwnerOnly,
    continuity: Continuity,
    no_lost_update: NoLostUpdate,
    fenced_order: FencedOrder,
    tidy: Tidy,
    deadlock_free: DeadlockFree,
    fault_tolerant: FaultTolerant,
    sound_refusal: SoundRefusal,
    sound_loss: SoundLoss,
    sound_votes: SoundVotes,
}

impl OneLock {
    /// Creates the oracle of the lock on `resource` for runs of `scenario`.
    ///
    /// # Panics
    ///
    /// If the scenario has more nodes or clients than a valid scenario may have.
    pub(super) fn new(scenario: &Scenario, resource: ResourceId) -> Self {
        Self {
            counters: Counters::default(),
            faults_begun: FaultIds::EMPTY,
            measures: Measures::new(),
            facts: Box::new(Facts::new(scenario, resource)),
            writes: Writes::new(),
            exclusive_section: ExclusiveSection::new(),
            section_within_lease: SectionWithinLease::new(),
            sound_grant: SoundGrant::default(),
            owner_only: OwnerOnly::default(),
            continuity: Continuity::new(),
            no_lost_update: NoLostUpdate::new(),
            fenced_order: FencedOrder::new(),
            tidy: Tidy::new(),
            deadlock_free: DeadlockFree::new(),
            fault_tolerant: FaultTolerant::default(),
            sound_refusal: SoundRefusal::default(),
            sound_loss: SoundLoss::new(),
            sound_votes: SoundVotes::new(),
        }
    }

    /// Prepares the oracle for another run and keeps its allocations.
    pub(super) fn reset(&mut self) {
        self.counters = Counters::default();
        self.faults_begun = FaultIds::EMPTY;
        self.measures.reset();
        self.facts.reset();
        self.writes.reset();
        self.exclusive_section.reset();
        self.section_within_lease.reset();
        self.sound_grant.reset();
        self.owner_only.reset();
        self.continuity.reset();
        self.no_lost_update.reset();
        self.fenced_order.reset();
        self.tidy.reset();
        self.deadlock_free.reset();
        self.fault_tolerant.reset();
        self.sound_refusal.reset();
        self.sound_loss.reset();
        self.sound_votes.reset();
    }

    /// Folds in an event that is about this lock, or about every lock.
    pub(super) fn observe(&mut self, event: &Event) {
        self.advance(event.at_ns);
        self.measures.observe(&self.facts, &event.kind);
        match event.kind {
            EventKind::Written { .. }
            | EventKind::Executed { .. }
            | EventKind::Delivered { .. }
            | EventKind::KeyEnded { .. }
            | EventKind::KeyReturned { .. } => self.observe_command(&event.kind),
            EventKind::Clock { host, clock, local_ns, rate_ppb } => {
                self.facts.clock(host, clock, local_ns, rate_ppb);
            }
            EventKind::Stopped { host, .. }
            | EventKind::Continued { host }
            | EventKind::Killed { host, .. } => self.observe_process(host, &event.kind),
            EventKind::NodeUp { node, .. }
            | EventKind::NodeDown { node, .. }
            | EventKind::NodeStalled { node }
            | EventKind::NodeUnstalled { node } => self.observe_node(node, &event.kind),
            EventKind::FaultBegan { fault } => {
                self.faults_begun.insert(fault);
                self.facts.reach.fault_began(fault, self.facts.now_ns);
                self.facts.pushes.fault_began(fault, self.facts.now_ns);
                self.sound_refusal.fault_began();
                self.tidy.reconsider_all(&self.facts);
            }
            EventKind::FaultEnded { fault } => {
                self.facts.reach.fault_ended(fault, self.facts.now_ns);
                self.tidy.reconsider_all(&self.facts);
            }
            EventKind::Eligible { client, node, from_local_ns } => {
                self.facts.eligible(client, node, from_local_ns);
            }
            EventKind::Healed { .. } => self.deadlock_free.healed(&self.facts),
            EventKind::FailedOver { node, host } => {
                self.facts.failed_over(node, host);
                self.tidy.reconsider_all(&self.facts);
            }
            EventKind::Ended => {}
            _ => self.observe_attempt(&event.kind),
        }
    }

    /// Folds in an event about another lock. Both locks have the same connections if one process uses
    /// both, so its commands count for what this lock's clients can reach.
    pub(super) fn observe_neighbour(&mut self, event: &Event) {
        self.advance(event.at_ns);
        match event.kind {
            EventKind::AttemptBegan { attempt, .. } => self.facts.neighbour_began(attempt),
            EventKind::Written { command, attempt, node, op } => {
                self.facts.connection_written((command, op), attempt, node);
                self.facts.neighbour_wrote(attempt, node, op);
            }
            EventKind::Delivered { command, attempt, node, .. } => {
                self.observe_answer_on_connection(command, attempt, node);
            }
            _ => {}
        }
    }

    /// Lets time pass up to the instant of the next event, which is often that of the last.
    #[inline]
    fn advance(&mut self, at_ns: u64) {
        if at_ns > self.facts.now_ns {
            self.pass(at_ns);
        }
    }

    /// Judges and measures the time until `at_ns`, in which no event happens.
    #[inline(never)]
    fn pass(&mut self, at_ns: u64) {
        self.section_within_lease.passes(&self.facts, at_ns);
        self.measures.passes(&self.facts, at_ns);
        self.facts.now_ns = at_ns;
    }

    /// Returns true if `client` uses this lock, or probes it.
    pub(super) fn is_used_by(&self, client: ClientId) -> bool {
        self.facts.setting.uses_this_lock(client)
    }

    /// Returns the verdicts. Call it after [`EventKind::Ended`] has been observed.
    pub(super) fn finish(&mut self) -> Verdicts {
        self.facts.beliefs.finish(self.facts.now_ns);
        let facts = &self.facts;
        let mut verdicts = Verdicts::default();
        for property in Property::ALL {
            let found = match property {
                Property::MutualExclusion => mutual_exclusion::judge(facts),
                Property::ExclusiveSection => self.exclusive_section.judge(facts),
                Property::SectionWithinLease => self.section_within_lease.judge(),
                Property::SoundGrant => self.sound_grant.judge(),
                Property::OwnerOnly => self.owner_only.judge(),
                Property::Continuity => self.continuity.judge(),
                Property::NoLostUpdate => self.no_lost_update.judge(),
                Property::FencedOrder => self.fenced_order.judge(),
                Property::Tidy => self.tidy.judge(facts),
                Property::DeadlockFree => self.deadlock_free.judge(facts),
                Property::FaultTolerant => self.fault_tolerant.judge(facts),
                Property::SoundRefusal => self.sound_refusal.judge(facts),
                Property::SoundLoss => self.sound_loss.judge(facts),
                Property::SoundVotes => self.sound_votes.judge(facts),
            };
            verdicts.set(property, blame::of_copies(facts, found));
        }
        verdicts
    }

    /// Returns the counts of events of the run.
    pub(super) fn counters(&self) -> Counters {
        self.counters
    }

    /// Returns the faults that began.
    pub(super) fn faults_begun(&self) -> FaultIds {
        self.faults_begun
    }

    /// Returns the quantities of the run.
    pub(super) fn measured(&self) -> Measured {
        self.measures.measured()
    }

    /// Returns the time until which an otherwise idle run must last so that the keys left on nodes
    /// are judged; `None` if no such key is left.
    pub(super) fn must_last_until_ns(&self) -> Option<u64> {
        self.tidy.overdue_from_ns()
    }

    fn observe_process(&mut self, host: HostId, kind: &EventKind) {
        let facts = &mut self.facts;
        for client in facts.setting.clients_on(host).iter() {
            match kind {
                EventKind::Stopped { .. } => facts.stopped(client),
                EventKind::Continued { .. } => facts.continued(client),
                _ => {
                    self.sound_loss.killed(facts, client);
                    self.sound_votes.killed(facts, client);
                    facts.processes.killed(client);
                    facts.beliefs.end_all_of(host, facts.now_ns);
                    self.exclusive_section.killed(facts, client);
                    self.section_within_lease.killed(client);
                    self.deadlock_free.died(facts);
                }
            }
        }
        self.tidy.reconsider_all(&self.facts);
    }

    fn observe_node(&mut self, node: NodeId, kind: &EventKind) {
        let facts = &mut self.facts;
        if !facts.setting.has_node(node) {
            return;
        }
        match kind {
            EventKind::NodeUp { incarnation: 0, .. } if facts.now_ns == 0 => {}
            EventKind::NodeUp { .. } => facts.restarted(node),
            EventKind::NodeDown { .. } => facts.reach.node_down(node),
            EventKind::NodeStalled { .. } => facts.reach.node_stalled(node),
            _ => facts.reach.node_unstalled(node, facts.now_ns),
        }
        self.tidy.reconsider(&self.facts, node);
    }
}
