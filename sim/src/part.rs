//! Division of many runs among processes and machines.

use core::fmt;
use core::hash::Hasher;
use core::str::FromStr;

use serde::{Deserialize, Serialize};
use siphasher::sip::SipHasher13;

/// One part of many runs: written `K/N`, the `K`th of `N`, counted from 1.
///
/// A hash of a run's name and number decides in which part it is. So every run is in exactly one
/// part, in whatever order the runs are listed, and the parts have about the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Part {
    number: u32,
    of: u32,
}

/// Error for a text or numbers that are no [`Part`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected K/N, the Kth of N parts, with K from 1 to N and N up to {}", Part::MAX)]
pub struct PartError;

impl Part {
    /// Everything, as one part.
    pub const WHOLE: Self = Self { number: 1, of: 1 };

    /// Maximum number of parts.
    pub const MAX: u32 = 1_000_000;

    /// Creates the part `number` of `of`, counted from 1.
    ///
    /// # Errors
    ///
    /// If there is no such part, or if there are more than [`Part::MAX`].
    pub fn new(number: u32, of: u32) -> Result<Self, PartError> {
        let is_part = (1..=of).contains(&number) && of <= Self::MAX;
        is_part.then_some(Self { number, of }).ok_or(PartError)
    }

    /// Returns the number of this part, from 1.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.number
    }

    /// Returns the number of parts.
    #[must_use]
    pub const fn of(self) -> u32 {
        self.of
    }

    /// Returns true if the run `number` of what is called `name` is in this part.
    #[must_use]
    pub fn has(self, name: &str, number: u64) -> bool {
        if self.of == 1 {
            return true;
        }
        let mut hash = SipHasher13::new_with_keys(0, 0);
        hash.write(name.as_bytes());
        hash.write(&number.to_le_bytes());
        hash.finish() % u64::from(self.of) == u64::from(self.number - 1)
    }
}

impl fmt::Display for Part {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.number, self.of)
    }
}

impl FromStr for Part {
    type Err = PartError;

    fn from_str(text: &str) -> Result<Self, PartError> {
        let (number, of) = text.split_once('/').ok_or(PartError)?;
        let parsed = |text: &str| text.parse().map_err(|_| PartError);
        Self::new(parsed(number)?, parsed(of)?)
    }
}

impl From<Part> for String {
    fn from(part: Part) -> Self {
        part.to_string()
    }
}

impl TryFrom<String> for Part {
    type Error = PartError;

    fn try_from(text: String) -> Result<Self, PartError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_run_is_in_exactly_one_part(of in 1_u32..40, name in ".{0,12}", number: u64) {
            let has = |number_of_part| Part::new(number_of_part, of).unwrap().has(&name, number);
            prop_assert_eq!((1..=of).filter(|&part| has(part)).count(), 1);
        }
    }

    #[test]
    fn parts_have_about_the_same_size() {
        let of_part = |part: Part| (0..10_000).filter(|&seed| part.has("a::b", seed)).count();
        for number in 1..=8 {
            let size = of_part(Part::new(number, 8).unwrap());
            assert!((1_100..1_400).contains(&size), "{size} of part {number}");
        }
    }

    #[test]
    fn parts_are_read_as_they_are_written() {
        for text in ["1/1", "3/64", "1000000/1000000"] {
            assert_eq!(text.parse::<Part>().unwrap().to_string(), text);
        }
        for text in ["", "1", "0/4", "5/4", "1/0", "-1/4", "1/4/4", "1/1000001", "a/b"] {
            assert_eq!(text.parse::<Part>(), Err(PartError), "{text}");
        }
    }
}
