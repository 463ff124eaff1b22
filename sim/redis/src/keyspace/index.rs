//! The order in which keys expire, indexed where a scan would take too long.

use std::collections::BTreeSet;

use super::Entry;
use super::entries::Entries;
use crate::SmallBytes;

/// Number of keys from which an index exists. A scan is faster over few keys.
const INDEXED_FROM: usize = 64;

/// The expiries of a keyspace in order. The index is built once the keyspace has many keys and
/// exists until the keyspace is cleared.
#[derive(Clone, Debug, Default)]
pub(super) struct ExpiryIndex(Option<BTreeSet<(u64, SmallBytes)>>);

impl ExpiryIndex {
    /// Returns the earliest expiry, if any key expires; the outer `None` means that there is no
    /// index.
    pub(super) fn first(&self) -> Option<Option<(u64, &SmallBytes)>> {
        Some(self.0.as_ref()?.first().map(|(when, key)| (*when, key)))
    }

    pub(super) fn clear(&mut self) {
        self.0 = None;
    }

    /// Adds the expiry of `key` at `when`.
    pub(super) fn note(&mut self, key: &[u8], when: Option<u64>) {
        if let (Some(index), Some(when)) = (&mut self.0, when) {
            index.insert((when, SmallBytes::new(key)));
        }
    }

    /// Removes the expiry of `key` at `when`.
    pub(super) fn forget(&mut self, key: &[u8], when: Option<u64>) {
        if let (Some(index), Some(when)) = (&mut self.0, when) {
            index.remove(&(when, SmallBytes::new(key)));
        }
    }

    /// Builds the index once there are enough keys.
    pub(super) fn grow(&mut self, entries: &Entries) {
        if self.0.is_none() && entries.len() >= INDEXED_FROM {
            let expiry = |(key, entry): (&SmallBytes, &Entry)| {
                entry.expires_wall_ms.map(|when| (when, key.clone()))
            };
            self.0 = Some(entries.iter().filter_map(expiry).collect());
        }
    }
}
