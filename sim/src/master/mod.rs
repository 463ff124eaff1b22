//! A simulated Redis master.
//!
//! A pure engine: a command and a reading of the node's wall clock go in, a reply and what changed
//! come out. It owns no clock, no network and no randomness; when it is asked, when the active
//! expiry cycle runs and when the process dies is the engine's business.

mod bytes;
mod command;
mod disk;
mod keyspace;

pub use bytes::{INLINE_MAX, SmallBytes};
pub use command::{
    Change, Command, Effect, Ended, ErrorReply, Executed, ExpireCondition, Introduction,
    KeyCommand, Reply, SetCondition, SetExpiry,
};
pub use disk::Disk;
pub use keyspace::{Entry, Keyspace};

use crate::history::{KeyEnd, Writer};
use crate::scenario::Persistence;

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
    persistence: Persistence,
    run_id: [u8; 20],
    started_wall_ms: u64,
    incarnation: u32,
    is_running: bool,
}

impl Master {
    /// A running, empty master, whose process was started when the node's wall clock read
    /// `started_wall_ms`.
    #[must_use]
    pub fn new(persistence: Persistence, run_id: [u8; 20], started_wall_ms: u64) -> Self {
        Self {
            keyspace: Keyspace::default(),
            lost: Keyspace::default(),
            disk: Disk::default(),
            persistence,
            run_id,
            started_wall_ms,
            incarnation: 0,
            is_running: true,
        }
    }

    /// Back to the state of [`Master::new`], keeping what is allocated.
    pub fn reset_to(&mut self, persistence: Persistence, run_id: [u8; 20], started_wall_ms: u64) {
        self.keyspace.clear();
        self.disk.clear();
        self.persistence = persistence;
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
        let executed = self.keyspace.execute(key, command, wall_ms, writer);
        if executed.expired.is_some() || executed.effect.change != Change::Nothing {
            self.disk.record(self.persistence, key, self.keyspace.stored(key));
        }
        executed
    }

    /// The active expiry cycle: deletes every key whose time has come at `wall_ms`.
    pub fn expire_active(&mut self, wall_ms: u64, mut ended: impl FnMut(Ended)) {
        assert!(self.is_running, "a dead process expires nothing");
        let (disk, persistence) = (&mut self.disk, self.persistence);
        self.keyspace.expire_active(wall_ms, |key| {
            disk.record(persistence, &key.key, None);
            ended(key);
        });
    }

    /// Memory ran short, and `key` had to go.
    pub fn evict(&mut self, key: &[u8]) -> Option<Ended> {
        let ended = self.keyspace.evict(key)?;
        self.disk.record(self.persistence, key, None);
        Some(ended)
    }

    /// An operator's `FLUSHALL`.
    pub fn flush(&mut self, mut ended: impl FnMut(Ended)) {
        let (disk, persistence) = (&mut self.disk, self.persistence);
        self.keyspace.flush(|key| {
            disk.record(persistence, &key.key, None);
            ended(key);
        });
    }

    /// The process dies, the kernel lives: what was written is kept.
    pub fn kill(&mut self) {
        assert!(self.is_running, "a process dies once");
        self.is_running = false;
        self.disk.keep_written();
    }

    /// The host dies, alone or after its process: what was synced is kept.
    pub fn power(&mut self) {
        self.is_running = false;
        self.disk.keep_synced();
    }

    /// A new process starts when the node's wall clock reads `wall_ms`, with what the disk kept.
    ///
    /// `ended` is told of every key that the dead process had and the new one has not. A key whose
    /// time has come by `wall_ms` would be gone anyway and counts as expired.
    ///
    /// # Panics
    ///
    /// If the old process is alive.
    pub fn restart(&mut self, run_id: [u8; 20], wall_ms: u64, mut ended: impl FnMut(Ended)) {
        assert!(!self.is_running, "the old process is alive");
        core::mem::swap(&mut self.keyspace, &mut self.lost);
        self.disk.replay(&mut self.keyspace);
        for (key, entry) in self.lost.iter() {
            let kept = self.keyspace.stored(key).is_some_and(|kept| kept.writer == entry.writer);
            if !kept {
                let expired = entry.expires_wall_ms.is_some_and(|when| wall_ms > when);
                ended(Ended {
                    key: key.clone(),
                    writer: entry.writer,
                    cause: if expired { KeyEnd::Expired } else { KeyEnd::Restarted },
                    by: Writer::Nobody,
                    expires_wall_ms: entry.expires_wall_ms,
                });
            }
        }
        self.lost.clear();
        self.run_id = run_id;
        self.started_wall_ms = wall_ms;
        self.incarnation += 1;
        self.is_running = true;
    }
}

#[cfg(test)]
mod tests;
