//! Fields of a hash.

use std::collections::BTreeMap;

use crate::SmallBytes;

/// Greatest number of fields of a short hash (`hash-max-listpack-entries`).
const SHORT_FIELDS_MAX: usize = 512;

/// Greatest length, in bytes, of a field or a value of a short hash (`hash-max-listpack-value`).
const SHORT_BYTES_MAX: usize = 64;

/// The fields of a hash and their values. A short hash is a list in the order in which the fields
/// were added, as on real servers. A hash that has ever had more than 512 fields, or a field or a
/// value of more than 64 bytes, is in the order of the fields' bytes instead; real servers then use
/// the order of a hash table with a random seed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fields(Repr);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Repr {
    Short(Vec<(SmallBytes, SmallBytes)>),
    Long(BTreeMap<SmallBytes, SmallBytes>),
}

impl Default for Fields {
    fn default() -> Self {
        Self(Repr::Short(Vec::new()))
    }
}

impl Fields {
    /// Returns the number of fields.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Short(fields) => fields.len(),
            Repr::Long(fields) => fields.len(),
        }
    }

    /// Returns true if there are no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if the hash has the order of short hashes.
    pub(crate) fn is_short(&self) -> bool {
        matches!(self.0, Repr::Short(_))
    }

    /// Returns the value of a field.
    #[must_use]
    pub fn get(&self, field: &[u8]) -> Option<&SmallBytes> {
        match &self.0 {
            Repr::Short(fields) => {
                fields.iter().find(|(name, _)| **name == *field).map(|(_, value)| value)
            }
            Repr::Long(fields) => fields.get(field),
        }
    }

    /// Iterates over the fields and their values.
    pub fn iter(&self) -> impl Iterator<Item = (&SmallBytes, &SmallBytes)> {
        let (short, long) = match &self.0 {
            Repr::Short(fields) => (Some(fields), None),
            Repr::Long(fields) => (None, Some(fields)),
        };
        let short = short.into_iter().flatten().map(|(field, value)| (field, value));
        short.chain(long.into_iter().flatten())
    }

    /// Sets a field; returns true if it is new.
    pub(crate) fn set(&mut self, field: &[u8], value: SmallBytes) -> bool {
        if field.len().max(value.len()) > SHORT_BYTES_MAX {
            self.lengthen();
        }
        let is_new = match &mut self.0 {
            Repr::Short(fields) => match fields.iter_mut().find(|(name, _)| **name == *field) {
                Some((_, old)) => {
                    *old = value;
                    false
                }
                None => {
                    fields.push((SmallBytes::new(field), value));
                    true
                }
            },
            Repr::Long(fields) => fields.insert(SmallBytes::new(field), value).is_none(),
        };
        if self.len() > SHORT_FIELDS_MAX {
            self.lengthen();
        }
        is_new
    }

    /// Removes a field; returns false if there is no such field.
    pub(crate) fn remove(&mut self, field: &[u8]) -> bool {
        match &mut self.0 {
            Repr::Short(fields) => {
                let place = fields.iter().position(|(name, _)| **name == *field);
                place.map(|place| fields.remove(place)).is_some()
            }
            Repr::Long(fields) => fields.remove(field).is_some(),
        }
    }

    /// Gives up the order of short hashes.
    fn lengthen(&mut self) {
        if let Repr::Short(fields) = &mut self.0 {
            self.0 = Repr::Long(fields.drain(..).collect());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(fields: &Fields) -> Vec<&[u8]> {
        fields.iter().map(|(field, _)| &**field).collect()
    }

    #[test]
    fn a_short_hash_keeps_the_order_of_addition() {
        let mut fields = Fields::default();
        for field in [b"c", b"a", b"b", b"c"] {
            fields.set(field, SmallBytes::new(b"1"));
        }
        assert_eq!(names(&fields), [b"c", b"a", b"b"]);
        assert!(fields.remove(b"a") && !fields.remove(b"a"));
        assert!(fields.set(b"a", SmallBytes::new(b"2")));
        assert_eq!(names(&fields), [b"c", b"b", b"a"]);
        assert_eq!(fields.get(b"a"), Some(&SmallBytes::new(b"2")));
    }

    #[test]
    fn a_long_value_or_many_fields_end_the_order_of_addition() {
        let mut fields = Fields::default();
        fields.set(b"b", SmallBytes::new(&[b'x'; SHORT_BYTES_MAX]));
        fields.set(b"a", SmallBytes::new(b""));
        assert!(fields.is_short());
        fields.set(b"c", SmallBytes::new(&[b'x'; SHORT_BYTES_MAX + 1]));
        assert_eq!(names(&fields), [b"a", b"b", b"c"]);
        assert!(fields.remove(b"c") && !fields.remove(b"c") && !fields.is_short());
        let mut many = Fields::default();
        for number in 0..SHORT_FIELDS_MAX {
            many.set(&number.to_be_bytes(), SmallBytes::new(b"1"));
        }
        assert!(many.is_short());
        assert!(!many.set(&0_usize.to_be_bytes(), SmallBytes::new(b"2")) && many.is_short());
        assert!(many.set(b"last", SmallBytes::new(b"1")) && !many.is_short());
        assert_eq!(many.len(), SHORT_FIELDS_MAX + 1);
    }
}
