//! A fault at one of its hosts: its effect there, its beginning and its end.

use lock_judge::history::{ClientId, ClientIds, ClockKind, FaultId, HostId, HostIds, NodeId};
use lock_judge::ids::{ResourceId, ServerId};
use lock_judge::scenario::{AttemptStep, Lost, Message};

/// Beginning of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begin {
    At(u64),
    /// When the first attempt of `client`, or its attempt with the number `attempt`, reaches
    /// `step`.
    Before {
        client: ClientId,
        attempt: Option<u16>,
        step: AttemptStep,
        node: Option<NodeId>,
    },
}

/// End of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    At(u64),
    After(u64),
    /// `after_ns` after the beginning, measured on a clock of the host under fault.
    Measured {
        clock: ClockKind,
        after_ns: u64,
    },
    Never,
    /// At once: the fault has no duration.
    Instantly,
}

/// Effect of a fault, with names resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultEffect {
    Attach {
        replica: ServerId,
    },
    ClockJump {
        host: HostId,
        by_ns: i64,
    },
    ClockRate {
        host: HostId,
        rate_ppb: i32,
    },
    Delay {
        from: HostIds,
        to: HostIds,
        by_ns: u64,
        only: Option<Message>,
    },
    Delete {
        node: NodeId,
        resource: ResourceId,
    },
    /// `of` is the server whose keys the demoted server gets; `None` if that server is outside the
    /// scenario.
    Demote {
        node: NodeId,
        of: Option<ServerId>,
        keeps_keys: bool,
    },
    Die {
        host: HostId,
        death: Death,
    },
    DiskStall {
        server: ServerId,
    },
    Evict {
        node: NodeId,
        resource: ResourceId,
    },
    /// `told` are the clients that are notified at once.
    FailOver {
        node: NodeId,
        to: ServerId,
        told: ClientIds,
    },
    Flush {
        node: NodeId,
        database: Option<u8>,
    },
    MemoryFull {
        server: ServerId,
    },
    Partition {
        from: HostIds,
        to: HostIds,
        one_way: bool,
        lost: Lost,
    },
    Snapshot {
        server: ServerId,
    },
    SpuriousPush {
        node: NodeId,
        resource: ResourceId,
    },
    Stall {
        server: ServerId,
    },
    Stop {
        host: HostId,
        suspended: bool,
    },
    Swap {
        node: NodeId,
        databases: [u8; 2],
    },
}

/// Manner of a host's death, and its effect on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Death {
    pub(crate) manner: Manner,
    /// Part of the unsynced data survives; its last record is incomplete.
    pub(crate) torn: bool,
    /// Time of the backup that is put back.
    pub(crate) backup_of_ns: Option<u64>,
    /// True if a proxy keeps the clients' connections.
    pub(crate) is_hidden: bool,
    /// True if another machine with an empty disk takes over the name.
    pub(crate) is_replaced: bool,
}

/// Manner of a host's death.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// The process dies; its host lives.
    Killed,
    /// The host dies.
    PowerLost,
    /// The process shuts down on command.
    ShutDown,
}

/// A fault at one host, with names resolved. A fault on a group of hosts is planned once for each
/// of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlannedFault {
    /// The fault of the scenario.
    pub(crate) id: FaultId,
    /// Number of the occurrence among those of the fault, from 0.
    pub(crate) occurrence: u16,
    /// True for the first fault of its group; its beginning is recorded as the group's beginning.
    pub(crate) opens: bool,
    /// True for the last fault of its group.
    pub(crate) closes: bool,
    pub(crate) begin: Begin,
    pub(crate) end: End,
    pub(crate) effect: FaultEffect,
}
