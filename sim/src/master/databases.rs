//! The keyspaces of one master, by number.

use super::bytes::SmallBytes;
use super::entry::Entry;
use super::keyspace::Keyspace;

/// The databases that were used so far, and the first one in any case. Those behind them are empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Databases(Vec<Keyspace>);

impl Default for Databases {
    fn default() -> Self {
        Self(vec![Keyspace::new(0)])
    }
}

impl Databases {
    /// The one that locks use.
    #[must_use]
    pub fn first(&self) -> &Keyspace {
        &self.0[0]
    }

    /// The database of this number; `None` if it was never used.
    #[must_use]
    pub fn get(&self, database: u8) -> Option<&Keyspace> {
        self.0.get(usize::from(database))
    }

    /// The database of this number, to be used.
    pub fn at(&mut self, database: u8) -> &mut Keyspace {
        while self.0.len() <= usize::from(database) {
            self.0.push(Keyspace::new(self.0.len() as u8));
        }
        &mut self.0[usize::from(database)]
    }

    /// What was in one is in the other from now on, and the other way round.
    pub(super) fn swap(&mut self, one: u8, other: u8) {
        self.at(one.max(other));
        self.0.swap(usize::from(one), usize::from(other));
        self.0.iter_mut().zip(0..).for_each(|(keys, database)| keys.renumber(database));
    }

    /// Forgets every key, keeping what is allocated for few.
    pub fn clear(&mut self) {
        self.0.iter_mut().for_each(Keyspace::clear);
    }

    /// Forgets every key, and that any database but the first was used.
    pub fn reset(&mut self) {
        self.0.truncate(1);
        self.clear();
    }

    /// Every database that was used.
    pub fn each(&mut self) -> impl Iterator<Item = &mut Keyspace> {
        self.0.iter_mut()
    }

    /// How many there are that were used.
    #[must_use]
    pub fn len(&self) -> u8 {
        self.0.len() as u8
    }

    /// Whether no key is stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Keyspace::is_empty)
    }

    /// Every key: its database, its name, what it is.
    pub fn iter(&self) -> impl Iterator<Item = (u8, &SmallBytes, &Entry)> {
        let numbered = self.0.iter().zip(0..);
        numbered.flat_map(|(keys, database)| {
            keys.iter().map(move |(key, entry)| (database, key, entry))
        })
    }
}
