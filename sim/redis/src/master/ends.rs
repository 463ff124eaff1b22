//! Ends of keys that no command of a client causes.

use super::Master;
use crate::events::{Class, Event};
use crate::watched::Watched;
use crate::{Disk, Ended, Stream};

impl Master {
    /// Runs the active expiry cycle: deletes every key that is due at `wall_ms`.
    pub fn expire_active(&mut self, wall_ms: u64, mut ended: impl FnMut(Ended)) {
        assert!(self.is_running, "a dead process expires nothing");
        let Self { databases, disk, stream, watched, .. } = self;
        let Self { tracked, subscribed, events, pushes, .. } = self;
        for keyspace in databases.each() {
            keyspace.expire_active(wall_ms, |key| {
                gone(&key, disk, stream, watched);
                let (class, name) = (Class::Expired, "expired");
                let event = Event { class, name, database: key.database, key: &key.key };
                subscribed.notify(*events, event, pushes);
                tracked.note(&key.key, pushes);
                ended(key);
            });
        }
    }

    /// Returns the earliest instant at which the active expiry cycle has a key to delete, over all
    /// databases.
    #[must_use]
    pub fn next_expiry(&self) -> Option<u64> {
        let numbers = 0..self.databases.len();
        numbers.filter_map(|number| self.databases.get(number)?.next_expiry()).min()
    }

    /// Evicts `key` because memory ran short.
    pub fn evict(&mut self, key: &[u8]) -> Option<Ended> {
        let ended = self.databases.at(0).evict(key)?;
        self.note(0, key);
        self.notify(Event { class: Class::Evicted, name: "evicted", database: 0, key });
        Some(ended)
    }

    /// Deletes `key` on behalf of an operator (`DEL`).
    pub fn delete(&mut self, key: &[u8]) -> Option<Ended> {
        let ended = self.databases.at(0).delete_by_operator(key)?;
        self.note(0, key);
        self.notify(Event { class: Class::Generic, name: "del", database: 0, key });
        Some(ended)
    }

    /// Empties all databases on behalf of an operator (`FLUSHALL`).
    pub fn flush(&mut self, mut ended: impl FnMut(Ended)) {
        (0..self.databases.len()).for_each(|database| self.empty(database, &mut ended));
        self.tracked.empty(&mut self.pushes);
    }

    /// Empties one database on behalf of an operator (`FLUSHDB`).
    pub fn flush_database(&mut self, database: u8, ended: impl FnMut(Ended)) {
        self.empty(database, ended);
        self.tracked.empty(&mut self.pushes);
    }

    fn empty(&mut self, database: u8, mut ended: impl FnMut(Ended)) {
        let Self { databases, disk, stream, watched, .. } = self;
        databases.at(database).flush(|key| {
            gone(&key, disk, stream, watched);
            ended(key);
        });
    }
}

/// Records the deletion of a key on disk, in the replication stream and for WATCH.
fn gone(ended: &Ended, disk: &mut Disk, stream: &mut Stream, watched: &mut Watched) {
    disk.record(ended.database, &ended.key, None);
    stream.record(ended.database, &ended.key, None);
    watched.note(ended.database, &ended.key, false);
}
