//! Measures the quantities of a run, beside the properties. Each file below has one group of them.
//!
//! Between two events only clocks end beliefs. Therefore each measure sums up, at each event and
//! before it is folded in, the time since the event before. What happens at one instant takes no
//! time.

mod beliefs;
mod bypasses;
mod effort;
mod polls;
mod reads;
mod sections;
mod votes;
mod waits;

use self::beliefs::Beliefs;
use self::bypasses::Bypasses;
use self::effort::Effort;
use self::polls::{Polls, client_of};
use self::reads::Reads;
use self::sections::Sections;
use self::votes::Votes;
use self::waits::Waits;
use super::facts::Facts;
use super::measured::Measured;
use crate::history::{AttemptId, ClientId, EventKind, NodeId, OpKind, Settlement, Writer};

/// Measures of a run so far.
#[derive(Debug)]
pub(super) struct Measures {
    beliefs: Beliefs,
    bypasses: Bypasses,
    effort: Effort,
    polls: Polls,
    reads: Reads,
    sections: Sections,
    votes: Votes,
    waits: Waits,
}

impl Measures {
    pub(super) fn new() -> Self {
        Self {
            beliefs: Beliefs::default(),
            bypasses: Bypasses::new(),
            effort: Effort::default(),
            polls: Polls::new(),
            reads: Reads::new(),
            sections: Sections::new(),
            votes: Votes::new(),
            waits: Waits::new(),
        }
    }

    pub(super) fn reset(&mut self) {
        self.beliefs = Beliefs::default();
        self.bypasses = Bypasses::new();
        self.effort = Effort::default();
        self.polls.reset();
        self.reads.reset();
        self.sections.reset();
        self.votes.reset();
        self.waits = Waits::new();
    }

    /// Measures the time until `to_ns`, which is later than now, in which no event happens.
    #[inline]
    pub(super) fn passes(&mut self, facts: &Facts, to_ns: u64) {
        let held_ns = self.beliefs.passes(facts, to_ns);
        self.sections.passes(facts, to_ns);
        self.votes.passes(facts, to_ns);
        self.waits.passes(held_ns, to_ns);
    }

    /// Folds in an event; each measure is told only of the events that it knows. `facts` are those at
    /// its time.
    #[inline]
    pub(super) fn observe(&mut self, facts: &Facts, kind: &EventKind) {
        let now_ns = facts.now_ns;
        match *kind {
            EventKind::Written { attempt, node, op, .. } => {
                self.written(facts, attempt.client, node, op);
            }
            EventKind::Executed { attempt, changed: true, .. } => {
                self.changes(now_ns, Some(attempt.client));
            }
            EventKind::KeyEnded { writer, .. } => self.changes(now_ns, client_of(writer)),
            EventKind::Clock { .. }
            | EventKind::NodeUp { .. }
            | EventKind::NodeDown { .. }
            | EventKind::NodeStalled { .. }
            | EventKind::NodeUnstalled { .. }
            | EventKind::FailedOver { .. }
            | EventKind::Continued { .. }
            | EventKind::KeyReturned { .. } => self.changes(now_ns, None),
            EventKind::FaultBegan { .. } | EventKind::FaultEnded { .. } => {
                self.polls.changes(now_ns, None);
            }
            EventKind::Killed { host, .. } => {
                self.polls.changes(now_ns, None);
                facts.setting.clients_on(host).iter().for_each(|client| self.killed(client));
            }
            EventKind::Eligible { client, .. } => self.polls.eligible(now_ns, client),
            EventKind::Delivered { .. } | EventKind::Executed { .. } => {}
            _ => self.observe_attempt(facts, kind),
        }
    }

    /// Folds in an action of a client or of its application.
    fn observe_attempt(&mut self, facts: &Facts, kind: &EventKind) {
        let is_judged = |id: AttemptId| facts.setting.is_judged(id.client);
        match *kind {
            EventKind::AttemptBegan { attempt, .. } if is_judged(attempt) => {
                self.began(facts, attempt.client);
            }
            EventKind::AttemptSettled { attempt, outcome } if is_judged(attempt) => {
                self.settled(facts, attempt.client, outcome);
            }
            EventKind::ExtensionBegan { attempt, .. } if is_judged(attempt) => {
                self.reads.began(facts.now_ns, attempt.client);
            }
            EventKind::GrantDelivered { attempt, .. } if is_judged(attempt) => {
                self.effort.granted(facts.now_ns);
                self.waits.ended(attempt.client);
                self.bypasses.granted(attempt.client, self.waits.asking);
                self.beliefs.seen();
            }
            EventKind::VotesChanged { attempt, confirmed, .. } if is_judged(attempt) => {
                self.votes.changed(attempt, confirmed);
            }
            EventKind::LostDelivered { attempt, .. } if is_judged(attempt) => {
                self.effort.losses += 1;
                self.votes.ended(attempt);
            }
            EventKind::ReleaseCalled { attempt } => self.votes.ended(attempt),
            EventKind::GaveUp { client } if facts.setting.is_judged(client) => {
                self.polls.gave_up(client);
                self.effort.gave_up();
                self.asks_no_more(client);
            }
            EventKind::SectionEntered { attempt } if is_judged(attempt) => {
                self.sections.entered(attempt);
            }
            EventKind::SectionLeft { attempt } => self.sections.left(attempt),
            _ => {}
        }
    }

    fn began(&mut self, facts: &Facts, client: ClientId) {
        self.polls.began(facts.now_ns, client);
        self.reads.began(facts.now_ns, client);
        self.effort.attempts += 1;
        self.bypasses.asked(client);
        match facts.setting.is_worker(client) {
            true => self.waits.worker_asked(client),
            false => self.waits.asked(client),
        }
    }

    fn written(&mut self, facts: &Facts, client: ClientId, node: NodeId, op: OpKind) {
        if !facts.setting.is_judged(client) {
            return;
        }
        self.effort.commands += 1;
        // Releases of earlier attempts say nothing about the present one.
        if matches!(op, OpKind::Get | OpKind::GetSet | OpKind::Set) {
            self.polls.written(facts, client);
        }
        if matches!(op, OpKind::Look | OpKind::Read) {
            self.reads.written(facts, client, node);
        }
    }

    fn settled(&mut self, facts: &Facts, client: ClientId, outcome: Settlement) {
        self.polls.settled(facts.now_ns, client, outcome);
        let is_worker = facts.setting.is_worker(client);
        if is_worker && outcome != Settlement::Granted {
            self.waits.worker_asked(client);
            self.bypasses.asked(client);
        } else if outcome == Settlement::Cancelled {
            self.asks_no_more(client);
        }
    }

    fn asks_no_more(&mut self, client: ClientId) {
        self.bypasses.ended(client);
        self.waits.ended(client);
    }

    /// Records a change that every client but `by` may react to.
    fn changes(&mut self, now_ns: u64, by: Option<ClientId>) {
        self.polls.changes(now_ns, by);
        self.reads.changes(now_ns);
    }

    fn killed(&mut self, client: ClientId) {
        self.sections.killed(client);
        self.votes.killed(client);
        self.asks_no_more(client);
    }

    /// Returns the quantities of the run so far.
    pub(super) fn measured(&self) -> Measured {
        let mut measured = Measured::default();
        self.beliefs.measure(&mut measured);
        self.bypasses.measure(&mut measured);
        self.effort.measure(&mut measured);
        self.polls.measure(&mut measured);
        self.reads.measure(&mut measured);
        self.sections.measure(&mut measured);
        self.votes.measure(&mut measured);
        self.waits.measure(&mut measured);
        measured
    }
}

/// Returns true if a majority of the nodes has keys of `id`.
fn has_majority(facts: &Facts, id: AttemptId) -> bool {
    let owner = Writer::Attempt(id);
    let nodes = facts.setting.node_ids().filter(|&node| facts.keys.writer(node) == owner);
    let needed = facts.leases.get(id).map_or(0, |it| it.needed);
    facts.setting.votes(id.client, nodes.collect()) >= needed
}
