//! The keys of one database: a pure function of state, wall clock and command.
//!
//! Expiry follows Redis: a key has an absolute instant on the node's *wall* clock, in milliseconds.
//! It counts as absent iff `now > when`, and the active cycle deletes it at `now >= when`. A key
//! may therefore live up to a millisecond less or more than its PX says.

mod collections;
mod entries;
mod execute;
mod hashes;
mod index;
mod lists;
mod native;
mod sorted_sets;

use core::hash::{Hash, Hasher};

use entries::Entries;
use index::ExpiryIndex;
pub(crate) use lists::{part, place};
pub use native::NativeKey;

use crate::command::{Change, Effect, Ended, Executed, KeyCommand, Reply};
use crate::{Entry, KeyEnd, SmallBytes, Writer};

/// The keys of one database, in order. Often a few keys, sometimes millions.
#[derive(Clone, Debug, Default)]
pub struct Keyspace {
    database: u8,
    entries: Entries,
    expiries: ExpiryIndex,
}

impl Keyspace {
    /// Returns an empty database with this number.
    #[must_use]
    pub fn new(database: u8) -> Self {
        Self { database, ..Self::default() }
    }

    /// Removes every key; keeps the allocations of a small keyspace.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.expiries.clear();
    }

    /// Changes the number of the database.
    pub(super) fn renumber(&mut self, database: u8) {
        self.database = database;
    }

    /// Returns the number of stored keys, including expired keys that have not been deleted yet.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if nothing is stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the entry stored under `key`, expired or not.
    #[must_use]
    pub fn stored(&self, key: &[u8]) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// Returns the earliest instant at which the active cycle has a key to delete.
    #[must_use]
    pub fn next_expiry(&self) -> Option<u64> {
        match self.expiries.first() {
            Some(first) => first.map(|(when, _)| when),
            None => self.entries.values().filter_map(|entry| entry.expires_wall_ms).min(),
        }
    }

    /// Executes `command` of `writer` at one instant of the node's wall clock, by which all expiry
    /// is judged.
    ///
    /// A key found expired is deleted and reported first; the command does not see it.
    pub fn execute(
        &mut self,
        key: &[u8],
        command: KeyCommand<'_>,
        wall_ms: u64,
        writer: Writer,
    ) -> Executed {
        self.run(key, wall_ms, writer, |key| key.execute(command))
    }

    /// Runs a script on one key at one instant, in Rust instead of Lua, and returns its reply. The
    /// script counts as one command: as with [`Keyspace::execute`], no other command comes between
    /// its steps, and a key found expired is deleted first.
    pub fn run(
        &mut self,
        key: &[u8],
        wall_ms: u64,
        writer: Writer,
        script: impl FnOnce(&mut NativeKey<'_>) -> Reply,
    ) -> Executed {
        let mut found = self.standing(key);
        let expired = found.1.is_some_and(|when| wall_ms > when);
        let expired = if expired { self.end(key, KeyEnd::Expired, Writer::Nobody) } else { None };
        if expired.is_some() {
            found = (Writer::Nobody, None);
        }
        let (before, before_ms) = found;
        let turn = execute::Turn { wall_ms, writer };
        let mut native = NativeKey::new(self, key, turn);
        let reply = script(&mut native);
        let change = native.change();
        let (after, expires_wall_ms) = match change {
            Change::Nothing => found,
            Change::Deleted => (Writer::Nobody, None),
            Change::Retimed | Change::Set => self.standing(key),
        };
        let ended = (before != Writer::Nobody && after != before).then(|| Ended {
            database: self.database,
            key: SmallBytes::new(key),
            writer: before,
            cause: KeyEnd::Command,
            by: writer,
            expires_wall_ms: before_ms,
        });
        let effect = Effect { change, before, after, expires_wall_ms };
        Executed { reply, expired, effect, ended }
    }

    /// Runs the active cycle: deletes every key that is due at `wall_ms`.
    pub fn expire_active(&mut self, wall_ms: u64, mut ended: impl FnMut(Ended)) {
        if self.expiries.first().is_none() {
            let due = |entry: &Entry| entry.expires_wall_ms.is_some_and(|when| wall_ms >= when);
            self.end_all(due, |_| (KeyEnd::Expired, Writer::Nobody), ended);
            return;
        }
        while let Some(Some((when, key))) = self.expiries.first()
            && when <= wall_ms
        {
            let key = key.clone();
            ended(
                self.end(&key, KeyEnd::Expired, Writer::Nobody).expect("the index knows no other"),
            );
        }
    }

    /// Deletes `key` because memory ran short.
    pub fn evict(&mut self, key: &[u8]) -> Option<Ended> {
        self.end(key, KeyEnd::Evicted, Writer::Nobody)
    }

    /// Deletes `key` on behalf of an operator (`DEL`).
    pub fn delete_by_operator(&mut self, key: &[u8]) -> Option<Ended> {
        self.end(key, KeyEnd::Command, Writer::Operator)
    }

    /// Removes every key on behalf of an operator (`FLUSHALL`).
    pub fn flush(&mut self, ended: impl FnMut(Ended)) {
        self.end_all(|_| true, |_| (KeyEnd::Flushed, Writer::Operator), ended);
        self.clear();
    }

    /// Sets `key` to `entry`, or removes it, as loading from disk does: nothing is checked or
    /// reported.
    pub fn load(&mut self, key: &SmallBytes, entry: Option<&Entry>) {
        match entry {
            Some(entry) => self.put(key, entry.clone()),
            None => drop(self.remove(key)),
        }
    }

    /// Drops every key that is expired at `wall_ms`, as loading from disk does.
    pub fn forget_expired(&mut self, wall_ms: u64) {
        let nobody = |_: &Entry| (KeyEnd::Expired, Writer::Nobody);
        self.end_all(|entry| entry.is_expired(wall_ms), nobody, drop);
    }

    /// Reports what changes for keys when `new` replaces this keyspace at `wall_ms`. Calls `ended`
    /// for keys that only this one has, with `cause`, or as expired if they are expired by then.
    /// Calls `returned` for keys that only `new` has. A key with another writer counts as another
    /// key.
    pub fn compare(
        &self,
        new: &Self,
        wall_ms: u64,
        cause: KeyEnd,
        mut ended: impl FnMut(Ended),
        mut returned: impl FnMut(&[u8], &Entry),
    ) {
        let has = |all: &Self, key: &[u8], entry: &Entry| {
            all.stored(key).is_some_and(|other| other.writer == entry.writer)
        };
        for (key, entry) in self.iter().filter(|(key, entry)| !has(new, key, entry)) {
            let cause = if entry.is_expired(wall_ms) { KeyEnd::Expired } else { cause };
            ended(self.ended(key.clone(), entry, cause, Writer::Nobody));
        }
        for (key, entry) in new.iter().filter(|(key, entry)| !has(self, key, entry)) {
            returned(key, entry);
        }
    }

    /// Iterates over every key and its entry, in order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (&SmallBytes, &Entry)> {
        self.entries.iter()
    }

    /// Returns the writer and the expiry of the stored key.
    fn standing(&self, key: &[u8]) -> (Writer, Option<u64>) {
        let entry = self.entries.get(key);
        entry.map_or((Writer::Nobody, None), |entry| (entry.writer, entry.expires_wall_ms))
    }

    fn ended(&self, key: SmallBytes, entry: &Entry, cause: KeyEnd, by: Writer) -> Ended {
        let Entry { writer, expires_wall_ms, .. } = *entry;
        Ended { database: self.database, key, writer, cause, by, expires_wall_ms }
    }

    fn end(&mut self, key: &[u8], cause: KeyEnd, by: Writer) -> Option<Ended> {
        let entry = self.remove(key)?;
        Some(self.ended(SmallBytes::new(key), &entry, cause, by))
    }

    /// Ends every key that is `due`.
    fn end_all(
        &mut self,
        due: impl Fn(&Entry) -> bool,
        how: impl Fn(&Entry) -> (KeyEnd, Writer),
        mut ended: impl FnMut(Ended),
    ) {
        let Self { database, entries, expiries } = self;
        entries.retain(|key, entry| {
            let due = due(entry);
            if due {
                expiries.forget(key, entry.expires_wall_ms);
                let (cause, by) = how(entry);
                let Entry { writer, expires_wall_ms, .. } = *entry;
                let key = key.clone();
                ended(Ended { database: *database, key, writer, cause, by, expires_wall_ms });
            }
            !due
        });
    }

    /// The only place where a key's value changes.
    fn put(&mut self, key: &[u8], entry: Entry) {
        let when = entry.expires_wall_ms;
        if let Some(old) = self.entries.insert(key, entry) {
            self.expiries.forget(key, old.expires_wall_ms);
        }
        self.expiries.note(key, when);
        self.expiries.grow(&self.entries);
    }

    fn remove(&mut self, key: &[u8]) -> Option<Entry> {
        let entry = self.entries.remove(key)?;
        self.expiries.forget(key, entry.expires_wall_ms);
        Some(entry)
    }

    /// The only place where a key's expiry changes without its value.
    fn move_expiry(&mut self, key: &[u8], when: Option<u64>) {
        if let Some(entry) = self.entries.get_mut(key) {
            self.expiries.forget(key, entry.expires_wall_ms);
            entry.expires_wall_ms = when;
            self.expiries.note(key, when);
        }
    }
}

/// The index is derived from the entries and is not compared.
impl PartialEq for Keyspace {
    fn eq(&self, other: &Self) -> bool {
        (self.database, &self.entries) == (other.database, &other.entries)
    }
}

impl Eq for Keyspace {}

impl Hash for Keyspace {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.database, &self.entries).hash(state);
    }
}

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod tests;
