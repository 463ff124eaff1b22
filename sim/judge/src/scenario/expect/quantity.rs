//! Quantities: figures that the oracle measures in each run, and the bounds that a scenario
//! expects.

use serde::{Deserialize, Serialize};

use crate::scenario::span::Span;
use crate::text;

/// A figure of a run. `docs/simulator.md` defines each. The probe's part in a run does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Instant of the last grant; not measured if an acquisition ended without a lease.
    GrantedAt,
    /// Longest time for which one lease was believed.
    LeaseKept,
    /// Time in which a client asked for the lock and no client believed that it held it.
    WaitWithoutHolder,
    /// Most leases of others that were delivered while one acquisition waited.
    Bypasses,
    /// Time in which two leases or more were believed.
    BeliefOverlap,
    /// Time in which a lease was believed and no majority of the nodes had its key.
    BeliefWithoutMajority,
    /// Leases that were reported as lost.
    LeasesLost,
    /// Time, summed over nodes, in which a client's last report on a lease that it watches was wrong
    /// about a node.
    VotesMisjudged,
    /// Time in which two sections or more were open.
    SectionOverlap,
    /// Time in which a section was open and its lease was not believed.
    SectionWithoutLease,
    /// Time in which a section was open and no majority of the nodes had its key.
    SectionWithoutMajority,
    /// Most attempts of one client in a second before which nothing had changed for a second.
    PollsInASecond,
    /// Most attempts since the last change of a client that could sleep until a server pushes.
    AttemptsInVain,
    /// Most looks and reads of one client on one node in a second in which nothing changed.
    ReadsInASecond,
    /// Attempts begun, divided by grants.
    AttemptsPerLock,
    /// Commands written, divided by grants.
    CommandsPerLock,
    /// Commands written.
    Commands,
}

/// Unit of a quantity's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A whole number.
    Count,
    /// Thousandths: a quotient, rounded down to three decimal places.
    Thousandths,
    /// Nanoseconds of true time.
    Nanoseconds,
}

/// Bounds of a quantity, both included; at least one of them is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    min: Option<u64>,
    max: Option<u64>,
}

impl Bounds {
    /// Returns the bounds that contain `max` and what is less.
    #[must_use]
    pub const fn at_most(max: u64) -> Self {
        Self { min: None, max: Some(max) }
    }

    /// Returns true if `value` is within the bounds.
    #[must_use]
    pub fn contain(self, value: u64) -> bool {
        self.min.is_none_or(|min| min <= value) && self.max.is_none_or(|max| value <= max)
    }

    /// Returns true if `value` is above the bounds.
    #[must_use]
    pub fn are_exceeded_by(self, value: u64) -> bool {
        self.max.is_some_and(|max| max < value)
    }
}

impl Quantity {
    /// All quantities, in the order of reports.
    pub const ALL: [Self; 17] = [
        Self::GrantedAt,
        Self::LeaseKept,
        Self::WaitWithoutHolder,
        Self::Bypasses,
        Self::BeliefOverlap,
        Self::BeliefWithoutMajority,
        Self::LeasesLost,
        Self::VotesMisjudged,
        Self::SectionOverlap,
        Self::SectionWithoutLease,
        Self::SectionWithoutMajority,
        Self::PollsInASecond,
        Self::AttemptsInVain,
        Self::ReadsInASecond,
        Self::AttemptsPerLock,
        Self::CommandsPerLock,
        Self::Commands,
    ];

    /// Returns the name in scenarios and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::GrantedAt => "granted-at",
            Self::LeaseKept => "lease-kept",
            Self::WaitWithoutHolder => "wait-without-holder",
            Self::Bypasses => "bypasses",
            Self::BeliefOverlap => "belief-overlap",
            Self::BeliefWithoutMajority => "belief-without-majority",
            Self::LeasesLost => "leases-lost",
            Self::VotesMisjudged => "votes-misjudged",
            Self::SectionOverlap => "section-overlap",
            Self::SectionWithoutLease => "section-without-lease",
            Self::SectionWithoutMajority => "section-without-majority",
            Self::PollsInASecond => "polls-in-a-second",
            Self::AttemptsInVain => "attempts-in-vain",
            Self::ReadsInASecond => "reads-in-a-second",
            Self::AttemptsPerLock => "attempts-per-lock",
            Self::CommandsPerLock => "commands-per-lock",
            Self::Commands => "commands",
        }
    }

    /// Returns the unit of the values.
    #[must_use]
    pub const fn unit(self) -> Unit {
        match self {
            Self::AttemptsPerLock | Self::CommandsPerLock => Unit::Thousandths,
            Self::Bypasses
            | Self::LeasesLost
            | Self::PollsInASecond
            | Self::AttemptsInVain
            | Self::ReadsInASecond
            | Self::Commands => Unit::Count,
            _ => Unit::Nanoseconds,
        }
    }

    /// Formats a value for readers: `1.5 s`, `86.25`.
    #[must_use]
    pub fn words(self, value: u64) -> String {
        match self.unit() {
            Unit::Count => value.to_string(),
            Unit::Thousandths => text::thousandths(value),
            Unit::Nanoseconds => text::length(value),
        }
    }

    /// Parses bounds: `A..B`, `A..`, `..B`, or `A` for exactly that value. A bound of a time is
    /// written as a [`Span`], any other as a number.
    ///
    /// # Errors
    ///
    /// If the text is none of these; the message says what is wrong and what is expected.
    pub fn bounds(self, text: &str) -> Result<Bounds, String> {
        let Some((min, max)) = text.split_once("..") else {
            let exactly = Some(self.parse(text)?);
            return Ok(Bounds { min: exactly, max: exactly });
        };
        let bound = |text: &str| match text.trim() {
            "" => Ok(None),
            text => self.parse(text).map(Some),
        };
        let bounds = Bounds { min: bound(min)?, max: bound(max)? };
        match (bounds.min, bounds.max) {
            (None, None) => {
                Err(format!("`{text}` bounds nothing, expected bounds such as {}", self.example()))
            }
            (Some(min), Some(max)) if min > max => Err(format!("`{text}` ends before it begins")),
            _ => Ok(bounds),
        }
    }

    /// Formats bounds as a scenario file has them.
    #[must_use]
    pub fn written(self, bounds: Bounds) -> String {
        let Bounds { min, max } = bounds;
        let bound = |value: Option<u64>| match (value, self.unit()) {
            (None, _) => String::new(),
            (Some(value), Unit::Nanoseconds) => Span(value).to_string(),
            (Some(value), _) => self.words(value),
        };
        if min == max { bound(min) } else { format!("{}..{}", bound(min), bound(max)) }
    }

    fn parse(self, text: &str) -> Result<u64, String> {
        let value = match self.unit() {
            Unit::Count => text.parse().ok(),
            Unit::Thousandths => thousandths(text),
            Unit::Nanoseconds => return text.parse().map(|span: Span| span.0),
        };
        let kind = if self.unit() == Unit::Count { "whole number" } else { "number" };
        let example = self.example();
        value.ok_or_else(|| format!("`{text}` is no {kind}, expected bounds such as {example}"))
    }

    const fn example(self) -> &'static str {
        match self.unit() {
            Unit::Count => "`10..20` or `..20`",
            Unit::Thousandths => "`1..2.5` or `..2.5`",
            Unit::Nanoseconds => "`10ms..1s` or `..1s`",
        }
    }
}

/// Parses a decimal number with up to three decimal places.
fn thousandths(text: &str) -> Option<u64> {
    let is_digits = |text: &str| text.bytes().all(|it| it.is_ascii_digit());
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    if !is_digits(whole) || !is_digits(decimals) || !(1..=3).contains(&decimals.len()) {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let decimals: u64 = format!("{decimals:0<3}").parse().ok()?;
    whole.checked_mul(1_000)?.checked_add(decimals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_quantities_is_that_of_the_format() {
        for (place, quantity) in Quantity::ALL.into_iter().enumerate() {
            assert_eq!(quantity as usize, place, "places of tables");
            let json = serde_json::to_string(&quantity).unwrap();
            assert_eq!(json, format!("{:?}", quantity.name()));
        }
        let unknown = serde_json::from_str::<Quantity>(r#""x""#).unwrap_err().to_string();
        assert_eq!(unknown.matches('`').count(), 2 + 2 * Quantity::ALL.len(), "{unknown}");
    }

    #[test]
    fn bounds_read_what_they_write() {
        for (quantity, text) in [
            (Quantity::SectionOverlap, "5900ms..6s"),
            (Quantity::SectionOverlap, "..20ms"),
            (Quantity::GrantedAt, "10s.."),
            (Quantity::LeaseKept, "0s"),
            (Quantity::CommandsPerLock, "86.25..100"),
            (Quantity::AttemptsPerLock, "1"),
            (Quantity::Commands, "..120"),
        ] {
            assert_eq!(quantity.written(quantity.bounds(text).unwrap()), text);
        }
    }

    #[test]
    fn both_bounds_are_included() {
        let bounds = Quantity::Commands.bounds("2..3").unwrap();
        assert_eq!([1, 2, 3, 4].map(|it| bounds.contain(it)), [false, true, true, false]);
        let bounds = Quantity::AttemptsPerLock.bounds("..1.5").unwrap();
        assert_eq!([0, 1_500, 1_501].map(|it| bounds.contain(it)), [true, true, false]);
        let bounds = Quantity::SectionOverlap.bounds("1ms..").unwrap();
        assert_eq!([999_999, 1_000_000].map(|it| bounds.contain(it)), [false, true]);
    }

    #[test]
    fn nonsense_is_refused() {
        let refused = |quantity: Quantity, text: &str| {
            assert!(quantity.bounds(text).is_err(), "{quantity:?} {text}");
        };
        for text in ["", "..", "1..2", "2s..1s", "1s...2s", "1 s", "-1s..", "1s..2s..3s"] {
            refused(Quantity::SectionOverlap, text);
        }
        for text in ["", "..", "1.5", "3..2", "1s", "-1", "+1.."] {
            refused(Quantity::AttemptsPerLock, &text.replace("1.5", "1.0005"));
        }
        for text in ["1.5", "1s", "x", "99999999999999999999", "-1.."] {
            refused(Quantity::Commands, text);
        }
        let said = Quantity::LeasesLost.bounds("1.5..2").unwrap_err();
        assert!(said.starts_with("`1.5` is no whole number, expected bounds such as"), "{said}");
    }
}
