//! The clients and what their applications do.

use core::fmt;

use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::scenario::span::Span;

/// A client process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Client {
    /// Its name.
    pub id: String,
    /// Which lock client it runs: `redlock` is ours, `worker` is none of this program's.
    #[serde(default = "ours")]
    pub subject: String,
    /// How it connects; each subject has its own habit. Not for `redlock`, `getset`
    /// and the PHP class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<Connections>,
    /// Its own TTL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Span>,
    /// What the application does, in order. When an acquisition fails it goes on at the next one.
    #[serde(default)]
    pub steps: Vec<Step>,
}

impl Client {
    /// Whether it is the production client.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.subject == ours()
    }

    /// Whether its word for a taken lock is a claim that somebody has it.
    #[must_use]
    pub fn says_whose(&self) -> bool {
        matches!(self.subject.as_str(), "redlock" | "redlock-any-refusal")
    }

    /// True if every acquisition of this client is `at-once`.
    #[must_use]
    pub fn asks_at_once(&self) -> bool {
        let mut asked = self.steps.iter().filter_map(|step| step.acquire).peekable();
        asked.peek().is_some() && asked.all(|acquire| acquire.at_once)
    }
}

fn ours() -> String {
    String::from("redlock")
}

/// How a subject uses connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Connections {
    /// A new one for every command.
    FreshPerCommand,
    /// One a node, for everything.
    #[default]
    Pooled,
    /// One a node, and a second one for releases.
    SecondForRelease,
}

/// One step of an application: exactly one of the kinds, and perhaps when it begins at the
/// earliest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Step {
    /// Not before this true time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Span>,
    /// Acquire the lock, unless the client has the lease already; one that is over is released first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acquire: Option<Acquire>,
    /// Ask the lease; go on at the next `release` if it is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub look: Option<Nothing>,
    /// Look, and enter the critical section.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enter: Option<Enter>,
    /// Read the resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<Nothing>,
    /// Write the resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<Write>,
    /// Extend the lease, and go on when it is known whether it was; a failed extension leaves the
    /// lease as it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extend: Option<Extend>,
    /// Leave the section.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leave: Option<Nothing>,
    /// Release the lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<Nothing>,
    /// Wait for this long on the client's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sleep: Option<Span>,
    /// Enter, stay, leave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
}

/// A step without options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// How long to try, and what to do with the lease. At most one of the first four is given; none is
/// one attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Acquire {
    /// Until this true time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Span>,
    /// For this long on the client's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<Span>,
    /// So many times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// Without waiting for whoever has it, as `try_acquire` does: again only after a split vote, and
    /// at most [`Acquire::AT_ONCE_MOST`] times. `redlock` alone.
    #[serde(skip_serializing_if = "is_false")]
    pub at_once: bool,
    /// Keep the lease alive for at most this long on the client's clock. `redlock` alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_alive: Option<Span>,
}

impl Acquire {
    /// The most attempts of an acquisition that does not wait.
    pub const AT_ONCE_MOST: u32 = 5;
}

fn is_false(it: &bool) -> bool {
    !it
}

/// How to extend a lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Extend {
    /// How long keys live from then on; the client's TTL if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Span>,
    /// Wait this long on the client's clock before each extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<Span>,
    /// So many extensions, one after the other; one if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
}

/// How to enter a section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Enter {
    /// Do not look first.
    pub unchecked: bool,
}

/// What to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Write {
    /// A value that is not computed from what was read.
    pub blind: bool,
}

/// How long a section lasts. In a file a time, `until-deadline`, or a table `{ for, or-lost }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// A time.
    For {
        /// How long, on the client's clock.
        length: Span,
        /// Whether it ends earlier if the client is told that the lease is over.
        or_lost: bool,
    },
    /// Until the client is told that the lease is over.
    UntilDeadline,
}

/// The table of [`Hold::For`].
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct HoldTable {
    #[serde(rename = "for")]
    length: Span,
    #[serde(default)]
    or_lost: bool,
}

impl Serialize for Hold {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            &Self::For { length, or_lost: false } => length.serialize(serializer),
            &Self::For { length, or_lost } => HoldTable { length, or_lost }.serialize(serializer),
            Self::UntilDeadline => serializer.serialize_str("until-deadline"),
        }
    }
}

impl<'de> Deserialize<'de> for Hold {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(HoldVisitor)
    }
}

struct HoldVisitor;

impl<'de> Visitor<'de> for HoldVisitor {
    type Value = Hold;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a time such as `2s`, `until-deadline`, or a table with `for`")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Hold, E> {
        if text == "until-deadline" {
            return Ok(Hold::UntilDeadline);
        }
        let wrong = |error| E::custom(format!("{error}, or `until-deadline`"));
        text.parse().map(|length| Hold::For { length, or_lost: false }).map_err(wrong)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Hold, A::Error> {
        let table = HoldTable::deserialize(de::value::MapAccessDeserializer::new(map))?;
        Ok(Hold::For { length: table.length, or_lost: table.or_lost })
    }
}
