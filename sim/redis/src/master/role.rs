//! Roles of masters and replicas, full copies, and the replication history of a server.

use super::Master;

impl Master {
    /// Records that the server has a replica, or is one.
    pub fn begin_backlog(&mut self) {
        self.has_backlog = true;
    }

    /// Appends a full copy to the replication stream for a replica that begins to follow; returns
    /// the copy's place in the stream. The first replica begins a new replication history that
    /// contains the existing keys.
    pub fn copy_to_stream(&mut self) -> u32 {
        if !core::mem::replace(&mut self.has_backlog, true) {
            self.begin_history();
            self.is_promoted = false;
        }
        self.stream.copy(&self.databases)
    }

    /// Applies, as a replica, the effects that `master` recorded between two places of its stream.
    ///
    /// # Panics
    ///
    /// If the process is dead.
    pub fn follow(&mut self, master: &Self, from: u32, to: u32) {
        assert!(self.is_running, "a dead process follows nobody");
        let Self { databases, disk, tracked, pushes, .. } = self;
        master.stream.apply(from, to, databases, disk, |key| match key {
            Some(key) => tracked.note(key, pushes),
            None => tracked.empty(pushes),
        });
        (self.history, self.is_promoted) = (master.history, false);
        self.has_backlog = true;
        self.watched.note_all();
    }

    /// Makes the server a replica or a master.
    pub fn set_role(&mut self, is_replica: bool) {
        if self.is_replica && !is_replica {
            self.begin_history();
            self.is_promoted = true;
        }
        self.is_replica = is_replica;
    }

    /// Makes the server part of the replication history that the process `run_id` began.
    pub fn join_history(&mut self, run_id: [u8; 20]) {
        self.history = run_id;
    }

    fn begin_history(&mut self) {
        // In the first history of a process this byte is zero.
        self.histories += 1;
        self.history = self.run_id;
        self.history[0] = 1;
        self.history[1..5].copy_from_slice(&self.histories.to_be_bytes());
    }

    /// Replaces, as a replica, all keys by those of `leader`, or removes them if there is no
    /// leader.
    pub fn resynchronise(&mut self, leader: Option<&Self>) {
        self.flush(drop);
        let Self { databases, disk, stream, .. } = self;
        for (database, key, entry) in leader.iter().flat_map(|it| it.databases.iter()) {
            databases.at(database).load(key, Some(entry));
            disk.record(database, key, Some(entry));
            stream.record(database, key, Some(entry));
        }
        self.watched.note_all();
        self.has_backlog = true;
        if let Some(leader) = leader {
            (self.history, self.is_promoted) = (leader.history, false);
        }
    }

    /// Returns true if the server reports the role of a replica.
    #[must_use]
    pub fn is_replica(&self) -> bool {
        self.is_replica
    }

    /// Returns `master_replid`, and true if it changed at a promotion.
    #[must_use]
    pub fn history(&self) -> ([u8; 20], bool) {
        (self.history, self.is_promoted)
    }
}
