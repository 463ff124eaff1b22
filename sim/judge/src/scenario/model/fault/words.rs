//! Descriptions of faults in words.

use super::details::{Demotion, Flush, OneKey, Restarting};
use super::hosts::HostNames;
use super::kinds::FaultKind;
use crate::scenario::span::{SignedSpanRange, SpanRange};
use crate::text;

impl FaultKind {
    /// Returns the fault's effect as a heading: `C’s wall clock is set by +10 s`.
    #[must_use]
    pub fn summary(&self) -> String {
        match self {
            Self::Attach(one) => {
                let (begins, its) =
                    one.host.by_number(("begins", "its node"), ("begin", "their nodes"));
                format!("{} {begins} to follow {its}", one.host)
            }
            Self::ClockJump(by) => {
                let is = by.host.by_number("is", "are");
                format!("{} {is} set by {}", wall_clock(&by.host), signed(by.by))
            }
            Self::ClockRate(rate) => {
                format!("{} drift by {}", clocks(&rate.host), text::percent(rate.ppm))
            }
            Self::ClockSlew(by) => {
                format!("{} are slewed by {}", clocks(&by.host), signed(by.by))
            }
            Self::Delay(delay) => {
                let (from, to) = (text::list(&delay.from), text::list(&delay.to));
                format!("messages from {from} to {to} take {} longer", length(delay.by))
            }
            Self::Delete(one) => format!("an operator deletes {} on {}", key(one), one.host),
            Self::Demote(it) => {
                let becomes = it.host.by_number("becomes a replica", "become replicas");
                format!("{} {becomes}{}", it.host, leader(it))
            }
            Self::DiskStall(one) => {
                let disk = one.host.by_number("the disk", "no disk");
                let finishes = one.host.by_number("finishes no sync", "finishes a sync");
                format!("{disk} of {} {finishes}", one.host)
            }
            Self::Evict(one) => {
                let evicts = one.host.by_number("evicts", "evict");
                format!("{} {evicts} {}", one.host, key(one))
            }
            Self::Failover(it) => format!("{} replaces {}", it.to, it.node),
            Self::Flush(it) => {
                let number = it.database.map_or_else(|| it.host.by_number("is", "are"), |_| "is");
                format!("{}{} {number} flushed", database(it), it.host)
            }
            Self::Kill(it) => {
                format!("{} {} killed{}", it.host, it.host.by_number("is", "are"), aside(it))
            }
            Self::MemoryFull(one) => {
                format!("the memory of {} is full", one.host)
            }
            Self::Partition(partition) => {
                let [left, right] = &partition.between;
                let arrow = if partition.one_way { "can send nothing to" } else { "cut off from" };
                format!("{} {arrow} {}", text::list(left), text::list(right))
            }
            Self::Pause(one) => format!("{} {} stopped", one.host, one.host.by_number("is", "are")),
            Self::Power(it) => {
                format!("{} {} power{}", it.host, it.host.by_number("loses", "lose"), aside(it))
            }
            Self::Shutdown(it) => {
                format!("{} {} shut down{}", it.host, it.host.by_number("is", "are"), aside(it))
            }
            Self::Snapshot(one) => {
                format!(
                    "{} {}",
                    one.host,
                    one.host.by_number("writes a snapshot", "write snapshots")
                )
            }
            Self::SpuriousPush(one) => {
                let pushes = one.host.by_number("pushes", "push");
                format!("{} {pushes} although {} has not changed", one.host, key(one))
            }
            Self::Stall(one) => {
                format!("{} {} nothing", one.host, one.host.by_number("executes", "execute"))
            }
            Self::Suspend(one) => {
                format!("{} {} suspended", one.host, one.host.by_number("is", "are"))
            }
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
                let (clock, by_ns) = (wall_clock(&by.host), signed(by.by));
                format!("fault “{id}” moved {clock} by {by_ns} {at}")
            }
            Self::ClockRate(rate) => {
                let (clocks, percent) = (clocks(&rate.host), text::percent(rate.ppm));
                format!("fault “{id}” made {clocks} drift by {percent} {span}")
            }
            Self::ClockSlew(by) => {
                let (clocks, by_ns) = (clocks(&by.host), signed(by.by));
                format!("fault “{id}” slewed {clocks} by {by_ns} {span}")
            }
            Self::Delete(one) => {
                format!("fault “{id}” deleted {} on {} {at}", key(one), one.host)
            }
            Self::Demote(it) => {
                let replica = it.host.by_number("a replica", "replicas");
                format!("fault “{id}” made {} {replica}{} {span}", it.host, leader(it))
            }
            Self::Evict(one) => {
                format!("fault “{id}” evicted {} on {} {at}", key(one), one.host)
            }
            Self::Failover(it) => {
                format!("fault “{id}” replaced {} with {} {at}", it.node, it.to)
            }
            Self::Flush(it) => format!("fault “{id}” flushed {}{} {at}", database(it), it.host),
            Self::Kill(it) => format!("fault “{id}” killed {} {at}{}", it.host, aside(it)),
            Self::Pause(one) => format!("fault “{id}” stopped {} {span}", one.host),
            Self::Power(it) => {
                format!("fault “{id}” cut the power of {} {at}{}", it.host, aside(it))
            }
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

/// Returns the wall clocks of `hosts`: `C’s wall clock`.
fn wall_clock(hosts: &HostNames) -> String {
    owned(hosts, hosts.by_number("wall clock", "wall clocks"))
}

/// Returns all clocks of `hosts`: `C’s clocks`.
fn clocks(hosts: &HostNames) -> String {
    owned(hosts, "clocks")
}

fn owned(hosts: &HostNames, what: &str) -> String {
    hosts.by_number(format!("{hosts}’s {what}"), format!("the {what} of {hosts}"))
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

/// Returns `the key`, or `the key of <resource>` if the fault names one.
fn key(it: &OneKey) -> String {
    let of = it.resource.as_ref().map(|name| format!(" of {name}"));
    format!("the key{}", of.unwrap_or_default())
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

#[cfg(test)]
mod tests {
    use super::super::details::OneHost;
    use super::*;

    #[test]
    fn words_fit_the_number_of_hosts() {
        let hosts = |names: &[&str]| HostNames(names.iter().map(|&name| name.into()).collect());
        let stall = |names: &[&str]| FaultKind::Stall(OneHost { host: hosts(names) }).summary();
        assert_eq!(stall(&["A"]), "A executes nothing");
        assert_eq!(stall(&["A", "B", "C"]), "A, B and C execute nothing");
        let flush =
            |database| FaultKind::Flush(Flush { host: hosts(&["A", "B"]), database }).summary();
        assert_eq!(flush(None), "A and B are flushed");
        assert_eq!(flush(Some(1)), "database 1 of A and B is flushed");
        assert_eq!(wall_clock(&hosts(&["C"])), "C’s wall clock");
        assert_eq!(wall_clock(&hosts(&["A", "C"])), "the wall clocks of A and C");
    }
}
