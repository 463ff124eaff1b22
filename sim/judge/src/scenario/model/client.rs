//! The clients, and the steps of their applications.

use core::fmt;

use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::is_false;
use crate::scenario::chance::CountRange;
use crate::scenario::span::{Span, SpanRange};
use crate::scenario::subjects::{OURS, subject};

/// A client process, or a further task of one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Client {
    /// Name of the client.
    pub id: String,
    /// Name of an earlier client, if this one is a further task of that client's process: both use
    /// the same lock client, at the same time. A task has only steps, a TTL and a resource of its own.
    /// Only for `redlock`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_of: Option<String>,
    /// Name of the resource that the client locks: `lock.resource`, or one of
    /// `lock.further-resources`. Default: `lock.resource`, also for a task of a client that names
    /// another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// Name of the lock client that it runs. `redlock` is ours; `worker` is an external program
    /// that this simulator does not implement.
    #[serde(default = "ours")]
    pub subject: String,
    /// The client's use of connections; the default depends on the subject. Not allowed for
    /// `redlock`, `getset` and the PHP class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<Connections>,
    /// TTL of this client; the lock's TTL if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Span>,
    /// Names of the nodes that the client locks on; all nodes if not given. Its quorum is a majority of
    /// the names, even if two of them are one server's (`cluster.aliases`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Vec<String>>,
    /// Name of the client whose random numbers this client draws, too: the two run on copies of one
    /// virtual machine without new random bytes for either. Attempts of the two with the same number
    /// have the same token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_of: Option<String>,
    /// True if servers push nothing to this client: it lacks the right, or a proxy drops pushes.
    /// Only for `redlock`; no other subject listens.
    #[serde(default, skip_serializing_if = "is_false")]
    pub deaf: bool,
    /// Steps of the application, in order. After a failed acquisition the client goes on at the
    /// next acquisition.
    #[serde(default)]
    pub steps: Vec<Step>,
}

impl Client {
    /// Returns true if this is the production client.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.subject == OURS
    }

    /// Returns true if a refusal of this client, "the lock is taken", claims that somebody else has
    /// the lock.
    #[must_use]
    pub fn says_whose(&self) -> bool {
        subject(&self.subject).is_some_and(|it| it.says_whose)
    }

    /// Iterates over the steps, those of loops included. A loop comes before its steps.
    pub fn all_steps(&self) -> impl Iterator<Item = &Step> + Clone {
        self.steps.iter().flat_map(|step| {
            let repeated = step.repeat.iter().flat_map(|it| &it.steps);
            core::iter::once(step).chain(repeated)
        })
    }

    /// Returns true if every acquisition of this client is `at-once`.
    #[must_use]
    pub fn asks_at_once(&self) -> bool {
        let mut asked = self.all_steps().filter_map(|step| step.acquire).peekable();
        asked.peek().is_some() && asked.all(|acquire| acquire.at_once)
    }

    /// Returns true if an acquisition of this client is limited by the number of its attempts.
    #[must_use]
    pub fn counts_attempts(&self) -> bool {
        let mut asked = self.all_steps().filter_map(|step| step.acquire);
        asked.any(|acquire| acquire.at_once || acquire.attempts.is_some())
    }

    /// Returns the shortest time for which an acquisition keeps its lease alive; `None` if one does
    /// not.
    #[must_use]
    pub fn keeps_alive(&self) -> Option<Span> {
        let kept: Option<Vec<Span>> =
            self.all_steps().filter_map(|step| step.acquire).map(|it| it.keep_alive).collect();
        kept?.into_iter().min()
    }
}

fn ours() -> String {
    String::from(OURS)
}

/// A subject's use of connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Connections {
    /// A new connection for every command.
    FreshPerCommand,
    /// One connection per node, for all commands.
    #[default]
    Pooled,
    /// One connection per node, and a second one for releases.
    SecondForRelease,
}

/// One step of an application: exactly one of the kinds, and optionally its earliest start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Step {
    /// Earliest start, in true time; drawn from a range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<SpanRange>,
    /// Acquire the lock, unless the client already has the lease. A lease that is over is released
    /// first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acquire: Option<Acquire>,
    /// Check the lease. If it is over, go on at the next `release`.
    #[serde(rename = "look", skip_serializing_if = "Option::is_none")]
    pub check: Option<Nothing>,
    /// Check the lease, then enter the critical section.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enter: Option<Enter>,
    /// Read the resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<Nothing>,
    /// Write the resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<Write>,
    /// Extend the lease, and continue when the result is known. A failed extension leaves the lease
    /// as it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extend: Option<Extend>,
    /// Leave the section.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leave: Option<Nothing>,
    /// Release the lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<Nothing>,
    /// Wait for this long on the client's clock; drawn from a range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sleep: Option<SpanRange>,
    /// Enter the section, stay in it, and leave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
    /// Repeat steps. Values in ranges are drawn anew for each repetition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeat: Option<Repeat>,
}

impl Step {
    /// Returns the TTLs that the step asks for, each with the path of its field.
    pub(in crate::scenario) fn ttls(&self) -> impl Iterator<Item = (&'static str, Span)> + use<> {
        let acquired = self.acquire.and_then(|it| it.ttl).map(|ttl| ("acquire.ttl", ttl));
        let extended = self.extend.and_then(|it| it.ttl).map(|ttl| ("extend.ttl", ttl));
        acquired.into_iter().chain(extended)
    }
}

/// A loop of an application.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Repeat {
    /// Number of times; drawn from a range.
    pub times: CountRange,
    /// The steps of one time, in order. A loop has no loops within.
    pub steps: Vec<Step>,
}

/// A step without options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// The limit of an acquisition, and what lease it asks for. At most one of the first four fields may
/// be given; without any, the client makes one attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Acquire {
    /// Try until this true time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Span>,
    /// Try for this long on the client's clock; drawn from a range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<SpanRange>,
    /// Maximum number of attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// Do not wait for the current holder, as `try_acquire` does: try again only after a split
    /// vote, and make at most [`Acquire::AT_ONCE_MOST`] attempts. Only for `redlock`.
    #[serde(skip_serializing_if = "is_false")]
    pub at_once: bool,
    /// Keep the lease alive by extensions for at most this long on the client's clock, more than its
    /// TTL. Only for `redlock`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_alive: Option<Span>,
    /// TTL of the lease, also for the extensions that follow; the client's TTL if not given. Only for
    /// `redlock`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Span>,
}

impl Acquire {
    /// Maximum number of attempts of an acquisition that does not wait.
    pub const AT_ONCE_MOST: u32 = 5;
}

/// The parameters of an extension.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Extend {
    /// TTL of the keys from the extension on; that of the latest acquisition if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Span>,
    /// Wait this long on the client's clock before each extension; drawn from a range for each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<SpanRange>,
    /// Number of extensions, one after the other; default: one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
}

/// The options for entering a section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Enter {
    /// Enter without checking the lease first.
    pub unchecked: bool,
}

/// The value to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Write {
    /// Write a value that does not depend on the value read before.
    pub blind: bool,
}

/// Duration of a section. In a file, a time or a range of times, `until-deadline`, or a table
/// `{ for, or-lost }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// The section lasts for a given time.
    For {
        /// Duration on the client's clock; drawn from the range.
        length: SpanRange,
        /// True if the section ends earlier when the client learns that the lease is over.
        or_lost: bool,
    },
    /// The section lasts until the client learns that the lease is over.
    UntilDeadline,
}

/// The table form of [`Hold::For`].
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct HoldTable {
    #[serde(rename = "for")]
    length: SpanRange,
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
        let wrong = |error: String| match error.contains("expected") {
            true => E::custom(format!("{error}, or `until-deadline`")),
            false => E::custom(error),
        };
        text.parse().map(|length| Hold::For { length, or_lost: false }).map_err(wrong)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Hold, A::Error> {
        let table = HoldTable::deserialize(de::value::MapAccessDeserializer::new(map))?;
        Ok(Hold::For { length: table.length, or_lost: table.or_lost })
    }
}
