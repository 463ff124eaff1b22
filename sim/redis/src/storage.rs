//! Use and quality of a disk.

/// The acknowledged data that a server keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Persistence {
    /// Everything, even after a power loss: `appendfsync always`. A reply waits for the sync.
    Always,
    /// `appendfsync everysec`: written before the reply, synced once a second in the background.
    Everysec,
    /// `appendfsync no`: written before the reply, synced whenever the kernel decides.
    No,
    /// Nothing: no AOF and no snapshots.
    #[default]
    None,
    /// Only snapshots: a restart loads the last one.
    Rdb,
}

/// Use and quality of a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Storage {
    /// Persistence mode of the server.
    pub persistence: Persistence,
    /// True if a sync takes time: under `always` the caller begins and ends it
    /// ([`Disk::begin_sync`](crate::Disk::begin_sync)). Otherwise records are synced as soon as they
    /// are written.
    pub slow: bool,
    /// True if the disk acknowledges syncs but stores nothing durably.
    pub lies: bool,
}

impl From<Persistence> for Storage {
    fn from(persistence: Persistence) -> Self {
        Self { persistence, slow: false, lies: false }
    }
}
