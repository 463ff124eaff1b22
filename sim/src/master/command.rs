//! What a master can be asked, and what it answers.

use super::bytes::SmallBytes;
use super::entry::Entry;
use crate::history::{KeyEnd, Writer};

/// A request. It borrows, so that asking allocates nothing.
///
/// A request over several keys (`DEL a b`) is as many commands at the same `wall_ms`: nothing
/// comes between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command<'a> {
    /// `INFO`, as far as lock clients read it.
    Info,
    /// Something about one key.
    Key {
        /// Which.
        key: &'a [u8],
        /// What.
        command: KeyCommand<'a>,
    },
}

/// A request about one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyCommand<'a> {
    /// The release script of the specification: `DEL` if the key holds `value`.
    CompareAndDelete {
        /// What the key must hold.
        value: &'a [u8],
    },
    /// The extension script: `PEXPIRE` if the key holds `value` and lives longer thereby. It says
    /// whether the key holds `value`.
    CompareAndExtend {
        /// What the key must hold.
        value: &'a [u8],
        /// How long the key lives from now on.
        ttl_ms: i64,
    },
    /// `SET key value IFEQ value PX ttl` of Redis 8.4, which leaves of the key what an owner-checked
    /// PEXPIRE leaves: it lives for that long from now on, whether or not that is longer.
    CompareAndRetime {
        /// What the key must hold.
        value: &'a [u8],
        /// How long the key lives from now on.
        ttl_ms: i64,
    },
    /// `DEL`.
    Del,
    /// `EXISTS`.
    Exists,
    /// `EXPIRE`.
    Expire {
        /// How long the key lives from now on.
        seconds: i64,
        /// When to do so.
        condition: ExpireCondition,
    },
    /// `PEXPIREAT`.
    ExpireAt {
        /// The instant on the node's wall clock until which the key lives.
        when_ms: i64,
        /// When to do so.
        condition: ExpireCondition,
    },
    /// `GET`.
    Get,
    /// `INCR`.
    Incr,
    /// `INCRBY`.
    IncrBy {
        /// How much to add.
        by: i64,
    },
    /// `PERSIST`.
    Persist,
    /// `PEXPIRE`.
    Pexpire {
        /// How long the key lives from now on.
        ms: i64,
        /// When to do so.
        condition: ExpireCondition,
    },
    /// `PTTL`.
    Pttl,
    /// `SET`.
    Set {
        /// What the key is to hold.
        value: &'a [u8],
        /// When to do so.
        condition: SetCondition,
        /// What becomes of the key's expiry.
        expiry: SetExpiry,
        /// Answer with the old value, whether or not the key was set (`GET`).
        get: bool,
    },
    /// `SETNX`: answers with an integer and sets no expiry.
    Setnx {
        /// What the key is to hold.
        value: &'a [u8],
    },
}

impl KeyCommand<'_> {
    /// Whether a master whose memory is full refuses it: commands that may need memory, whatever
    /// they would do. A script that only deletes or re-times is none of them.
    #[must_use]
    pub const fn is_denied_when_full(&self) -> bool {
        matches!(self, Self::Incr | Self::IncrBy { .. } | Self::Set { .. } | Self::Setnx { .. })
    }
}

/// When `SET` sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SetCondition {
    /// In any case.
    #[default]
    Always,
    /// `NX`: if there is no key.
    Missing,
    /// `XX`: if there is one.
    Present,
}

/// What `SET` does to the expiry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SetExpiry {
    /// `PXAT`: the key lives until the node's wall clock has passed this, even if it has by now.
    At(u64),
    /// `KEEPTTL`: what it was.
    Keep,
    /// The key does not expire.
    #[default]
    Never,
    /// `PX`: the key lives for so many milliseconds.
    Px(i64),
}

/// When `PEXPIRE` and `EXPIRE` do something. A key without expiry counts as expiring never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExpireCondition {
    /// In any case.
    #[default]
    Always,
    /// `GT`: if the key lives longer thereby; the same as `XX GT`.
    Later,
    /// `LT`: if the key lives shorter thereby.
    Sooner,
    /// `NX`: if the key has no expiry.
    Unset,
    /// `XX`: if the key has one.
    Set,
    /// `XX LT`.
    SetAndSooner,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A byte string.
    Bulk(SmallBytes),
    /// An error.
    Error(ErrorReply),
    /// An integer.
    Integer(i64),
    /// What `INFO` tells.
    Introduction(Introduction),
    /// A null.
    Nil,
    /// `+OK`.
    Ok,
}

/// What a master says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Introduction {
    /// `run_id`: another one for every start of the process.
    pub run_id: [u8; 20],
    /// `uptime_in_seconds`: the difference of two readings of the *wall* clock, each cut to whole
    /// seconds. Negative if the clock was set to before the start.
    pub uptime_s: i64,
    /// `role`.
    pub is_master: bool,
}

/// An error, by cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorReply {
    /// An expiry in `EXPIRE` that cannot be represented.
    ExpireRange,
    /// A counter holds something else.
    NotAnInteger,
    /// Memory is full, and the command might need more.
    OutOfMemory,
    /// The counter cannot become larger.
    Overflow,
    /// An expiry in `PEXPIRE` that cannot be represented.
    PexpireRange,
    /// An expiry in `SET` that is not positive, or cannot be represented.
    SetRange,
}

impl ErrorReply {
    /// The text as it is sent, without the leading `-`.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::ExpireRange => "ERR invalid expire time in 'expire' command",
            Self::NotAnInteger => "ERR value is not an integer or out of range",
            Self::OutOfMemory => "OOM command not allowed when used memory > 'maxmemory'.",
            Self::Overflow => "ERR increment or decrement would overflow",
            Self::PexpireRange => "ERR invalid expire time in 'pexpire' command",
            Self::SetRange => "ERR invalid expire time in 'set' command",
        }
    }
}

/// What a command did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executed {
    /// The answer.
    pub reply: Reply,
    /// The key that the command found expired, and which ended before the command's own effect.
    pub expired: Option<Ended>,
    /// What the command did to the key.
    pub effect: Effect,
    /// The key that the command deleted or took over from another writer.
    pub ended: Option<Ended>,
}

impl Executed {
    /// Nothing but the end of a key.
    pub(super) fn of_end(ended: Ended) -> Self {
        let effect = Effect { change: Change::Deleted, before: ended.writer, ..Effect::default() };
        Self { reply: Reply::Ok, expired: None, effect, ended: Some(ended) }
    }

    /// The command was refused before it looked at the key, which is `stored`.
    pub(super) fn refused(error: ErrorReply, stored: Option<&Entry>) -> Self {
        let writer = stored.map_or(Writer::Nobody, |entry| entry.writer);
        let expires_wall_ms = stored.and_then(|entry| entry.expires_wall_ms);
        let effect =
            Effect { change: Change::Nothing, before: writer, after: writer, expires_wall_ms };
        Self { reply: Reply::Error(error), expired: None, effect, ended: None }
    }
}

/// What a command did to its key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// What changed.
    pub change: Change,
    /// Who had made the key that the command found. An expired key is not found.
    pub before: Writer,
    /// Who made the key that is there now.
    pub after: Writer,
    /// When that key expires by the node's wall clock; `None`: never, or there is no key.
    pub expires_wall_ms: Option<u64>,
}

/// What changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Change {
    /// The key is gone.
    Deleted,
    /// Nothing.
    #[default]
    Nothing,
    /// The key has another expiry, or the same one anew.
    Retimed,
    /// The key has a value that this command gave it.
    Set,
}

/// A key that is no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The number of its database.
    pub database: u8,
    /// Which.
    pub key: SmallBytes,
    /// Who had made it.
    pub writer: Writer,
    /// Why it ended.
    pub cause: KeyEnd,
    /// Whose command ended it, if one did.
    pub by: Writer,
    /// When it was to expire by the node's wall clock; `None`: never.
    pub expires_wall_ms: Option<u64>,
}
