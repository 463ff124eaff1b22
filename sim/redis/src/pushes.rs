//! Undelivered messages to connections: invalidations of client-side caching and publications.

use core::ops::Range;

use crate::SmallBytes;
use crate::resp::Value;

/// The messages of one process that its transport has not taken yet, in the order of their causes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pushes {
    queue: Vec<Push>,
    /// Messages that join the queue when the execution of the request ends.
    deferred: Vec<Push>,
}

/// A message for one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Push {
    pub(super) connection: u64,
    pub(super) message: Message,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// An invalidation for this connection, in the form in which it is sent.
    Addressed(Value),
    /// A key has changed; `None`: all keys. The connection is the one that tracks keys, even if it
    /// redirects its messages.
    Invalidated(Option<SmallBytes>),
    /// The reply to a request that has waited.
    Released {
        release: Release,
        /// True if the connection gets no reply.
        is_silent: bool,
    },
    /// A message of a channel.
    Published { source: Source, channel: SmallBytes, payload: SmallBytes },
}

/// End of a wait for an element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Release {
    /// The connection got an element of the list under this key.
    Popped(SmallBytes, SmallBytes),
    /// The connection got nothing.
    Nothing,
    /// The connection got an error.
    Refused(&'static str),
}

/// Kind of subscription through which a connection receives a publication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Channel,
    /// A pattern that matches the channel.
    Pattern(SmallBytes),
    Shard,
}

impl Pushes {
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn add(&mut self, connection: u64, message: Message) {
        self.queue.push(Push { connection, message });
    }

    /// Adds a message behind those that the execution of the request is going to add.
    pub(super) fn add_last(&mut self, connection: u64, message: Message) {
        self.deferred.push(Push { connection, message });
    }

    /// Returns the number of pending messages.
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Moves the messages at these places behind all that were added after them.
    pub(super) fn move_last(&mut self, places: Range<usize>) {
        self.queue[places.start..].rotate_left(places.len());
    }

    /// Ends the execution of a request.
    pub(super) fn end_request(&mut self) {
        self.queue.append(&mut self.deferred);
    }

    /// Takes all messages, in order.
    pub(super) fn take(&mut self) -> Vec<Push> {
        core::mem::take(&mut self.queue)
    }

    /// Takes the messages that `is_meant` selects, in order.
    pub(super) fn take_some(&mut self, is_meant: impl Fn(&Push) -> bool) -> Vec<Push> {
        if !self.queue.iter().any(&is_meant) {
            return Vec::new();
        }
        let (meant, rest) = self.take().into_iter().partition(is_meant);
        self.queue = rest;
        meant
    }

    /// Appends messages that were taken before.
    pub(super) fn put_back(&mut self, mut pushes: Vec<Push>) {
        self.queue.append(&mut pushes);
    }

    /// Drops the messages for a closed connection.
    pub(super) fn close(&mut self, connection: u64) {
        self.queue.retain(|push| push.connection != connection);
        self.deferred.retain(|push| push.connection != connection);
    }

    pub(super) fn clear(&mut self) {
        self.queue.clear();
        self.deferred.clear();
    }
}
