//! Extension requests of callers.

use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::collections::BTreeMap;

use redlock_protocol::{BootInstant, ExtendError, LockId};

use super::wakes::Wakes;
use super::{Driver, State};
use crate::observe::{Event as Told, Instant};

/// Callers that extend one lease. One extension is under way at a time; the others wait for it.
#[derive(Debug, Default)]
pub(super) struct Extenders {
    waiting: BTreeMap<u64, Waker>,
    /// Caller that requested the extension under way; `None` if keep-alive did.
    asked: Option<u64>,
    /// Outcomes that callers have not fetched yet.
    settled: BTreeMap<u64, Result<BootInstant, ExtendError>>,
    names: u64,
}

/// Identifies a caller that extends a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extender(u64);

impl Extenders {
    /// Records the outcome of the extension under way, and wakes all waiting callers.
    pub(super) fn settle(&mut self, outcome: Result<BootInstant, ExtendError>, wakes: &mut Wakes) {
        if let Some(name) = self.asked.take() {
            self.settled.insert(name, outcome);
        }
        wakes.extend(core::mem::take(&mut self.waiting).into_values());
    }

    /// Returns the wakers of the waiting callers.
    pub(super) fn wakers(&self) -> impl Iterator<Item = &Waker> {
        self.waiting.values()
    }
}

impl Driver {
    /// Extends the lease to `ttl`, measured from the moment at which no other extension is under
    /// way.
    pub(crate) fn poll_extended(
        &self,
        lock: LockId,
        ttl: Duration,
        extender: &mut Option<Extender>,
        context: &Context<'_>,
    ) -> Poll<Result<BootInstant, ExtendError>> {
        self.turn(|state, now| {
            let State { uses, machine, names, .. } = state;
            let resource = uses.resource(lock);
            let it = uses.extenders(lock);
            let name = extender.get_or_insert_with(|| {
                it.names += 1;
                Extender(it.names)
            });
            let &mut Extender(name) = name;
            if let Some(outcome) = it.settled.remove(&name) {
                return Poll::Ready(outcome);
            }
            if it.asked != Some(name) {
                match machine.extend(lock, ttl, now) {
                    Ok(()) => {
                        it.asked = Some(name);
                        if let Some(owner) = machine.token(lock) {
                            let resource = resource.map_or(&[][..], |it| names.name(it));
                            let t1 = Instant::new(now);
                            self.tell(|| Told::ExtensionBegan { owner, resource, t1, ttl });
                        }
                    }
                    Err(ExtendError::Busy) => {}
                    Err(reason) => return Poll::Ready(Err(reason)),
                }
            }
            it.waiting.insert(name, context.waker().clone());
            Poll::Pending
        })
    }

    /// Removes a caller that was extending the lease. An extension under way goes on.
    pub(crate) fn forget_extender(&self, lock: LockId, Extender(name): Extender) {
        self.last_turn(|state, _| {
            let Some(it) = state.uses.extenders_if_known(lock) else {
                return;
            };
            it.waiting.remove(&name);
            it.asked.take_if(|asked| *asked == name);
            it.settled.remove(&name);
        });
    }
}
