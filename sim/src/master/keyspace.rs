//! The keys of one database: a pure function of state, wall clock and command.
//!
//! Expiry is Redis's: a key has an absolute instant on the node's *wall* clock, in milliseconds. It
//! counts as absent iff `now > when`, and the active cycle deletes it at `now >= when`, so that a
//! key lives between a millisecond less and a millisecond more than its PX says.

mod execute;
mod index;

use core::hash::{Hash, Hasher};
use std::collections::BTreeMap;

pub(super) use execute::parse_integer;
use index::ExpiryIndex;

use super::bytes::SmallBytes;
use super::command::{Effect, Ended, Executed, KeyCommand};
use super::entry::Entry;
use crate::history::{KeyEnd, Writer};

/// All the keys of a database, in order. Lock nodes hold few, and other suites millions.
#[derive(Clone, Debug, Default)]
pub struct Keyspace {
    database: u8,
    entries: BTreeMap<SmallBytes, Entry>,
    expiries: ExpiryIndex,
}

/// Above so many keys, to forget them costs more than to allocate anew.
const WARM_MAX: usize = 256;

impl Keyspace {
    /// The empty database of this number.
    #[must_use]
    pub fn new(database: u8) -> Self {
        Self { database, ..Self::default() }
    }

    /// Forgets every key, keeping what is allocated for few.
    pub fn clear(&mut self) {
        if self.entries.len() > WARM_MAX {
            self.entries.clear();
        } else {
            // A map that is cleared gives its room away; one whose keys are removed keeps it.
            self.entries.retain(|_, _| false);
        }
        self.expiries.clear();
    }

    /// From now on it is the database of this number.
    pub(super) fn renumber(&mut self, database: u8) {
        self.database = database;
    }

    /// How many keys are stored, expired ones that nobody has noticed among them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What is stored under `key`, expired or not.
    #[must_use]
    pub fn stored(&self, key: &[u8]) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// The first instant at which the active cycle has something to delete.
    #[must_use]
    pub fn next_expiry(&self) -> Option<u64> {
        match self.expiries.first() {
            Some(first) => first.map(|(when, _)| when),
            None => self.entries.values().filter_map(|entry| entry.expires_wall_ms).min(),
        }
    }

    /// Executes `command` at one instant of the node's wall clock: expiry is judged by it
    /// throughout. `writer` is whose command it is.
    ///
    /// A key found expired is deleted and reported first; the command sees it no more.
    pub fn execute(
        &mut self,
        key: &[u8],
        command: KeyCommand<'_>,
        wall_ms: u64,
        writer: Writer,
    ) -> Executed {
        let mut found = self.standing(key);
        let expired = found.1.is_some_and(|when| wall_ms > when);
        let expired = if expired { self.end(key, KeyEnd::Expired, Writer::Nobody) } else { None };
        if expired.is_some() {
            found = (Writer::Nobody, None);
        }
        let (before, before_ms) = found;
        let (reply, change) = self.apply(key, command, execute::Turn { wall_ms, writer });
        let (after, expires_wall_ms) = self.standing(key);
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

    /// The active cycle: deletes every key whose time has come at `wall_ms`.
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

    /// Deletes `key` for want of memory.
    pub fn evict(&mut self, key: &[u8]) -> Option<Ended> {
        self.end(key, KeyEnd::Evicted, Writer::Nobody)
    }

    /// `DEL` of `key` by an operator.
    pub fn delete_by_operator(&mut self, key: &[u8]) -> Option<Ended> {
        self.end(key, KeyEnd::Command, Writer::Operator)
    }

    /// `FLUSHALL` by an operator.
    pub fn flush(&mut self, ended: impl FnMut(Ended)) {
        self.end_all(|_| true, |_| (KeyEnd::Flushed, Writer::Operator), ended);
        self.clear();
    }

    /// Makes `key` what `entry` says, as loading from disk does: nothing is checked or reported.
    pub fn load(&mut self, key: &SmallBytes, entry: Option<&Entry>) {
        match entry {
            Some(entry) => self.put(key, entry.clone()),
            None => drop(self.remove(key)),
        }
    }

    /// Drops every key whose time is over by `wall_ms`, as loading from disk does.
    pub fn forget_expired(&mut self, wall_ms: u64) {
        let nobody = |_: &Entry| (KeyEnd::Expired, Writer::Nobody);
        self.end_all(|entry| entry.is_expired(wall_ms), nobody, drop);
    }

    /// What becomes of keys when `new` takes the place of this keyspace, at `wall_ms`: `ended` is
    /// told of those that only this one has, which end because of `cause` unless their time is
    /// over, `returned` of those that only `new` has.
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

    /// Every key and what it is, in order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (&SmallBytes, &Entry)> {
        self.entries.iter()
    }

    /// Who made the key that is stored, and when it expires.
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

    /// Every change of a key's value comes through here.
    fn put(&mut self, key: &[u8], entry: Entry) {
        let when = entry.expires_wall_ms;
        match self.entries.get_mut(key) {
            Some(place) => {
                self.expiries.forget(key, place.expires_wall_ms);
                *place = entry;
            }
            None => drop(self.entries.insert(SmallBytes::new(key), entry)),
        }
        self.expiries.note(key, when);
        self.expiries.grow(&self.entries);
    }

    fn remove(&mut self, key: &[u8]) -> Option<Entry> {
        let entry = self.entries.remove(key)?;
        self.expiries.forget(key, entry.expires_wall_ms);
        Some(entry)
    }

    /// Every change of a key's expiry alone comes through here.
    fn move_expiry(&mut self, key: &[u8], when: Option<u64>) {
        if let Some(entry) = self.entries.get_mut(key) {
            self.expiries.forget(key, entry.expires_wall_ms);
            entry.expires_wall_ms = when;
            self.expiries.note(key, when);
        }
    }
}

/// The index follows from the rest.
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
