//! Deserialization of settings. The key is part of each message, because formats such as JSON do not
//! add it.

use core::fmt;

use ::serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};

use super::{Config, FIELDS, Field};

/// Keys of a file, in the order of [`FIELDS`].
const KEYS: [&str; FIELDS.len()] = {
    let mut keys = [""; FIELDS.len()];
    let mut place = 0;
    while place < keys.len() {
        keys[place] = FIELDS[place].1;
        place += 1;
    }
    keys
};

impl<'de> Deserialize<'de> for Config {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_struct("Config", &KEYS, Settings)
    }
}

struct Settings;

impl<'de> Visitor<'de> for Settings {
    type Value = Config;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a table of settings of a Redlock client")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Config, A::Error> {
        let mut config = Config::default();
        while let Some(key) = map.next_key::<String>()? {
            let known = FIELDS.iter().find(|(_, name, _)| *name == key);
            let Some(&(field, name, _)) = known else {
                return Err(A::Error::unknown_field(&key, &KEYS));
            };
            map.next_value_seed(Value { config: &mut config, field, name })?;
        }
        Ok(config)
    }
}

/// The value of one field.
struct Value<'a> {
    config: &'a mut Config,
    field: Field,
    name: &'static str,
}

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name;
        match self.field {
            Field::Nodes => formatter.write_str("a list of URLs for `nodes`"),
            Field::RestartGuard | Field::CanaryKey => write!(formatter, "a text for `{name}`"),
            _ => write!(formatter, "a text for `{name}`, as in \"30s\""),
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        let set = self.config.set(self.field, text);
        set.map_err(|why| E::custom(format_args!("`{}`: {why}", self.name)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut urls: A) -> Result<(), A::Error> {
        if self.field != Field::Nodes {
            while urls.next_element::<IgnoredAny>()?.is_some() {}
            return Err(A::Error::custom(format_args!(
                "`{}`: expected a text, found a list",
                self.name
            )));
        }
        while let Some(url) = urls.next_element::<String>()? {
            self.config.nodes.push(url);
        }
        Ok(())
    }

    /// `null`: as if the key were absent.
    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_none<E: Error>(self) -> Result<(), E> {
        Ok(())
    }
}
