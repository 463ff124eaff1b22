//! Which key expires next, where there are too many to look at.

use std::collections::{BTreeMap, BTreeSet};

use super::Entry;
use crate::master::SmallBytes;

/// From so many keys on there is an index. The few keys of a lock's node are faster looked through.
const INDEXED_FROM: usize = 64;

/// The expiries of a keyspace in order, once it has many keys; it exists until the keyspace is
/// cleared.
#[derive(Clone, Debug, Default)]
pub(super) struct ExpiryIndex(Option<BTreeSet<(u64, SmallBytes)>>);

impl ExpiryIndex {
    /// The earliest; `None` if there is no index.
    pub(super) fn first(&self) -> Option<Option<(u64, &SmallBytes)>> {
        Some(self.0.as_ref()?.first().map(|(when, key)| (*when, key)))
    }

    pub(super) fn clear(&mut self) {
        self.0 = None;
    }

    /// `key` expires at `when`.
    pub(super) fn note(&mut self, key: &[u8], when: Option<u64>) {
        if let (Some(index), Some(when)) = (&mut self.0, when) {
            index.insert((when, SmallBytes::new(key)));
        }
    }

    /// `key` does not expire at `when` any more.
    pub(super) fn forget(&mut self, key: &[u8], when: Option<u64>) {
        if let (Some(index), Some(when)) = (&mut self.0, when) {
            index.remove(&(when, SmallBytes::new(key)));
        }
    }

    /// Begins the index when it is time to.
    pub(super) fn grow(&mut self, entries: &BTreeMap<SmallBytes, Entry>) {
        if self.0.is_none() && entries.len() >= INDEXED_FROM {
            let expiry = |(key, entry): (&SmallBytes, &Entry)| {
                entry.expires_wall_ms.map(|when| (when, key.clone()))
            };
            self.0 = Some(entries.iter().filter_map(expiry).collect());
        }
    }
}
