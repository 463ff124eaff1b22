//! What a master tells its replicas: its effects, in order, and copies of everything.

use super::bytes::SmallBytes;
use super::databases::Databases;
use super::disk::Disk;
use super::entry::Entry;

/// Something that a replica does as it is told.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Effect {
    /// There are no keys; a copy of everything follows.
    Emptied,
    /// A key of a database became this, or `None`: is no more. Expiries are absolute.
    Became(u8, SmallBytes, Option<Entry>),
}

/// The stream of one master's effects. It outlives the master's process, since what was sent is on
/// its way whatever becomes of the sender.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stream {
    effects: Vec<Effect>,
    is_on: bool,
}

impl Stream {
    /// Empty, keeping what is allocated; nothing is told unless it `is_on`.
    pub(super) fn reset(&mut self, is_on: bool) {
        self.effects.clear();
        self.is_on = is_on;
    }

    /// How much has been told: a place in the stream.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.effects.len() as u32
    }

    /// Whether nothing has been told.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.effects.is_empty()
    }

    pub(super) fn record(&mut self, database: u8, key: &[u8], entry: Option<&Entry>) {
        if self.is_on {
            let key = SmallBytes::new(key);
            self.effects.push(Effect::Became(database, key, entry.cloned()));
        }
    }

    /// A copy of everything, for a replica that begins anew: from which place it must be read.
    pub(super) fn copy(&mut self, databases: &Databases) -> u32 {
        let from = self.len();
        self.effects.push(Effect::Emptied);
        for (database, key, entry) in databases.iter() {
            self.effects.push(Effect::Became(database, key.clone(), Some(entry.clone())));
        }
        from
    }

    /// Does to `databases` what was told between two places; `disk` takes note. Reports every key
    /// that changed to `changed`, and `None` where all keys gave way to a copy.
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
