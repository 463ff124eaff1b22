//! A simulated Redis master.
//!
//! A pure engine: a command and a reading of the node's wall clock go in, a reply and what changed
//! come out. It owns no clock, no network and no randomness; when it is asked, when the active
//! expiry cycle runs and when the process dies is the engine's business.

mod bytes;
mod command;
mod disk;
mod keyspace;
pub mod profile;
pub mod resp;
pub mod script;
pub mod server;
mod stream;

pub use bytes::{INLINE_MAX, SmallBytes};
pub use command::{
    Change, Command, Effect, Ended, ErrorReply, Executed, ExpireCondition, Introduction,
    KeyCommand, Reply, SetCondition, SetExpiry,
};
pub use disk::{Disk, Storage};
pub use keyspace::{Entry, Keyspace};
pub use stream::Stream;

use crate::history::{KeyEnd, Writer};

/// The `run_id` of the process that a host starts for the `incarnation`-th time: another one for
/// every start, and nobody's choice.
#[must_use]
pub fn run_id(host: u8, incarnation: u32) -> [u8; 20] {
    let mut run_id = [0; 20];
    run_id[15] = host;
    run_id[16..].copy_from_slice(&incarnation.to_be_bytes());
    run_id
}

/// One server: a process, its memory and its disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Master {
    keyspace: Keyspace,
    /// Room for the comparison that a restart makes.
    lost: Keyspace,
    disk: Disk,
    stream: Stream,
    /// Memory is full, and nothing may be evicted.
    is_full: bool,
    run_id: [u8; 20],
    started_wall_ms: u64,
    incarnation: u32,
    is_running: bool,
}

impl Master {
    /// A running, empty master, whose process was started when the node's wall clock read
    /// `started_wall_ms`.
    #[must_use]
    pub fn new(storage: Storage, run_id: [u8; 20], started_wall_ms: u64) -> Self {
        Self {
            keyspace: Keyspace::default(),
            lost: Keyspace::default(),
            disk: Disk::new(storage),
            stream: Stream::default(),
            is_full: false,
            run_id,
            started_wall_ms,
            incarnation: 0,
            is_running: true,
        }
    }

    /// Back to the state of [`Master::new`], keeping what is allocated.
    pub fn reset_to(&mut self, storage: Storage, run_id: [u8; 20], started_wall_ms: u64) {
        self.keyspace.clear();
        self.disk.reset_to(storage);
        self.stream.reset(false);
        self.is_full = false;
        self.run_id = run_id;
        self.started_wall_ms = started_wall_ms;
        self.incarnation = 0;
        self.is_running = true;
    }

    /// Its keys.
    #[must_use]
    pub fn keyspace(&self) -> &Keyspace {
        &self.keyspace
    }

    /// What it keeps.
    #[must_use]
    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    /// What it keeps; when that is written and synced is for the caller to say.
    pub fn disk_mut(&mut self) -> &mut Disk {
        &mut self.disk
    }

    /// From now on effects are told, for replicas.
    pub fn begin_stream(&mut self) {
        self.stream.reset(true);
    }

    /// What it has told its replicas.
    #[must_use]
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Tells everything anew, for a replica that begins to follow: from which place on.
    pub fn copy_to_stream(&mut self) -> u32 {
        self.stream.copy(&self.keyspace)
    }

    /// As a replica: does what `master` told between two places of its stream.
    ///
    /// # Panics
    ///
    /// If the process is dead.
    pub fn follow(&mut self, master: &Self, from: u32, to: u32) {
        assert!(self.is_running, "a dead process follows nobody");
        master.stream.apply(from, to, &mut self.keyspace, &mut self.disk);
    }

    /// Memory is full, or is not any more: the policy is `noeviction`.
    pub fn set_full(&mut self, is_full: bool) {
        self.is_full = is_full;
    }

    /// Counts the restarts of the process.
    #[must_use]
    pub fn incarnation(&self) -> u32 {
        self.incarnation
    }

    /// Whether the process is alive.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.is_running
    }

    /// What the process says of itself when the node's wall clock reads `wall_ms`.
    #[must_use]
    pub fn introduction(&self, wall_ms: u64) -> Introduction {
        let seconds = |ms: u64| (ms / 1_000) as i64;
        let uptime_s = seconds(wall_ms) - seconds(self.started_wall_ms);
        Introduction { run_id: self.run_id, uptime_s, is_master: true }
    }

    /// Executes `command`, which is `writer`'s, when the node's wall clock reads `wall_ms`.
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
            return Executed::refused(ErrorReply::OutOfMemory, self.keyspace.stored(key));
        }
        let executed = self.keyspace.execute(key, command, wall_ms, writer);
        if executed.expired.is_some() || executed.effect.change != Change::Nothing {
            self.disk.record(key, self.keyspace.stored(key));
            self.stream.record(key, self.keyspace.stored(key));
        }
        executed
    }

    /// The active expiry cycle: deletes every key whose time has come at `wall_ms`.
    pub fn expire_active(&mut self, wall_ms: u64, mut ended: impl FnMut(Ended)) {
        assert!(self.is_running, "a dead process expires nothing");
        let (disk, stream) = (&mut self.disk, &mut self.stream);
        self.keyspace.expire_active(wall_ms, |key| {
            disk.record(&key.key, None);
            stream.record(&key.key, None);
            ended(key);
        });
    }

    /// Memory ran short, and `key` had to go.
    pub fn evict(&mut self, key: &[u8]) -> Option<Ended> {
        let ended = self.keyspace.evict(key)?;
        self.disk.record(key, None);
        self.stream.record(key, None);
        Some(ended)
    }

    /// An operator's `DEL` of `key`.
    pub fn delete(&mut self, key: &[u8]) -> Option<Ended> {
        let ended = self.keyspace.delete_by_operator(key)?;
        self.disk.record(key, None);
        self.stream.record(key, None);
        Some(ended)
    }

    /// An operator's `FLUSHALL`.
    pub fn flush(&mut self, mut ended: impl FnMut(Ended)) {
        let (disk, stream) = (&mut self.disk, &mut self.stream);
        self.keyspace.flush(|key| {
            disk.record(&key.key, None);
            stream.record(&key.key, None);
            ended(key);
        });
    }

    /// The process dies, the kernel lives: what was written is kept.
    pub fn kill(&mut self) {
        assert!(self.is_running, "a process dies once");
        self.is_running = false;
        self.disk.keep_written();
    }

    /// The process stops as it is told to: what its persistence keeps at all is safe.
    pub fn shut_down(&mut self) {
        self.disk.save();
        self.kill();
    }

    /// The host dies, alone or after its process: what was synced is kept.
    pub fn power(&mut self) {
        self.is_running = false;
        self.disk.keep_synced();
    }

    /// The host dies while it writes back what was not synced; see [`Disk::keep_torn`].
    pub fn power_torn(&mut self, draw: impl FnOnce(usize) -> usize) {
        self.is_running = false;
        self.disk.keep_torn(draw);
    }

    /// A new process starts when the node's wall clock reads `wall_ms`, with what the disk kept.
    ///
    /// `ended` is told of every key that the dead process had and the new one has not. A key whose
    /// time has come by `wall_ms` would be gone anyway and counts as expired. `returned` is told of
    /// every key that the new process has and the dead one had not any more.
    ///
    /// # Panics
    ///
    /// If the old process is alive.
    pub fn restart(
        &mut self,
        run_id: [u8; 20],
        wall_ms: u64,
        ended: impl FnMut(Ended),
        returned: impl FnMut(&[u8], &Entry),
    ) {
        assert!(!self.is_running, "the old process is alive");
        core::mem::swap(&mut self.keyspace, &mut self.lost);
        self.disk.replay(&mut self.keyspace);
        self.keyspace.forget_expired(wall_ms);
        self.lost.compare(&self.keyspace, wall_ms, KeyEnd::Restarted, ended, returned);
        self.lost.clear();
        self.run_id = run_id;
        self.started_wall_ms = wall_ms;
        self.incarnation += 1;
        self.is_running = true;
    }
}

#[cfg(test)]
mod tests;
