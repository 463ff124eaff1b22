//! Judges histories. The oracle reads only the history and the scenario.
//!
//! An [`Oracle`] is an online fold over the events of one run: one for each lock of the scenario, and
//! their verdicts joined. Each property has a file of its own, and the quantities are measured under
//! `measures`.

mod beliefs;
mod believing;
mod blame;
mod client_rates;
mod connections;
mod continuity;
mod counters;
mod deadlock_free;
mod exclusive_section;
mod extension;
mod facts;
mod fault_tolerant;
mod fenced_order;
mod flushes;
mod ground;
mod joined;
mod kept_alive;
mod key_lives;
mod key_losses;
mod keys;
mod leases;
mod measured;
mod measures;
mod mutual_exclusion;
mod no_lost_update;
mod one_lock;
mod overlaps;
mod owed_answers;
mod owner_only;
mod processes;
mod pushes;
mod reach;
mod section_within_lease;
mod setting;
mod sound_grant;
mod sound_loss;
mod sound_refusal;
mod sound_votes;
mod stops;
#[cfg(test)]
mod tests;
mod tidy;
mod verdict;
mod wakes;
mod writes;

pub use counters::Counters;
pub use measured::Measured;
pub use sound_loss::LOSS_MARGIN_NS;
pub use verdict::{Blame, Blamed, Judgement, Verdicts, Violation};

use self::joined::{joined_measured, joined_verdicts};
use self::one_lock::OneLock;
use crate::history::{Event, FaultIds};
use crate::scenario::{Property, Scenario};

/// Online fold over the events of one run.
///
/// Expects the events in order. Ignores events about hosts, nodes or attempts that the scenario
/// cannot have. Treats an event that is earlier than the one before as simultaneous with it.
///
/// Each lock of the scenario is judged by itself, from the events about its clients and those about
/// every lock. A property is violated if one lock violates it.
#[derive(Debug)]
pub struct Oracle {
    unjudged: Vec<Property>,
    /// In the order of the resources; at least one.
    locks: Vec<OneLock>,
}

impl Oracle {
    /// Creates an oracle for runs of `scenario`. `unjudged` lists the properties whose events the
    /// engine cannot record; their verdict is always [`Judgement::Unjudged`].
    ///
    /// # Panics
    ///
    /// If the scenario has more nodes or clients than a valid scenario may have.
    #[must_use]
    pub fn new(scenario: &Scenario, unjudged: &[Property]) -> Self {
        let locks = scenario.resource_ids().map(|resource| OneLock::new(scenario, resource));
        Self { unjudged: unjudged.to_vec(), locks: locks.collect() }
    }

    /// Prepares the oracle for another run and keeps its allocations.
    pub fn reset(&mut self) {
        self.locks.iter_mut().for_each(OneLock::reset);
    }

    /// Folds in the next event.
    #[inline]
    pub fn observe(&mut self, event: &Event) {
        match &mut self.locks[..] {
            [only] => only.observe(event),
            _ => self.observe_with_each(event),
        }
    }

    fn observe_with_each(&mut self, event: &Event) {
        let concerned = event.kind.client_concerned();
        for lock in &mut self.locks {
            match concerned {
                Some(client) if !lock.is_used_by(client) => lock.observe_neighbour(event),
                _ => lock.observe(event),
            }
        }
    }

    /// Returns the verdicts. Call it after [`Ended`](crate::history::EventKind::Ended) has been
    /// observed.
    #[must_use]
    pub fn finish(&mut self) -> Verdicts {
        let found = self.locks.iter_mut().map(OneLock::finish).reduce(joined_verdicts);
        let mut verdicts = found.unwrap_or_default();
        for &property in &self.unjudged {
            verdicts.set(property, Judgement::Unjudged);
        }
        verdicts
    }

    /// Returns the counts of events of the run.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let mut counters = Counters::default();
        self.locks.iter().for_each(|lock| counters.add(&lock.counters()));
        counters
    }

    /// Returns the faults that began.
    #[must_use]
    pub fn faults_begun(&self) -> FaultIds {
        self.locks.first().map_or(FaultIds::EMPTY, OneLock::faults_begun)
    }

    /// Returns the quantities of the run.
    #[must_use]
    pub fn measured(&self) -> Measured {
        self.locks.iter().map(OneLock::measured).reduce(joined_measured).unwrap_or_default()
    }

    /// Returns the time until which an otherwise idle run must last so that the keys left on nodes
    /// are judged; `None` if no such key is left.
    #[must_use]
    pub fn must_last_until_ns(&self) -> Option<u64> {
        self.locks.iter().filter_map(OneLock::must_last_until_ns).max()
    }
}
