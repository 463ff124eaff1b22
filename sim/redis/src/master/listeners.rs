//! Connections to which a server sends messages that they did not request.

use super::Master;
use crate::events::Event;

impl Master {
    /// Begins the execution of a request of `connection`.
    pub(crate) fn begin_request(&mut self, connection: u64) {
        self.tracked.begin(connection, &mut self.pushes);
    }

    /// Publishes a message. Returns the number of subscriptions that receive it.
    pub(crate) fn publish(&mut self, is_shard: bool, channel: &[u8], payload: &[u8]) -> usize {
        self.subscribed.publish(is_shard, channel, payload, &mut self.pushes)
    }

    /// Pushes `key` to the connections that read it although it has not changed: a key of the same
    /// name has changed in another database, and servers register keys by name alone.
    pub fn change_elsewhere(&mut self, key: &[u8]) {
        self.tracked.note(key, &mut self.pushes);
    }

    /// Returns true if keyspace events are sent and anybody may hear them.
    pub(crate) fn has_events(&self) -> bool {
        !self.subscribed.is_empty() && !self.events.is_off()
    }

    /// Publishes a keyspace event if the configuration names its class.
    pub(crate) fn notify(&mut self, event: Event<'_>) {
        self.subscribed.notify(self.events, event, &mut self.pushes);
    }

    /// Forgets a closed connection: nothing more is pushed to it.
    pub(crate) fn close(&mut self, connection: u64) {
        self.tracked.close(connection);
        self.subscribed.close(connection);
        self.blocked.end(connection);
        self.pushes.close(connection);
    }

    /// Forgets all connections: a new process starts.
    pub(super) fn forget_listeners(&mut self) {
        self.tracked.clear();
        self.subscribed.clear();
        self.blocked.clear();
        self.pushes.clear();
    }
}
