//! Connections whose request waits.

use super::{Server, Session};
use crate::pushes::{Message, Release};
use crate::resp::Value;

impl Session {
    /// Ends the wait that [`Answer::Block`](super::Answer::Block) began, because its timeout has
    /// passed. Returns the reply; `None` if the connection does not wait any more.
    pub fn time_out(&self, server: &mut Server) -> Option<Value> {
        let waiter = server.blocked.end(self.id)?;
        Some(released(Release::Nothing, waiter.is_silent))
    }
}

impl Server {
    /// Returns true if a request of the connection waits, so that its later requests must not be
    /// executed.
    #[must_use]
    pub fn is_blocked(&self, connection: u64) -> bool {
        self.blocked.contains(connection)
    }

    /// Ends the wait of a connection with this reply. Returns false if it does not wait.
    pub(crate) fn unblock(&mut self, connection: u64, release: Release) -> bool {
        let Some(waiter) = self.blocked.end(connection) else { return false };
        let is_silent = waiter.is_silent;
        self.pushes.add(connection, Message::Released { release, is_silent });
        true
    }

    /// Ends all waits with an error and closes the connections: the server becomes a replica.
    pub(super) fn unblock_all(&mut self) {
        for connection in self.blocked.connections() {
            let text = "UNBLOCKED force unblock from blocking operation, instance state changed \
                        (master -> replica?)";
            self.unblock(connection, Release::Refused(text));
            self.clients.close_later(connection);
        }
    }
}

/// Returns the reply to a request that has waited. It is not a [`Value::Push`], unlike the messages
/// that a connection may get while its request waits.
pub(super) fn released(release: Release, is_silent: bool) -> Value {
    match release {
        _ if is_silent => Value::Sequence(Vec::new()),
        Release::Popped(key, value) => {
            Value::Array(vec![Value::Bulk(key.share()), Value::Bulk(value.share())])
        }
        Release::Nothing => Value::NullArray,
        Release::Refused(text) => Value::error(text),
    }
}
