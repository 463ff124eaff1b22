//! Ids that tell server processes apart.

#![expect(clippy::disallowed_types, reason = "two processes must not be alike")]
#![expect(clippy::disallowed_methods, reason = "two processes must not be alike")]

use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use sha1::{Digest, Sha1};

use lock_judge::history::NodeId;

/// Returns the `run_id` of the `incarnation`-th process of `node`. It is unique among all processes
/// ever, because clients use it to detect that a server may have forgotten keys.
pub(super) fn run_id(node: NodeId, incarnation: u32) -> [u8; 20] {
    static BEGUN_NS: OnceLock<u128> = OnceLock::new();
    let begun_ns = BEGUN_NS.get_or_init(|| {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos()
    });
    static FLEETS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let draw = FLEETS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let mut digest = Sha1::new();
    digest.update(begun_ns.to_be_bytes());
    digest.update(std::process::id().to_be_bytes());
    digest.update(draw.to_be_bytes());
    digest.update([node.0]);
    digest.update(incarnation.to_be_bytes());
    digest.finalize().into()
}
