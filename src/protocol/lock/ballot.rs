//! What the nodes had said to an attempt when it was settled.

use core::time::Duration;

use crate::protocol::quorum::{MAX_NODES, NodeIndex};
use crate::protocol::time::BootInstant;

/// One node's part in an attempt that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeVerdict {
    /// It was not asked: no connection took the command in time.
    #[default]
    NotAsked,
    /// It was asked, and had not answered when the attempt was settled.
    Pending,
    /// It set the key.
    Granted,
    /// It set the key, and its vote does not count: it is in quarantine, or a replica.
    NotCounted,
    /// Another attempt's key was there.
    Taken,
    /// It answered by an error.
    Error,
    /// It did not answer in time.
    Silent,
}

/// What every node had said, and how long after T1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ballot {
    verdicts: [NodeVerdict; MAX_NODES],
    after_us: [u32; MAX_NODES],
}

impl Ballot {
    /// What `node` had said, and how long after T1 that was known; zero while it had said nothing.
    #[must_use]
    pub fn of(&self, node: NodeIndex) -> (NodeVerdict, Duration) {
        let after = Duration::from_micros(u64::from(self.after_us[node.get()]));
        (self.verdicts[node.get()], after)
    }

    pub(super) fn record(&mut self, node: NodeIndex, verdict: NodeVerdict) {
        self.verdicts[node.get()] = verdict;
    }

    /// The answer of `node`, or its absence, was known at `now`.
    pub(super) fn heard(&mut self, node: NodeIndex, t1: BootInstant, now: BootInstant) {
        let after = now.since(t1).as_micros();
        self.after_us[node.get()] = u32::try_from(after).unwrap_or(u32::MAX);
    }
}
