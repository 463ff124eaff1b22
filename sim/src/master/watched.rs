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
    /// The number of the last change that left a key.
    filled: u64,
    /// The number of the last change by which a key came whose time was over already.
    came_expired: u64,
}

impl Watched {
    /// One more watches `key`: what [`Watched::changed`] says until the key changes.
    pub(super) fn begin(&mut self, database: u8, key: &[u8]) -> u64 {
        let watch = self.keys.entry((database, SmallBytes::new(key)));
        let watch = watch.or_insert(Watch {
            watchers: 0,
            changed: self.changes,
            filled: 0,
            came_expired: 0,
        });
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

    /// Whether some change of `key` after that with the number `changed` left a key, though it may
    /// be gone again.
    pub(super) fn was_filled(&self, database: u8, key: &SmallBytes, changed: u64) -> bool {
        self.keys.get(&(database, key.clone())).is_none_or(|watch| watch.filled > changed)
    }

    /// Whether a key took the place of `key` after the change with the number `changed` whose time was
    /// over already.
    pub(super) fn came_expired(&self, database: u8, key: &SmallBytes, changed: u64) -> bool {
        let watch = self.keys.get(&(database, key.clone()));
        watch.is_some_and(|watch| watch.came_expired > changed)
    }

    /// `key` has changed, and is there now or not. Costs nothing if nothing is watched.
    pub(super) fn note(&mut self, database: u8, key: &[u8], is_there: bool) {
        if self.keys.is_empty() {
            return;
        }
        self.changes += 1;
        if let Some(watch) = self.keys.get_mut(&(database, SmallBytes::new(key))) {
            watch.changed = self.changes;
            if is_there {
                watch.filled = self.changes;
            }
        }
    }

    /// All keys of `database` are others now. What was there and what is, if anything, and whether its
    /// time is over, says `look`.
    pub(super) fn swap(
        &mut self,
        database: u8,
        look: impl Fn(&SmallBytes) -> (Option<bool>, Option<bool>),
    ) {
        self.changes += 1;
        for ((_, key), watch) in self.keys.iter_mut().filter(|((it, _), _)| *it == database) {
            match look(key) {
                (None, None) => {}
                // Who waits for a key that is missing is not disturbed by one whose time is over.
                (None, Some(true)) => watch.came_expired = self.changes,
                (Some(_), None | Some(true)) => watch.changed = self.changes,
                (_, Some(false)) => (watch.changed, watch.filled) = (self.changes, self.changes),
            }
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
