//! What a master tells its replicas: its effects, in order, and copies of everything.

use super::bytes::SmallBytes;
use super::disk::Disk;
use super::keyspace::{Entry, Keyspace};

/// Something that a replica does as it is told.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Effect {
    /// There are no keys; a copy of everything follows.
    Emptied,
    /// A key became this, or `None`: is no more. Expiries are absolute.
    Became(SmallBytes, Option<Entry>),
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

    pub(super) fn record(&mut self, key: &[u8], entry: Option<&Entry>) {
        if self.is_on {
            self.effects.push(Effect::Became(SmallBytes::new(key), entry.cloned()));
        }
    }

    /// A copy of everything, for a replica that begins anew: from which place it must be read.
    pub(super) fn copy(&mut self, keyspace: &Keyspace) -> u32 {
        let from = self.len();
        self.effects.push(Effect::Emptied);
        for (key, entry) in keyspace.iter() {
            self.effects.push(Effect::Became(key.clone(), Some(entry.clone())));
        }
        from
    }

    /// Does to `keyspace` what was told between two places; `disk` takes note.
    pub(super) fn apply(&self, from: u32, to: u32, keyspace: &mut Keyspace, disk: &mut Disk) {
        for effect in &self.effects[from as usize..to as usize] {
            match effect {
                Effect::Emptied => {
                    keyspace.iter().for_each(|(key, _)| disk.record(key, None));
                    keyspace.clear();
                }
                Effect::Became(key, entry) => {
                    keyspace.load(key, entry.as_ref());
                    disk.record(key, entry.as_ref());
                }
            }
        }
    }
}
