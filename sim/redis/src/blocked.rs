//! Connections that wait for an element of a list (`BLPOP`, `BRPOP`).

use std::collections::BTreeMap;

use crate::command::ListEnd;
use crate::{SmallBytes, Writer, trees};

/// The waiting connections of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Blocked {
    waiters: BTreeMap<u64, Waiter>,
    /// The connections that wait for each key, in the order in which they began. No queue is empty.
    queues: BTreeMap<(u8, SmallBytes), Vec<u64>>,
    /// Keys that may have got elements, in this order.
    ready: Vec<(u8, SmallBytes)>,
}

/// A connection's wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Waiter {
    pub(super) database: u8,
    pub(super) keys: Vec<SmallBytes>,
    /// End of the list from which the connection wants an element.
    pub(super) end: ListEnd,
    /// Writer of the request that waits.
    pub(super) writer: Writer,
    /// True if the connection gets no reply to the request.
    pub(super) is_silent: bool,
}

impl Blocked {
    /// Returns true if no connection waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    /// Returns true if the connection waits.
    pub(super) fn contains(&self, connection: u64) -> bool {
        self.waiters.contains_key(&connection)
    }

    pub(super) fn begin(&mut self, connection: u64, waiter: Waiter) {
        for key in &waiter.keys {
            let queue = self.queues.entry((waiter.database, key.clone())).or_default();
            if !queue.contains(&connection) {
                queue.push(connection);
            }
        }
        self.waiters.insert(connection, waiter);
    }

    /// Records that the connection gets no reply to the request that waits.
    pub(super) fn silence(&mut self, connection: u64) {
        if let Some(waiter) = self.waiters.get_mut(&connection) {
            waiter.is_silent = true;
        }
    }

    /// Ends the wait of a connection, and returns what it waited for, if it did.
    pub(super) fn end(&mut self, connection: u64) -> Option<Waiter> {
        let waiter = self.waiters.remove(&connection)?;
        for key in &waiter.keys {
            let place = (waiter.database, key.clone());
            let Some(queue) = self.queues.get_mut(&place) else { continue };
            queue.retain(|other| *other != connection);
            if queue.is_empty() {
                self.queues.remove(&place);
            }
        }
        Some(waiter)
    }

    /// Returns the connections that wait, by number.
    pub(super) fn connections(&self) -> Vec<u64> {
        self.waiters.keys().copied().collect()
    }

    /// Returns the keys of a database for which a connection waits, in order.
    pub(super) fn keys(&self, database: u8) -> Vec<SmallBytes> {
        let keys = self.queues.keys().filter(|(it, _)| *it == database);
        keys.map(|(_, key)| key.clone()).collect()
    }

    /// Records that `key` may have got elements. Costs nothing if no connection waits.
    pub(super) fn note(&mut self, database: u8, key: &[u8]) {
        if self.is_empty() {
            return;
        }
        let place = (database, SmallBytes::new(key));
        if self.queues.contains_key(&place) && !self.ready.contains(&place) {
            self.ready.push(place);
        }
    }

    /// Returns true if a key may have got elements.
    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Takes the keys that may have got elements.
    pub(super) fn take_ready(&mut self) -> Vec<(u8, SmallBytes)> {
        core::mem::take(&mut self.ready)
    }

    /// Returns the connection that has waited for a key longest.
    pub(super) fn first(&self, database: u8, key: &SmallBytes) -> Option<(u64, &Waiter)> {
        let connection = *self.queues.get(&(database, key.clone()))?.first()?;
        Some((connection, self.waiters.get(&connection)?))
    }

    /// Forgets everything: a new process starts.
    pub(super) fn clear(&mut self) {
        trees::clear(&mut self.waiters);
        trees::clear(&mut self.queues);
        self.ready.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiter(keys: &[&[u8]]) -> Waiter {
        let keys = keys.iter().map(|key| SmallBytes::new(key)).collect();
        let (end, writer) = (ListEnd::Head, Writer::Operator);
        Waiter { database: 0, keys, end, writer, is_silent: false }
    }

    #[test]
    fn the_longest_wait_is_first_and_leaves_nothing() {
        let (mut blocked, key) = (Blocked::default(), SmallBytes::new(b"a"));
        blocked.begin(2, waiter(&[b"a", b"b", b"a"]));
        blocked.begin(1, waiter(&[b"a"]));
        for first in [2, 1] {
            assert_eq!(blocked.first(0, &key).map(|it| it.0), Some(first));
            assert!(blocked.end(first).is_some() && blocked.end(first).is_none());
        }
        assert_eq!(blocked, Blocked::default());
    }

    #[test]
    fn a_key_is_ready_once_and_only_if_a_connection_waits_for_it() {
        let mut blocked = Blocked::default();
        blocked.note(0, b"a");
        blocked.begin(1, waiter(&[b"b", b"a"]));
        [(0, "a"), (1, "b"), (0, "b"), (0, "a"), (0, "c")]
            .into_iter()
            .for_each(|(database, key)| blocked.note(database, key.as_bytes()));
        let ready = [b"a", b"b"].map(|key| (0, SmallBytes::new(key)));
        assert_eq!(blocked.take_ready(), ready);
        assert_eq!(blocked.keys(0).len(), 2);
        assert_eq!(blocked.take_ready(), []);
    }
}
