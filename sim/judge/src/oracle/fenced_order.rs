//! Writes to the resource are applied in the order of the leases.
//!
//! Lease A precedes lease B iff A was decided before B's T1. No two leases share a fencing token; one
//! lease may give its token at several deliveries.
//! If A precedes B, A's token is the smaller one. The tokens of applied writes never decrease.
//! Without tokens, no write of A is applied after a write of a lease B that A precedes.
//!
//! Wrong tokens are the lock's error. Writes in the wrong order are blamed on the cause that let
//! the earlier lease write so late.

use super::facts::Facts;
use super::ground::NEVER;
use super::verdict::{Blamed, Judgement, Violation};
use crate::history::{AttemptId, FencingToken};

/// A lease with a fencing token.
#[derive(Clone, Copy, Debug)]
struct Fenced {
    id: AttemptId,
    token: FencingToken,
    began_ns: u64,
    decided_ns: u64,
}

impl Fenced {
    fn precedes(&self, other: &Self) -> bool {
        self.decided_ns < other.began_ns
    }

    fn contradicts(&self, other: &Self) -> bool {
        (self.token == other.token && self.id != other.id)
            || (self.precedes(other) && self.token > other.token)
            || (other.precedes(self) && other.token > self.token)
    }
}

/// Order of tokens and writes so far, and the judgement.
#[derive(Debug)]
pub(super) struct FencedOrder {
    fenced: Vec<Fenced>,
    /// Largest token of an applied write, and its lease.
    largest: Option<(FencingToken, AttemptId)>,
    /// Latest T1 among the leases of applied writes without tokens, and its lease.
    latest: Option<(u64, AttemptId)>,
    found: Judgement,
}

impl FencedOrder {
    pub(super) fn new() -> Self {
        let fenced = Vec::with_capacity(16);
        Self { fenced, largest: None, latest: None, found: Judgement::Vacuous }
    }

    pub(super) fn reset(&mut self) {
        self.fenced.clear();
        (self.largest, self.latest) = (None, None);
        self.found = Judgement::Vacuous;
    }

    /// Judges the token of a lease that was delivered.
    pub(super) fn delivered(&mut self, facts: &Facts, id: AttemptId, token: FencingToken) {
        if token == FencingToken::NONE || self.found.is_final() {
            return;
        }
        let Some(attempt) = facts.leases.get(id) else { return };
        let (began_ns, decided_ns) = (attempt.began_ns, attempt.decided_ns);
        let lease = Fenced { id, token, began_ns, decided_ns };
        self.found.held();
        if let Some(other) = self.fenced.iter().find(|other| other.contradicts(&lease)) {
            let pair = facts.leases.in_order(other.id, id);
            self.found.violated(Violation::of_two(pair, facts.now_ns, Blamed::NONE));
        }
        self.fenced.push(lease);
    }

    /// Judges a write that was applied. `blame` returns the blame for two leases whose writes came
    /// in the wrong order.
    pub(super) fn applied(
        &mut self,
        facts: &Facts,
        by: AttemptId,
        token: FencingToken,
        blame: impl FnOnce((AttemptId, AttemptId)) -> Blamed,
    ) {
        self.found.held();
        let Some(attempt) = facts.leases.get(by) else { return };
        let before = if token == FencingToken::NONE {
            let decided_ns = attempt.decided_ns;
            let overtaken = self.latest.filter(|latest| decided_ns < latest.0);
            if attempt.began_ns != NEVER {
                self.latest = self.latest.max(Some((attempt.began_ns, by)));
            }
            overtaken.map(|it| it.1)
        } else {
            let overtaken = self.largest.filter(|largest| token < largest.0);
            self.largest = self.largest.max(Some((token, by)));
            overtaken.map(|it| it.1)
        };
        if let Some(other) = before.filter(|_| !self.found.is_final()) {
            let pair = facts.leases.in_order(other, by);
            self.found.violated(Violation::of_two(pair, facts.now_ns, blame(pair)));
        }
    }

    pub(super) fn judge(&self) -> Judgement {
        self.found
    }
}
