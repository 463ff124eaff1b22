//! The operations of one application, and its progress.

use super::{Op, PlannedOp};

/// A cursor over the operations of an application.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    ops: Vec<PlannedOp>,
    next: usize,
}

impl Script {
    pub(crate) fn new(ops: Vec<PlannedOp>) -> Self {
        Self { ops, next: 0 }
    }

    /// Replaces the operations.
    pub(crate) fn replace(&mut self, ops: Vec<PlannedOp>) {
        self.ops = ops;
    }

    /// Returns to the first operation.
    pub(crate) fn restart(&mut self) {
        self.next = 0;
    }

    /// Returns true if there is no operation at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// Returns the next operation; `None` after the last one.
    pub(crate) fn next(&self) -> Option<PlannedOp> {
        self.ops.get(self.next).copied()
    }

    /// Goes on behind the next operation.
    pub(crate) fn advance(&mut self) {
        self.next += 1;
    }

    /// Skips to the next release, or to the end: the lease is over, and nothing else is left to do
    /// with it.
    pub(crate) fn skip_to_release(&mut self) {
        self.skip_to(|op| *op == Op::Release);
    }

    /// Skips to the next acquisition, or to the end: there is no lease.
    pub(crate) fn skip_to_acquire(&mut self) {
        self.skip_to(|op| matches!(op, Op::Acquire(_)));
    }

    fn skip_to(&mut self, is_wanted: impl Fn(&Op) -> bool) {
        let rest = self.ops.get(self.next..).unwrap_or_default();
        let skipped = rest.iter().position(|planned| is_wanted(&planned.op));
        self.next = skipped.map_or(self.ops.len(), |skipped| self.next + skipped);
    }
}
