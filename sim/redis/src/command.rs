//! Commands on keys, typed, and their replies.

mod types;

pub use types::{HashCommand, ListCommand, ListEnd, SortedSetCommand};

use crate::{Content, Entry, KeyEnd, SmallBytes, Writer};

/// A request. It borrows its arguments, so that issuing one allocates nothing.
///
/// A request over several keys (`DEL a b`) becomes one command per key, all at the same `wall_ms`:
/// no other command comes between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command<'a> {
    /// `INFO`, reduced to the fields that identify a process.
    Info,
    /// A command on one key.
    Key {
        /// Name of the key.
        key: &'a [u8],
        /// Command to execute on the key.
        command: KeyCommand<'a>,
    },
}

/// A command on one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyCommand<'a> {
    /// `DELIFEQ` of Valkey 9: `DEL` if the key holds `value`.
    CompareAndDelete {
        /// Value that the key must hold.
        value: &'a [u8],
    },
    /// `SET key value IFEQ value PX ttl` of Redis 8.4. It has the effect of an owner-checked
    /// `PEXPIRE`: the new time to live applies whether it is longer or shorter.
    CompareAndRetime {
        /// Value that the key must hold.
        value: &'a [u8],
        /// New time to live from now.
        ttl_ms: i64,
    },
    /// `DEL`.
    Del,
    /// `EXISTS`.
    Exists,
    /// `EXPIRE`.
    Expire {
        /// New time to live from now.
        seconds: i64,
        /// Condition under which the expiry changes.
        condition: ExpireCondition,
    },
    /// `PEXPIREAT`.
    ExpireAt {
        /// Expiry on the node's wall clock.
        when_ms: i64,
        /// Condition under which the expiry changes.
        condition: ExpireCondition,
    },
    /// `GET`.
    Get,
    /// A command on a hash.
    Hash(HashCommand<'a>),
    /// `INCR`.
    Incr,
    /// `INCRBY`.
    IncrBy {
        /// Amount to add.
        by: i64,
    },
    /// A command on a list.
    List(ListCommand<'a>),
    /// `PERSIST`.
    Persist,
    /// `PEXPIRE`.
    Pexpire {
        /// New time to live from now.
        ms: i64,
        /// Condition under which the expiry changes.
        condition: ExpireCondition,
    },
    /// `PTTL`.
    Pttl,
    /// Stores a value of any type, as `RENAME`, `COPY` and `MOVE` do under the new name.
    Put {
        /// Value to store.
        value: &'a Content,
        /// Expiry of the key on the node's wall clock.
        expires_wall_ms: Option<u64>,
    },
    /// `SET`.
    Set {
        /// Value to store.
        value: &'a [u8],
        /// Condition under which the value is stored.
        condition: SetCondition,
        /// New expiry of the key.
        expiry: SetExpiry,
        /// Reply with the old value, whether or not the new one is stored (`GET`).
        get: bool,
    },
    /// `SETNX`: replies with an integer and sets no expiry.
    Setnx {
        /// Value to store.
        value: &'a [u8],
    },
    /// A command on a sorted set.
    SortedSet(SortedSetCommand<'a>),
}

impl KeyCommand<'_> {
    /// Returns true if a server with full memory refuses the command. These are the commands that
    /// may need memory, whatever they would do in this case. A script that only deletes or re-times
    /// a key is not refused.
    #[must_use]
    pub const fn is_denied_when_full(&self) -> bool {
        match self {
            Self::Incr
            | Self::IncrBy { .. }
            | Self::Put { .. }
            | Self::Set { .. }
            | Self::Setnx { .. } => true,
            Self::Hash(command) => !matches!(command, HashCommand::Delete { .. }),
            Self::List(command) => {
                let is_smaller = matches!(
                    command,
                    ListCommand::Pop { .. } | ListCommand::Remove { .. } | ListCommand::Trim { .. }
                );
                !is_smaller
            }
            Self::SortedSet(command) => matches!(command, SortedSetCommand::Set { .. }),
            _ => false,
        }
    }
}

/// Condition under which `SET` stores its value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SetCondition {
    /// Always stores the value.
    #[default]
    Always,
    /// `NX`: if the key does not exist.
    Missing,
    /// `XX`: if the key exists.
    Present,
}

/// Effect of `SET` on the expiry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SetExpiry {
    /// `PXAT`: the key lives until the node's wall clock has passed this instant, even if that is
    /// already so.
    At(u64),
    /// `KEEPTTL`: the expiry stays as it was.
    Keep,
    /// The key does not expire.
    #[default]
    Never,
    /// `PX`: the key lives for this many milliseconds.
    Px(i64),
}

/// Condition under which `PEXPIRE` and `EXPIRE` take effect. A key without an expiry counts as
/// expiring never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExpireCondition {
    /// Always sets the expiry.
    #[default]
    Always,
    /// `GT`: if the key would live longer; the same as `XX GT`.
    Later,
    /// `LT`: if the key would live less long.
    Sooner,
    /// `NX`: if the key has no expiry.
    Unset,
    /// `XX`: if the key has an expiry.
    Set,
    /// `XX LT`: if the key has an expiry and would live less long.
    SetAndSooner,
}

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A byte string.
    Bulk(SmallBytes),
    /// An error.
    Error(ErrorReply),
    /// An integer.
    Integer(i64),
    /// The fields of `INFO`.
    Introduction(Introduction),
    /// A null.
    Nil,
    /// `+OK`.
    Ok,
}

/// The fields of `INFO` by which a client identifies a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Introduction {
    /// `run_id`: differs for every start of the process.
    pub run_id: [u8; 20],
    /// `uptime_in_seconds`: the difference of two readings of the *wall* clock, each cut to whole
    /// seconds. Negative if the clock was set back to before the start.
    pub uptime_s: i64,
    /// `role`.
    pub is_master: bool,
}

/// An error, named by its cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorReply {
    /// `EXPIRE` with an expiry that cannot be represented.
    ExpireRange,
    /// The value of a hash's field is not an integer.
    FieldNotAnInteger,
    /// A list has no element at this place.
    IndexRange,
    /// There is no such key.
    NoSuchKey,
    /// The value of a counter is not an integer.
    NotAnInteger,
    /// Memory is full, and the command might need more.
    OutOfMemory,
    /// The counter would leave the range of its integer type.
    Overflow,
    /// `PEXPIRE` with an expiry that cannot be represented.
    PexpireRange,
    /// `SET` with an expiry that is not positive or cannot be represented.
    SetRange,
    /// The key holds a value of another type.
    WrongType,
}

impl ErrorReply {
    /// Returns the text as sent, without the leading `-`.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::ExpireRange => "ERR invalid expire time in 'expire' command",
            Self::FieldNotAnInteger => "ERR hash value is not an integer",
            Self::IndexRange => "ERR index out of range",
            Self::NoSuchKey => "ERR no such key",
            Self::NotAnInteger => "ERR value is not an integer or out of range",
            Self::OutOfMemory => "OOM command not allowed when used memory > 'maxmemory'.",
            Self::Overflow => "ERR increment or decrement would overflow",
            Self::PexpireRange => "ERR invalid expire time in 'pexpire' command",
            Self::SetRange => "ERR invalid expire time in 'set' command",
            Self::WrongType => "WRONGTYPE Operation against a key holding the wrong kind of value",
        }
    }
}

/// The outcome of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executed {
    /// Reply to the command.
    pub reply: Reply,
    /// Key that the command found expired; it ended before the command's own effect.
    pub expired: Option<Ended>,
    /// Effect of the command on the key.
    pub effect: Effect,
    /// Key that the command deleted or took over from another writer.
    pub ended: Option<Ended>,
}

impl Executed {
    /// Returns an outcome that consists of the end of a key only.
    pub(super) fn of_end(ended: Ended) -> Self {
        let effect = Effect { change: Change::Deleted, before: ended.writer, ..Effect::default() };
        Self { reply: Reply::Ok, expired: None, effect, ended: Some(ended) }
    }

    /// Returns the outcome of a command refused before it read the key; `stored` is the key's
    /// entry.
    pub(super) fn refused(error: ErrorReply, stored: Option<&Entry>) -> Self {
        let writer = stored.map_or(Writer::Nobody, |entry| entry.writer);
        let expires_wall_ms = stored.and_then(|entry| entry.expires_wall_ms);
        let effect =
            Effect { change: Change::Nothing, before: writer, after: writer, expires_wall_ms };
        Self { reply: Reply::Error(error), expired: None, effect, ended: None }
    }
}

/// The effect of a command on its key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// Kind of change.
    pub change: Change,
    /// Writer of the key that the command found. An expired key counts as not found.
    pub before: Writer,
    /// Writer of the key after the command.
    pub after: Writer,
    /// Expiry of that key on the node's wall clock; `None` if it never expires or there is no key.
    pub expires_wall_ms: Option<u64>,
}

/// Kind of change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Change {
    /// The key was deleted.
    Deleted,
    /// No change.
    #[default]
    Nothing,
    /// The key got another expiry, or the same one again.
    Retimed,
    /// The key got a value from this command.
    Set,
}

/// A key that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Number of the key's database.
    pub database: u8,
    /// Name of the key.
    pub key: SmallBytes,
    /// Writer of the key.
    pub writer: Writer,
    /// Cause of the key's end.
    pub cause: KeyEnd,
    /// Writer of the command that ended the key, if a command did.
    pub by: Writer,
    /// Expiry that the key had on the node's wall clock; `None` if it had none.
    pub expires_wall_ms: Option<u64>,
}
