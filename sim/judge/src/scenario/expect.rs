//! The expected verdict of each property, and the expected bounds of quantities.

mod blame;
mod quantity;
mod table;

use core::fmt;

use serde::de::{self, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::span::Span;

pub use self::blame::ExpectedBlame;
pub use self::quantity::{Bounds, Quantity, Unit};
pub use self::table::Expectations;

/// A property that the oracle judges. `docs/simulator.md` defines each in true time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Property {
    /// Beliefs of two leases never overlap.
    MutualExclusion,
    /// Critical sections never overlap.
    ExclusiveSection,
    /// Every critical section lies within a belief of its lease.
    SectionWithinLease,
    /// At a grant, a majority of nodes held this attempt's keys, and T1 was read before those
    /// writes.
    SoundGrant,
    /// No attempt changes a key of another attempt.
    OwnerOnly,
    /// No other attempt is granted between a lease's grant and a successful extension of that
    /// lease.
    Continuity,
    /// No write is based on a value read before another holder's write.
    NoLostUpdate,
    /// Writes are applied in the order of the leases.
    FencedOrder,
    /// No key is left behind after a failure or a release.
    Tidy,
    /// While a client keeps trying and can reach a majority, some client is granted the lock within a
    /// bound.
    DeadlockFree,
    /// With a majority of nodes up and free, an attempt succeeds; and every attempt settles in
    /// time.
    FaultTolerant,
    /// A refusal as `Taken` is true: a majority of nodes held keys of one other attempt.
    SoundRefusal,
    /// A report that a lease is lost is true, and comes soon after the loss.
    SoundLoss,
    /// The nodes that a client counts as having the key of its lease have it, and those that it
    /// counts as lacking the key lack it.
    SoundVotes,
}

impl Property {
    /// All properties, in the order of reports.
    pub const ALL: [Self; 14] = [
        Self::MutualExclusion,
        Self::ExclusiveSection,
        Self::SectionWithinLease,
        Self::SoundGrant,
        Self::OwnerOnly,
        Self::Continuity,
        Self::NoLostUpdate,
        Self::FencedOrder,
        Self::Tidy,
        Self::DeadlockFree,
        Self::FaultTolerant,
        Self::SoundRefusal,
        Self::SoundLoss,
        Self::SoundVotes,
    ];

    /// Returns the name in scenarios and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MutualExclusion => "mutual-exclusion",
            Self::ExclusiveSection => "exclusive-section",
            Self::SectionWithinLease => "section-within-lease",
            Self::SoundGrant => "sound-grant",
            Self::OwnerOnly => "owner-only",
            Self::Continuity => "continuity",
            Self::NoLostUpdate => "no-lost-update",
            Self::FencedOrder => "fenced-order",
            Self::Tidy => "tidy",
            Self::DeadlockFree => "deadlock-free",
            Self::FaultTolerant => "fault-tolerant",
            Self::SoundRefusal => "sound-refusal",
            Self::SoundLoss => "sound-loss",
            Self::SoundVotes => "sound-votes",
        }
    }
}

/// The expected verdict of a property over all seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Reported, and never a failure.
    Any,
    /// No seed violates the property.
    Holds,
    /// At least one seed violates the property.
    Sometimes,
    /// Every seed violates the property.
    Violated,
}

/// The expectation for one property. In a file, either a bare verdict or a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Expectation {
    /// The expected verdict.
    pub verdict: Verdict,
    /// The expected blame of the violations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blame: Option<ExpectedBlame>,
    /// Minimum duration of the overlap in every violating run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlap_at_least: Option<Span>,
    /// Reason why nothing stronger than `sometimes` or `any` can be expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Expectation {
    /// Returns an expectation of `verdict` without conditions.
    #[must_use]
    pub const fn bare(verdict: Verdict) -> Self {
        Self { verdict, blame: None, overlap_at_least: None, reason: None }
    }
}

impl<'de> Deserialize<'de> for Expectation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ExpectationVisitor)
    }
}

struct ExpectationVisitor;

impl<'de> Visitor<'de> for ExpectationVisitor {
    type Value = Expectation;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("`holds`, `violated`, `sometimes`, `any`, or a table with `verdict`")
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<Expectation, E> {
        Verdict::deserialize(word.into_deserializer()).map(Expectation::bare)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Expectation, A::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case")]
        struct Table {
            verdict: Verdict,
            #[serde(default)]
            blame: Option<ExpectedBlame>,
            #[serde(default)]
            overlap_at_least: Option<Span>,
            #[serde(default)]
            reason: Option<String>,
        }
        let Table { verdict, blame, overlap_at_least, reason } =
            Table::deserialize(de::value::MapAccessDeserializer::new(map))?;
        Ok(Expectation { verdict, blame, overlap_at_least, reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_properties_is_that_of_the_format() {
        let unknown = serde_json::from_str::<Property>(r#""x""#).unwrap_err().to_string();
        let names = Property::ALL.map(|it| format!("`{}`", it.name())).join(", ");
        assert!(unknown.contains(&format!("expected one of {names} ")), "{unknown}");
        let places: Vec<usize> = Property::ALL.into_iter().map(|it| it as usize).collect();
        assert_eq!(places, (0..Property::ALL.len()).collect::<Vec<_>>(), "places of tables");
    }
}
