//! The kinds of faults, and their static properties. An engine adds what happens at the start and
//! the end of a fault.

use serde::{Deserialize, Serialize};

use super::details::{
    ClockBy, ClockRate, Delay, Demotion, Failover, Flush, OneHost, OneKey, Partition, Restarting,
    Swap,
};
use super::hosts::Hosts;
use crate::scenario::span::{SignedSpanRange, Span, SpanRange};

/// A kind of fault. In a file its name is a key of the fault, and its details are the value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// A process takes no step, while everything else continues. For a node this is a stall.
    Pause(OneHost),
    /// A process takes no step and its host sleeps: its monotonic clock stops. Nodes do not use that
    /// clock.
    Suspend(OneHost),
    /// The process dies; its host lives.
    Kill(Restarting),
    /// The host dies.
    Power(Restarting),
    /// A node executes nothing.
    Stall(OneHost),
    /// Nothing passes between two groups.
    Partition(Partition),
    /// Messages take longer.
    Delay(Delay),
    /// The wall clock is set.
    ClockJump(ClockBy),
    /// All three clocks run at another rate until the end.
    ClockRate(ClockRate),
    /// The clocks are slewed by an amount between the start and the end.
    ClockSlew(ClockBy),
    /// The lock's key is evicted.
    Evict(OneKey),
    /// All keys of a node, or of one of its databases, are deleted.
    Flush(Flush),
    /// An operator deletes the lock's key on a node.
    Delete(OneKey),
    /// A node's memory is full under the policy `noeviction`: it rejects SETs and nothing else.
    MemoryFull(OneHost),
    /// Syncs of a node's disk that are under way, or that begin, do not finish until the end.
    DiskStall(OneHost),
    /// A node writes a snapshot, complete at this instant.
    Snapshot(OneHost),
    /// A node's process stops cleanly: it saves its data as its persistence requires, and exits.
    Shutdown(Restarting),
    /// A replica takes the place of its master.
    Failover(Failover),
    /// A node's server becomes a replica while connections stay open, and a master again at the
    /// end.
    Demote(Demotion),
    /// Two databases of a node change places.
    Swap(Swap),
    /// A new replica starts to follow its node at this instant.
    Attach(OneHost),
    /// A node pushes a change of the lock's key although the key has not changed, because a key of
    /// the same name has changed in another database.
    SpuriousPush(OneKey),
}

/// The kinds of end that a fault can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// An end must be given.
    Always,
    /// No end may be given: the fault happens at one instant.
    Never,
    /// An end may be given; without one, the fault lasts until the end of the run.
    Perhaps,
}

/// The kind of failure that a fault can explain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// A wrong clock.
    Clock,
    /// A key that is gone, or cannot be set.
    Memory,
    /// A process that is down or paused.
    Process,
}

/// A cause that can be blamed for a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A node lost a key.
    Amnesia,
    /// A clock was wrong.
    Clock,
    /// A write to the resource arrived late.
    DelayedWrite,
    /// An operator deleted a key.
    Operator,
    /// A process was stopped.
    Pause,
}

/// The static properties of a fault kind.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor {
    /// Name in files.
    pub name: &'static str,
    /// Hosts that the fault may name.
    pub hosts: Hosts,
    /// The kind of end that it has.
    pub ends: Ends,
    /// Failures that it can explain.
    pub explains: &'static [Family],
    /// Causes that are blamed if a violation needs this fault; none if the fault only sets up the
    /// situation in which another does harm.
    pub blames: &'static [Cause],
}

/// A time value among the details of a fault.
#[derive(Debug)]
pub enum Time<'a> {
    /// An instant of the run.
    Instant(&'a mut Span),
    /// The instants between which one is drawn.
    Instants(&'a mut SpanRange),
    /// The shortest and the longest duration.
    Length(&'a mut SpanRange),
    /// The smallest and the largest amount by which a clock is moved.
    Shift(&'a mut SignedSpanRange),
}

impl Cause {
    /// Returns the name in scenarios and reports, without the host that a cause may have.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Amnesia => "amnesia",
            Self::Clock => "clock",
            Self::DelayedWrite => "delayed-write",
            Self::Operator => "operator",
            Self::Pause => "pause",
        }
    }
}

/// `$hosts` for the details `$it` of a kind with the key `host`, whatever their type; `$none` for the
/// other kinds.
macro_rules! on_hosts {
    ($kind:expr, $it:ident => $hosts:expr, $none:expr) => {
        match $kind {
            FaultKind::Attach($it)
            | FaultKind::DiskStall($it)
            | FaultKind::MemoryFull($it)
            | FaultKind::Pause($it)
            | FaultKind::Snapshot($it)
            | FaultKind::Stall($it)
            | FaultKind::Suspend($it) => $hosts,
            FaultKind::ClockJump($it) | FaultKind::ClockSlew($it) => $hosts,
            FaultKind::ClockRate($it) => $hosts,
            FaultKind::Delete($it) | FaultKind::Evict($it) | FaultKind::SpuriousPush($it) => $hosts,
            FaultKind::Demote($it) => $hosts,
            FaultKind::Flush($it) => $hosts,
            FaultKind::Kill($it) | FaultKind::Power($it) | FaultKind::Shutdown($it) => $hosts,
            FaultKind::Swap($it) => $hosts,
            FaultKind::Delay(_) | FaultKind::Failover(_) | FaultKind::Partition(_) => $none,
        }
    };
}

impl FaultKind {
    /// Names of all kinds.
    pub const NAMES: [&'static str; 22] = [
        "pause",
        "suspend",
        "kill",
        "power",
        "stall",
        "partition",
        "delay",
        "clock-jump",
        "clock-rate",
        "clock-slew",
        "evict",
        "flush",
        "delete",
        "memory-full",
        "disk-stall",
        "snapshot",
        "shutdown",
        "failover",
        "demote",
        "swap",
        "attach",
        "spurious-push",
    ];

    /// Returns the static properties of the kind.
    #[must_use]
    pub const fn descriptor(&self) -> Descriptor {
        use Ends::{Always, Never, Perhaps};
        use Family::{Clock, Memory, Process};
        use Hosts::{All, ClientsAndNodes, Machines, Nodes, NodesAndReplicas};
        let (name, hosts, ends, explains, blames): (_, _, _, &[Family], &[Cause]) = match self {
            Self::Attach(_) => ("attach", NodesAndReplicas, Never, &[], &[]),
            Self::ClockJump(_) => ("clock-jump", Machines, Never, &[Clock], &[Cause::Clock]),
            Self::ClockRate(_) => ("clock-rate", Machines, Perhaps, &[Clock], &[Cause::Clock]),
            Self::ClockSlew(_) => ("clock-slew", Machines, Always, &[Clock], &[Cause::Clock]),
            Self::Delay(_) => ("delay", All, Perhaps, &[], &[Cause::DelayedWrite]),
            Self::Delete(_) => ("delete", Nodes, Never, &[Memory], &[Cause::Operator]),
            Self::Demote(_) => ("demote", Nodes, Perhaps, &[Memory], &[Cause::Amnesia]),
            Self::DiskStall(_) => ("disk-stall", Nodes, Perhaps, &[], &[Cause::Amnesia]),
            Self::Evict(_) => ("evict", Nodes, Never, &[Memory], &[Cause::Amnesia]),
            Self::Failover(_) => ("failover", Nodes, Perhaps, &[Memory], &[Cause::Amnesia]),
            Self::Flush(_) => ("flush", Nodes, Never, &[Memory], &[Cause::Amnesia]),
            Self::Kill(_) => ("kill", Machines, Never, &[Memory, Process], &[Cause::Amnesia]),
            Self::MemoryFull(_) => ("memory-full", Nodes, Perhaps, &[Memory], &[]),
            Self::Partition(_) => ("partition", All, Perhaps, &[], &[]),
            Self::Pause(_) => ("pause", ClientsAndNodes, Perhaps, &[Process], &[Cause::Pause]),
            Self::Power(_) => ("power", Machines, Never, &[Memory, Process], &[Cause::Amnesia]),
            Self::Shutdown(_) => {
                ("shutdown", NodesAndReplicas, Never, &[Memory, Process], &[Cause::Amnesia])
            }
            Self::Snapshot(_) => ("snapshot", Nodes, Never, &[], &[]),
            Self::SpuriousPush(_) => ("spurious-push", Nodes, Never, &[], &[]),
            Self::Stall(_) => ("stall", Nodes, Perhaps, &[Process], &[]),
            Self::Suspend(_) => {
                ("suspend", ClientsAndNodes, Perhaps, &[Process], &[Cause::Clock, Cause::Pause])
            }
            Self::Swap(_) => ("swap", Nodes, Never, &[Memory], &[Cause::Amnesia]),
        };
        Descriptor { name, hosts, ends, explains, blames }
    }

    /// Returns the hosts that the fault strikes; none if it affects the links between hosts.
    #[must_use]
    pub fn hosts(&self) -> &[String] {
        match self {
            Self::Failover(it) => core::slice::from_ref(&it.node),
            kind => on_hosts!(kind, it => &it.host.0, &[]),
        }
    }

    /// Returns the list of hosts under the key `host`, if the kind has one.
    pub(super) fn host_list(&mut self) -> Option<&mut Vec<String>> {
        on_hosts!(self, it => Some(&mut it.host.0), None)
    }

    /// Returns the details of a death, after which the hosts may restart.
    #[must_use]
    pub const fn restarting(&self) -> Option<&Restarting> {
        match self {
            Self::Kill(it) | Self::Power(it) | Self::Shutdown(it) => Some(it),
            _ => None,
        }
    }

    /// Returns the lock whose key the fault is about, if it is about one lock's key.
    #[must_use]
    pub const fn key(&self) -> Option<&OneKey> {
        match self {
            Self::Delete(it) | Self::Evict(it) | Self::SpuriousPush(it) => Some(it),
            _ => None,
        }
    }

    /// Returns every time value among the details.
    pub fn time_values(&mut self) -> Vec<Time<'_>> {
        match self {
            Self::ClockJump(it) | Self::ClockSlew(it) => vec![Time::Shift(&mut it.by)],
            Self::Delay(it) => vec![Time::Length(&mut it.by)],
            Self::Kill(it) | Self::Power(it) | Self::Shutdown(it) => {
                let restart = it.restart_after.as_mut().map(Time::Length);
                restart.into_iter().chain(it.backup_of.as_mut().map(Time::Instant)).collect()
            }
            Self::Attach(_)
            | Self::ClockRate(_)
            | Self::Delete(_)
            | Self::Demote(_)
            | Self::DiskStall(_)
            | Self::Evict(_)
            | Self::Failover(_)
            | Self::Flush(_)
            | Self::MemoryFull(_)
            | Self::Partition(_)
            | Self::Pause(_)
            | Self::Snapshot(_)
            | Self::SpuriousPush(_)
            | Self::Stall(_)
            | Self::Suspend(_)
            | Self::Swap(_) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_names_is_that_of_the_format() {
        let unknown = serde_json::from_str::<FaultKind>(r#"{"x": {}}"#).unwrap_err().to_string();
        let names = FaultKind::NAMES.map(|name| format!("`{name}`")).join(", ");
        assert!(unknown.contains(&format!("expected one of {names} ")), "{unknown}");
    }

    #[test]
    fn a_kind_describes_itself_by_its_name_in_files() {
        let details = [
            r#"{"host": "A"}"#,
            r#"{"host": "A", "by": "1s"}"#,
            r#"{"host": "A", "ppm": 1}"#,
            r#"{"host": "A", "databases": [0, 1]}"#,
            r#"{"node": "A", "to": "R"}"#,
            r#"{"between": [["A"], ["B"]]}"#,
            r#"{"from": ["A"], "to": ["B"], "by": "1s"}"#,
        ];
        for name in FaultKind::NAMES {
            let parse = |it: &&str| serde_json::from_str(&format!(r#"{{"{name}": {it}}}"#)).ok();
            let kind: FaultKind = details.iter().find_map(parse).expect("one of them fits");
            assert_eq!(kind.descriptor().name, name);
        }
    }
}
