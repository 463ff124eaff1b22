//! A grant had a majority of this attempt's keys behind it, was timed from before them, and had
//! something left.
//!
//! At the deciding step a majority of the configured nodes had executed this attempt's SET with
//! success and the client had their answers; T1 had been read before its first command was written;
//! the deadline is at most T1 + TTL − drift; and the clock reads less than it. Values are those of
//! the events: a subject that gives up no drift says so, and one without a TTL (`u64::MAX`) may
//! have any deadline. Nothing excuses an unsound grant: the client is wrong.
//!
//! An extension is a grant again. When it succeeds a majority of the configured nodes had executed
//! a command of its round with success, on keys that were not
//! [set again](super::extension) since the grant, and the client had their answers while its clock
//! read less than the old deadline, as it does now; the new deadline is at most T1 of the round +
//! its TTL − drift, and not yet reached (catalogue E1, E3, E4, E5).

use super::facts::Facts;
use super::ground::NEVER;
use super::verdict::{Blamed, Judgement, Violation};
use crate::history::AttemptId;

/// What was found so far.
#[derive(Debug, Default)]
pub(super) struct SoundGrant(Judgement);

impl SoundGrant {
    pub(super) fn reset(&mut self) {
        self.0 = Judgement::Vacuous;
    }

    pub(super) fn decided(
        &mut self,
        facts: &Facts,
        id: AttemptId,
        t2_local_ns: u64,
        deadline_local_ns: u64,
    ) {
        if self.0.is_violated() {
            return;
        }
        self.0 = match is_sound(facts, id, t2_local_ns, deadline_local_ns) {
            true => Judgement::Holds,
            false => Judgement::Violated(Violation::of_one(id, facts.now_ns, Blamed::NONE)),
        };
    }

    /// The lease of `id` was extended; nothing of that is in `facts` yet.
    pub(super) fn extended(&mut self, facts: &Facts, id: AttemptId, deadline_local_ns: u64) {
        if self.0.is_violated() {
            return;
        }
        self.0 = match is_sound_extension(facts, id, deadline_local_ns) {
            true => Judgement::Holds,
            false => Judgement::Violated(Violation::of_one(id, facts.now_ns, Blamed::NONE)),
        };
    }

    pub(super) fn judge(&self) -> Judgement {
        self.0
    }
}

fn is_sound(facts: &Facts, id: AttemptId, t2_local_ns: u64, deadline_local_ns: u64) -> bool {
    let Some(attempt) = facts.leases.get(id) else { return false };
    let has_majority = attempt.confirmed_by.count_ones() >= attempt.needed.max(1);
    let is_timed_from_before = attempt.began_ns != NEVER && !attempt.wrote_early;
    let expiry_ns = attempt.t1_local_ns.saturating_add(attempt.ttl_ns);
    let is_within_ttl = attempt.ttl_ns == u64::MAX
        || deadline_local_ns <= expiry_ns.saturating_sub(attempt.drift_ns);
    let has_time_left = t2_local_ns < deadline_local_ns && !attempt.over_when_decided;
    has_majority && is_timed_from_before && is_within_ttl && has_time_left
}

fn is_sound_extension(facts: &Facts, id: AttemptId, deadline_local_ns: u64) -> bool {
    let Some(attempt) = facts.leases.get(id) else { return false };
    let round = &attempt.round;
    let has_majority = attempt.confirmed_round().count_ones() >= attempt.needed.max(1);
    let expiry_ns = round.basis.t1_local_ns.saturating_add(round.ttl_ns);
    let is_within_ttl = deadline_local_ns <= expiry_ns.saturating_sub(round.basis.drift_ns);
    let now_local_ns = facts.lease_clock(id, attempt);
    let is_in_time = now_local_ns < attempt.deadline_local_ns;
    round.basis.began_ns != NEVER
        && has_majority
        && is_within_ttl
        && is_in_time
        && now_local_ns < deadline_local_ns
}
