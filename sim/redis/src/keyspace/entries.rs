//! The entries of a keyspace.

use core::hash::{Hash, Hasher};
use std::collections::BTreeMap;

use super::Entry;
use crate::{SmallBytes, trees};

/// Number of keys up to which a list is faster than a tree.
const FEW: usize = 8;

/// Keys and their entries, in the order of the keys: a list while there are few, otherwise a tree.
#[derive(Clone, Debug, Default)]
pub(super) struct Entries {
    /// In the order of the keys. Empty if `many` is not.
    few: Vec<(SmallBytes, Entry)>,
    many: BTreeMap<SmallBytes, Entry>,
}

impl Entries {
    pub(super) fn len(&self) -> usize {
        self.few.len() + self.many.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes every key, but keeps the memory of the list.
    pub(super) fn clear(&mut self) {
        self.few.clear();
        trees::clear(&mut self.many);
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<&Entry> {
        if self.many.is_empty() {
            return self.place(key).map(|place| &self.few[place].1);
        }
        self.many.get(key)
    }

    pub(super) fn get_mut(&mut self, key: &[u8]) -> Option<&mut Entry> {
        if self.many.is_empty() {
            return self.place(key).map(|place| &mut self.few[place].1);
        }
        self.many.get_mut(key)
    }

    /// Sets the entry of `key`, and returns the entry that it replaces.
    pub(super) fn insert(&mut self, key: &[u8], entry: Entry) -> Option<Entry> {
        if let Some(old) = self.get_mut(key) {
            return Some(core::mem::replace(old, entry));
        }
        if self.few.len() == FEW {
            self.many.extend(self.few.drain(..));
        }
        let named = (SmallBytes::new(key), entry);
        if self.many.is_empty() {
            let place = self.few.partition_point(|(other, _)| **other < *key);
            self.few.insert(place, named);
        } else {
            self.many.extend([named]);
        }
        None
    }

    pub(super) fn remove(&mut self, key: &[u8]) -> Option<Entry> {
        if self.many.is_empty() {
            return self.place(key).map(|place| self.few.remove(place).1);
        }
        self.many.remove(key)
    }

    /// Removes the keys for which `keeps` returns false.
    pub(super) fn retain(&mut self, mut keeps: impl FnMut(&SmallBytes, &mut Entry) -> bool) {
        self.few.retain_mut(|(key, entry)| keeps(key, entry));
        self.many.retain(keeps);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&SmallBytes, &Entry)> {
        self.few.iter().map(|(key, entry)| (key, entry)).chain(&self.many)
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &Entry> {
        self.iter().map(|(_, entry)| entry)
    }

    fn place(&self, key: &[u8]) -> Option<usize> {
        self.few.iter().position(|(other, _)| **other == *key)
    }
}

impl PartialEq for Entries {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for Entries {}

impl Hash for Entries {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.len().hash(state);
        self.iter().for_each(|named| named.hash(state));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Writer;

    fn entry(value: &[u8]) -> Entry {
        let (value, writer) = (SmallBytes::new(value), Writer::Operator);
        Entry { value: value.into(), expires_wall_ms: None, writer }
    }

    #[test]
    fn list_and_tree_have_the_same_entries_in_the_same_order() {
        let (mut entries, mut model) = (Entries::default(), BTreeMap::new());
        for step in 0..2_000_u32 {
            // The number of keys rises and falls across the bound.
            let key = [(step * 7 % 13) as u8];
            if step / 20 % 2 == 0 {
                let value = entry(&step.to_le_bytes());
                let old = model.insert(SmallBytes::new(&key), value.clone());
                assert_eq!(entries.insert(&key, value), old);
            } else {
                assert_eq!(entries.remove(&key), model.remove(&key[..]));
            }
            assert_eq!(entries.get(&key), model.get(&key[..]));
            assert_eq!(entries.len(), model.len());
            assert!(entries.iter().eq(&model), "step {step}");
        }
    }

    #[test]
    fn equality_is_that_of_the_entries() {
        let (mut grown, mut small) = (Entries::default(), Entries::default());
        for key in 0..=FEW as u8 {
            grown.insert(&[key], entry(b"a"));
        }
        grown.retain(|key, _| **key == [3]);
        small.insert(&[3], entry(b"a"));
        assert_eq!(grown, small);
        small.insert(&[3], entry(b"b"));
        assert_ne!(grown, small);
    }
}
