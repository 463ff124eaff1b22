//! Attribution of keys: the writer of a key, and the cause of its end.

/// Writer of the current state of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Writer {
    /// The key does not exist, or no command caused its end.
    #[default]
    Nobody,
    /// A sender that the caller does not distinguish: a person, a program, a test.
    Operator,
    /// The sender to which the caller gave this number. A server stores and reports the number and
    /// never interprets it.
    Tagged(u32),
}

/// Cause of a key's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyEnd {
    /// A command deleted or overwrote the key.
    Command,
    /// The server evicted the key because memory ran short.
    Evicted,
    /// The key's expiry passed on the node's wall clock.
    Expired,
    /// Clients now use another server, which lacks the key. Only a caller that compares the keys of
    /// two servers reports this ([`Keyspace::compare`](crate::Keyspace::compare)).
    FailedOver,
    /// A command emptied the server or the database.
    Flushed,
    /// The server restarted without the key.
    Restarted,
}
