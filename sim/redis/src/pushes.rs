//! Undelivered messages to connections: invalidations of client-side caching and publications.

use crate::SmallBytes;

/// The messages of one process that its transport has not taken yet, in the order of their causes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pushes(Vec<Push>);

/// A message for one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Push {
    pub(super) connection: u64,
    pub(super) message: Message,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// A key has changed; `None`: all keys.
    Invalidated(Option<SmallBytes>),
    /// A message of a channel.
    Published { source: Source, channel: SmallBytes, payload: SmallBytes },
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
        self.0.is_empty()
    }

    pub(super) fn add(&mut self, connection: u64, message: Message) {
        self.0.push(Push { connection, message });
    }

    /// Takes all messages, in order.
    pub(super) fn take(&mut self) -> Vec<Push> {
        core::mem::take(&mut self.0)
    }

    /// Takes the publications for one connection, in order.
    pub(super) fn take_published(&mut self, connection: u64) -> Vec<Push> {
        let is_meant = |push: &Push| {
            push.connection == connection && matches!(push.message, Message::Published { .. })
        };
        if !self.0.iter().any(is_meant) {
            return Vec::new();
        }
        let (meant, rest) = self.take().into_iter().partition(is_meant);
        self.0 = rest;
        meant
    }

    /// Appends messages that were taken before.
    pub(super) fn put_back(&mut self, mut pushes: Vec<Push>) {
        self.0.append(&mut pushes);
    }

    /// Drops the messages for a closed connection.
    pub(super) fn close(&mut self, connection: u64) {
        self.0.retain(|push| push.connection != connection);
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
