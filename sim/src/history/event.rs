//! The events of a history.

use serde::{Deserialize, Serialize};

use crate::ids::{AttemptId, ClockKind, HostIndex, Writer};

/// Something that happened, and when in true time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Event {
    /// True time since the scenario began, in nanoseconds.
    pub at_ns: u64,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What can happen.
///
/// `node` and `client` are places in the scenario's lists; `host` is a [`HostIndex`]. A `command`
/// is numbered by the engine, from 0, in the order of writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the variant's documentation names its fields")]
pub enum EventKind {
    /// From now on a clock reads `local_ns` plus elapsed true time times `1 + rate_ppb / 10⁹`.
    Clock { host: HostIndex, clock: ClockKind, local_ns: u64, rate_ppb: i32 },

    /// The node's server process runs and answers. `incarnation` counts its starts from 0.
    NodeUp { node: u8, incarnation: u32 },
    /// The process is gone: killed (the kernel lives), or with its host's power.
    NodeDown { node: u8, power: bool },
    /// The process lives and executes nothing.
    NodeStalled { node: u8 },
    /// It executes again.
    NodeUnstalled { node: u8 },
    /// From now on `host`, a replica of the node or its old master, is the node's master. Keys that
    /// only the old one has end then.
    FailedOver { node: u8, host: HostIndex },
    /// From which reading of the client's boot clock on the client counts the node's votes;
    /// `u64::MAX`: never. Told by clients that keep such a rule, whenever it changes.
    Eligible { client: u8, node: u8, from_local_ns: u64 },

    /// A client process takes no step from now on; `suspended` if its host sleeps too.
    Stopped { host: HostIndex, suspended: bool },
    /// It takes steps again.
    Continued { host: HostIndex },
    /// A client process is dead; `power` if with its host.
    Killed { host: HostIndex, power: bool },

    /// An attempt read `t1_local_ns` on `clock` and is about to write its first command. `ttl_ns`
    /// is `u64::MAX` for a lock without expiry. `drift_ns` is the lease's own allowance. `needed`
    /// is a majority of the configured nodes, whatever the client believes.
    AttemptBegan {
        attempt: AttemptId,
        clock: ClockKind,
        t1_local_ns: u64,
        ttl_ns: u64,
        drift_ns: u64,
        needed: u8,
    },
    /// A client handed a command to its kernel.
    Written { command: u32, attempt: AttemptId, node: u8, op: OpKind },
    /// A node executed a command and wrote its answer. `before` and `after` say who made the
    /// resource's key on the node; `expires_wall_ms` is the key's end on the node's wall clock
    /// afterwards (`u64::MAX`: none, or no key). `changed` if the key was set, deleted or re-timed.
    Executed {
        command: u32,
        attempt: AttemptId,
        node: u8,
        op: OpKind,
        answer: Answer,
        changed: bool,
        before: Writer,
        after: Writer,
        expires_wall_ms: u64,
    },
    /// The client took the answer in. Late answers are told too.
    Delivered { command: u32, attempt: AttemptId, node: u8, op: OpKind, answer: Answer },
    /// The client will not count answers to the attempt any more.
    AttemptSettled { attempt: AttemptId, outcome: Settlement },
    /// The client decided that the attempt is granted: `counted` is the set of nodes whose votes
    /// it counted, bit by bit; `t2_local_ns` and `deadline_local_ns` are on the attempt's clock.
    GrantDecided { attempt: AttemptId, counted: u16, t2_local_ns: u64, deadline_local_ns: u64 },
    /// The application has the lease and believes it until `clock` reads `deadline_local_ns`
    /// (`u64::MAX`: for ever). `fencing_token` is 0 where there is none.
    GrantDelivered {
        attempt: AttemptId,
        clock: ClockKind,
        deadline_local_ns: u64,
        fencing_token: u64,
    },
    /// The client read T1 of its `round`-th extension and is about to write the first command.
    ExtensionBegan { attempt: AttemptId, round: u16, t1_local_ns: u64, ttl_ns: u64 },
    /// The client decided about the extension. If it is `extended`, `counted` is the set of nodes
    /// whose answers it counted and `deadline_local_ns` the lease's new end.
    ExtensionSettled {
        attempt: AttemptId,
        round: u16,
        extended: bool,
        counted: u16,
        deadline_local_ns: u64,
    },
    /// The application was told that the lease lasts until `clock` reads `deadline_local_ns`.
    ExtensionDelivered { attempt: AttemptId, clock: ClockKind, deadline_local_ns: u64 },
    /// The application called release.
    ReleaseCalled { attempt: AttemptId },
    /// The application was told that the lease is over.
    LostDelivered { attempt: AttemptId },

    /// A key on a node ended. `writer` is who had made it, `by` whose command it was, if any;
    /// `expires_wall_ms` is when it should have ended on the node's wall clock.
    KeyEnded { node: u8, writer: Writer, cause: KeyEnd, by: Writer, expires_wall_ms: u64 },

    /// The application asked the lease whether it is alive.
    Looked { attempt: AttemptId, alive: bool },
    /// The application entered its critical section.
    SectionEntered { attempt: AttemptId },
    /// It left the section.
    SectionLeft { attempt: AttemptId },
    /// The application read the resource and saw `version`.
    ReadDone { attempt: AttemptId, version: u32 },
    /// A write left the application. `based_on` is the version it was computed from
    /// (`u32::MAX`: none, a blind write).
    WriteSent { attempt: AttemptId, write: u32, based_on: u32, fencing_token: u64 },
    /// The resource applied it and has `version` now.
    WriteApplied { attempt: AttemptId, write: u32, based_on: u32, version: u32, fencing_token: u64 },
    /// The resource refused it.
    WriteRejected { attempt: AttemptId, write: u32, why: Rejection },

    /// A fault of the scenario began; `fault` is its place in the list.
    FaultBegan { fault: u16 },
    /// It ended.
    FaultEnded { fault: u16 },
    /// Every fault with an end has ended, and the client `probe` begins to acquire.
    Healed { probe: u8 },
    /// The run is over.
    Ended,

    /// A key that had ended on a node is there again, since what the node loaded, or the replica
    /// that took its place, still has it.
    KeyReturned { node: u8, writer: Writer, expires_wall_ms: u64 },

    /// The application asked for an extension to `ttl_ns`, and the client began none.
    ExtensionRefused { attempt: AttemptId, ttl_ns: u64, why: Refusal },
}

/// What a command does, as far as judging and drawing tell commands apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OpKind {
    /// EXPIRE or PEXPIRE, whosever the key is.
    Expire,
    /// Compare-and-extend.
    Extend,
    /// A plain read.
    Get,
    /// GETSET: an unconditional write that answers with the old value.
    GetSet,
    /// INFO.
    Introduce,
    /// Compare-and-delete.
    Release,
    /// An unconditional delete.
    Delete,
    /// SET NX PX, or SETNX: the vote.
    Set,
    /// WAIT: how many replicas have what this connection wrote.
    Wait,
    /// PTTL: how long a key lives, whosever it is.
    TimeLeft,
}

/// What a node answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Yes: set, deleted, re-timed, introduced, or the value asked for is the caller's own.
    Yes,
    /// No: the key is there already, or is not the caller's.
    No,
    /// An error.
    Error,
}

/// Why a key ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeyEnd {
    /// A command deleted or overwrote it.
    Command,
    /// Memory ran short.
    Evicted,
    /// Its time came, on the node's wall clock.
    Expired,
    /// The node failed over to a replica that does not have it.
    FailedOver,
    /// Somebody emptied the node.
    Flushed,
    /// The node restarted without it.
    Restarted,
}

/// How an attempt was settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Settlement {
    /// The caller gave up.
    Cancelled,
    /// Granted.
    Granted,
    /// A majority could not be had without nodes in quarantine.
    Quarantined,
    /// Other attempts' keys were in the way. Our own client says so only if a majority of the nodes
    /// showed keys of one of them.
    Taken,
    /// Too few nodes answered.
    TooFewNodes,
    /// A majority answered, too late.
    TooSlow,
    /// Votes were split: no other attempt had keys on a majority of the nodes either.
    Split,
}

/// Why a client began no extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// Another extension of the lease is under way.
    Busy,
    /// The lease is over.
    Lost,
    /// Nodes that forgot a key would not be in quarantine for as long as that.
    TooLong,
    /// The lease has been extended as often as it may be.
    TooMany,
    /// The lock has no extensions.
    Unsupported,
    /// The lease would end no later than it does.
    WouldShorten,
}

/// Why the resource refused a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rejection {
    /// The fencing token is smaller than one seen before.
    StaleToken,
    /// The owner tag is another's.
    NotOwner,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_small() {
        assert!(size_of::<Event>() <= 64, "{}", size_of::<Event>());
    }
}
