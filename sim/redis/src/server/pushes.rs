//! Messages to connections that did not request them.

use super::Server;
use crate::resp::{Protocol, Value};

impl Server {
    /// Takes the pending messages, each with the number of its connection. A transport calls this
    /// after the reply to every request and after every change of its own, and delivers the
    /// messages at once.
    #[must_use]
    pub fn take_pushes(&mut self) -> Vec<(u64, Value)> {
        let pushes = self.master.tracked.take_pushes();
        // RESP2 has no push message on the same connection; real servers drop it.
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
