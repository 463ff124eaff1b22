//! The events for keys that end and that return.

use crate::history::{EventKind, NodeId};
use crate::master::{Ended, Entry};

/// Returns the event for a key that ended on `node`.
pub(crate) fn key_ended(node: NodeId, ended: &Ended) -> EventKind {
    EventKind::KeyEnded {
        node,
        writer: ended.writer,
        cause: ended.cause,
        by: ended.by,
        expires_wall_ms: ended.expires_wall_ms.unwrap_or(u64::MAX),
    }
}

/// Returns the event for a key that had ended and is on `node` again.
pub(crate) fn key_returned(node: NodeId, entry: &Entry) -> EventKind {
    EventKind::KeyReturned {
        node,
        writer: entry.writer,
        expires_wall_ms: entry.expires_wall_ms.unwrap_or(u64::MAX),
    }
}
