//! Durations as written in a scenario: an integer and a unit, `250us`, `10s`, `1ms..5ms`.

use core::fmt;
use core::marker::PhantomData;
use core::ops::Range;
use core::str::FromStr;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

const UNITS: [(&str, u64); 5] =
    [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000), ("m", 60_000_000_000)];

/// A duration in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub u64);

/// A duration in nanoseconds that may be negative, such as the amount of a clock jump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SignedSpan(pub i64);

/// All durations from `min` to `max`, both included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SpanRange {
    /// The shortest duration.
    pub min: Span,
    /// The longest duration.
    pub max: Span,
}

/// All signed durations from `min` to `max`, both included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SignedSpanRange {
    /// The smallest value.
    pub min: SignedSpan,
    /// The largest value.
    pub max: SignedSpan,
}

/// The seeds of a campaign: `a..b`, `b` excluded, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeedRange(pub Range<u64>);

impl Span {
    /// Returns a span of `ms` milliseconds.
    #[must_use]
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }

    /// Returns the same length as a standard duration.
    #[must_use]
    pub const fn duration(self) -> core::time::Duration {
        core::time::Duration::from_nanos(self.0)
    }
}

impl SpanRange {
    /// Returns the range that contains only `span`.
    #[must_use]
    pub const fn exactly(span: Span) -> Self {
        Self { min: span, max: span }
    }

    /// Returns true if the range contains only one value.
    #[must_use]
    pub const fn is_exact(self) -> bool {
        self.min.0 == self.max.0
    }
}

impl SignedSpanRange {
    /// Returns the range that contains only `span`.
    #[must_use]
    pub const fn exactly(span: SignedSpan) -> Self {
        Self { min: span, max: span }
    }

    /// Returns the largest distance from 0.
    #[must_use]
    pub const fn largest_size(self) -> Span {
        let (min, max) = (self.min.0.unsigned_abs(), self.max.0.unsigned_abs());
        Span(if min > max { min } else { max })
    }
}

/// Parses digits. Unlike `parse`, this takes no `+` before them.
pub(super) fn number<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok().filter(|_| text.bytes().all(|it| it.is_ascii_digit()))
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = || {
            format!(
                "`{text}` is not a duration, expected an integer and ns, us, ms, s or m: `250ms`"
            )
        };
        if text.strip_prefix('-').is_some_and(|rest| rest.parse::<Self>().is_ok()) {
            return Err(format!(
                "`{text}` is negative, expected a duration of at least 0: `250ms`"
            ));
        }
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, unit) = text.split_at(digits);
        let number: u64 = number.parse().map_err(|_| wanted())?;
        let (_, scale) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wanted)?;
        number.checked_mul(*scale).map(Self).ok_or_else(|| format!("`{text}` is too long"))
    }
}

impl FromStr for SignedSpan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (sign, rest) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text),
        };
        let span: Span = rest.parse()?;
        let size = i64::try_from(span.0).map_err(|_| format!("`{text}` is too long"))?;
        Ok(Self(sign * size))
    }
}

/// Parses `min..max`, or one value that is both.
fn bounds<T: FromStr<Err = String> + PartialOrd>(text: &str) -> Result<(T, T), String> {
    let (min, max) = text.split_once("..").unwrap_or((text, text));
    let (min, max): (T, T) = (min.parse()?, max.parse()?);
    if min > max {
        return Err(format!("`{text}` ends before it begins"));
    }
    Ok((min, max))
}

impl FromStr for SpanRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (min, max) = bounds(text)?;
        Ok(Self { min, max })
    }
}

impl FromStr for SignedSpanRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (min, max) = bounds(text)?;
        Ok(Self { min, max })
    }
}

impl FromStr for SeedRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers =
            text.split_once("..").and_then(|(first, end)| Some(Self(number(first)?..number(end)?)));
        let wanted = "a range of seeds such as `0..100`, the end excluded";
        let range =
            numbers.ok_or_else(|| format!("`{text}` is no range of seeds, expected {wanted}"))?;
        if range.0.is_empty() {
            return Err(format!("`{text}` has no seed, expected {wanted}"));
        }
        Ok(range)
    }
}

impl fmt::Display for SeedRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}..{}", self.0.start, self.0.end)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let largest =
            UNITS.iter().rev().find(|(_, scale)| self.0.is_multiple_of(*scale) && self.0 >= *scale);
        let (name, scale) = largest.copied().unwrap_or(("s", 1));
        // Minutes are hard to compare with seconds: fewer than 10 minutes are written as 60s, not
        // 1m.
        let (name, scale) =
            if name == "m" && self.0 / scale < 10 { ("s", UNITS[3].1) } else { (name, scale) };
        write!(formatter, "{}{}", self.0 / scale, name)
    }
}

impl fmt::Display for SignedSpan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        write!(formatter, "{sign}{}", Span(self.0.unsigned_abs()))
    }
}

impl fmt::Display for SpanRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.min == self.max {
            write!(formatter, "{}", self.min)
        } else {
            write!(formatter, "{}..{}", self.min, self.max)
        }
    }
}

impl fmt::Display for SignedSpanRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.min == self.max {
            write!(formatter, "{}", self.min)
        } else {
            write!(formatter, "{}..{}", self.min, self.max)
        }
    }
}

/// Reads a value from its text.
struct Text<T> {
    /// Description of a valid text, for the error about a value of another type.
    expected: &'static str,
    parsed: PhantomData<T>,
}

impl<T: FromStr<Err = String>> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.expected)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

macro_rules! as_text {
    ($($name:ty: $expected:literal),*) => {$(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(Text { expected: $expected, parsed: PhantomData })
            }
        }
    )*};
}

as_text!(
    SeedRange: "a range of seeds such as `\"0..100\"`",
    SignedSpan: "a duration such as `\"-5s\"`",
    SignedSpanRange: "a duration such as `\"-5s\"`, or a range such as `\"-5s..10ms\"`",
    Span: "a duration such as `\"5s\"`",
    SpanRange: "a duration such as `\"5s\"`, or a range such as `\"1ms..5ms\"`"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_what_they_write() {
        for text in ["0s", "1ns", "250us", "9898ms", "10s", "60s", "20m"] {
            assert_eq!(text.parse::<Span>().unwrap().to_string(), text);
        }
        assert_eq!("-5s".parse::<SignedSpan>().unwrap(), SignedSpan(-5_000_000_000));
        assert_eq!("1ms..5ms".parse::<SpanRange>().unwrap().to_string(), "1ms..5ms");
        for text in ["-5s..10ms", "-5s..-1s", "3s"] {
            assert_eq!(text.parse::<SignedSpanRange>().unwrap().to_string(), text);
        }
        assert_eq!(
            "-5s..1s".parse::<SignedSpanRange>().unwrap().largest_size(),
            Span::from_ms(5_000)
        );
    }

    #[test]
    fn a_number_in_place_of_a_text_is_answered_with_an_example() {
        let error = serde_json::from_str::<Span>("5").unwrap_err().to_string();
        assert!(error.contains("integer `5`, expected a duration such as `\"5s\"`"), "{error}");
        let error = serde_json::from_str::<SpanRange>("5").unwrap_err().to_string();
        assert!(error.contains("a range such as `\"1ms..5ms\"`"), "{error}");
    }

    #[test]
    fn a_negative_duration_is_called_negative() {
        let told = "`-1s` is negative, expected a duration of at least 0: `250ms`";
        assert_eq!("-1s".parse::<Span>(), Err(told.to_owned()));
        assert!("-1".parse::<Span>().is_err_and(|it| it.contains("is not a duration")));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in
            ["", "s", "1", "1.5s", "-1s", "1h", "99999999999999999999s", "18446744073709551615m"]
        {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
        assert!("5ms..1ms".parse::<SpanRange>().is_err());
        assert!("1ms..-1ms".parse::<SignedSpanRange>().is_err());
        for text in ["+5s", "--5s", "-+5s"] {
            assert!(text.parse::<SignedSpan>().is_err(), "{text}");
        }
        for text in ["0 .. 100", "0..+5", "-1..5", "5..5", ".."] {
            assert!(text.parse::<SeedRange>().is_err(), "{text}");
        }
    }
}
