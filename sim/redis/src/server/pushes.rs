//! Messages to connections that did not request them.

use super::Server;
use crate::profile::Feature;
use crate::pushes::{Message, Push, Source};
use crate::resp::{Protocol, Value};

impl Server {
    /// Takes the pending messages, each with the number of its connection. A transport calls this
    /// after the reply to every request and after every change of its own, and delivers the
    /// messages at once.
    #[must_use]
    pub fn take_pushes(&mut self) -> Vec<(u64, Value)> {
        let pushes = self.master.pushes.take().into_iter();
        let heard = pushes.filter_map(|push| {
            let protocol = self.clients.get(push.connection)?.protocol;
            // RESP2 has no invalidation on the same connection; real servers drop it.
            let is_lost = matches!(push.message, Message::Invalidated(_));
            let is_lost = is_lost && protocol == Protocol::Resp2;
            (!is_lost).then(|| (push.connection, value_of(push)))
        });
        heard.collect()
    }

    /// Takes the publications that a request of `connection` has sent to this connection itself, if
    /// they come before the reply to the request or in it.
    pub(crate) fn take_own_messages(&mut self, connection: u64) -> Vec<Value> {
        if self.master.pushes.is_empty() || self.profile.has(Feature::OwnMessagesLast) {
            return Vec::new();
        }
        let own = self.master.pushes.take_published(connection);
        own.into_iter().map(value_of).collect()
    }

    /// Ends the execution of a request of `connection`: its publications to itself follow its
    /// other pushes.
    pub(crate) fn end_request(&mut self, connection: u64) {
        self.master.tracked.end();
        if !self.master.pushes.is_empty() && self.profile.has(Feature::OwnMessagesLast) {
            let own = self.master.pushes.take_published(connection);
            self.master.pushes.put_back(own);
        }
    }
}

fn value_of(push: Push) -> Value {
    match push.message {
        Message::Invalidated(key) => {
            let keys = key.map_or(Value::Null, |key| Value::Array(vec![Value::Bulk(key.share())]));
            Value::Push(vec![Value::bulk(b"invalidate"), keys])
        }
        Message::Published { source, channel, payload } => {
            let (kind, pattern): (&[u8], _) = match source {
                Source::Channel => (b"message", None),
                Source::Pattern(pattern) => (b"pmessage", Some(pattern)),
                Source::Shard => (b"smessage", None),
            };
            let words = pattern.into_iter().chain([channel, payload]);
            let words = words.map(|word| Value::Bulk(word.share()));
            Value::Push(core::iter::once(Value::bulk(kind)).chain(words).collect())
        }
    }
}
