//! Extension requests of callers.

use core::task::{Context, Poll};
use core::time::Duration;
use std::collections::BTreeMap;

use redlock_protocol::{BootInstant, ExtendError, LockId};

use super::wakers::{Caller, Wakers};
use super::wakes::Wakes;
use super::{Driver, State};
use crate::observe::{self, Instant};

/// Callers that extend one lease. One extension is under way at a time; the others wait for it.
#[derive(Debug, Default)]
pub(super) struct Extenders {
    waiting: Wakers,
    /// Caller that requested the extension under way; `None` if keep-alive did.
    asked: Option<Caller>,
    /// Outcomes that callers have not fetched yet.
    settled: BTreeMap<Caller, Result<BootInstant, ExtendError>>,
}

impl Extenders {
    /// Records the outcome of the extension under way, and wakes all waiting callers.
    pub(super) fn settle(&mut self, outcome: Result<BootInstant, ExtendError>, wakes: &mut Wakes) {
        if let Some(name) = self.asked.take() {
            self.settled.insert(name, outcome);
        }
        self.waiting.wake_all(wakes);
    }

    pub(super) fn wake_all(&mut self, wakes: &mut Wakes) {
        self.waiting.wake_all(wakes);
    }
}

impl Driver {
    /// Extends the lease to `ttl`, measured from the moment at which no other extension is under
    /// way.
    pub(crate) fn poll_extended(
        &self,
        lock: LockId,
        ttl: Duration,
        extender: &mut Option<Caller>,
        context: &Context<'_>,
    ) -> Poll<Result<BootInstant, ExtendError>> {
        self.turn(|state, now| {
            if state.inherited {
                return Poll::Ready(Err(ExtendError::Cancelled));
            }
            let State { uses, machine, names, .. } = state;
            let resource = uses.resource(lock);
            let it = uses.extenders(lock);
            let extender = it.waiting.identify(extender, ());
            if let Some(outcome) = it.settled.remove(&extender) {
                return Poll::Ready(outcome);
            }
            if it.asked != Some(extender) {
                match machine.extend(lock, ttl, now) {
                    Ok(()) => {
                        it.asked = Some(extender);
                        if let Some(owner) = machine.token(lock) {
                            let resource = resource.map_or(&[][..], |it| names.name(it));
                            let t1 = Instant::new(now);
                            self.tell(|| observe::Event::ExtensionBegan {
                                owner,
                                resource,
                                t1,
                                ttl,
                            });
                        }
                    }
                    Err(ExtendError::Busy) => {}
                    Err(reason) => return Poll::Ready(Err(reason)),
                }
            }
            it.waiting.listen(extender, context);
            Poll::Pending
        })
    }

    /// Removes a caller that was extending the lease. An extension under way goes on.
    pub(crate) fn forget_extender(&self, lock: LockId, extender: Caller) {
        self.last_turn(|state, _| {
            let Some(it) = state.uses.extenders_if_known(lock) else {
                return;
            };
            it.waiting.remove(extender);
            it.asked.take_if(|asked| *asked == extender);
            it.settled.remove(&extender);
        });
    }
}
