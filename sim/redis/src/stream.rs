//! The replication stream of a master: its effects in order, and full copies.

use crate::{Databases, Disk, Entry, SmallBytes};

/// A change that a replica applies.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Effect {
    /// All keys were removed; a full copy follows.
    Emptied,
    /// New state of a key in a database; `None` if the key is gone. Expiries are absolute.
    Became(u8, SmallBytes, Option<Entry>),
}

/// The stream of one master's effects. It outlives the master's process, because effects already
/// sent still arrive after the sender dies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stream {
    effects: Vec<Effect>,
    is_on: bool,
}

impl Stream {
    /// Empties the stream but keeps the allocation; records effects from now on only if `is_on`.
    pub(super) fn reset(&mut self, is_on: bool) {
        self.effects.clear();
        self.is_on = is_on;
    }

    /// Returns the number of effects so far, which is a place in the stream.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.effects.len() as u32
    }

    /// Returns true if the stream holds no effects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.effects.is_empty()
    }

    /// Returns true if effects are recorded.
    pub(super) fn records(&self) -> bool {
        self.is_on
    }

    pub(super) fn record(&mut self, database: u8, key: &[u8], entry: Option<&Entry>) {
        if self.is_on {
            let key = SmallBytes::new(key);
            self.effects.push(Effect::Became(database, key, entry.cloned()));
        }
    }

    /// Appends a full copy for a replica that begins to follow; returns the place where the copy
    /// begins.
    pub(super) fn copy(&mut self, databases: &Databases) -> u32 {
        let from = self.len();
        self.effects.push(Effect::Emptied);
        for (database, key, entry) in databases.iter() {
            self.effects.push(Effect::Became(database, key.clone(), Some(entry.clone())));
        }
        from
    }

    /// Applies the effects between two places to `databases` and records them on `disk`. Calls
    /// `changed` with every key that changed, and with `None` where a full copy replaced all keys.
    pub(super) fn apply(
        &self,
        from: u32,
        to: u32,
        databases: &mut Databases,
        disk: &mut Disk,
        mut changed: impl FnMut(Option<&[u8]>),
    ) {
        for effect in &self.effects[from as usize..to as usize] {
            match effect {
                Effect::Emptied => {
                    databases
                        .iter()
                        .for_each(|(database, key, _)| disk.record(database, key, None));
                    databases.clear();
                    changed(None);
                }
                Effect::Became(database, key, entry) => {
                    databases.at(*database).load(key, entry.as_ref());
                    disk.record(*database, key, entry.as_ref());
                    changed(Some(key));
                }
            }
        }
    }
}
