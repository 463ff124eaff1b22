//! Every critical section lies within a belief of its lease, in true time: no application works on
//! without the lock, even if no other client takes it meanwhile.
//!
//! [`Beliefs`](super::beliefs::Beliefs) defines beliefs. A section may end at the instant at which
//! the belief ends. Between two events only clocks end beliefs. Therefore it is enough to check, at
//! each event and before it is folded in, the time since the event before.
//!
//! Blame: the lease's clock, if it ran ahead and ended the lease early; otherwise a stop of the
//! process during which the belief ended, if the section would have ended in time without the stop;
//! otherwise the application, which did not check or did not stop. Only the client is to blame if
//! the lease was already over when it was decided.

use super::blame;
use super::facts::Facts;
use super::verdict::{Judgement, Violation};
use crate::history::{AttemptId, ClientId};

/// Sections of a run.
#[derive(Debug)]
pub(super) struct SectionWithinLease {
    inside: Vec<AttemptId>,
    found: Judgement,
    /// Section of the recorded violation, as long as it goes on without its lease.
    exposed: Option<AttemptId>,
}

impl SectionWithinLease {
    pub(super) fn new() -> Self {
        Self { inside: Vec::with_capacity(16), found: Judgement::Vacuous, exposed: None }
    }

    pub(super) fn reset(&mut self) {
        self.inside.clear();
        (self.found, self.exposed) = (Judgement::Vacuous, None);
    }

    pub(super) fn entered(&mut self, id: AttemptId) {
        self.found.held();
        if !self.inside.contains(&id) {
            self.inside.push(id);
        }
    }

    pub(super) fn left(&mut self, id: AttemptId) {
        self.inside.retain(|&it| it != id);
        self.exposed.take_if(|it| *it == id);
    }

    pub(super) fn killed(&mut self, client: ClientId) {
        self.inside.retain(|it| it.client != client);
        self.exposed.take_if(|it| it.client == client);
    }

    /// Judges the time until `to_ns`, which is later than now, in which no event happens.
    #[inline]
    pub(super) fn passes(&mut self, facts: &Facts, to_ns: u64) {
        if !self.inside.is_empty() {
            self.look(facts, to_ns);
        }
    }

    pub(super) fn judge(&self) -> Judgement {
        self.found
    }

    fn look(&mut self, facts: &Facts, to_ns: u64) {
        for &id in &self.inside {
            let from_ns =
                facts.beliefs.until_ns(id).map_or(facts.now_ns, |it| it.max(facts.now_ns));
            if from_ns > facts.now_ns {
                // The lease is believed until then.
                self.exposed.take_if(|it| *it == id);
            }
            if from_ns >= to_ns {
                continue;
            }
            if self.exposed != Some(id) && !self.found.is_final() {
                let blamed = blame::of_exposure(facts, id, from_ns);
                if self.found.violated(Violation::of_one(id, from_ns, blamed)) {
                    self.exposed = Some(id);
                }
            }
            if let Judgement::Violated(found) = &mut self.found
                && self.exposed == Some(id)
            {
                found.to_ns = to_ns;
                found.blamed = blame::of_lasting_use(facts, found.blamed, &[id], to_ns);
            }
        }
    }
}
