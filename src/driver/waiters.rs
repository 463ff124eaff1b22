//! Callers that wait for a condition of the whole client, each with a deadline of its own.

use core::task::{Context, Poll, Waker};
use std::collections::BTreeMap;

use redlock_protocol::BootInstant;

use super::wakes::Wakes;
use super::{Driver, State};

/// Waiting callers and their deadlines. All are woken to check again whenever the condition may
/// hold.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    table: BTreeMap<(BootInstant, u64), Waker>,
    names: u64,
}

/// Identifies a waiting caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Waiter {
    until: BootInstant,
    name: u64,
}

impl Waiters {
    /// Returns the earliest deadline of the waiting callers.
    pub(super) fn next_timeout(&self) -> Option<BootInstant> {
        self.table.keys().next().map(|&(until, _)| until)
    }

    pub(super) fn wake_due(&mut self, now: BootInstant, wakes: &mut Wakes) {
        while self.next_timeout().is_some_and(|until| until <= now) {
            wakes.extend(self.table.pop_first().map(|(_, waker)| waker));
        }
    }

    pub(super) fn wake_all(&mut self, wakes: &mut Wakes) {
        wakes.extend(core::mem::take(&mut self.table).into_values());
    }
}

impl Driver {
    /// Ready with the output of `look` once that is ready, or with `None` when the client's clock
    /// reads `until`.
    pub(super) fn poll_waiting<T>(
        &self,
        waiter: &mut Option<Waiter>,
        until: BootInstant,
        context: &Context<'_>,
        look: impl FnOnce(&mut State, BootInstant) -> Poll<T>,
    ) -> Poll<Option<T>> {
        self.turn(|state, now| {
            if let Poll::Ready(output) = look(state, now) {
                return Poll::Ready(Some(output));
            }
            if until <= now {
                return Poll::Ready(None);
            }
            let waiters = &mut state.waiters;
            let waiter = waiter.get_or_insert_with(|| {
                waiters.names += 1;
                Waiter { until, name: waiters.names }
            });
            waiters.table.insert((waiter.until, waiter.name), context.waker().clone());
            Poll::Pending
        })
    }

    /// Ready when the client's clock reads `until`, or once the client is closed.
    pub(crate) fn poll_pause(
        &self,
        waiter: &mut Option<Waiter>,
        until: BootInstant,
        context: &Context<'_>,
    ) -> Poll<()> {
        let closed = |state: &mut State, _| {
            if state.closed { Poll::Ready(()) } else { Poll::Pending }
        };
        self.poll_waiting(waiter, until, context, closed).map(drop)
    }
}
