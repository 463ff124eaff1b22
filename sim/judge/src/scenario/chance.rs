//! Numbers that are drawn from the seed: counts, and whether a fault happens.

use core::fmt;
use core::str::FromStr;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::span::number;

/// All counts from `min` to `max`, both included. In a file, a number or a text such as `3..20`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountRange {
    /// The smallest count.
    pub min: u32,
    /// The largest count.
    pub max: u32,
}

impl CountRange {
    /// Returns the range that contains only `count`.
    #[must_use]
    pub const fn exactly(count: u32) -> Self {
        Self { min: count, max: count }
    }
}

impl FromStr for CountRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = || format!("`{text}` is not a count, expected a number or a range: `3..20`");
        let (min, max) = text.split_once("..").unwrap_or((text, text));
        let number = |text: &str| number(text).ok_or_else(wanted);
        let range = Self { min: number(min)?, max: number(max)? };
        if range.min > range.max {
            return Err(format!("`{text}` ends before it begins"));
        }
        Ok(range)
    }
}

impl Serialize for CountRange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.min == self.max {
            true => serializer.serialize_u32(self.min),
            false => serializer.collect_str(&format_args!("{}..{}", self.min, self.max)),
        }
    }
}

impl<'de> Deserialize<'de> for CountRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CountRangeVisitor)
    }
}

struct CountRangeVisitor;

impl Visitor<'_> for CountRangeVisitor {
    type Value = CountRange;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a number, or a range such as `3..20`")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<CountRange, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<CountRange, E> {
        let out_of_range = |_| E::invalid_value(de::Unexpected::Unsigned(number), &self);
        u32::try_from(number).map(CountRange::exactly).map_err(out_of_range)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<CountRange, E> {
        let out_of_range = |_| E::invalid_value(de::Unexpected::Signed(number), &self);
        u32::try_from(number).map(CountRange::exactly).map_err(out_of_range)
    }
}

/// A probability in parts per million, from 0 to 1 000 000. In a file, a percentage with at most
/// four decimal places: `25%`, `0.5%`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chance {
    ppm: u32,
}

impl Chance {
    /// The probability of what happens always.
    pub const CERTAIN: Self = Self::percent(100);

    /// Returns the probability of `percent` in a hundred.
    ///
    /// # Panics
    ///
    /// If that is more than certain.
    #[must_use]
    pub const fn percent(percent: u32) -> Self {
        assert!(percent <= 100, "more than certain");
        Self { ppm: percent * 10_000 }
    }

    /// Returns the probability in parts per million.
    #[must_use]
    pub const fn ppm(self) -> u32 {
        self.ppm
    }

    /// Returns true if it happens always.
    #[must_use]
    pub fn is_certain(&self) -> bool {
        *self == Self::CERTAIN
    }
}

impl FromStr for Chance {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = || format!("`{text}` is not a probability, expected a percentage: `25%`");
        let number = text.strip_suffix('%').ok_or_else(wanted)?;
        let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
        let is_number = |text: &str| {
            !text.is_empty() && text.len() <= 4 && text.bytes().all(|it| it.is_ascii_digit())
        };
        if !is_number(whole) || !is_number(decimals) {
            return Err(wanted());
        }
        let number = |text: &str| text.parse::<u32>().map_err(|_| wanted());
        let ppm = number(whole)? * 10_000 + number(&format!("{decimals:0<4}"))?;
        if ppm > Self::CERTAIN.ppm {
            return Err(format!("`{text}` is more than certain, expected at most `100%`"));
        }
        Ok(Self { ppm })
    }
}

impl fmt::Display for Chance {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{}.{:04}", self.ppm / 10_000, self.ppm % 10_000);
        write!(formatter, "{}%", digits.trim_end_matches('0').trim_end_matches('.'))
    }
}

impl Serialize for Chance {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Chance {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ChanceVisitor)
    }
}

struct ChanceVisitor;

impl Visitor<'_> for ChanceVisitor {
    type Value = Chance;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a percentage such as `25%`")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Chance, E> {
        text.parse().map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probability_is_a_percentage() {
        for (text, ppm) in [("25%", 250_000), ("0.5%", 5_000), ("100%", 1_000_000), ("0.0001%", 1)]
        {
            let chance: Chance = text.parse().unwrap();
            assert_eq!((chance.ppm(), chance.to_string().as_str()), (ppm, text));
        }
        for text in ["25", "%", "-1%", "1.%", ".5%", "0.00001%", "100.0001%", "1e2%", "101%", "+1%"]
        {
            assert!(text.parse::<Chance>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_count_is_a_number_or_a_range() {
        let read =
            |json: &str| serde_json::from_str::<CountRange>(json).map_err(|it| it.to_string());
        assert_eq!(read("3"), Ok(CountRange::exactly(3)));
        assert_eq!(read("\"3..20\""), Ok(CountRange { min: 3, max: 20 }));
        assert_eq!(read("\"3\""), Ok(CountRange::exactly(3)));
        for json in ["-1", "\"20..3\"", "\"three\"", "4294967296", "\"1..\"", "\"+3\""] {
            assert!(read(json).is_err(), "{json}");
        }
        for range in [CountRange::exactly(7), CountRange { min: 0, max: 2 }] {
            assert_eq!(read(&serde_json::to_string(&range).unwrap()), Ok(range));
        }
    }
}
