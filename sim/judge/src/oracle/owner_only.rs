//! No executed command removes, overwrites or re-times a key that another *attempt* wrote.
//!
//! The owner of a key is its true writer, whatever token the key carries. Keys that end by a
//! restart, by eviction or by an operator are out of scope. Nothing excuses a client that changes
//! another attempt's key.

use super::facts::Facts;
use super::verdict::{Blamed, Judgement, Violation};
use crate::history::{AttemptId, NodeId, Writer};

/// Judgement so far.
#[derive(Debug, Default)]
pub(super) struct OwnerOnly(Judgement);

impl OwnerOnly {
    pub(super) fn reset(&mut self) {
        self.0 = Judgement::Vacuous;
    }

    /// Judges a command of `by` that changed the key on `node`, which `before` had written.
    pub(super) fn changed(&mut self, facts: &Facts, node: NodeId, by: AttemptId, before: Writer) {
        if self.0.is_violated() {
            return;
        }
        self.0 = Judgement::Holds;
        if let Writer::Attempt(owner) = before
            && owner != by
            && facts.setting.is_judged(owner.client)
        {
            let pair = facts.leases.in_order(owner, by);
            let found = Violation::of_two(pair, facts.now_ns, Blamed::NONE);
            self.0 = Judgement::Violated(Violation { node: Some(node), ..found });
        }
    }

    pub(super) fn judge(&self) -> Judgement {
        self.0
    }
}
