//! The keyspaces of one master, by number.

use crate::{Entry, Keyspace, SmallBytes};

/// All databases used so far, always including the first. Databases with higher numbers are empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Databases(Vec<Keyspace>);

impl Default for Databases {
    fn default() -> Self {
        Self(vec![Keyspace::new(0)])
    }
}

impl Databases {
    /// Returns the first database, the one that connections use at first.
    #[must_use]
    pub fn first(&self) -> &Keyspace {
        &self.0[0]
    }

    /// Returns the database of this number; `None` if it was never used.
    #[must_use]
    pub fn get(&self, database: u8) -> Option<&Keyspace> {
        self.0.get(usize::from(database))
    }

    /// Returns the database of this number for changes; creates it if it was never used.
    pub fn at(&mut self, database: u8) -> &mut Keyspace {
        while self.0.len() <= usize::from(database) {
            self.0.push(Keyspace::new(self.0.len() as u8));
        }
        &mut self.0[usize::from(database)]
    }

    /// Exchanges the contents of two databases.
    pub(super) fn swap(&mut self, one: u8, other: u8) {
        self.at(one.max(other));
        self.0.swap(usize::from(one), usize::from(other));
        self.0.iter_mut().zip(0..).for_each(|(keys, database)| keys.renumber(database));
    }

    /// Removes every key; keeps the allocations of small databases.
    pub fn clear(&mut self) {
        self.0.iter_mut().for_each(Keyspace::clear);
    }

    /// Removes every key, and all databases but the first.
    pub fn reset(&mut self) {
        self.0.truncate(1);
        self.clear();
    }

    /// Iterates over the databases used so far.
    pub fn each(&mut self) -> impl Iterator<Item = &mut Keyspace> {
        self.0.iter_mut()
    }

    /// Returns the number of databases used so far.
    #[must_use]
    pub fn len(&self) -> u8 {
        self.0.len() as u8
    }

    /// Returns true if no key is stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Keyspace::is_empty)
    }

    /// Iterates over every key: its database, its name and its entry.
    pub fn iter(&self) -> impl Iterator<Item = (u8, &SmallBytes, &Entry)> {
        let numbered = self.0.iter().zip(0..);
        numbered.flat_map(|(keys, database)| {
            keys.iter().map(move |(key, entry)| (database, key, entry))
        })
    }
}
