//! Which keys are watched, and whether they changed.

use std::collections::BTreeMap;

use super::bytes::SmallBytes;

/// The keys that some connection watches (`WATCH`), whoever may change them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Watched {
    keys: BTreeMap<(u8, SmallBytes), Watch>,
    changes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Watch {
    watchers: usize,
    /// The number of the last change.
    changed: u64,
}

impl Watched {
    /// One more watches `key`: what [`Watched::changed`] says until the key changes.
    pub(super) fn begin(&mut self, database: u8, key: &[u8]) -> u64 {
        let watch = self.keys.entry((database, SmallBytes::new(key)));
        let watch = watch.or_insert(Watch { watchers: 0, changed: self.changes });
        watch.watchers += 1;
        watch.changed
    }

    /// One of them does not any more.
    pub(super) fn end(&mut self, database: u8, key: &SmallBytes) {
        let place = (database, key.clone());
        if let Some(watch) = self.keys.get_mut(&place) {
            watch.watchers -= 1;
            if watch.watchers == 0 {
                self.keys.remove(&place);
            }
        }
    }

    /// The number of the last change of `key`; `None` if nobody watches it.
    pub(super) fn changed(&self, database: u8, key: &SmallBytes) -> Option<u64> {
        Some(self.keys.get(&(database, key.clone()))?.changed)
    }

    /// `key` has changed. Costs nothing if nothing is watched.
    pub(super) fn note(&mut self, database: u8, key: &[u8]) {
        if self.keys.is_empty() {
            return;
        }
        self.changes += 1;
        if let Some(watch) = self.keys.get_mut(&(database, SmallBytes::new(key))) {
            watch.changed = self.changes;
        }
    }

    /// Anything may have changed.
    pub(super) fn note_all(&mut self) {
        self.changes += 1;
        let changes = self.changes;
        self.keys.values_mut().for_each(|watch| watch.changed = changes);
    }

    /// Nobody watches anything any more.
    pub(super) fn clear(&mut self) {
        self.keys.clear();
        self.changes = 0;
    }
}
