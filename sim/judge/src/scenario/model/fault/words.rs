//! Descriptions of faults in words.

use super::details::{Demotion, Flush, Restarting};
use super::kinds::FaultKind;
use crate::scenario::span::{SignedSpanRange, SpanRange};
use crate::text;

impl FaultKind {
    /// Returns the fault's effect as a heading: `C’s wall clock is set by +10 s`.
    #[must_use]
    pub fn summary(&self) -> String {
        match self {
            Self::Attach(one) => format!("{} begins to follow its node", one.host),
            Self::ClockJump(by) => {
                format!("{}’s wall clock is set by {}", by.host, signed(by.by))
            }
            Self::ClockRate(rate) => {
                format!("{}’s clocks drift by {}", rate.host, text::percent(rate.ppm))
            }
            Self::ClockSlew(by) => {
                format!("{}’s clocks are slewed by {}", by.host, signed(by.by))
            }
            Self::Delay(delay) => {
                let (from, to) = (text::list(&delay.from), text::list(&delay.to));
                format!("messages from {from} to {to} take {} longer", length(delay.by))
            }
            Self::Delete(one) => format!("an operator deletes the key on {}", one.host),
            Self::Demote(it) => format!("{} becomes a replica{}", it.host, leader(it)),
            Self::DiskStall(one) => format!("the disk of {} finishes no sync", one.host),
            Self::Evict(one) => format!("{} evicts the key", one.host),
            Self::Failover(it) => format!("{} replaces {}", it.to, it.node),
            Self::Flush(it) => format!("{}{} is flushed", database(it), it.host),
            Self::Kill(it) => format!("{} is killed{}", it.host, aside(it)),
            Self::MemoryFull(one) => format!("the memory of {} is full", one.host),
            Self::Partition(partition) => {
                let [left, right] = &partition.between;
                let arrow = if partition.one_way { "can send nothing to" } else { "cut off from" };
                format!("{} {arrow} {}", text::list(left), text::list(right))
            }
            Self::Pause(one) => format!("{} is stopped", one.host),
            Self::Power(it) => format!("{} loses power{}", it.host, aside(it)),
            Self::Shutdown(it) => format!("{} is shut down{}", it.host, aside(it)),
            Self::Snapshot(one) => format!("{} writes a snapshot", one.host),
            Self::SpuriousPush(one) => {
                format!("{} pushes although the key has not changed", one.host)
            }
            Self::Stall(one) => format!("{} executes nothing", one.host),
            Self::Suspend(one) => format!("{} is suspended", one.host),
            Self::Swap(it) => {
                let [one, other] = it.databases;
                format!("databases {one} and {other} of {} are swapped", it.host)
            }
        }
    }

    /// Returns the effect of the fault `id`, `at` an instant or for a `span` of time, as a clause
    /// to follow "because".
    #[must_use]
    pub fn because(&self, id: &str, at: &str, span: &str) -> String {
        match self {
            Self::ClockJump(by) => {
                let by_ns = signed(by.by);
                format!("fault “{id}” moved {}’s wall clock by {by_ns} {at}", by.host)
            }
            Self::ClockRate(rate) => {
                let percent = text::percent(rate.ppm);
                format!("fault “{id}” made {}’s clocks drift by {percent} {span}", rate.host)
            }
            Self::ClockSlew(by) => {
                let by_ns = signed(by.by);
                format!("fault “{id}” slewed {}’s clocks by {by_ns} {span}", by.host)
            }
            Self::Delete(one) => format!("fault “{id}” deleted the key on {} {at}", one.host),
            Self::Demote(it) => {
                format!("fault “{id}” made {} a replica{} {span}", it.host, leader(it))
            }
            Self::Evict(one) => format!("fault “{id}” evicted the key on {} {at}", one.host),
            Self::Failover(it) => {
                format!("fault “{id}” replaced {} with {} {at}", it.node, it.to)
            }
            Self::Flush(it) => format!("fault “{id}” flushed {}{} {at}", database(it), it.host),
            Self::Kill(it) => format!("fault “{id}” killed {} {at}{}", it.host, aside(it)),
            Self::Pause(one) => format!("fault “{id}” stopped {} {span}", one.host),
            Self::Power(it) => format!("fault “{id}” cut {}’s power {at}{}", it.host, aside(it)),
            Self::Shutdown(it) => format!("fault “{id}” shut {} down {at}{}", it.host, aside(it)),
            Self::Stall(one) => format!("fault “{id}” stalled {} {span}", one.host),
            Self::Suspend(one) => format!("fault “{id}” suspended {} {span}", one.host),
            Self::Swap(it) => {
                let [one, other] = it.databases;
                format!("fault “{id}” swapped databases {one} and {other} of {} {at}", it.host)
            }
            Self::Attach(_)
            | Self::Delay(_)
            | Self::DiskStall(_)
            | Self::MemoryFull(_)
            | Self::Partition(_)
            | Self::Snapshot(_)
            | Self::SpuriousPush(_) => {
                format!("fault “{id}” was active {span} ({})", self.summary())
            }
        }
    }
}

/// Returns a duration, or two between which it is drawn: `5 ms to 3 s`.
fn length(range: SpanRange) -> String {
    match range.is_exact() {
        true => text::length(range.min.0),
        false => format!("{} to {}", text::length(range.min.0), text::length(range.max.0)),
    }
}

/// Returns a signed duration, or two between which it is drawn: `−5 ms to +3 s`.
fn signed(range: SignedSpanRange) -> String {
    match range.min == range.max {
        true => text::signed(range.min.0),
        false => format!("{} to {}", text::signed(range.min.0), text::signed(range.max.0)),
    }
}

/// Returns ` of <server>` for the server that a demoted node follows; empty if that server is
/// outside the scenario.
fn leader(it: &Demotion) -> String {
    it.of.as_ref().map(|leader| format!(" of {leader}")).unwrap_or_default()
}

/// Returns `database <number> of `; empty if all databases are flushed.
fn database(it: &Flush) -> String {
    it.database.map(|number| format!("database {number} of ")).unwrap_or_default()
}

/// Returns the mention of a proxy that hides the death from clients, and of another machine that takes
/// over the name; empty if there is neither.
fn aside(it: &Restarting) -> &'static str {
    match (it.behind_a_proxy, it.replaced) {
        (false, false) => "",
        (true, false) => " behind a proxy",
        (false, true) => " and replaced by an empty server",
        (true, true) => " and replaced by an empty server behind a proxy",
    }
}
