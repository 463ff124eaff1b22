//! Facts about commands that servers only report (`facts.txt`, as a table).

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::Spec;

const TEXT: &str = include_str!("facts.txt");

/// Number of lines before the table.
const HEAD: usize = 2;

/// The ACL categories, without those that `ALL` stands for.
const CATEGORIES: [&str; 21] = [
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
];

/// Description of one command, as servers report it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    flags: &'static str,
    categories: &'static str,
    tips: &'static str,
    keys: &'static str,
    pub(super) group: &'static str,
    pub(super) since: &'static str,
}

/// Use of some keys by a command, and their place in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeySpec {
    pub(super) flags: &'static str,
    /// Index of the first word.
    pub(super) index: i64,
    pub(super) place: Place,
    pub(super) notes: Option<&'static str>,
}

/// Position of keys from an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Last key, step, limit.
    Range([i64; 3]),
    /// Word with the number of keys, first key, step.
    Counted([i64; 3]),
}

static FACTS: LazyLock<BTreeMap<&'static str, Facts>> =
    LazyLock::new(|| TEXT.lines().skip(HEAD).map(Facts::parse).collect());

impl Facts {
    /// Returns what servers say of `spec`.
    pub(super) fn of(spec: &Spec) -> Self {
        *FACTS.get(spec.name).expect("a test sees that each command has a line")
    }

    fn parse(line: &'static str) -> (&'static str, Self) {
        let mut columns = line.split(" |").map(str::trim);
        let mut column = || columns.next().expect("a test reads every line");
        let name = column();
        let (flags, categories, tips, keys) = (column(), column(), column(), column());
        (name, Self { flags, categories, tips, keys, group: column(), since: column() })
    }

    pub(super) fn flags(self) -> impl Iterator<Item = &'static str> {
        self.flags.split_ascii_whitespace()
    }

    pub(super) fn categories(self) -> impl Iterator<Item = &'static str> {
        self.categories.split_ascii_whitespace()
    }

    pub(super) fn tips(self) -> impl Iterator<Item = &'static str> {
        self.tips.split(", ").filter(|tip| !tip.is_empty())
    }

    pub(super) fn keys(self) -> impl Iterator<Item = KeySpec> {
        self.keys.split("; ").filter_map(KeySpec::parse)
    }
}

impl KeySpec {
    /// Parses `FLAGS @INDEX range LAST STEP LIMIT # NOTES`.
    fn parse(text: &'static str) -> Option<Self> {
        let (text, notes) = match text.split_once(" # ") {
            Some((text, notes)) => (text, Some(notes)),
            None => (text, None),
        };
        let (flags, place) = text.split_once(" @")?;
        let mut words = place.split(' ');
        let index = words.next()?.parse().ok()?;
        let is_range = words.next()? == "range";
        let mut number = || words.next()?.parse().ok();
        let numbers = [number()?, number()?, number()?];
        let place = if is_range { Place::Range(numbers) } else { Place::Counted(numbers) };
        Some(Self { flags, index, place, notes })
    }
}

/// Returns the category of this name as it is written in the table; case does not matter.
pub(super) fn category(name: &[u8]) -> Option<&'static str> {
    CATEGORIES.into_iter().find(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}

#[cfg(test)]
mod tests;
