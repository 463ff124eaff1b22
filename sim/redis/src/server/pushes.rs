//! Messages to connections that did not request them.

use super::Server;
use super::blocking::released;
use crate::SmallBytes;
use crate::profile::Feature;
use crate::pushes::{Message, Push, Source};
use crate::resp::{Protocol, Value};

/// Channel of the invalidations for a connection of version 2. Real servers do not look whether the
/// connection is subscribed to this one.
const INVALIDATIONS: &[u8] = b"__redis__:invalidate";

impl Server {
    /// Takes the pending messages, each with the number of its connection. A transport calls this
    /// after the reply to every request and after every change of its own, and delivers the
    /// messages at once.
    #[must_use]
    pub fn take_pushes(&mut self) -> Vec<(u64, Value)> {
        self.address_pushes();
        self.master.pushes.take().into_iter().filter_map(|push| self.formed(push)).collect()
    }

    /// Chooses the connection and the form of each pending invalidation. Real servers do so when
    /// the key changes, so this is called before a further command changes the state of a
    /// connection.
    pub(crate) fn address_pushes(&mut self) {
        if self.master.pushes.is_empty() {
            return;
        }
        let pushes = self.master.pushes.take().into_iter();
        let pushes = pushes.filter_map(|push| match push.message {
            Message::Invalidated(key) => {
                let (connection, value) = self.addressed(push.connection, key)?;
                Some(Push { connection, message: Message::Addressed(value) })
            }
            _ => Some(push),
        });
        let pushes = pushes.collect();
        self.master.pushes.put_back(pushes);
    }

    /// Returns the connection that gets a message, and the message in its form; `None` if the
    /// connection has ended.
    fn formed(&self, push: Push) -> Option<(u64, Value)> {
        self.clients.get(push.connection)?;
        let value = match push.message {
            Message::Addressed(value) => value,
            Message::Invalidated(_) => unreachable!("every invalidation is addressed first"),
            Message::Published { source, channel, payload } => {
                publication(source, channel, payload)
            }
            Message::Released { release, is_silent } => released(release, is_silent),
        };
        Some((push.connection, value))
    }

    /// Returns the connection that gets the invalidation of a key that `connection` tracks, and the
    /// invalidation in its form.
    fn addressed(&mut self, connection: u64, key: Option<SmallBytes>) -> Option<(u64, Value)> {
        let own = self.clients.get(connection)?.protocol;
        // Real servers send a null in the version of the connection that tracks keys.
        let keys = match key {
            Some(key) => Value::Array(vec![Value::Bulk(key.share())]),
            None => Value::In(own, Box::new(Value::Null)),
        };
        let Some(target) = self.master.tracked.redirect(connection) else {
            // RESP2 has no invalidation on the same connection; real servers drop it.
            let is_heard = own == Protocol::Resp3;
            return is_heard.then(|| (connection, invalidation(keys)));
        };
        let Some(client) = self.clients.get(target) else {
            self.master.tracked.set_broken(connection);
            let words = vec![
                Value::bulk(b"tracking-redir-broken"),
                Value::Integer(i64::try_from(target).unwrap_or(i64::MAX)),
            ];
            return (own == Protocol::Resp3).then_some((connection, Value::Push(words)));
        };
        if client.protocol == Protocol::Resp3 {
            return Some((target, invalidation(keys)));
        }
        let words = vec![Value::bulk(b"message"), Value::bulk(INVALIDATIONS), keys];
        let is_heard = self.master.subscribed.counts(target) != [0; 3];
        is_heard.then_some((target, Value::Push(words)))
    }

    /// Takes the messages that a request of `connection` has caused for this connection itself, if
    /// they come before the reply to the request or in it.
    pub(crate) fn take_own_messages(&mut self, connection: u64) -> Vec<Value> {
        if self.master.pushes.is_empty() || self.profile.has(Feature::OwnMessagesLast) {
            return Vec::new();
        }
        let own = self.master.pushes.take_some(|push| push.connection == connection);
        own.into_iter().filter_map(|push| self.formed(push)).map(|(_, message)| message).collect()
    }

    /// Ends the execution of a request of `connection`: its messages to itself follow its other
    /// pushes.
    pub(crate) fn end_request(&mut self, connection: u64) {
        self.master.tracked.end();
        self.address_pushes();
        let own = match self.profile.has(Feature::OwnMessagesLast) {
            true => self.master.pushes.take_some(|push| push.connection == connection),
            false => Vec::new(),
        };
        self.master.pushes.end_request();
        self.address_pushes();
        self.master.pushes.put_back(own);
    }
}

fn invalidation(keys: Value) -> Value {
    Value::Push(vec![Value::bulk(b"invalidate"), keys])
}

fn publication(source: Source, channel: SmallBytes, payload: SmallBytes) -> Value {
    let (kind, pattern): (&[u8], _) = match source {
        Source::Channel => (b"message", None),
        Source::Pattern(pattern) => (b"pmessage", Some(pattern)),
        Source::Shard => (b"smessage", None),
    };
    let words = pattern.into_iter().chain([channel, payload]);
    let words = words.map(|word| Value::Bulk(word.share()));
    Value::Push(core::iter::once(Value::bulk(kind)).chain(words).collect())
}
