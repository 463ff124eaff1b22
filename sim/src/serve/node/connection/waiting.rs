//! Requests that wait: `WAIT`, `WAITAOF`, and those that wait for an element of a list.

use redis_sim::resp::Value;

/// A request whose reply is delayed. Later requests of the connection wait as well.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    /// Latest time of the reply.
    pub(super) until_ns: u64,
    pub(super) cause: Cause,
}

/// Event that ends the wait of a request before its timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// An element of a list: the server sends the reply, unless the timeout passes first.
    Element,
    /// Replicas, of which there never are any, and the sync that WAITAOF waits for; `None` for WAIT.
    Copies { replicas: i64, disk: Option<Kept> },
}

/// The sync after which everything written so far is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// The sync with this number; 0 if everything is durable already.
    By(u64),
    /// None: there is no append-only file.
    Never,
}

impl Waiting {
    /// Returns true if the request waits for an element of a list.
    pub(super) fn is_for_element(self) -> bool {
        self.cause == Cause::Element
    }

    /// Returns the reply to WAIT or WAITAOF, if the timeout has passed, or if the sync is done and no
    /// replicas are wanted. `synced` is the number of the last completed sync.
    pub(super) fn answer(self, now_ns: u64, synced: u64) -> Option<Value> {
        let Self { until_ns, cause: Cause::Copies { replicas, disk } } = self else { return None };
        let is_kept = matches!(disk, Some(Kept::By(number)) if number <= synced);
        let is_over = until_ns <= now_ns || (is_kept && replicas <= 0);
        let nobody = Value::Integer(0);
        is_over.then(|| match disk {
            Some(_) => Value::Array(vec![Value::Integer(is_kept.into()), nobody]),
            None => nobody,
        })
    }
}
