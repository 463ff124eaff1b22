//! Messages to connections that no request asked for.

use super::Server;
use crate::master::resp::{Protocol, Value};

impl Server {
    /// Takes the messages for connections of this server, each with the connection's number. A
    /// transport calls this behind the answer to every request and behind every change that it makes
    /// itself, and delivers at once.
    #[must_use]
    pub fn take_pushes(&mut self) -> Vec<(u64, Value)> {
        let pushes = self.master.tracked.take_pushes();
        // RESP2 has no message for it on the same connection: servers drop it.
        let hears =
            |id: u64| self.clients.get(id).is_some_and(|client| client.protocol == Protocol::Resp3);
        let heard = pushes.into_iter().filter(|push| hears(push.connection));
        heard
            .map(|push| {
                let keys = push
                    .key
                    .map_or(Value::Null, |key| Value::Array(vec![Value::Bulk(key.share())]));
                (push.connection, Value::Push(vec![Value::bulk(b"invalidate"), keys]))
            })
            .collect()
    }
}
