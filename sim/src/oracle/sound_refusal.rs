//! Whoever is told that the lock is taken can rely on it: somebody had it, or was about to.
//!
//! For each attempt that ends as taken, a majority of the configured nodes refused its SET because of
//! keys of one and the same other attempt. Where no fault acts, and nobody failed because it was too
//! slow, in quarantine or cancelled, somebody was granted the lock in a run in which anybody was told
//! that it is taken. And whoever asks at once (`try_acquire`) does not stop at a split vote before its
//! attempts are used up.
//!
//! Judged of clients whose word for a taken lock is a claim that somebody has it: to most libraries
//! it says no more than that some node refused. Nothing excuses a claim that is not true.

use super::facts::Facts;
use super::setting::{CLIENTS_MAX, NODES_MAX};
use super::verdict::{Blamed, Judgement, Violation};
use crate::history::{AttemptId, Settlement, Writer};
use crate::scenario::Acquire;

/// Refusals and grants seen so far.
#[derive(Debug, Default)]
pub(super) struct SoundRefusal {
    found: Judgement,
    /// The first attempt that was told that the lock is taken.
    told: Option<AttemptId>,
    /// Somebody was granted the lock, or would have been but for time, quarantine or a cancellation.
    had_by_somebody: bool,
    has_faults: bool,
    /// The last attempt of each client, and how many in a row had their votes split.
    splits: [(u16, u32); CLIENTS_MAX],
}

impl SoundRefusal {
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    pub(super) fn fault_began(&mut self) {
        self.has_faults = true;
    }

    /// An attempt was settled, for the first time.
    pub(super) fn settled(&mut self, facts: &Facts, id: AttemptId, outcome: Settlement) {
        match outcome {
            Settlement::Split | Settlement::Taken | Settlement::TooFewNodes => {}
            Settlement::Cancelled
            | Settlement::Granted
            | Settlement::Quarantined
            | Settlement::TooSlow => self.had_by_somebody = true,
        }
        let client = usize::from(id.client);
        if !facts.setting.says_whose(id.client) {
            return;
        }
        let (number, splits) = &mut self.splits[client];
        *number = id.number;
        *splits = if outcome == Settlement::Split { *splits + 1 } else { 0 };
        *splits %= Acquire::AT_ONCE_MOST;
        if outcome != Settlement::Taken {
            return;
        }
        self.told.get_or_insert(id);
        self.found.held();
        if !is_taken(facts, id) {
            self.violated(id, facts.now_ns);
        }
    }

    /// Returns the judgement of a finished run.
    pub(super) fn judge(&mut self, facts: &Facts) -> Judgement {
        if let Some(id) = self.told.filter(|_| !self.had_by_somebody && !self.has_faults) {
            self.violated(id, facts.now_ns);
        }
        for client in 0..facts.setting.probe as u8 {
            let (number, splits) = self.splits[usize::from(client)];
            let id = AttemptId { client, number };
            let is_over = facts.setting.asks_at_once(client) && !facts.processes.is_killed(client);
            if splits > 0 && is_over && facts.leases.is_newest(id) {
                self.violated(id, facts.now_ns);
            }
        }
        self.found
    }

    fn violated(&mut self, id: AttemptId, at_ns: u64) {
        if !self.found.is_violated() {
            self.found = Judgement::Violated(Violation::of_one(id, at_ns, Blamed::NONE));
        }
    }
}

/// Returns true if a majority of the nodes refused `id` for keys of one other attempt.
fn is_taken(facts: &Facts, id: AttemptId) -> bool {
    let Some(needed) = facts.leases.get(id).map(|it| it.needed.max(1) as usize) else {
        return false;
    };
    let mut holders = [Writer::Nobody; NODES_MAX];
    for (node, holder) in holders.iter_mut().enumerate() {
        *holder = facts.leases.key(id, node as u8).map_or(Writer::Nobody, |it| it.refused_for);
    }
    let is_other = |it: &&Writer| **it != Writer::Nobody && **it != Writer::Attempt(id);
    let nodes_of = |holder: &Writer| holders.iter().filter(|it| *it == holder).count();
    holders.iter().filter(is_other).any(|holder| nodes_of(holder) >= needed)
}
