//! Pushes: messages that no request asked for, on their way to the tasks of connections.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use redis_sim::resp::Value;

/// A queue of messages for each connection of a node.
#[derive(Debug, Default)]
pub(super) struct Pushes(Mutex<BTreeMap<u64, UnboundedSender<Value>>>);

impl Pushes {
    /// Creates the queue of a new connection.
    pub(super) fn open(&self, connection: u64) -> UnboundedReceiver<Value> {
        let (sender, receiver) = unbounded_channel();
        self.queues().insert(connection, sender);
        receiver
    }

    pub(super) fn close(&self, connection: u64) {
        self.queues().remove(&connection);
    }

    /// Queues messages, each with the number of its connection, which wakes the connection's task.
    pub(super) fn deliver(&self, messages: Vec<(u64, Value)>) {
        if messages.is_empty() {
            return;
        }
        let queues = self.queues();
        for (connection, message) in messages {
            if let Some(queue) = queues.get(&connection) {
                // The connection may have ended meanwhile; its messages are dropped.
                let _ = queue.send(message);
            }
        }
    }

    fn queues(&self) -> MutexGuard<'_, BTreeMap<u64, UnboundedSender<Value>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
