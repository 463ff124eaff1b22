//! The events for keys that end and that return.

use lock_judge::history::{EventKind, NodeId};
use redis_sim::{Ended, Entry};

use crate::keys::{cause_of, writer_of};
use crate::plan::Plan;

/// Returns true if a key that ended is a lock's: named so, and in the clients' database.
pub(crate) fn is_a_locks(ended: &Ended, plan: &Plan) -> bool {
    ended.database == 0 && plan.resource_at(&ended.key).is_some()
}

/// Returns the event for a key that ended on `node`.
pub(crate) fn key_ended(node: NodeId, ended: &Ended) -> EventKind {
    EventKind::KeyEnded {
        node,
        writer: writer_of(ended.writer),
        cause: cause_of(ended.cause),
        by: writer_of(ended.by),
        expires_wall_ms: ended.expires_wall_ms.unwrap_or(u64::MAX),
    }
}

/// Returns the event for a key that had ended and is on `node` again.
pub(crate) fn key_returned(node: NodeId, entry: &Entry) -> EventKind {
    EventKind::KeyReturned {
        node,
        writer: writer_of(entry.writer),
        expires_wall_ms: entry.expires_wall_ms.unwrap_or(u64::MAX),
    }
}
