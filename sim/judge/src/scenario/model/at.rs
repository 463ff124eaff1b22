//! The start of a fault.

use core::fmt;

use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::scenario::span::SpanRange;

/// The start of a fault. In a file, either a bare time or a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum At {
    /// Starts at a true time within this range, drawn from the seed.
    Time(SpanRange),
    /// Starts just before a step of an attempt.
    Point(AttemptPoint),
}

impl<'de> Deserialize<'de> for At {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AtVisitor)
    }
}

struct AtVisitor;

impl<'de> Visitor<'de> for AtVisitor {
    type Value = At;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a time such as `250ms`, a range such as `5ms..3s`, or a table with `client` and `before`")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<At, E> {
        text.parse().map(At::Time).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<At, A::Error> {
        AttemptPoint::deserialize(de::value::MapAccessDeserializer::new(map)).map(At::Point)
    }
}

/// A step of a client's attempt, or of the use of its lease, at which a fault starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct AttemptPoint {
    /// Name of the client.
    pub client: String,
    /// Attempt at which the fault starts; default: the first.
    #[serde(default)]
    pub attempt: WhichAttempt,
    /// Step before which the fault starts.
    pub before: AttemptStep,
    /// Node whose step is meant, if the step has one. If not given, the first such step that the
    /// attempt reaches on any node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// Selects an attempt of a client. In a file, its number or one of the words `any` and `granted`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhichAttempt {
    /// The first attempt that reaches the step.
    Any,
    /// The first attempt that is granted. Only for steps that come after the grant.
    Granted,
    /// The attempt with this number, counted from 1.
    Nth(u16),
}

impl Default for WhichAttempt {
    fn default() -> Self {
        Self::Nth(1)
    }
}

impl Serialize for WhichAttempt {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Any => serializer.serialize_str("any"),
            Self::Granted => serializer.serialize_str("granted"),
            Self::Nth(number) => serializer.serialize_u16(*number),
        }
    }
}

impl<'de> Deserialize<'de> for WhichAttempt {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WhichAttemptVisitor)
    }
}

struct WhichAttemptVisitor;

impl Visitor<'_> for WhichAttemptVisitor {
    type Value = WhichAttempt;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the number of an attempt, from 1, or `any`, or `granted`")
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<WhichAttempt, E> {
        match word {
            "any" => Ok(WhichAttempt::Any),
            "granted" => Ok(WhichAttempt::Granted),
            other => Err(E::invalid_value(de::Unexpected::Str(other), &self)),
        }
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<WhichAttempt, E> {
        let out_of_range = |_| E::invalid_value(de::Unexpected::Unsigned(number), &self);
        u16::try_from(number).map(WhichAttempt::Nth).map_err(out_of_range)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<WhichAttempt, E> {
        let out_of_range = |_| E::invalid_value(de::Unexpected::Signed(number), &self);
        u16::try_from(number).map(WhichAttempt::Nth).map_err(out_of_range)
    }
}

/// A step of an attempt, or of the use of its lease. A step that comes several times is the first of
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum AttemptStep {
    /// The client reads the clock for the first time.
    T1,
    /// A SET leaves the client.
    Write,
    /// A node executes the SET.
    Execute,
    /// The client receives a node's reply.
    Reply,
    /// The client reads the clock to decide about the grant: on receiving the last reply that
    /// counts.
    T2,
    /// The application receives the lease.
    Deliver,
    /// The application checks the lease for the last time before its section.
    #[serde(rename = "look")]
    Check,
    /// The section begins.
    Enter,
    /// An extension of the lease leaves the client.
    ExtendWrite,
    /// A node executes an extension.
    ExtendExecute,
    /// The client receives a node's reply to an extension.
    ExtendReply,
    /// A release leaves the client: of the lease, or of a failed attempt.
    ReleaseWrite,
    /// A node executes a release.
    ReleaseExecute,
    /// The client receives a node's reply to a release.
    ReleaseReply,
    /// A write leaves the client for the resource.
    StoreWrite,
    /// The resource receives a write.
    StoreExecute,
    /// All steps from `t1` to `enter`; each is a case of its own.
    #[serde(rename = "*")]
    Every,
}

impl AttemptStep {
    /// Returns true if the step is one of a node.
    #[must_use]
    pub const fn has_node(self) -> bool {
        match self {
            Self::Write
            | Self::Execute
            | Self::Reply
            | Self::ExtendWrite
            | Self::ExtendExecute
            | Self::ExtendReply
            | Self::ReleaseWrite
            | Self::ReleaseExecute
            | Self::ReleaseReply => true,
            Self::T1
            | Self::T2
            | Self::Deliver
            | Self::Check
            | Self::Enter
            | Self::StoreWrite
            | Self::StoreExecute
            | Self::Every => false,
        }
    }

    /// Returns true if only granted attempts reach the step.
    #[must_use]
    pub const fn follows_grant(self) -> bool {
        match self {
            Self::Deliver
            | Self::Check
            | Self::Enter
            | Self::ExtendWrite
            | Self::ExtendExecute
            | Self::ExtendReply
            | Self::StoreWrite
            | Self::StoreExecute => true,
            Self::T1
            | Self::Write
            | Self::Execute
            | Self::Reply
            | Self::T2
            | Self::ReleaseWrite
            | Self::ReleaseExecute
            | Self::ReleaseReply
            | Self::Every => false,
        }
    }
}
