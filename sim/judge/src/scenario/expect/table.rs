//! The table `expect` of a scenario: properties and quantities under their names.

use core::fmt;
use std::collections::BTreeMap;

use serde::de::{self, DeserializeSeed, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::quantity::{Bounds, Quantity};
use super::{Expectation, Property};

/// The expectations of a scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expectations {
    /// The expected verdict of each property. A property that is not named is expected to hold.
    pub properties: BTreeMap<Property, Expectation>,
    /// Bounds of quantities. Every run must measure the quantity, and within the bounds.
    pub quantities: BTreeMap<Quantity, Bounds>,
}

impl Expectations {
    /// Returns true if the scenario names no property and no quantity.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.properties.is_empty() && self.quantities.is_empty()
    }
}

impl Serialize for Expectations {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let length = self.properties.len() + self.quantities.len();
        let mut map = serializer.serialize_map(Some(length))?;
        // TOML has plain values before tables.
        for (quantity, bounds) in &self.quantities {
            map.serialize_entry(quantity.name(), &quantity.written(*bounds))?;
        }
        for (property, expectation) in &self.properties {
            map.serialize_entry(property.name(), expectation)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Expectations {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(TableVisitor)
    }
}

struct TableVisitor;

impl<'de> Visitor<'de> for TableVisitor {
    type Value = Expectations;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a table of properties and quantities")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Expectations, A::Error> {
        let mut expected = Expectations::default();
        while let Some(name) = map.next_key()? {
            match name {
                Name::Property(property) => {
                    expected.properties.insert(property, map.next_value()?);
                }
                Name::Quantity(quantity) => {
                    let bounds = map.next_value_seed(BoundsOf(quantity))?;
                    expected.quantities.insert(quantity, bounds);
                }
            }
        }
        Ok(expected)
    }
}

/// A key of the table.
enum Name {
    Property(Property),
    Quantity(Quantity),
}

/// All keys, for errors.
static NAMES: [&str; Property::ALL.len() + Quantity::ALL.len()] = names();

const fn names() -> [&'static str; Property::ALL.len() + Quantity::ALL.len()] {
    let mut names = [""; Property::ALL.len() + Quantity::ALL.len()];
    let mut place = 0;
    while place < names.len() {
        names[place] = match place.checked_sub(Property::ALL.len()) {
            None => Property::ALL[place].name(),
            Some(place) => Quantity::ALL[place].name(),
        };
        place += 1;
    }
    names
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let property = Property::ALL.into_iter().find(|it| it.name() == name);
        let quantity = || Quantity::ALL.into_iter().find(|it| it.name() == name);
        let found = property.map(Self::Property).or_else(|| quantity().map(Self::Quantity));
        found.ok_or_else(|| de::Error::unknown_variant(&name, &NAMES))
    }
}

/// Reads the bounds of a quantity, whose unit decides how they are written.
struct BoundsOf(Quantity);

impl<'de> DeserializeSeed<'de> for BoundsOf {
    type Value = Bounds;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Bounds, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for BoundsOf {
    type Value = Bounds;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("bounds in quotes, such as \"A..B\", \"A..\" or \"..B\"")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Bounds, E> {
        self.0.bounds(text).map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{ExpectedBlame, Verdict};

    const TABLE: &str = r#"
        section-overlap = "5s..6s"
        exclusive-section = { verdict = "violated", blame = { any-of = ["clock(*)"] } }
        commands = "..120"
        tidy = "holds"
    "#;

    #[test]
    fn properties_and_quantities_share_a_table() {
        let expected: Expectations = toml::from_str(TABLE).unwrap();
        assert_eq!((expected.properties.len(), expected.quantities.len()), (2, 2));
        let found = &expected.properties[&Property::ExclusiveSection];
        let any_clock = ExpectedBlame::AnyOf(vec![String::from("clock(*)")]);
        assert_eq!((found.verdict, &found.blame), (Verdict::Violated, &Some(any_clock)));
        assert!(expected.quantities[&Quantity::Commands].contain(120));
        let toml = toml::to_string(&expected).unwrap();
        assert_eq!(toml::from_str::<Expectations>(&toml).unwrap(), expected);
        let json = serde_json::to_string(&expected).unwrap();
        assert_eq!(serde_json::from_str::<Expectations>(&json).unwrap(), expected);
    }

    #[test]
    fn an_unknown_name_is_answered_with_all_names() {
        let error = toml::from_str::<Expectations>("section-overlp = \"1s\"").unwrap_err();
        for name in NAMES {
            assert!(error.message().contains(&format!("`{name}`")), "{name}: {error}");
        }
    }
}
