//! When a fault begins.

use core::fmt;

use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::scenario::span::Span;

/// When a fault begins. In a file either the bare time or a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum At {
    /// At this true time.
    Time(Span),
    /// Just before a step of an attempt.
    Point(HostAt),
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
        formatter.write_str("a time such as `250ms`, or a table with `client` and `before`")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<At, E> {
        text.parse().map(At::Time).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<At, A::Error> {
        HostAt::deserialize(de::value::MapAccessDeserializer::new(map)).map(At::Point)
    }
}

/// A point in the course of a client's attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct HostAt {
    /// The client.
    pub client: String,
    /// Attempt at which the fault begins; default: the first.
    #[serde(default)]
    pub attempt: WhichAttempt,
    /// Which step.
    pub before: Point,
    /// Which node's, for `write`, `execute` and `reply`; the first one to come if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// Which attempt of a client. In a file its number, or one of the words `any` and `granted`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhichAttempt {
    /// The first that comes to the step.
    Any,
    /// The first that is granted; for steps that are taken behind the decision.
    Granted,
    /// By its number, from 1.
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

/// A step of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Point {
    /// The first reading of the clock.
    T1,
    /// A SET leaves the client.
    Write,
    /// A node executes it.
    Execute,
    /// The client takes the answer in.
    Reply,
    /// The reading of the clock that decides: at the last answer that counts.
    T2,
    /// The application gets the lease.
    Deliver,
    /// The application's last look at the lease before the section.
    Look,
    /// The section begins.
    Enter,
    /// All of them, each a case of its own.
    #[serde(rename = "*")]
    Every,
}
