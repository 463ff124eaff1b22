//! The client in a process that is not its own: a child forked without `exec`.
//!
//! The child has a copy of the client's state, but none of the threads that serve it, and its
//! sockets and its epoll instance are those of the parent. A thread that the child does not have
//! may hold the mutex for ever. And two processes must not believe in one lease. So in the child
//! the client is a closed one: every turn gets a state without uses, and neither the mutex nor a
//! socket is touched.

use core::sync::atomic::Ordering;
use std::sync::Arc;

use redlock_protocol::{BootInstant, NodeMask, ReleaseOutcome};

use super::{Driver, State};
use crate::error::{AcquireError, AcquireErrorKind};

const WHY: &str = "the client belongs to the process from which this one was forked: build a new client in a child";

impl Driver {
    /// Makes the client that of this process, if it is nobody's yet.
    pub(super) fn belong_here(&self) {
        let here = self.environment.process();
        // Kept for ever: another process never knows whether the first one still uses the client.
        let _ = self.process.compare_exchange(0, here, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Returns true if the client belongs to another process.
    pub(super) fn is_inherited(&self) -> bool {
        let process = self.process.load(Ordering::Relaxed);
        process != 0 && process != self.environment.process()
    }

    /// Runs `act` on the state of a closed client.
    pub(super) fn turn_inherited<T>(&self, act: impl FnOnce(&mut State, BootInstant) -> T) -> T {
        let now = self.environment.now();
        let mut state = State::new(&self.links);
        (state.closed, state.closing, state.inherited, state.clock) = (true, true, true, now);
        for node in &mut state.nodes {
            (node.last_error, node.error_at) = (Some(Arc::from(WHY)), now);
        }
        act(&mut state, now)
    }
}

impl State {
    /// # Errors
    ///
    /// If the client is closed.
    pub(super) fn refuse_if_closed(&self) -> Result<(), AcquireError> {
        match (self.inherited, self.closed) {
            (true, _) => Err(refusal()),
            (false, true) => Err(AcquireError::new(AcquireErrorKind::Closed)),
            (false, false) => Ok(()),
        }
    }

    /// Returns the outcome of a release that this process cannot send: it is the owner's to
    /// release.
    pub(super) fn not_released(&self) -> ReleaseOutcome {
        let mut unconfirmed = NodeMask::default();
        self.machine.nodes().iter().for_each(|node| unconfirmed.insert(node));
        ReleaseOutcome { unconfirmed, ..ReleaseOutcome::default() }
    }
}

/// Returns the error of an acquisition by a client of another process.
pub(in crate::driver) fn refusal() -> AcquireError {
    AcquireError::new(AcquireErrorKind::Closed).because(WHY)
}

#[cfg(test)]
mod tests;
