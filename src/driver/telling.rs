//! Observer events that do not come from an event of the machines.

use redlock_protocol::{BootInstant, LockId, NodeIndex, RunId};

use super::{Driver, State};
use crate::error::{AcquireErrorKind, LostReason};
use crate::health::Standing;
use crate::observe::{self, Instant};

impl Driver {
    /// Passes an event to all observers.
    pub(super) fn tell<'a>(&self, event: impl FnOnce() -> observe::Event<'a>) {
        self.observers.tell(event);
    }

    /// Records the server at `node`, and reports it if it is at another node, too.
    pub(super) fn tell_twin(&self, state: &mut State, node: NodeIndex, run_id: RunId) {
        let place = node.get();
        if state.nodes[place].run_id.replace(run_id) == Some(run_id) {
            return;
        }
        let mut others = state.nodes.iter().enumerate().filter(|&(other, _)| other != place);
        if let Some((other, _)) = others.find(|(_, entry)| entry.run_id == Some(run_id)) {
            self.tell(|| observe::Event::SameServer { node: place, other });
        }
    }

    /// Reports a change of the instant from which the votes of `node` count, or the end of its
    /// quarantine.
    pub(super) fn tell_eligibility(&self, state: &mut State, node: NodeIndex, now: BootInstant) {
        let from = state.machine.eligible_from(node);
        let entry = &mut state.nodes[node.get()];
        let changed = entry.eligible_from != from;
        if !changed && !entry.quarantined {
            return;
        }
        entry.eligible_from = from;
        let standing = Standing::from(state.machine.standing(node, now));
        let quarantined = matches!(standing, Standing::Quarantined(_));
        let ended = core::mem::replace(&mut entry.quarantined, quarantined) && !quarantined;
        if changed || ended {
            state.waiters.wake_all(&mut state.wakes);
        }
        let (node, from) = (node.get(), from.map(Instant::new));
        if changed {
            self.tell(|| observe::Event::Eligible { node, from, standing });
        } else if ended {
            self.tell(|| observe::Event::QuarantineEnded { node });
        }
    }

    /// Reports a failed acquisition, unless its caller has dropped it or its failure was reported
    /// before.
    pub(super) fn tell_failed(
        &self,
        state: &State,
        lock: LockId,
        kind: AcquireErrorKind,
        now: BootInstant,
    ) {
        if let Some((attempts, since)) = state.uses.acquiring(lock) {
            let (resource, waited) = (state.name_of(lock), now.since(since));
            self.tell(|| observe::Event::AcquireFailed { resource, kind, attempts, waited });
        }
    }

    /// Reports the loss of a lease, unless it was lost before or is not held.
    pub(super) fn tell_lost(
        &self,
        state: &State,
        lock: LockId,
        reason: LostReason,
        now: BootInstant,
    ) {
        if let Some((owner, since)) = state.uses.alive(lock) {
            let (resource, held) = (state.name_of(lock), now.since(since));
            self.tell(|| observe::Event::Lost { owner, resource, reason, held });
        }
    }
}

impl State {
    /// Returns the name of the resource of `lock`; empty if no caller has a handle of that use.
    pub(super) fn name_of(&self, lock: LockId) -> &[u8] {
        self.uses.resource(lock).map_or(&[], |resource| self.names.name(resource))
    }
}
