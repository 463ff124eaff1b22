//! Ids that tell server processes apart.

#![expect(clippy::disallowed_types, reason = "two processes must not be alike")]
#![expect(clippy::disallowed_methods, reason = "two processes must not be alike")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use sha1::{Digest, Sha1};

use lock_judge::history::NodeId;

/// Tells the processes of one run from those of all others.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunMark([u8; 20]);

impl RunMark {
    /// Returns a mark that no other run has, on any machine.
    pub(super) fn unique() -> Self {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut digest = Sha1::new();
        digest.update(now.as_nanos().to_be_bytes());
        digest.update(std::process::id().to_be_bytes());
        digest.update(RUNS.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        Self(digest.finalize().into())
    }

    /// Returns the mark of the simulated run of `seed`.
    pub(super) fn of_seed(seed: u64) -> Self {
        Self(Sha1::digest(seed.to_be_bytes()).into())
    }

    /// Returns the `run_id` of the `incarnation`-th process of `node`. It is unique among all
    /// processes of this run and of others, because clients use it to detect that a server may have
    /// forgotten keys.
    pub(super) fn run_id(self, node: NodeId, incarnation: u32) -> [u8; 20] {
        let mut digest = Sha1::new();
        digest.update(self.0);
        digest.update([node.0]);
        digest.update(incarnation.to_be_bytes());
        digest.finalize().into()
    }
}
