//! The stored data of one server: its keys, its disk, its replication stream.

mod ends;
mod listeners;
mod role;

use crate::blocked::Blocked;
use crate::events::Events;
use crate::pushes::Pushes;
use crate::subscribed::Subscribed;
use crate::tracked::Tracked;
use crate::watched::Watched;
use crate::{
    Change, Command, Content, Databases, Disk, Effect, Ended, Entry, ErrorReply, Executed,
    Introduction, KeyCommand, KeyEnd, Keyspace, NativeKey, Reply, SmallBytes, Storage, Stream,
    Writer,
};

/// Returns the `run_id` of the `incarnation`-th process that a host starts. It differs for every
/// start and depends on nothing but the two arguments.
#[must_use]
pub fn run_id(host: u8, incarnation: u32) -> [u8; 20] {
    let mut run_id = [0; 20];
    run_id[15] = host;
    run_id[16..].copy_from_slice(&incarnation.to_be_bytes());
    run_id
}

/// One server: its process, its memory and its disk. It owns no clock, no network and no randomness:
/// a command and a reading of the node's wall clock go in, a reply and the resulting changes come
/// out. The caller decides when commands arrive, when the active expiry cycle runs and when the
/// process dies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Master {
    databases: Databases,
    /// Scratch space for the comparison of old and new keys in [`Master::restart`].
    lost: Databases,
    disk: Disk,
    stream: Stream,
    pub(crate) watched: Watched,
    pub(crate) tracked: Tracked,
    pub(crate) subscribed: Subscribed,
    pub(crate) blocked: Blocked,
    pub(crate) pushes: Pushes,
    /// Keyspace events that are published; a setting of the server.
    pub(crate) events: Events,
    /// True while memory is full; the policy is `noeviction`.
    pub(crate) is_full: bool,
    run_id: [u8; 20],
    /// Replication id (`master_replid`).
    history: [u8; 20],
    /// Number of replication histories begun after the first one.
    histories: u32,
    /// True if the replication history differs from the one it had as a replica
    /// (`second_repl_offset`).
    is_promoted: bool,
    /// True if the server has had a replica, or has been one, since its process started. A further
    /// replica then joins the existing replication history.
    has_backlog: bool,
    /// True if the server reports the role of a replica.
    is_replica: bool,
    pub(crate) started_wall_ms: u64,
    incarnation: u32,
    is_running: bool,
}

impl Master {
    /// Returns a running, empty master whose process started when the node's wall clock read
    /// `started_wall_ms`.
    #[must_use]
    pub fn new(storage: Storage, run_id: [u8; 20], started_wall_ms: u64) -> Self {
        Self {
            databases: Databases::default(),
            lost: Databases::default(),
            disk: Disk::new(storage),
            stream: Stream::default(),
            watched: Watched::default(),
            tracked: Tracked::default(),
            subscribed: Subscribed::default(),
            blocked: Blocked::default(),
            pushes: Pushes::default(),
            events: Events::default(),
            is_full: false,
            run_id,
            history: run_id,
            histories: 0,
            is_promoted: false,
            has_backlog: false,
            is_replica: false,
            started_wall_ms,
            incarnation: 0,
            is_running: true,
        }
    }

    /// Returns to the state of [`Master::new`] but keeps the allocations.
    pub fn reset_to(&mut self, storage: Storage, run_id: [u8; 20], started_wall_ms: u64) {
        self.databases.reset();
        self.lost.reset();
        self.disk.reset_to(storage);
        self.stream.reset(false);
        self.watched.clear();
        self.forget_listeners();
        self.events = Events::default();
        self.is_full = false;
        self.run_id = run_id;
        (self.history, self.is_promoted, self.is_replica) = (run_id, false, false);
        (self.histories, self.has_backlog) = (0, false);
        self.started_wall_ms = started_wall_ms;
        self.incarnation = 0;
        self.is_running = true;
    }

    /// Returns the keys of database 0.
    #[must_use]
    pub fn keyspace(&self) -> &Keyspace {
        self.databases.first()
    }

    /// Returns all databases.
    #[must_use]
    pub fn databases(&self) -> &Databases {
        &self.databases
    }

    /// Returns the disk.
    #[must_use]
    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    /// Returns the disk for changes; the caller decides when records are written and synced.
    pub fn disk_mut(&mut self) -> &mut Disk {
        &mut self.disk
    }

    /// Stores `key` of a database as written, and synced on disk, long ago: no replica and no watcher
    /// notices.
    pub fn preload(&mut self, database: u8, key: &[u8], entry: &Entry) {
        self.databases.at(database).load(&SmallBytes::new(key), Some(entry));
        self.disk.keep_for_long(database, key, entry);
    }

    /// Empties the replication stream and starts recording effects in it.
    pub fn begin_stream(&mut self) {
        self.stream.reset(true);
    }

    /// Returns the replication stream.
    #[must_use]
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Sets whether memory is full; the policy is `noeviction`.
    pub fn set_full(&mut self, is_full: bool) {
        self.is_full = is_full;
    }

    /// Returns the number of restarts of the process.
    #[must_use]
    pub fn incarnation(&self) -> u32 {
        self.incarnation
    }

    /// Returns true if the process is alive.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.is_running
    }

    /// Returns the introduction that the process gives when the node's wall clock reads `wall_ms`.
    #[must_use]
    pub fn introduction(&self, wall_ms: u64) -> Introduction {
        let seconds = |ms: u64| (ms / 1_000) as i64;
        let uptime_s = seconds(wall_ms) - seconds(self.started_wall_ms);
        Introduction { run_id: self.run_id, uptime_s, is_master: !self.is_replica }
    }

    /// Executes `command` of `writer` when the node's wall clock reads `wall_ms`.
    ///
    /// # Panics
    ///
    /// If the process is dead.
    pub fn execute(&mut self, command: Command<'_>, wall_ms: u64, writer: Writer) -> Executed {
        assert!(self.is_running, "a dead process executes nothing");
        let Command::Key { key, command } = command else {
            return Executed {
                reply: Reply::Introduction(self.introduction(wall_ms)),
                expired: None,
                effect: Effect::default(),
                ended: None,
            };
        };
        if self.is_full && command.is_denied_when_full() {
            return Executed::refused(ErrorReply::OutOfMemory, self.keyspace().stored(key));
        }
        self.execute_in(0, key, command, wall_ms, writer)
    }

    /// Executes `command` on a key of any database. Does not check whether memory is full; the
    /// caller has checked.
    ///
    /// # Panics
    ///
    /// If the process is dead.
    pub fn execute_in(
        &mut self,
        database: u8,
        key: &[u8],
        command: KeyCommand<'_>,
        wall_ms: u64,
        writer: Writer,
    ) -> Executed {
        self.run_in(database, key, wall_ms, writer, |key| key.execute(command))
    }

    /// Runs a script on one key of any database; see [`Keyspace::run`]. Does not check whether
    /// memory is full.
    ///
    /// # Panics
    ///
    /// If the process is dead.
    pub fn run_in(
        &mut self,
        database: u8,
        key: &[u8],
        wall_ms: u64,
        writer: Writer,
        script: impl FnOnce(&mut NativeKey<'_>) -> Reply,
    ) -> Executed {
        assert!(self.is_running, "a dead process executes nothing");
        let executed = self.databases.at(database).run(key, wall_ms, writer, script);
        if executed.expired.is_some() || executed.effect.change != Change::Nothing {
            self.note(database, key);
        }
        // A waiting connection gets elements of a new key, or of a list that replaces one.
        if executed.effect.change == Change::Set
            && !self.blocked.is_empty()
            && (executed.effect.before == Writer::Nobody || self.is_list(database, key))
        {
            self.blocked.note(database, key);
        }
        executed
    }

    /// Exchanges the contents of two databases at `wall_ms` (`SWAPDB`).
    pub fn swap_databases(&mut self, one: u8, other: u8, wall_ms: u64) {
        if one == other {
            return;
        }
        self.databases.swap(one, other);
        let Self { databases, disk, stream, watched, .. } = self;
        for (database, before) in [(one, other), (other, one)] {
            let (now, old) = (databases.get(database), databases.get(before));
            for (key, _) in old.iter().flat_map(|keys| keys.iter()) {
                if now.is_none_or(|keys| keys.stored(key).is_none()) {
                    disk.record(database, key, None);
                    stream.record(database, key, None);
                }
            }
            for (key, entry) in now.iter().flat_map(|keys| keys.iter()) {
                disk.record(database, key, Some(entry));
                stream.record(database, key, Some(entry));
            }
        }
        let found = |database: u8, key: &SmallBytes| {
            let entry = databases.get(database).and_then(|keys| keys.stored(key));
            entry.map(|entry| entry.is_expired(wall_ms))
        };
        for (database, before) in [(one, other), (other, one)] {
            watched.swap(database, |key| (found(before, key), found(database, key)));
        }
        for database in [one, other] {
            for key in self.blocked.keys(database) {
                self.blocked.note(database, &key);
            }
        }
    }

    fn is_list(&self, database: u8, key: &[u8]) -> bool {
        let entry = self.databases.get(database).and_then(|keys| keys.stored(key));
        entry.is_some_and(|entry| matches!(entry.value, Content::List(_)))
    }

    /// Records the current state of `key` on disk, in the replication stream and for WATCH and
    /// tracking.
    #[inline]
    fn note(&mut self, database: u8, key: &[u8]) {
        self.tracked.note(key, &mut self.pushes);
        if self.disk.records() || self.stream.records() || !self.watched.is_empty() {
            self.note_entry(database, key);
        }
    }

    fn note_entry(&mut self, database: u8, key: &[u8]) {
        let entry = self.databases.get(database).and_then(|keyspace| keyspace.stored(key));
        self.disk.record(database, key, entry);
        self.stream.record(database, key, entry);
        self.watched.note(database, key, entry.is_some());
    }

    /// Kills the process. The kernel lives on, so written records are kept.
    pub fn kill(&mut self) {
        assert!(self.is_running, "a process dies once");
        self.is_running = false;
        self.disk.keep_written();
    }

    /// Stops the process in an orderly way: everything that its persistence mode covers is saved.
    pub fn shut_down(&mut self) {
        self.disk.save();
        self.kill();
    }

    /// Kills the host, alone or after its process: only synced records are kept.
    pub fn power(&mut self) {
        self.is_running = false;
        self.disk.keep_synced();
    }

    /// Kills the host while it writes back unsynced records; see [`Disk::keep_torn`].
    pub fn power_torn(&mut self, draw: impl FnOnce(usize) -> usize) {
        self.is_running = false;
        self.disk.keep_torn(draw);
    }

    /// Starts a new process from the disk's contents when the node's wall clock reads `wall_ms`.
    ///
    /// Calls `ended` for every key that the dead process had and the new one lacks. A key that is
    /// expired at `wall_ms` would be gone anyway and counts as expired. Calls `returned` for every
    /// key that the new process has and the dead one no longer had. A key with another writer
    /// counts as another key.
    ///
    /// # Panics
    ///
    /// If the old process is alive.
    pub fn restart(
        &mut self,
        run_id: [u8; 20],
        wall_ms: u64,
        mut ended: impl FnMut(Ended),
        mut returned: impl FnMut(u8, &[u8], &Entry),
    ) {
        assert!(!self.is_running, "the old process is alive");
        core::mem::swap(&mut self.databases, &mut self.lost);
        self.disk.replay(&mut self.databases);
        self.databases.each().for_each(|keyspace| keyspace.forget_expired(wall_ms));
        for database in 0..self.databases.len().max(self.lost.len()) {
            let (old, new) = (self.lost.at(database), self.databases.at(database));
            let returned = |key: &[u8], entry: &Entry| returned(database, key, entry);
            old.compare(new, wall_ms, KeyEnd::Restarted, &mut ended, returned);
        }
        self.lost.reset();
        self.watched.clear();
        self.forget_listeners();
        self.run_id = run_id;
        (self.history, self.is_promoted, self.has_backlog) = (run_id, false, false);
        self.started_wall_ms = wall_ms;
        self.incarnation += 1;
        self.is_running = true;
    }
}

#[cfg(test)]
mod tests;
