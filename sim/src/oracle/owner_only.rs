//! No executed command removes, overwrites or re-times a key that another *attempt* wrote.
//!
//! Who wrote a key is the true writer, whatever token it carries. Restarts, eviction and operators
//! are not its matter. Nothing excuses a client that touches another's key.

use super::facts::Facts;
use super::verdict::{Blamed, Judgement, Violation};
use crate::history::{AttemptId, Writer};

/// What was found so far.
#[derive(Debug, Default)]
pub(super) struct OwnerOnly(Judgement);

impl OwnerOnly {
    pub(super) fn reset(&mut self) {
        self.0 = Judgement::Vacuous;
    }

    /// A command of `by` changed the key on `node`, which was by `before`.
    pub(super) fn changed(&mut self, facts: &Facts, node: u8, by: AttemptId, before: Writer) {
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
