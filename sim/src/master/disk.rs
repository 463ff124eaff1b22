//! What a master keeps when it dies: a log of absolute effects with two watermarks.

use super::bytes::SmallBytes;
use super::keyspace::{Entry, Keyspace};
use crate::scenario::Persistence;

/// What a key became. Absolute, so that replaying it later means the same: relative times to live
/// survive no restart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Record {
    key: SmallBytes,
    /// `None`: there is no key.
    entry: Option<Entry>,
}

/// An append-only log. What was handed to the kernel survives the death of the process; what was
/// synced survives the death of the host.
///
/// `synced <= written <= records` at all times. How the watermarks move is the persistence mode:
/// `always` moves both before the reply is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Disk {
    log: Vec<Record>,
    written: usize,
    synced: usize,
}

impl Disk {
    /// Forgets everything, keeping what is allocated.
    pub fn clear(&mut self) {
        self.log.clear();
        (self.written, self.synced) = (0, 0);
    }

    /// How many records the log has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.log.len()
    }

    /// Whether the log is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.log.is_empty()
    }

    /// Takes note that `key` is `entry` now, and moves the watermarks as `persistence` says. Costs
    /// nothing if nothing is kept.
    pub fn record(&mut self, persistence: Persistence, key: &[u8], entry: Option<&Entry>) {
        match persistence {
            Persistence::None | Persistence::Rdb => {}
            Persistence::Everysec | Persistence::No => {
                self.append(key, entry);
                self.write();
            }
            Persistence::Always => {
                self.append(key, entry);
                self.write();
                self.sync();
            }
        }
    }

    /// Only what was written is left: the process died.
    pub fn keep_written(&mut self) {
        self.log.truncate(self.written);
    }

    /// Only what was synced is left: the host died.
    pub fn keep_synced(&mut self) {
        self.log.truncate(self.synced);
        self.written = self.synced;
    }

    /// Makes `keyspace` what the log says.
    pub fn replay(&self, keyspace: &mut Keyspace) {
        keyspace.clear();
        for Record { key, entry } in &self.log {
            keyspace.load(key, entry.as_ref());
        }
    }

    fn append(&mut self, key: &[u8], entry: Option<&Entry>) {
        self.log.push(Record { key: SmallBytes::new(key), entry: entry.cloned() });
    }

    fn write(&mut self) {
        self.written = self.log.len();
    }

    fn sync(&mut self) {
        self.synced = self.written;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::history::Writer;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Append(u8, Option<u8>),
        Write,
        Sync,
        Kill,
        Power,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0..3_u8, any::<Option<u8>>()).prop_map(|(key, value)| Step::Append(key, value)),
            2 => Just(Step::Write),
            2 => Just(Step::Sync),
            1 => Just(Step::Kill),
            1 => Just(Step::Power),
        ]
    }

    fn entry(value: u8) -> Entry {
        Entry {
            value: SmallBytes::new(&[value]),
            expires_wall_ms: Some(u64::from(value)),
            writer: Writer::Operator,
        }
    }

    /// What is left according to a naive reading: every record knows how safe it is.
    fn naive(steps: &[Step]) -> Vec<(u8, Option<u8>)> {
        let mut records: Vec<(u8, Option<u8>, u8)> = Vec::new();
        for &step in steps {
            match step {
                Step::Append(key, value) => records.push((key, value, 0)),
                Step::Write => records.iter_mut().for_each(|it| it.2 = it.2.max(1)),
                Step::Sync => records.iter_mut().filter(|it| it.2 == 1).for_each(|it| it.2 = 2),
                Step::Kill => records.retain(|it| it.2 >= 1),
                Step::Power => records.retain(|it| it.2 == 2),
            }
        }
        records.into_iter().map(|(key, value, _)| (key, value)).collect()
    }

    proptest! {
        #[test]
        fn a_death_leaves_exactly_what_its_watermark_covers(
            steps in prop::collection::vec(step(), 0..40),
        ) {
            let mut disk = Disk::default();
            for &step in &steps {
                match step {
                    Step::Append(key, value) => disk.append(&[key], value.map(entry).as_ref()),
                    Step::Write => disk.write(),
                    Step::Sync => disk.sync(),
                    Step::Kill => disk.keep_written(),
                    Step::Power => disk.keep_synced(),
                }
                prop_assert!(disk.synced <= disk.written && disk.written <= disk.log.len());
            }
            let left: Vec<_> = naive(&steps);
            let mut restored = Keyspace::default();
            restored.load(&SmallBytes::new(b"stale"), Some(&entry(9)));
            disk.replay(&mut restored);
            for key in 0..3_u8 {
                let last = left.iter().rev().find(|it| it.0 == key).and_then(|it| it.1);
                prop_assert_eq!(restored.stored(&[key]).cloned(), last.map(entry));
            }
            prop_assert_eq!(restored.stored(b"stale"), None);
        }
    }

    #[test]
    fn nothing_is_recorded_where_nothing_is_kept() {
        let mut disk = Disk::default();
        disk.record(Persistence::None, b"k", Some(&entry(1)));
        assert!(disk.is_empty());
    }

    #[test]
    fn always_survives_the_death_of_the_host() {
        let mut disk = Disk::default();
        disk.record(Persistence::Always, b"k", Some(&entry(1)));
        disk.keep_synced();
        assert_eq!(disk.len(), 1);
    }
}
