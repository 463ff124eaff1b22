//! Uses of a lock for which callers have handles: acquisitions and leases.

mod calls;

use core::task::Waker;
use core::time::Duration;
use std::collections::BTreeMap;

use redlock_protocol::{
    Ballot, BootInstant, ExtendError, LockId, ReleaseOutcome, ResourceId, Token,
};

use super::extensions::Extenders;
use super::wakers::Wakers;
use super::wakes::Wakes;
use crate::error::{AcquireErrorKind, LostReason};

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
    /// True if the last attempt was granted in time, but the caller fetched the grant too late.
    fetched_late: bool,
    /// Remaining life of the keys that blocked the last attempt, as far as is known, and the instant
    /// of the report. Their sum can exceed the last representable instant.
    taken_for: Option<(Duration, BootInstant)>,
    /// Waker of the caller that awaits the acquisition or the release.
    waiter: Option<Waker>,
    /// Wakers of the callers that await the end of the lease.
    watchers: Wakers,
    extenders: Extenders,
    /// Number of failed extensions since the last successful one.
    failed_extensions: u32,
    /// True if the caller has dropped its handle and will not fetch the outcome.
    abandoned: bool,
}

/// All uses whose outcome has not been fetched yet.
#[derive(Debug, Default)]
pub(super) struct Uses {
    table: BTreeMap<LockId, Use>,
}

/// Owner and resource of a use that has ended.
pub(super) struct EndedUse {
    pub(super) owner: Token,
    pub(super) resource: ResourceId,
}

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
            fetched_late: false,
            taken_for: None,
            waiter: Some(waiter),
            watchers: Wakers::default(),
            extenders: Extenders::default(),
            failed_extensions: 0,
            abandoned: false,
        };
        let before = self.table.insert(lock, entry);
        debug_assert!(before.is_none(), "a use of the lock is named once");
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

    /// Records the owner of an attempt that begins. Returns its resource and TTL.
    pub(super) fn begin(&mut self, lock: LockId, owner: Token) -> (ResourceId, Duration) {
        let entry = self.of(lock);
        entry.owner = owner;
        (entry.resource, entry.ttl)
    }

    /// Records why no further attempt will follow, before the machine reports the end.
    pub(super) fn fail(&mut self, lock: LockId, kind: AcquireErrorKind) {
        self.of(lock).stage = Stage::GaveUp(kind);
    }

    /// Records a failed attempt; another may follow. One that was decided before had a grant.
    pub(super) fn attempt_failed(&mut self, lock: LockId, ballot: Ballot) {
        if let Some(entry) = self.table.get_mut(&lock) {
            entry.failures += 1;
            entry.ballot = Some(ballot);
            entry.fetched_late = entry.stage == Stage::Decided;
            if entry.fetched_late {
                entry.stage = Stage::Trying;
            }
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
            Stage::Held => self.end_lease(lock, LostReason::Closed, wakes),
            Stage::Trying | Stage::Decided => {
                entry.stage = Stage::GaveUp(AcquireErrorKind::Closed);
                wakes.extend(entry.waiter.take());
            }
            _ => {}
        }
    }

    /// Ends a held lease, whose release is to begin. A lease that was lost keeps its reason.
    pub(super) fn end_lease(&mut self, lock: LockId, reason: LostReason, wakes: &mut Wakes) {
        let entry = self.of(lock);
        entry.lost.get_or_insert(reason);
        entry.stage = Stage::Releasing;
        entry.watchers.wake_all(wakes);
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
        taken_for: Option<(Duration, BootInstant)>,
        wakes: &mut Wakes,
    ) -> Option<ResourceId> {
        let entry = self.table.get_mut(&lock)?;
        entry.taken_for = taken_for;
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
            entry.watchers.wake_all(wakes);
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
        entry.watchers.wake_all(wakes);
        if entry.abandoned {
            self.table.remove(&lock);
        }
    }

    /// Wakes all callers that wait for anything: their next polls start the tasks that are not
    /// running.
    pub(super) fn wake_all(&mut self, wakes: &mut Wakes) {
        for entry in self.table.values_mut() {
            wakes.extend(entry.waiter.take());
            entry.watchers.wake_all(wakes);
            entry.extenders.wake_all(wakes);
        }
    }

    fn of(&mut self, lock: LockId) -> &mut Use {
        self.table.get_mut(&lock).expect("a use is known until its end has been fetched")
    }
}
