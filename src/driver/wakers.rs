//! Wakers of callers that wait for the same thing.

use core::task::{Context, Waker};
use std::collections::BTreeMap;

use super::wakes::Wakes;

/// Wakers of waiting callers, in the order of `T` and then of their first waits.
#[derive(Debug, Default)]
pub(super) struct Wakers<T = ()> {
    table: BTreeMap<Caller<T>, Waker>,
    callers: u64,
}

/// Identifies a caller from its first wait on. A caller that waits no longer is to be removed: its
/// waker keeps its task in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Caller<T = ()> {
    order: T,
    number: u64,
}

impl<T: Copy + Ord> Wakers<T> {
    /// Returns the identity of `caller`, which gets one at its first wait.
    pub(super) fn identify(&mut self, caller: &mut Option<Caller<T>>, order: T) -> Caller<T> {
        *caller.get_or_insert_with(|| {
            self.callers += 1;
            Caller { order, number: self.callers }
        })
    }

    pub(super) fn listen(&mut self, caller: Caller<T>, context: &Context<'_>) {
        self.table.insert(caller, context.waker().clone());
    }

    pub(super) fn remove(&mut self, caller: Caller<T>) {
        self.table.remove(&caller);
    }

    pub(super) fn wake_all(&mut self, wakes: &mut Wakes) {
        wakes.extend(core::mem::take(&mut self.table).into_values());
    }

    /// Returns the least order of the waiting callers.
    pub(super) fn first(&self) -> Option<T> {
        self.table.keys().next().map(|caller| caller.order)
    }

    /// Wakes the callers whose order is at most `last`.
    pub(super) fn wake_until(&mut self, last: T, wakes: &mut Wakes) {
        while self.first().is_some_and(|order| order <= last) {
            wakes.extend(self.table.pop_first().map(|(_, waker)| waker));
        }
    }
}
