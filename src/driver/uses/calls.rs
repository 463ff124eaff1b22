//! Functions of the driver that the handles call: acquisitions and leases.

use core::task::{Context, Poll};
use core::time::Duration;
use std::sync::Arc;

use redlock_protocol::{BootInstant, Grant, LockId, ReleaseOutcome, RetryDelay};

use super::Stage;
use crate::deadline::Deadline;
use crate::driver::inherited::refusal;
use crate::driver::{Caller, Driver, State};
use crate::error::{AcquireError, AcquireErrorKind, CheckError, LostReason};
use crate::observe;
use crate::votes::Votes;

/// A grant, and the name of its lock.
pub(crate) type Granted = (Grant, Arc<[u8]>);

/// Calls of the handles.
impl Driver {
    /// Returns the grant and the name of the lock, once there is a grant. A grant is handed over only
    /// if its validity suffices *now*: the caller may have been paused since the decision (counterexample
    /// K6).
    pub(crate) fn poll_acquired(
        &self,
        lock: LockId,
        context: &Context<'_>,
    ) -> Poll<Result<Granted, AcquireError>> {
        self.turn(|state, now| {
            if state.inherited {
                return Poll::Ready(Err(refusal()));
            }
            let State { uses, machine, names, .. } = state;
            let entry = uses.of(lock);
            if let Stage::GaveUp(kind) = entry.stage {
                let (resource, attempts, ballot) = (entry.resource, entry.failures, entry.ballot);
                let fetched_late = entry.fetched_late;
                let retry_after = match kind {
                    AcquireErrorKind::Quarantined => machine.quorum_from().map(|at| at.since(now)),
                    AcquireErrorKind::Taken => {
                        entry.taken_for.map(|(left, at)| left.saturating_sub(now.since(at)))
                    }
                    _ => None,
                };
                uses.table.remove(&lock);
                let nodes = self.node_answers(state, resource, ballot);
                let error = AcquireError::new(kind).after_attempts(attempts, nodes);
                return Poll::Ready(Err(error.until(retry_after).fetched_late(fetched_late)));
            }
            // If it is too late, the machine reports a failed attempt, and whether another follows.
            if entry.stage == Stage::Decided
                && let Ok(grant) = machine.deliver(lock, now)
            {
                entry.stage = Stage::Held;
                let waited = now.since(core::mem::replace(&mut entry.since, now));
                self.tell(|| observe::Event::Delivered {
                    owner: grant.token,
                    resource: names.name(entry.resource),
                    deadline: Deadline::new(grant.deadline),
                    attempts: entry.failures,
                    waited,
                });
                return Poll::Ready(Ok((grant, names.shared(entry.resource))));
            }
            entry.waiter = Some(context.waker().clone());
            Poll::Pending
        })
    }

    /// Returns true if an acquisition of the lock `resource` that may wait would wait for others of this
    /// client, or let other clients go first.
    pub(crate) fn is_others_turn(&self, resource: &[u8], retry: RetryDelay) -> bool {
        self.turn(|state, now| {
            let resource = state.names.number(resource);
            resource.is_some_and(|it| state.machine.is_others_turn(it, retry, now))
        })
    }

    /// Checks that the lease has more than `need` left.
    pub(crate) fn check(self: &Arc<Self>, lock: LockId, need: Duration) -> Result<(), LostReason> {
        self.call(|state, now| check(state, lock, need, now))
    }

    /// Returns the votes for the lease; none if it is over.
    pub(crate) fn votes(self: &Arc<Self>, lock: LockId) -> Votes {
        self.call(|state, now| votes(state, lock, now))
    }

    /// Checks that the lease has more than `need` left, and that a majority is confirmed.
    pub(crate) fn check_confirmed(
        self: &Arc<Self>,
        lock: LockId,
        need: Duration,
    ) -> Result<(), CheckError> {
        self.call(|state, now| {
            check(state, lock, need, now)?;
            if state.machine.is_confirmed(lock, now) {
                Ok(())
            } else {
                Err(CheckError::Unconfirmed(votes(state, lock, now)))
            }
        })
    }

    /// Polls for the end of the lease. Ready when the lease is over.
    pub(crate) fn poll_lost(
        &self,
        lock: LockId,
        watch: &mut Option<Caller>,
        context: &Context<'_>,
    ) -> Poll<LostReason> {
        self.end_overdue();
        self.turn(|state, _| {
            if state.inherited {
                return Poll::Ready(LostReason::Closed);
            }
            let Some(entry) = state.uses.table.get_mut(&lock) else {
                return Poll::Ready(LostReason::Released);
            };
            if let Some(reason) = entry.lost {
                return Poll::Ready(reason);
            }
            if entry.stage != Stage::Held {
                return Poll::Ready(LostReason::Released);
            }
            let watch = entry.watchers.identify(watch, ());
            entry.watchers.listen(watch, context);
            Poll::Pending
        })
    }

    /// Removes a caller that awaited the end of the lease.
    pub(crate) fn unwatch(&self, lock: LockId, watch: Caller) {
        self.last_turn(|state, _| {
            if let Some(entry) = state.uses.table.get_mut(&lock) {
                entry.watchers.remove(watch);
            }
        });
    }

    /// Ends the leases whose time is over: after a pause, for example, the timer may not have run yet.
    /// A turn of its own, because an attempt that is due reads the clock again.
    fn end_overdue(&self) {
        self.last_turn(|state, now| state.machine.handle_lock_timeout(now));
    }

    /// Begins to release the lease, or cancels the acquisition: queues the commands to be written.
    fn begin_release(&self, state: &mut State, lock: LockId, now: BootInstant) {
        let Some(entry) = state.uses.table.get_mut(&lock) else {
            return;
        };
        let time = now.since(entry.since);
        match entry.stage {
            Stage::Held => self.tell(|| observe::Event::ReleaseCalled {
                owner: entry.owner,
                resource: state.names.name(entry.resource),
                held: time,
                lost: entry.lost,
            }),
            Stage::Trying | Stage::Decided => self.tell(|| observe::Event::AcquireCancelled {
                resource: state.names.name(entry.resource),
                attempts: entry.failures,
                waited: time,
            }),
            _ => {}
        }
        if matches!(entry.stage, Stage::Held | Stage::Trying | Stage::Decided) {
            entry.stage = Stage::Releasing;
            entry.watchers.wake_all(&mut state.wakes);
            state.machine.release(lock, now);
        }
    }

    /// Leaves the lease to expire without a release.
    pub(crate) fn leave(&self, lock: LockId) {
        self.end_overdue();
        self.last_turn(|state, now| {
            state.machine.leave(lock, now);
            if let Some(mut entry) = state.uses.table.remove(&lock) {
                self.tell(|| observe::Event::LeftToExpire {
                    owner: entry.owner,
                    resource: state.names.name(entry.resource),
                    held: now.since(entry.since),
                    lost: entry.lost,
                });
                entry.watchers.wake_all(&mut state.wakes);
                state.names.retire(entry.resource);
            }
        });
    }

    /// Returns the deadline of the lease; `None` if it has ended.
    pub(crate) fn deadline(self: &Arc<Self>, lock: LockId) -> Option<BootInstant> {
        self.call(|state, _| state.machine.deadline(lock))
    }

    /// Releases the lease. Ready once, with the nodes' answers, when every node has answered or was
    /// given up.
    pub(crate) fn poll_release(&self, lock: LockId, context: &Context<'_>) -> Poll<ReleaseOutcome> {
        self.end_overdue();
        self.turn(|state, now| {
            if state.inherited {
                return Poll::Ready(state.not_released());
            }
            let entry = state.uses.of(lock);
            if let Stage::Released(outcome) = entry.stage {
                state.uses.table.remove(&lock);
                return Poll::Ready(outcome);
            }
            entry.waiter = Some(context.waker().clone());
            self.begin_release(state, lock, now);
            Poll::Pending
        })
    }

    /// Handles the drop of a handle: releases the use, and discards its outcome. Needs no runtime,
    /// as it only wakes the tasks.
    pub(crate) fn abandon(&self, lock: LockId) {
        if self.is_inherited()
            || !self.state.lock().is_ok_and(|state| state.uses.table.contains_key(&lock))
        {
            return;
        }
        self.end_overdue();
        self.last_turn(|state, now| {
            self.begin_release(state, lock, now);
            let Some(entry) = state.uses.table.get_mut(&lock) else {
                return;
            };
            entry.abandoned = true;
            if matches!(entry.stage, Stage::GaveUp(_) | Stage::Released(_)) {
                state.uses.table.remove(&lock);
            }
        });
    }
}

fn check(state: &State, lock: LockId, need: Duration, now: BootInstant) -> Result<(), LostReason> {
    if state.inherited {
        return Err(LostReason::Closed);
    }
    let lost = state.uses.table.get(&lock).and_then(|entry| entry.lost);
    let checked = state.machine.check(lock, need, now);
    checked.map_err(|reason| lost.unwrap_or(reason.into()))
}

fn votes(state: &State, lock: LockId, now: BootInstant) -> Votes {
    let votes = state.machine.votes(lock, now).unwrap_or_default();
    let (confirmed, possible) = (votes.confirmed.len(), votes.possible.len());
    Votes { confirmed, possible, majority: state.machine.nodes().quorum() }
}
