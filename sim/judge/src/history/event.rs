//! The events of a history.

use serde::{Deserialize, Serialize};

use crate::ids::{
    AttemptId, ClientId, ClockKind, CommandId, FaultId, FencingToken, HostId, NodeId, NodeIds,
    RoundId, WriteId, Writer,
};

/// An event and its true time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Event {
    /// True time since the scenario began, in nanoseconds.
    pub at_ns: u64,
    /// Kind of the event.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// Kind of an event, with its data.
///
/// The engine numbers each `command` from 0, in the order of writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the variant's documentation names its fields")]
pub enum EventKind {
    /// The clock reads `local_ns` now, and advances by the elapsed true time times
    /// `1 + rate_ppb / 10⁹`.
    Clock { host: HostId, clock: ClockKind, local_ns: u64, rate_ppb: i32 },

    /// The node's server process runs and answers. `incarnation` counts the starts of the process
    /// from 0.
    NodeUp { node: NodeId, incarnation: u32 },
    /// The node's server process ended: killed alone (`power` is false), or together with its
    /// host's power.
    NodeDown { node: NodeId, power: bool },
    /// The node's server process is alive but executes nothing.
    NodeStalled { node: NodeId },
    /// The node's server process executes commands again.
    NodeUnstalled { node: NodeId },
    /// `host`, a replica of the node or its old master, becomes the node's master. Keys that only
    /// the old master has end now.
    FailedOver { node: NodeId, host: HostId },
    /// The client counts the node's votes once the client's boot clock reads `from_local_ns`;
    /// `u64::MAX` means never. Only clients with such a rule report this, whenever the value
    /// changes.
    Eligible { client: ClientId, node: NodeId, from_local_ns: u64 },

    /// A client process stops taking steps; `suspended` is true if its host sleeps too.
    Stopped { host: HostId, suspended: bool },
    /// The client process takes steps again.
    Continued { host: HostId },
    /// A client process died; `power` is true if its host lost power.
    Killed { host: HostId, power: bool },

    /// An attempt read `t1_local_ns` on `clock` and is about to write its first command. `ttl_ns`
    /// is `u64::MAX` for a lock without expiry. `drift_ns` is the drift that the lease allows for.
    /// `needed` is a majority of the client's nodes, whatever the client believes.
    AttemptBegan {
        attempt: AttemptId,
        clock: ClockKind,
        t1_local_ns: u64,
        ttl_ns: u64,
        drift_ns: u64,
        needed: u8,
    },
    /// A client handed a command to its kernel.
    Written { command: CommandId, attempt: AttemptId, node: NodeId, op: OpKind },
    /// A node executed a command and wrote its answer. `before` and `after` are the writers of the
    /// resource's key on the node before and after the command. `expires_wall_ms` is the expiry of
    /// the key after the command, on the node's wall clock (`u64::MAX`: no expiry, or no key).
    /// `changed` is true if the key was set, deleted or re-timed.
    Executed {
        command: CommandId,
        attempt: AttemptId,
        node: NodeId,
        op: OpKind,
        answer: Answer,
        changed: bool,
        before: Writer,
        after: Writer,
        expires_wall_ms: u64,
    },
    /// The client received the answer. Late answers are recorded too.
    Delivered { command: CommandId, attempt: AttemptId, node: NodeId, op: OpKind, answer: Answer },
    /// The client stops counting answers to the attempt.
    AttemptSettled { attempt: AttemptId, outcome: Settlement },
    /// The client decided that the attempt is granted. `counted` is the set of nodes whose votes
    /// the client counted. `t2_local_ns` and `deadline_local_ns` are on the attempt's
    /// clock.
    GrantDecided { attempt: AttemptId, counted: NodeIds, t2_local_ns: u64, deadline_local_ns: u64 },
    /// The application received the lease. Its belief lasts until `clock` reads `deadline_local_ns`
    /// (`u64::MAX`: for ever). `fencing_token` is [`FencingToken::NONE`] if
    /// there is none.
    GrantDelivered {
        attempt: AttemptId,
        clock: ClockKind,
        deadline_local_ns: u64,
        fencing_token: FencingToken,
    },
    /// The client read T1 of extension number `round` and is about to write its first command.
    ExtensionBegan { attempt: AttemptId, round: RoundId, t1_local_ns: u64, ttl_ns: u64 },
    /// The client decided about the extension. If `extended` is true, `counted` is the set of nodes
    /// whose answers the client counted, and `deadline_local_ns` is the new deadline of the lease.
    ExtensionSettled {
        attempt: AttemptId,
        round: RoundId,
        extended: bool,
        counted: NodeIds,
        deadline_local_ns: u64,
    },
    /// The application was notified that the lease lasts until `clock` reads `deadline_local_ns`.
    ExtensionDelivered { attempt: AttemptId, clock: ClockKind, deadline_local_ns: u64 },
    /// The application called release.
    ReleaseCalled { attempt: AttemptId },
    /// The application was notified that the lease is over.
    LostDelivered { attempt: AttemptId, reason: LostReason },

    /// A key on a node ended. `writer` is the writer of the key. `by` is the sender of the command
    /// that ended it, if a command did. `expires_wall_ms` is the expiry of the key on the node's
    /// wall clock.
    KeyEnded { node: NodeId, writer: Writer, cause: KeyEnd, by: Writer, expires_wall_ms: u64 },

    /// The application checked whether the lease is alive.
    #[serde(rename = "looked")]
    Checked { attempt: AttemptId, alive: bool },
    /// The application entered its critical section.
    SectionEntered { attempt: AttemptId },
    /// The application left its critical section.
    SectionLeft { attempt: AttemptId },
    /// The application read the resource and received `version`.
    ReadDone { attempt: AttemptId, version: u32 },
    /// The application sent a write.
    WriteSent { attempt: AttemptId, write: WriteId, based_on: BasedOn, fencing_token: FencingToken },
    /// The resource applied the write; its version is now `version`.
    WriteApplied {
        attempt: AttemptId,
        write: WriteId,
        based_on: BasedOn,
        version: u32,
        fencing_token: FencingToken,
    },
    /// The resource rejected the write.
    WriteRejected { attempt: AttemptId, write: WriteId, why: Rejection },

    /// A fault of the scenario began.
    FaultBegan { fault: FaultId },
    /// The fault ended.
    FaultEnded { fault: FaultId },
    /// Every fault with an end has ended, and the client `probe` begins to acquire; with several
    /// resources, `probe` is the first of their probes, and all begin.
    Healed { probe: ClientId },
    /// The run is over.
    Ended,

    /// A key that had ended on a node exists again, because the data set that the node loaded, or
    /// the replica that took its place, still has it.
    KeyReturned { node: NodeId, writer: Writer, expires_wall_ms: u64 },

    /// The application asked for an extension to `ttl_ns`, and the client refused to begin one.
    ExtensionRefused { attempt: AttemptId, ttl_ns: u64, why: Refusal },

    /// The client ended an acquisition without a lease: the limit of the acquisition was reached, or
    /// the application cancelled it.
    GaveUp { client: ClientId },

    /// The client began to watch its lease, or received news about its keys: `confirmed` is the set
    /// of nodes that have the key and would have pushed its loss, `possible` the set of all nodes
    /// that are not known to lack it.
    VotesChanged { attempt: AttemptId, confirmed: NodeIds, possible: NodeIds },
}

impl EventKind {
    /// Returns the client whose lock the event is about; `None` if it is about every lock: a clock, a
    /// process, a node or a fault.
    #[must_use]
    pub const fn client_concerned(&self) -> Option<ClientId> {
        match *self {
            Self::AttemptBegan { attempt, .. }
            | Self::Written { attempt, .. }
            | Self::Executed { attempt, .. }
            | Self::Delivered { attempt, .. }
            | Self::AttemptSettled { attempt, .. }
            | Self::GrantDecided { attempt, .. }
            | Self::GrantDelivered { attempt, .. }
            | Self::ExtensionBegan { attempt, .. }
            | Self::ExtensionSettled { attempt, .. }
            | Self::ExtensionDelivered { attempt, .. }
            | Self::ExtensionRefused { attempt, .. }
            | Self::ReleaseCalled { attempt }
            | Self::LostDelivered { attempt, .. }
            | Self::Checked { attempt, .. }
            | Self::SectionEntered { attempt }
            | Self::SectionLeft { attempt }
            | Self::ReadDone { attempt, .. }
            | Self::WriteSent { attempt, .. }
            | Self::WriteApplied { attempt, .. }
            | Self::WriteRejected { attempt, .. }
            | Self::VotesChanged { attempt, .. }
            | Self::KeyEnded { writer: Writer::Attempt(attempt), .. }
            | Self::KeyReturned { writer: Writer::Attempt(attempt), .. } => Some(attempt.client),
            Self::GaveUp { client } => Some(client),
            Self::Clock { .. }
            | Self::NodeUp { .. }
            | Self::NodeDown { .. }
            | Self::NodeStalled { .. }
            | Self::NodeUnstalled { .. }
            | Self::FailedOver { .. }
            | Self::Eligible { .. }
            | Self::Stopped { .. }
            | Self::Continued { .. }
            | Self::Killed { .. }
            | Self::KeyEnded { writer: Writer::Nobody | Writer::Operator, .. }
            | Self::KeyReturned { writer: Writer::Nobody | Writer::Operator, .. }
            | Self::FaultBegan { .. }
            | Self::FaultEnded { .. }
            | Self::Healed { .. }
            | Self::Ended => None,
        }
    }
}

/// The version of the resource from which a write was computed, or that there is none. In a stored
/// history `u32::MAX` stands for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BasedOn(u32);

impl BasedOn {
    /// A blind write: it is computed from no version.
    pub const NOTHING: Self = Self(u32::MAX);

    /// Returns the basis of a write that is computed from `version`.
    #[must_use]
    pub const fn on(version: u32) -> Self {
        Self(version)
    }

    /// Returns the version; `None` for a blind write.
    #[must_use]
    pub const fn version(self) -> Option<u32> {
        if self.0 == Self::NOTHING.0 { None } else { Some(self.0) }
    }
}

/// Kind of a command, as far as the oracle and the diagrams tell commands apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OpKind {
    /// EXPIRE or PEXPIRE, regardless of its writer.
    Expire,
    /// Compare-and-extend: extends the key only if it holds the caller's token.
    Extend,
    /// A plain read.
    Get,
    /// GETSET: an unconditional write that returns the old value.
    GetSet,
    /// INFO.
    Introduce,
    /// Compare-and-delete: deletes the key only if it holds the caller's token.
    Release,
    /// An unconditional delete.
    Delete,
    /// SET NX PX, or SETNX; success is the vote.
    Set,
    /// WAIT: returns the number of replicas that have the writes of this connection.
    Wait,
    /// PTTL: returns the remaining life of a key, regardless of its writer.
    TimeLeft,
    /// PTTL by a client that waits for the lock: the node then pushes the key's next change.
    Look,
    /// GET by a client that holds the lock: the node then pushes the key's next change.
    Read,
}

/// A node's answer to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Success: set, deleted, re-timed, introduced, or the value read is the caller's own.
    Yes,
    /// Refusal: the key exists already, or is not the caller's.
    No,
    /// An error.
    Error,
}

/// Cause of a key's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeyEnd {
    /// A command deleted or overwrote the key.
    Command,
    /// The node evicted the key because memory ran short.
    Evicted,
    /// The key's expiry passed on the node's wall clock.
    Expired,
    /// The node failed over to a replica that does not have the key.
    FailedOver,
    /// A command emptied the node.
    Flushed,
    /// The node restarted without the key.
    Restarted,
}

/// Outcome of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Settlement {
    /// The caller gave up.
    Cancelled,
    /// Granted.
    Granted,
    /// No majority was possible without nodes in quarantine.
    Quarantined,
    /// Keys of other attempts were in the way. Our own client reports this outcome only if a
    /// majority of the nodes showed keys of one other attempt.
    Taken,
    /// Too few nodes answered.
    TooFewNodes,
    /// A majority answered, but too late.
    TooSlow,
    /// The votes were split: no other attempt had keys on a majority of the nodes either.
    Split,
    /// Too few nodes were asked in time, because commands of the same client were ahead.
    Overloaded,
}

/// Reason that a client gives for the end of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LostReason {
    /// The client was closed.
    Closed,
    /// The deadline has passed, or is about to.
    DeadlinePassed,
    /// Likewise, and the limit for keeping the lease alive is reached.
    KeepAliveEnded,
    /// Likewise, and too few nodes confirmed the last extension of a lease that is kept alive.
    KeepAliveFailed,
    /// So many nodes lack the key that others can have a majority.
    KeysGone,
}

/// Reason why a client refused to begin an extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// Another extension of the lease is under way.
    Busy,
    /// The lease is over.
    Lost,
    /// Nodes that forgot a key would not stay in quarantine for the requested TTL.
    TooLong,
    /// The lease has reached its maximum number of extensions.
    TooMany,
    /// The lock does not support extensions.
    Unsupported,
    /// The new deadline would be no later than the current one.
    WouldShorten,
}

/// Reason why the resource rejected a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rejection {
    /// The fencing token is smaller than one seen before.
    StaleToken,
    /// The owner tag of the resource belongs to another attempt.
    NotOwner,
    /// The resource has another version than the one that the writer read.
    StaleVersion,
}

impl Rejection {
    /// Returns the reason in words.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::StaleToken => "stale token",
            Self::NotOwner => "not the owner",
            Self::StaleVersion => "stale version",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_small() {
        assert!(size_of::<Event>() <= 64, "{}", size_of::<Event>());
    }
}
