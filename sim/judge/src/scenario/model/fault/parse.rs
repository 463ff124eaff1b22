//! Parses a fault: a table in which exactly one key is the name of a kind.

use core::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, EnumAccess, Error, MapAccess, VariantAccess, Visitor};
use serde::{Deserialize, Deserializer, forward_to_deserialize_any};

use super::{Fault, FaultKind};
use crate::scenario::chance::Chance;

/// The keys of every fault, besides the name of its kind.
const COMMON: [&str; 8] = ["id", "at", "until", "lasts", "every", "times", "chance", "enabled"];

impl<'de> Deserialize<'de> for Fault {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FaultVisitor)
    }
}

struct FaultVisitor;

impl<'de> Visitor<'de> for FaultVisitor {
    type Value = Fault;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a fault: `id`, `at` and one kind")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fault, A::Error> {
        let (mut id, mut at, mut until, mut lasts) = (None, None, None, None);
        let (mut every, mut times, mut chance) = (None, None, None);
        let (mut enabled, mut kind, mut seen) = (None, None, Vec::new());
        while let Some(key) = map.next_key_seed(Key { seen: &seen })? {
            seen.push(key);
            match key {
                "id" => id = Some(map.next_value()?),
                "at" => at = Some(map.next_value()?),
                "until" => until = map.next_value()?,
                "lasts" => lasts = map.next_value()?,
                "every" => every = map.next_value()?,
                "times" => times = map.next_value()?,
                "chance" => chance = map.next_value()?,
                "enabled" => enabled = Some(map.next_value()?),
                name => kind = Some(map.next_value_seed(Details { name })?),
            }
        }
        Ok(Fault {
            id: id.ok_or_else(|| Error::missing_field("id"))?,
            at: at.ok_or_else(|| Error::missing_field("at"))?,
            until,
            lasts,
            every,
            times,
            chance: chance.unwrap_or(Chance::CERTAIN),
            enabled: enabled.unwrap_or(true),
            kind: kind.ok_or_else(|| Error::custom(no_kind()))?,
        })
    }
}

fn no_kind() -> String {
    format!("the fault has no kind, expected one of {}", quoted(&FaultKind::NAMES))
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// A key: one of [`COMMON`], or the name of a kind. Rejects a key that was seen before, and the name
/// of a second kind.
struct Key<'k> {
    seen: &'k [&'static str],
}

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = &'static str;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = &'static str;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key of a fault")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        let mut keys = COMMON.into_iter().chain(FaultKind::NAMES);
        let Some(key) = keys.find(|key| *key == text) else {
            let expected = quoted(&[&COMMON[..], &FaultKind::NAMES].concat());
            return Err(E::custom(format!("unknown field `{text}`, expected one of {expected}")));
        };
        if self.seen.contains(&key) {
            return Err(E::duplicate_field(key));
        }
        let is_kind = |key: &&&str| !COMMON.contains(*key);
        match self.seen.iter().find(is_kind) {
            Some(first) if !COMMON.contains(&key) => Err(E::custom(format!(
                "the fault has two kinds, `{first}` and `{key}`, expected one of them"
            ))),
            _ => Ok(key),
        }
    }
}

/// The value of the key that names the kind.
struct Details {
    name: &'static str,
}

impl<'de> DeserializeSeed<'de> for Details {
    type Value = FaultKind;

    fn deserialize<D: Deserializer<'de>>(self, details: D) -> Result<FaultKind, D::Error> {
        FaultKind::deserialize(Tagged { name: self.name, details })
    }
}

/// Presents the details as an enum variant called `name`, because the name was read separately.
struct Tagged<D> {
    name: &'static str,
    details: D,
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Tagged<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        visitor.visit_enum(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de, D: Deserializer<'de>> EnumAccess<'de> for Tagged<D> {
    type Error = D::Error;
    type Variant = TheDetails<D>;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, TheDetails<D>), D::Error> {
        let name = seed.deserialize(StrDeserializer::new(self.name))?;
        Ok((name, TheDetails(self.details)))
    }
}

struct TheDetails<D>(D);

impl<'de, D: Deserializer<'de>> VariantAccess<'de> for TheDetails<D> {
    type Error = D::Error;

    fn unit_variant(self) -> Result<(), D::Error> {
        Err(no_unit())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, D::Error> {
        seed.deserialize(self.0)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, D::Error> {
        Err(no_unit())
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, D::Error> {
        Err(no_unit())
    }
}

fn no_unit<E: Error>() -> E {
    E::custom("the details of a fault must be a table")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(json: &str) -> Result<Fault, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn a_key_stands_once() {
        for key in [r#""id": "f""#, r#""at": "1s""#, r#""stall": {"host": "A"}"#] {
            let twice = format!(r#"{{"id": "f", "at": "1s", "stall": {{"host": "A"}}, {key}}}"#);
            let error = parsed(&twice).unwrap_err();
            assert!(error.contains("duplicate field"), "{error}");
        }
    }

    #[test]
    fn an_end_that_is_null_is_none() {
        let json = r#"{"id": "f", "at": "1s", "until": null, "stall": {"host": "A"}}"#;
        assert_eq!(parsed(json).unwrap().until, None);
    }
}
