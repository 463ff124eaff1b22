//! The expected blame of a violation.

use core::fmt;

use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The causes on which a property's violations are expected to be blamed, as the oracle prints
/// them: `clock(C)`, `amnesia(C)`, `pause`, `none`, … In a file, a list or a table `{ any-of }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpectedBlame {
    /// Every violating run is blamed on exactly these causes.
    Exactly(Vec<String>),
    /// Every violating run is blamed on one or more of these causes, and on no other. `clock(*)`
    /// and `amnesia(*)` stand for any host: races between votes decide which.
    AnyOf(Vec<String>),
}

impl ExpectedBlame {
    /// Returns the expected causes, as written.
    #[must_use]
    pub fn causes(&self) -> &[String] {
        let (Self::Exactly(causes) | Self::AnyOf(causes)) = self;
        causes
    }

    /// Returns true if `cause` is among the expected ones.
    #[must_use]
    pub fn includes(&self, cause: &str) -> bool {
        let is_meant = |expected: &String| match expected.strip_suffix("(*)") {
            Some(kind) => cause.split_once('(').is_some_and(|(its, _)| its == kind),
            None => expected == cause,
        };
        self.causes().iter().any(is_meant)
    }

    /// Returns true if a run that is blamed on `causes` is as expected.
    #[must_use]
    pub fn allows(&self, causes: &[String]) -> bool {
        let all_meant = causes.iter().all(|cause| self.includes(cause));
        match self {
            // The causes of a run are distinct, and so are those of an expectation.
            Self::Exactly(expected) => all_meant && causes.len() == expected.len(),
            Self::AnyOf(_) => all_meant && !causes.is_empty(),
        }
    }

    /// Formats the expectation for readers; `joint` stands between causes of which all are
    /// expected.
    #[must_use]
    pub fn words(&self, joint: &str) -> String {
        match self {
            Self::Exactly(causes) => causes.join(joint),
            Self::AnyOf(causes) => format!("any of {}", causes.join(", ")),
        }
    }
}

/// The table form of [`ExpectedBlame::AnyOf`].
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Table {
    any_of: Vec<String>,
}

impl Serialize for ExpectedBlame {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Exactly(causes) => causes.serialize(serializer),
            Self::AnyOf(causes) => Table { any_of: causes.clone() }.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ExpectedBlame {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BlameVisitor)
    }
}

struct BlameVisitor;

impl<'de> Visitor<'de> for BlameVisitor {
    type Value = ExpectedBlame;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of causes, or a table with `any-of`")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<ExpectedBlame, A::Error> {
        let causes = Vec::deserialize(de::value::SeqAccessDeserializer::new(list))?;
        Ok(ExpectedBlame::Exactly(causes))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ExpectedBlame, A::Error> {
        let table = Table::deserialize(de::value::MapAccessDeserializer::new(map))?;
        Ok(ExpectedBlame::AnyOf(table.any_of))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn causes(words: &str) -> Vec<String> {
        words.split_whitespace().map(String::from).collect()
    }

    #[test]
    fn a_list_is_exact() {
        let expected = ExpectedBlame::Exactly(causes("pause clock(C)"));
        assert!(expected.allows(&causes("clock(C) pause")));
        for other in ["", "pause", "clock(C)", "clock(B) pause", "clock(C) operator pause"] {
            assert!(!expected.allows(&causes(other)), "{other}");
        }
        assert_eq!(expected.words(" + "), "pause + clock(C)");
    }

    #[test]
    fn any_of_allows_every_part_that_is_not_empty() {
        let expected = ExpectedBlame::AnyOf(causes("clock(*) amnesia(A) pause"));
        for allowed in ["clock(A)", "clock(B) clock(C)", "amnesia(A) pause"] {
            assert!(expected.allows(&causes(allowed)), "{allowed}");
        }
        for other in ["", "none", "amnesia(B)", "clock(A) amnesia(B)", "operator"] {
            assert!(!expected.allows(&causes(other)), "{other}");
        }
        assert_eq!(expected.words(" + "), "any of clock(*), amnesia(A), pause");
    }
}
