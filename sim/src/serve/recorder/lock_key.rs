//! The key under which clients keep the lock.

use bytes::Bytes;

use crate::serve::meaning;

/// The lock's key: as long as no client has asked for the lock, every key that its name fits. Then it
/// is the one that was asked for first, in the database in which that was first set: a client may keep
/// other things under names that end alike.
#[derive(Clone, Debug, Default)]
pub(super) struct LockKey {
    name: Option<Bytes>,
    database: Option<u8>,
}

impl LockKey {
    /// Returns true if requests about `key` are requests about the lock on `resource`.
    pub(super) fn is_named(&self, key: &[u8], resource: &str) -> bool {
        match &self.name {
            Some(name) => name == key,
            None => meaning::is_key(key, resource.as_bytes()),
        }
    }

    /// Returns true if `key` in `database` is the key of the lock on `resource`.
    pub(super) fn is(&self, database: u8, key: &[u8], resource: &str) -> bool {
        self.database.is_none_or(|it| it == database) && self.is_named(key, resource)
    }

    /// Records that a client asks for the lock by `key`.
    pub(super) fn asked_for(&mut self, key: &[u8]) {
        self.name.get_or_insert_with(|| Bytes::copy_from_slice(key));
    }

    /// Records that the lock's key is set in `database`.
    pub(super) fn set_in(&mut self, database: u8) {
        if self.name.is_some() {
            self.database.get_or_insert(database);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_that_was_asked_for_first_is_the_locks() {
        let mut key = LockKey::default();
        assert!(key.is(0, b"lock:res", "res") && key.is(7, b"fence:res", "res"));
        key.asked_for(b"lock:res");
        key.asked_for(b"fence:res");
        assert!(key.is(7, b"lock:res", "res") && !key.is(7, b"fence:res", "res"));
    }

    #[test]
    fn the_lock_is_in_the_database_in_which_it_was_first_set() {
        let mut key = LockKey::default();
        key.set_in(3);
        key.asked_for(b"res");
        assert!(key.is(5, b"res", "res"), "who set a key before asked for nothing");
        key.set_in(5);
        key.set_in(0);
        assert!(key.is(5, b"res", "res") && !key.is(0, b"res", "res"));
    }
}
