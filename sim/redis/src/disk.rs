//! The disk of a master: a log of absolute effects with two watermarks, from which a dead master is
//! restored.
//!
//! Each persistence mode is a rule that moves the watermarks:
//!
//! | persistence | written | synced |
//! | --- | --- | --- |
//! | `none` | nothing is recorded | |
//! | `rdb` | by a snapshot, to the end of the log | by the same |
//! | `everysec` | with the record; while a sync is under way, after it | by a sync in the background |
//! | `no` | with the record | never: the kernel would after about 30 s, beyond what is modelled |
//! | `always` | with the record | by the sync that the reply waits for |
//!
//! The caller decides when syncs begin and how long they take.
//!
//! A long log is rewritten, as real servers rewrite theirs: of the synced records, only the last of
//! each key is needed.

use std::collections::BTreeSet;

use crate::{Databases, Entry, Persistence, SmallBytes, Storage};

/// Minimum number of records before a log is rewritten.
const REWRITTEN_LENGTH_MIN: usize = 16_384;

/// New state of a key. Expiries are absolute, so that a later replay has the same meaning: relative
/// times to live do not survive a restart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Record {
    database: u8,
    key: SmallBytes,
    /// Entry of the key; `None` if the key is gone.
    entry: Option<Entry>,
}

/// An append-only log. Records handed to the kernel survive the death of the process; synced
/// records survive the death of the host.
///
/// `synced <= written <= records` holds at all times, and a sync under way lies between the first
/// two.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Disk {
    storage: Storage,
    log: Vec<Record>,
    written: usize,
    /// End of the sync under way.
    syncing: Option<usize>,
    synced: usize,
    /// Number of records that the disk claims are synced.
    acknowledged: usize,
    /// Copies of the written records, each with its backup number.
    backups: Vec<(u16, Vec<Record>)>,
    /// Length of the log after its last rewrite.
    rewritten: usize,
}

impl Disk {
    /// Returns an empty disk.
    #[must_use]
    pub fn new(storage: Storage) -> Self {
        Self { storage, ..Self::default() }
    }

    /// Removes everything but keeps the allocations.
    pub fn reset_to(&mut self, storage: Storage) {
        self.storage = storage;
        self.log.clear();
        (self.written, self.syncing, self.synced, self.acknowledged) = (0, None, 0, 0);
        self.backups.clear();
        self.rewritten = 0;
    }

    /// Returns how the disk is used.
    #[must_use]
    pub fn storage(&self) -> Storage {
        self.storage
    }

    /// Returns the number of records in the log.
    #[must_use]
    pub fn len(&self) -> usize {
        self.log.len()
    }

    /// Returns true if the log is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.log.is_empty()
    }

    /// Returns true if changes are recorded: there is persistence.
    #[must_use]
    pub fn records(&self) -> bool {
        self.storage.persistence != Persistence::None
    }

    /// Records that `key` of a database now is `entry`. Costs nothing without persistence.
    pub fn record(&mut self, database: u8, key: &[u8], entry: Option<&Entry>) {
        if !self.records() {
            return;
        }
        let key = SmallBytes::new(key);
        self.log.push(Record { database, key, entry: entry.cloned() });
        if self.log.len() >= REWRITTEN_LENGTH_MIN.max(2 * self.rewritten) {
            self.rewrite();
        }
        match self.storage.persistence {
            Persistence::None | Persistence::Rdb => {}
            Persistence::Everysec if self.syncing.is_some() => {}
            Persistence::Everysec | Persistence::No => self.write(),
            Persistence::Always => {
                self.write();
                if self.syncs_at_once() {
                    self.sync_to(self.written);
                }
            }
        }
    }

    /// Returns true if some records have not been handed to the kernel.
    #[must_use]
    pub fn is_write_postponed(&self) -> bool {
        self.written < self.log.len()
    }

    /// Returns true if some records are unsynced, according to the disk's acknowledgements.
    #[must_use]
    pub fn is_sync_due(&self) -> bool {
        self.acknowledged < self.log.len()
    }

    /// Returns true while a sync is under way.
    #[must_use]
    pub fn is_syncing(&self) -> bool {
        self.syncing.is_some()
    }

    /// Hands all records to the kernel.
    pub fn write(&mut self) {
        self.written = self.log.len();
    }

    /// Stores `key` as written and synced long before the log began.
    pub(crate) fn keep_for_long(&mut self, database: u8, key: &[u8], entry: &Entry) {
        if !self.records() {
            return;
        }
        let (key, entry) = (SmallBytes::new(key), Some(entry.clone()));
        self.log.push(Record { database, key, entry });
        let length = self.log.len();
        (self.written, self.synced, self.acknowledged) = (length, length, length);
    }

    /// Begins a sync of the written records.
    ///
    /// # Panics
    ///
    /// If a sync is under way, or if every record is synced at once.
    pub fn begin_sync(&mut self) {
        assert!(self.syncing.is_none(), "one sync at a time");
        assert!(!self.syncs_at_once(), "there is nothing left to sync");
        self.syncing = Some(self.written);
    }

    /// Ends the sync and writes the records that it postponed.
    ///
    /// # Panics
    ///
    /// If no sync is under way.
    pub fn end_sync(&mut self) {
        let to = self.syncing.take().expect("a sync that ends has begun");
        self.sync_to(to);
        self.write();
    }

    /// Makes all records durable at once: a snapshot was taken, or the process stops cleanly.
    pub fn save(&mut self) {
        if self.records() {
            self.syncing = None;
            self.write();
            self.sync_to(self.written);
        }
    }

    /// Copies the written records to a backup with this number.
    pub fn back_up(&mut self, number: u16) {
        self.backups.push((number, self.log[..self.written].to_vec()));
    }

    /// Keeps only the written records: the process died.
    pub fn keep_written(&mut self) {
        self.keep(self.written);
    }

    /// Keeps only the synced records: the host died.
    pub fn keep_synced(&mut self) {
        self.keep(self.synced);
    }

    /// The host died in the middle of writing back unsynced records: keeps the synced records and
    /// some of the next ones. `draw` picks a number below its argument: how many of them the kernel
    /// reached. The last one reached is torn, and loading drops it.
    pub fn keep_torn(&mut self, draw: impl FnOnce(usize) -> usize) {
        let left = draw(self.written - self.synced + 1);
        self.keep(self.synced + left.saturating_sub(1));
    }

    /// Replaces all records by the backup of this number; leaves nothing if there is no such
    /// backup.
    pub fn restore(&mut self, number: u16) {
        self.log.clear();
        if let Some((_, backup)) = self.backups.iter().find(|(known, _)| *known == number) {
            self.log.extend_from_slice(backup);
        }
        let length = self.log.len();
        self.syncing = None;
        (self.written, self.synced, self.acknowledged) = (length, length, length);
    }

    /// Loads the databases from the log.
    pub fn replay(&self, databases: &mut Databases) {
        databases.clear();
        for Record { database, key, entry } in &self.log {
            databases.at(*database).load(key, entry.as_ref());
        }
    }

    /// Drops synced records that later synced records of the same key supersede. Unsynced records
    /// stay: a death may leave only some of them.
    fn rewrite(&mut self) {
        let rest = self.log.split_off(self.synced);
        let early = last_of_each(core::mem::take(&mut self.log));
        let gone = self.synced - early.len();
        self.log = early;
        self.log.extend(rest);
        self.rewritten = self.log.len();
        let before = [&mut self.written, &mut self.synced, &mut self.acknowledged];
        for length in before.into_iter().chain(&mut self.syncing) {
            *length -= gone;
        }
    }

    fn syncs_at_once(&self) -> bool {
        self.storage.persistence == Persistence::Always && !self.storage.slow
    }

    fn keep(&mut self, length: usize) {
        assert!(length <= self.log.len(), "what is left was there");
        self.log.truncate(length);
        self.written = length;
        self.syncing = None;
        self.synced = self.synced.min(length);
        self.acknowledged = self.acknowledged.min(length);
    }

    fn sync_to(&mut self, length: usize) {
        self.acknowledged = length;
        if !self.storage.lies {
            self.synced = length;
        }
    }
}

/// Returns the last record of each existing key, in order.
fn last_of_each(records: Vec<Record>) -> Vec<Record> {
    let mut seen = BTreeSet::new();
    let is_last = |it: &Record| seen.insert((it.database, it.key.clone()));
    let is_last: Vec<bool> = records.iter().rev().map(is_last).collect();
    let kept = records.into_iter().zip(is_last.into_iter().rev());
    let kept = kept.filter(|(record, is_last)| *is_last && record.entry.is_some());
    kept.map(|(record, _)| record).collect()
}

#[cfg(test)]
mod tests;
