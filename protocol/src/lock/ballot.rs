//! The nodes' verdicts on an attempt at the time it was settled.

use core::time::Duration;

use crate::quorum::{MAX_NODES, NodeIndex};
use crate::time::BootInstant;

/// One node's part in an attempt that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeVerdict {
    /// The node was not asked: no connection took the command in time.
    #[default]
    NotAsked,
    /// The node was asked, and had not answered when the attempt was settled.
    Pending,
    /// The node set the key.
    Granted,
    /// The node set the key, but its vote does not count: it is in quarantine, or a replica.
    NotCounted,
    /// The node refused: another attempt's key was there.
    Taken,
    /// The node answered with an error.
    Error,
    /// The node did not answer in time.
    Silent,
}

/// Every node's verdict, and the time after T1 at which it was known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ballot {
    verdicts: [NodeVerdict; MAX_NODES],
    after_us: [u32; MAX_NODES],
}

impl Ballot {
    /// Returns the verdict of `node` and the time after T1 at which it was known; zero while the
    /// verdict is pending.
    #[must_use]
    pub fn of(&self, node: NodeIndex) -> (NodeVerdict, Duration) {
        let after = Duration::from_micros(u64::from(self.after_us[node.get()]));
        (self.verdicts[node.get()], after)
    }

    pub(super) fn record(&mut self, node: NodeIndex, verdict: NodeVerdict) {
        self.verdicts[node.get()] = verdict;
    }

    /// Records that the answer of `node`, or its absence, was known at `now`.
    pub(super) fn heard(&mut self, node: NodeIndex, t1: BootInstant, now: BootInstant) {
        let after = now.since(t1).as_micros();
        self.after_us[node.get()] = u32::try_from(after).unwrap_or(u32::MAX);
    }
}
