//! Pending disk work of a server process.

use lock_judge::ids::ConnectionId;

use crate::world::packet::Packet;

/// Pending disk work of a process.
#[derive(Clone, Debug, Default)]
pub(in crate::world) struct DiskWork {
    /// Number of the process: work scheduled for an earlier process is skipped.
    pub(in crate::world) serial: u32,
    /// Number of faults that keep syncs from finishing.
    pub(in crate::world) stalls: u16,
    /// True if only those faults keep the sync under way from finishing.
    pub(in crate::world) is_late: bool,
    pub(in crate::world) is_sync_scheduled: bool,
    /// Time at which a postponed write is no longer postponed.
    pub(in crate::world) write_due_ns: Option<u64>,
    /// Replies and pushes that wait for a sync, each with its connection.
    pub(in crate::world) held: Vec<(ConnectionId, Packet)>,
}

impl DiskWork {
    /// Discards the work of a process that is gone.
    pub(in crate::world) fn forget(&mut self) {
        self.serial += 1;
        self.is_late = false;
        self.is_sync_scheduled = false;
        self.write_due_ns = None;
        self.held.clear();
    }

    /// Resets to the beginning of a run.
    pub(super) fn reset(&mut self) {
        self.forget();
        (self.serial, self.stalls) = (0, 0);
    }
}
