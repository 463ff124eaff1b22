//! Uses of a lock that callers hold handles of: acquisitions and leases.

use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::collections::BTreeMap;

use super::extensions::Extenders;
use super::wakes::Wakes;
use super::{Driver, State};
use crate::deadline::Deadline;
use crate::error::{AcquireError, AcquireErrorKind, LostReason};
use crate::observe::Event as Told;
use crate::protocol::{
    Ballot, BootInstant, ExtendError, Grant, LockId, ReleaseOutcome, ResourceId, Token,
};

/// Stage of a use, from its caller's point of view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Trying,
    /// Granted, but not fetched by the caller yet.
    Decided,
    Held,
    Releasing,
    GaveUp(AcquireErrorKind),
    Released(ReleaseOutcome),
}

#[derive(Debug)]
struct Use {
    resource: ResourceId,
    ttl: Duration,
    owner: Token,
    stage: Stage,
    /// Start of the acquisition or, once the lease was delivered, of the lease.
    since: BootInstant,
    lost: Option<LostReason>,
    /// Number of failed attempts; `ballot` has the nodes' answers to the last of them.
    failures: u32,
    ballot: Option<Ballot>,
    /// Instant until which the keys that blocked the last attempt live, as far as is known.
    taken_until: Option<BootInstant>,
    /// Waker of the caller that awaits the acquisition or the release.
    waiter: Option<Waker>,
    /// Wakers of the callers that await the end of the lease.
    watchers: BTreeMap<u64, Waker>,
    extenders: Extenders,
    /// Number of failed extensions since the last successful one.
    failed_extensions: u32,
    /// T1 of the last keep-alive extension that was reported to observers.
    renewed: Option<BootInstant>,
    /// True if the caller has dropped its handle and will not fetch the outcome.
    abandoned: bool,
}

/// All uses whose outcome has not been fetched yet.
#[derive(Debug, Default)]
pub(super) struct Uses {
    table: BTreeMap<LockId, Use>,
    watches: u64,
}

/// Owner and resource of a use that has ended.
pub(super) struct EndedUse {
    pub(super) owner: Token,
    pub(super) resource: ResourceId,
}

/// Identifies a caller that awaits the end of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Watch(u64);

impl Uses {
    pub(super) fn open(
        &mut self,
        lock: LockId,
        resource: ResourceId,
        ttl: Duration,
        now: BootInstant,
        waiter: Waker,
    ) {
        let entry = Use {
            resource,
            ttl,
            owner: Token::from_bytes([0; Token::LENGTH]),
            stage: Stage::Trying,
            since: now,
            lost: None,
            failures: 0,
            ballot: None,
            taken_until: None,
            waiter: Some(waiter),
            watchers: BTreeMap::new(),
            extenders: Extenders::default(),
            failed_extensions: 0,
            renewed: None,
            abandoned: false,
        };
        let before = self.table.insert(lock, entry);
        debug_assert!(before.is_none(), "a use of the lock is named once");
    }

    /// Returns the resource and TTL of the attempts of `lock`.
    pub(super) fn terms(&self, lock: LockId) -> (ResourceId, Duration) {
        let entry = &self.table[&lock];
        (entry.resource, entry.ttl)
    }

    pub(super) fn resource(&self, lock: LockId) -> Option<ResourceId> {
        self.table.get(&lock).map(|entry| entry.resource)
    }

    /// Returns the number of failed attempts of an acquisition, and its start time.
    pub(super) fn acquiring(&self, lock: LockId) -> Option<(u32, BootInstant)> {
        let entry = self.table.get(&lock)?;
        let acquiring = matches!(entry.stage, Stage::Trying | Stage::Decided);
        acquiring.then_some((entry.failures, entry.since))
    }

    /// Returns the owner and start time of a live lease; `None` if the lease is not held or was
    /// lost.
    pub(super) fn alive(&self, lock: LockId) -> Option<(Token, BootInstant)> {
        let entry = self.table.get(&lock)?;
        let alive = entry.stage == Stage::Held && entry.lost.is_none();
        alive.then_some((entry.owner, entry.since))
    }

    /// Returns true if the keep-alive extension with this `t1` was not reported yet; records it as
    /// reported.
    pub(super) fn is_new_round(&mut self, lock: LockId, t1: BootInstant) -> bool {
        let entry = self.table.get_mut(&lock);
        entry.is_some_and(|entry| entry.renewed.replace(t1) != Some(t1))
    }

    pub(super) fn begin(&mut self, lock: LockId, owner: Token) {
        self.of(lock).owner = owner;
    }

    /// Records why no further attempt will follow, before the machine reports the end.
    pub(super) fn fail(&mut self, lock: LockId, kind: AcquireErrorKind) {
        self.of(lock).stage = Stage::GaveUp(kind);
    }

    /// Records a failed attempt; another may follow.
    pub(super) fn attempt_failed(&mut self, lock: LockId, ballot: Ballot) {
        if let Some(entry) = self.table.get_mut(&lock) {
            entry.failures += 1;
            entry.ballot = Some(ballot);
        }
    }

    /// Records the outcome of an extension. Returns the number of failures in a row: those before
    /// it if it succeeded, else including it.
    pub(super) fn extension_settled(
        &mut self,
        lock: LockId,
        outcome: Result<BootInstant, ExtendError>,
        wakes: &mut Wakes,
    ) -> u32 {
        let Some(entry) = self.table.get_mut(&lock) else {
            return 0;
        };
        entry.extenders.settle(outcome, wakes);
        let failed = entry.failed_extensions;
        entry.failed_extensions = if outcome.is_ok() { 0 } else { failed + 1 };
        failed.max(entry.failed_extensions)
    }

    pub(super) fn extenders(&mut self, lock: LockId) -> &mut Extenders {
        &mut self.of(lock).extenders
    }

    pub(super) fn extenders_if_known(&mut self, lock: LockId) -> Option<&mut Extenders> {
        self.table.get_mut(&lock).map(|entry| &mut entry.extenders)
    }

    /// Returns the uses that have not ended, from their callers' point of view.
    pub(super) fn under_way(&self) -> Vec<LockId> {
        let under_way = self.table.iter().filter(|(_, entry)| {
            matches!(entry.stage, Stage::Held | Stage::Trying | Stage::Decided)
        });
        under_way.map(|(&lock, _)| lock).collect()
    }

    /// Ends a use because the client is closed.
    pub(super) fn close(&mut self, lock: LockId, wakes: &mut Wakes) {
        let entry = self.of(lock);
        match entry.stage {
            Stage::Held => {
                entry.lost.get_or_insert(LostReason::Closed);
                entry.stage = Stage::Releasing;
                wakes.extend(core::mem::take(&mut entry.watchers).into_values());
            }
            Stage::Trying | Stage::Decided => {
                entry.stage = Stage::GaveUp(AcquireErrorKind::Closed);
                wakes.extend(entry.waiter.take());
            }
            _ => {}
        }
    }

    pub(super) fn decided(&mut self, lock: LockId, wakes: &mut Wakes) {
        let entry = self.of(lock);
        entry.stage = Stage::Decided;
        wakes.extend(entry.waiter.take());
    }

    pub(super) fn gave_up(
        &mut self,
        lock: LockId,
        kind: AcquireErrorKind,
        taken_until: Option<BootInstant>,
        wakes: &mut Wakes,
    ) -> Option<ResourceId> {
        let entry = self.table.get_mut(&lock)?;
        entry.taken_until = taken_until;
        let resource = entry.resource;
        if !matches!(entry.stage, Stage::GaveUp(_)) {
            entry.stage = Stage::GaveUp(kind);
        }
        self.ended(lock, wakes);
        Some(resource)
    }

    pub(super) fn lost(&mut self, lock: LockId, reason: LostReason, wakes: &mut Wakes) {
        if let Some(entry) = self.table.get_mut(&lock) {
            entry.lost = Some(reason);
            wakes.extend(core::mem::take(&mut entry.watchers).into_values());
        }
    }

    pub(super) fn released(
        &mut self,
        lock: LockId,
        outcome: ReleaseOutcome,
        wakes: &mut Wakes,
    ) -> Option<EndedUse> {
        let entry = self.table.get_mut(&lock)?;
        if !matches!(entry.stage, Stage::GaveUp(_)) {
            entry.stage = Stage::Released(outcome);
        }
        let ended = EndedUse { owner: entry.owner, resource: entry.resource };
        self.ended(lock, wakes);
        Some(ended)
    }

    /// Ends a use that the machine has forgotten: wakes its callers, and removes it if no caller
    /// will fetch the outcome.
    fn ended(&mut self, lock: LockId, wakes: &mut Wakes) {
        let entry = self.of(lock);
        wakes.extend(entry.waiter.take());
        wakes.extend(core::mem::take(&mut entry.watchers).into_values());
        if entry.abandoned {
            self.table.remove(&lock);
        }
    }

    /// Wakes all callers that wait for anything: their next polls start the tasks that are not
    /// running.
    pub(super) fn wake_all(&self, wakes: &mut Wakes) {
        for entry in self.table.values() {
            wakes.extend(entry.waiter.iter().chain(entry.watchers.values()).cloned());
            wakes.extend(entry.extenders.wakers().cloned());
        }
    }

    fn of(&mut self, lock: LockId) -> &mut Use {
        self.table.get_mut(&lock).expect("a use is known until its end has been fetched")
    }
}

/// Calls of the handles.
impl Driver {
    /// Returns the grant, once there is one. A grant is handed over only if its validity suffices
    /// *now*: the caller may have been paused since the decision (catalogue K6).
    pub(crate) fn poll_acquired(
        &self,
        lock: LockId,
        context: &Context<'_>,
    ) -> Poll<Result<Grant, AcquireError>> {
        self.turn(|state, now| {
            let State { uses, machine, names, .. } = state;
            let entry = uses.of(lock);
            if let Stage::GaveUp(kind) = entry.stage {
                let (attempts, ballot) = (entry.failures, entry.ballot);
                let retry_at = match kind {
                    AcquireErrorKind::Quarantined => machine.quorum_from(),
                    AcquireErrorKind::Taken => entry.taken_until,
                    _ => None,
                };
                uses.table.remove(&lock);
                let nodes = self.node_answers(state, ballot);
                let error = AcquireError::new(kind).after_attempts(attempts, nodes);
                return Poll::Ready(Err(error.until(retry_at.map(|at| at.since(now)))));
            }
            entry.waiter = Some(context.waker().clone());
            if entry.stage == Stage::Decided {
                if let Ok(grant) = machine.deliver(lock, now) {
                    entry.stage = Stage::Held;
                    entry.waiter = None;
                    let waited = now.since(core::mem::replace(&mut entry.since, now));
                    self.tell(|| Told::Delivered {
                        owner: grant.token,
                        resource: names.name(entry.resource),
                        deadline: Deadline::new(grant.deadline),
                        attempts: entry.failures,
                        waited,
                    });
                    return Poll::Ready(Ok(grant));
                }
                // Another attempt follows, or the machine reports that none does.
                entry.stage = Stage::Trying;
            }
            Poll::Pending
        })
    }

    /// Checks that the lease has more than `need` left.
    pub(crate) fn check(&self, lock: LockId, need: Duration) -> Result<(), LostReason> {
        self.turn(|state, now| {
            let lost = state.uses.table.get(&lock).and_then(|entry| entry.lost);
            let checked = state.machine.check(lock, need, now);
            checked.map_err(|reason| lost.unwrap_or(reason.into()))
        })
    }

    /// Polls for the end of the lease. Ready when the lease is over.
    pub(crate) fn poll_lost(
        &self,
        lock: LockId,
        watch: &mut Option<Watch>,
        context: &Context<'_>,
    ) -> Poll<LostReason> {
        // After a pause, for example, the timer may not have run yet.
        self.turn(|state, now| state.machine.handle_lock_timeout(now));
        self.turn(|state, _| {
            let Uses { table, watches } = &mut state.uses;
            let Some(entry) = table.get_mut(&lock) else {
                return Poll::Ready(LostReason::Released);
            };
            if let Some(reason) = entry.lost {
                return Poll::Ready(reason);
            }
            if entry.stage != Stage::Held {
                return Poll::Ready(LostReason::Released);
            }
            let &mut Watch(name) = watch.get_or_insert_with(|| {
                *watches += 1;
                Watch(*watches)
            });
            entry.watchers.insert(name, context.waker().clone());
            Poll::Pending
        })
    }

    /// Removes a caller that awaited the end of the lease.
    pub(crate) fn unwatch(&self, lock: LockId, Watch(name): Watch) {
        self.last_turn(|state, _| {
            if let Some(entry) = state.uses.table.get_mut(&lock) {
                entry.watchers.remove(&name);
            }
        });
    }

    /// Begins to release the lease, or cancels the acquisition: queues the commands to be written.
    fn begin_release(&self, state: &mut State, lock: LockId, now: BootInstant) {
        let Some(entry) = state.uses.table.get_mut(&lock) else {
            return;
        };
        let time = now.since(entry.since);
        match entry.stage {
            Stage::Held => self.tell(|| Told::ReleaseCalled {
                owner: entry.owner,
                resource: state.names.name(entry.resource),
                held: time,
                lost: entry.lost,
            }),
            Stage::Trying | Stage::Decided => self.tell(|| Told::AcquireCancelled {
                resource: state.names.name(entry.resource),
                attempts: entry.failures,
                waited: time,
            }),
            _ => {}
        }
        if matches!(entry.stage, Stage::Held | Stage::Trying | Stage::Decided) {
            entry.stage = Stage::Releasing;
            state.wakes.extend(core::mem::take(&mut entry.watchers).into_values());
            state.machine.release(lock, now);
        }
    }

    /// Leaves the lease to expire without a release.
    pub(crate) fn leave(&self, lock: LockId) {
        self.last_turn(|state, now| {
            state.machine.leave(lock, now);
            if let Some(entry) = state.uses.table.remove(&lock) {
                self.tell(|| Told::LeftToExpire {
                    owner: entry.owner,
                    resource: state.names.name(entry.resource),
                    held: now.since(entry.since),
                    lost: entry.lost,
                });
                state.wakes.extend(entry.watchers.into_values());
                state.names.retire(entry.resource);
            }
        });
    }

    /// Returns the deadline of the lease; `None` if it has ended.
    pub(crate) fn deadline(&self, lock: LockId) -> Option<BootInstant> {
        self.turn(|state, _| state.machine.deadline(lock))
    }

    /// Releases the lease. Ready once, with the nodes' answers, when every node has answered or was
    /// given up.
    pub(crate) fn poll_release(&self, lock: LockId, context: &Context<'_>) -> Poll<ReleaseOutcome> {
        self.turn(|state, now| {
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
        if self.state.is_poisoned() || !self.lock().uses.table.contains_key(&lock) {
            return;
        }
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
