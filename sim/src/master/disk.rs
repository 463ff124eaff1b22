//! What a master keeps when it dies: a log of absolute effects with two watermarks.
//!
//! Every way of keeping something is a rule by which the watermarks move:
//!
//! | persistence | written | synced |
//! | --- | --- | --- |
//! | `none` | nothing is recorded | |
//! | `rdb` | by a snapshot, to the end of the log | by the same |
//! | `everysec` | with the record; while a sync is under way, after it | by a sync in the background |
//! | `no` | with the record | never: the kernel would after about 30 s, beyond what is modelled |
//! | `always` | with the record | by the sync that the reply waits for |
//!
//! When syncs begin and how long they take is the engine's business.
//!
//! A long log is rewritten, as servers rewrite theirs: of what is synced, the last record of each key
//! says everything.

use std::collections::BTreeSet;

use super::bytes::SmallBytes;
use super::databases::Databases;
use super::entry::Entry;
use crate::scenario::Persistence;

/// A log is not rewritten before it has so many records.
const REWRITTEN_LENGTH_MIN: usize = 16_384;

/// What a key became. Absolute, so that replaying it later means the same: relative times to live
/// survive no restart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Record {
    database: u8,
    key: SmallBytes,
    /// `None`: there is no key.
    entry: Option<Entry>,
}

/// How a disk is used, and what it is like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Storage {
    /// By what rule the master keeps something.
    pub persistence: Persistence,
    /// A sync takes time: under `always` the engine begins and ends it. Otherwise it is done as
    /// soon as something is written.
    pub slow: bool,
    /// Syncs are acknowledged, and nothing is on the platter.
    pub lies: bool,
}

impl From<Persistence> for Storage {
    fn from(persistence: Persistence) -> Self {
        Self { persistence, slow: false, lies: false }
    }
}

/// An append-only log. What was handed to the kernel survives the death of the process; what was
/// synced survives the death of the host.
///
/// `synced <= written <= records` at all times, and a sync that is under way lies between the two.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Disk {
    storage: Storage,
    log: Vec<Record>,
    written: usize,
    /// Up to where the sync under way reaches.
    syncing: Option<usize>,
    synced: usize,
    /// What the disk says is synced.
    acknowledged: usize,
    /// Copies of what was written, each under its number.
    backups: Vec<(u16, Vec<Record>)>,
    /// How long the log was when it had been rewritten.
    rewritten: usize,
}

impl Disk {
    /// An empty one.
    #[must_use]
    pub fn new(storage: Storage) -> Self {
        Self { storage, ..Self::default() }
    }

    /// Forgets everything, keeping what is allocated.
    pub fn reset_to(&mut self, storage: Storage) {
        self.storage = storage;
        self.log.clear();
        (self.written, self.syncing, self.synced, self.acknowledged) = (0, None, 0, 0);
        self.backups.clear();
        self.rewritten = 0;
    }

    /// How it is used.
    #[must_use]
    pub fn storage(&self) -> Storage {
        self.storage
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

    /// Takes note that `key` of a database is `entry` now. Costs nothing if nothing is kept.
    pub fn record(&mut self, database: u8, key: &[u8], entry: Option<&Entry>) {
        if self.storage.persistence == Persistence::None {
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

    /// Whether there are records that the kernel does not have.
    #[must_use]
    pub fn is_write_postponed(&self) -> bool {
        self.written < self.log.len()
    }

    /// Whether there are records that were never synced, as far as the disk says.
    #[must_use]
    pub fn is_sync_due(&self) -> bool {
        self.acknowledged < self.log.len()
    }

    /// Whether a sync is under way.
    #[must_use]
    pub fn is_syncing(&self) -> bool {
        self.syncing.is_some()
    }

    /// Hands everything to the kernel.
    pub fn write(&mut self) {
        self.written = self.log.len();
    }

    /// `key` has been on the platter since long before the log began.
    pub(super) fn keep_for_long(&mut self, database: u8, key: &[u8], entry: &Entry) {
        if self.storage.persistence == Persistence::None {
            return;
        }
        let (key, entry) = (SmallBytes::new(key), Some(entry.clone()));
        self.log.push(Record { database, key, entry });
        let length = self.log.len();
        (self.written, self.synced, self.acknowledged) = (length, length, length);
    }

    /// A sync of what is written begins.
    ///
    /// # Panics
    ///
    /// If one is under way, or every record is synced at once.
    pub fn begin_sync(&mut self) {
        assert!(self.syncing.is_none(), "one sync at a time");
        assert!(!self.syncs_at_once(), "there is nothing left to sync");
        self.syncing = Some(self.written);
    }

    /// It is done, and what was postponed for it is written.
    ///
    /// # Panics
    ///
    /// If none is under way.
    pub fn end_sync(&mut self) {
        let to = self.syncing.take().expect("a sync that ends has begun");
        self.sync_to(to);
        self.write();
    }

    /// Everything there is becomes safe at once: a snapshot is done, or the process stops cleanly.
    pub fn save(&mut self) {
        if self.storage.persistence != Persistence::None {
            self.syncing = None;
            self.write();
            self.sync_to(self.written);
        }
    }

    /// Copies what is written to a safe place.
    pub fn back_up(&mut self, number: u16) {
        self.backups.push((number, self.log[..self.written].to_vec()));
    }

    /// Only what was written is left: the process died.
    pub fn keep_written(&mut self) {
        self.keep(self.written);
    }

    /// Only what was synced is left: the host died.
    pub fn keep_synced(&mut self) {
        self.keep(self.synced);
    }

    /// The host died in the middle of writing back what was not synced: the first few of those
    /// records are left, `draw` of so many says how few. The last of them is torn, and loading
    /// drops it.
    pub fn keep_torn(&mut self, draw: impl FnOnce(usize) -> usize) {
        let left = draw(self.written - self.synced + 1);
        self.keep(self.synced + left.saturating_sub(1));
    }

    /// The backup of this number is put in the place of everything that was kept; nothing is, if
    /// there is no such backup.
    pub fn restore(&mut self, number: u16) {
        self.log.clear();
        if let Some((_, backup)) = self.backups.iter().find(|(known, _)| *known == number) {
            self.log.extend_from_slice(backup);
        }
        let length = self.log.len();
        self.syncing = None;
        (self.written, self.synced, self.acknowledged) = (length, length, length);
    }

    /// Makes the databases what the log says.
    pub fn replay(&self, databases: &mut Databases) {
        databases.clear();
        for Record { database, key, entry } in &self.log {
            databases.at(*database).load(key, entry.as_ref());
        }
    }

    /// Leaves out of what is synced what later records of the same key make void: of the rest, a
    /// death may leave a part.
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

/// The last of `records` for each key that there is, in order.
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
