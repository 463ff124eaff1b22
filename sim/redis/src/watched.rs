//! Watched keys (`WATCH`) and their changes.

use std::collections::BTreeMap;

use crate::{SmallBytes, trees};

/// Keys watched by at least one connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Watched {
    keys: BTreeMap<(u8, SmallBytes), Watch>,
    changes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Watch {
    watchers: usize,
    /// Number of the last change.
    changed: u64,
    /// Number of the last change after which the key existed.
    filled: u64,
    /// Number of the last change that put an already expired key in the place of a missing one.
    came_expired: u64,
    /// Number of the last change before that.
    changed_before: u64,
}

impl Watched {
    /// Adds a watcher of `key`; returns the number of its last change, which [`Watched::changed`]
    /// returns until the key changes.
    pub(super) fn begin(&mut self, database: u8, key: &[u8]) -> u64 {
        let watch = self.keys.entry((database, SmallBytes::new(key)));
        let watch = watch.or_insert(Watch {
            watchers: 0,
            changed: self.changes,
            filled: 0,
            came_expired: 0,
            changed_before: 0,
        });
        watch.watchers += 1;
        watch.changed
    }

    /// Removes a watcher of `key`.
    pub(super) fn end(&mut self, database: u8, key: &SmallBytes) {
        let place = (database, key.clone());
        if let Some(watch) = self.keys.get_mut(&place) {
            watch.watchers -= 1;
            if watch.watchers == 0 {
                self.keys.remove(&place);
            }
        }
    }

    /// Returns the number of the last change of `key`; `None` if it is not watched.
    pub(super) fn changed(&self, database: u8, key: &SmallBytes) -> Option<u64> {
        Some(self.keys.get(&(database, key.clone()))?.changed)
    }

    /// Returns true if `key` existed after some change later than number `changed`, even if it is
    /// gone again.
    pub(super) fn was_filled(&self, database: u8, key: &SmallBytes, changed: u64) -> bool {
        self.keys.get(&(database, key.clone())).is_none_or(|watch| watch.filled > changed)
    }

    /// Returns true if an already expired key took the place of a missing `key` after change number
    /// `changed`, and was the first change after it.
    pub(super) fn came_expired(&self, database: u8, key: &SmallBytes, changed: u64) -> bool {
        let watch = self.keys.get(&(database, key.clone()));
        watch.is_some_and(|it| it.came_expired > changed && it.changed_before <= changed)
    }

    /// Returns true if nothing is watched.
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Records a change of `key`; `is_there` says whether the key exists now. Costs nothing if
    /// nothing is watched.
    pub(super) fn note(&mut self, database: u8, key: &[u8], is_there: bool) {
        if self.is_empty() {
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

    /// Records that all keys of `database` were exchanged. `look` returns the old and the new state
    /// of a key: `None` if missing, otherwise whether it is expired.
    pub(super) fn swap(
        &mut self,
        database: u8,
        look: impl Fn(&SmallBytes) -> (Option<bool>, Option<bool>),
    ) {
        self.changes += 1;
        for ((_, key), watch) in self.keys.iter_mut().filter(|((it, _), _)| *it == database) {
            match look(key) {
                (None, None) => {}
                // A watcher of a missing key is not disturbed by an expired key.
                (None, Some(true)) => {
                    (watch.came_expired, watch.changed_before) = (self.changes, watch.changed);
                }
                (Some(_), None | Some(true)) => watch.changed = self.changes,
                (_, Some(false)) => (watch.changed, watch.filled) = (self.changes, self.changes),
            }
        }
    }

    /// Marks every watched key as changed.
    pub(super) fn note_all(&mut self) {
        self.changes += 1;
        let changes = self.changes;
        self.keys.values_mut().for_each(|watch| watch.changed = changes);
    }

    /// Forgets all watchers and changes.
    pub(super) fn clear(&mut self) {
        trees::clear(&mut self.keys);
        self.changes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expired_key_does_not_hide_an_earlier_change() {
        let (mut watched, key) = (Watched::default(), SmallBytes::new(b"k"));
        let first = watched.begin(0, &key);
        let swap = |watched: &mut Watched| watched.swap(0, |_| (None, Some(true)));
        swap(&mut watched);
        assert!(watched.came_expired(0, &key, first));
        watched.note(0, &key, false);
        let second = watched.begin(0, &key);
        watched.note(0, &key, false);
        swap(&mut watched);
        assert!(!watched.came_expired(0, &key, second));
    }
}
