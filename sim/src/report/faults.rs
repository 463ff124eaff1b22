//! What a fault is, in words.

use super::text;
use super::timeline::{Timeline, Trouble};
use crate::history::HostIndex;
use crate::scenario::{Demotion, Fault, FaultKind, Flush, Restarting, Scenario};

/// What a fault does, for a heading: `C's wall clock is set by +10 s`.
pub(super) fn summary(fault: &Fault) -> String {
    let Some(kind) = fault.kinds().next() else { return String::new() };
    match kind {
        FaultKind::Attach(one) => format!("{} begins to follow its node", one.host),
        FaultKind::ClockJump(by) => {
            format!("{}’s wall clock is set by {}", by.host, text::signed(by.by.0))
        }
        FaultKind::ClockRate(rate) => {
            format!("{}’s clocks run at {}", rate.host, text::percent(rate.ppm))
        }
        FaultKind::ClockSlew(by) => {
            format!("{}’s clocks are slewed by {}", by.host, text::signed(by.by.0))
        }
        FaultKind::Delay(delay) => {
            let (from, to) = (text::list(&delay.from), text::list(&delay.to));
            format!("messages from {from} to {to} take {} longer", text::length(delay.by.0))
        }
        FaultKind::Delete(one) => format!("an operator deletes the key on {}", one.host),
        FaultKind::Demote(it) => format!("{} is made a replica{}", it.host, leader(it)),
        FaultKind::DiskStall(one) => format!("the disk of {} finishes no sync", one.host),
        FaultKind::Evict(one) => format!("{} evicts the key", one.host),
        FaultKind::Failover(it) => format!("{} takes the place of {}", it.to, it.node),
        FaultKind::Flush(it) => format!("{}{} is flushed", database(it), it.host),
        FaultKind::Kill(it) => format!("{} is killed{}", it.host, proxy(it)),
        FaultKind::MemoryFull(one) => format!("the memory of {} is full", one.host),
        FaultKind::Partition(partition) => {
            let [left, right] = &partition.between;
            let arrow = if partition.one_way { "nothing passes to" } else { "cut off from" };
            format!("{} {arrow} {}", text::list(left), text::list(right))
        }
        FaultKind::Pause(one) => format!("{} is stopped", one.host),
        FaultKind::Power(it) => format!("{} loses power{}", it.host, proxy(it)),
        FaultKind::Shutdown(it) => format!("{} is shut down{}", it.host, proxy(it)),
        FaultKind::Snapshot(one) => format!("{} writes a snapshot", one.host),
        FaultKind::Stall(one) => format!("{} executes nothing", one.host),
        FaultKind::Suspend(one) => format!("{} is suspended", one.host),
        FaultKind::Swap(it) => {
            let [one, other] = it.databases;
            format!("databases {one} and {other} of {} change places", it.host)
        }
    }
}

/// What the fault did and when, for the middle of a sentence after "because".
pub(super) fn because(scenario: &Scenario, trouble: &Trouble) -> String {
    let Some(fault) = scenario.faults.get(trouble.fault) else { return String::from("a fault") };
    let from = text::instant(trouble.began.at_ns);
    let span = match trouble.ended {
        Some(ended) => format!("from {from} to {}", text::instant(ended.at_ns)),
        None => format!("from {from} on"),
    };
    let id = &fault.id;
    let Some(kind) = fault.kinds().next() else { return format!("fault `{id}` happened") };
    match kind {
        FaultKind::ClockJump(by) => {
            let by_ns = text::signed(by.by.0);
            format!("fault `{id}` moved {}’s clock by {by_ns} at {from}", by.host)
        }
        FaultKind::ClockRate(rate) => {
            let percent = text::percent(rate.ppm);
            format!("fault `{id}` made {}’s clocks run at {percent} {span}", rate.host)
        }
        FaultKind::ClockSlew(by) => {
            let by_ns = text::signed(by.by.0);
            format!("fault `{id}` slewed {}’s clocks by {by_ns} {span}", by.host)
        }
        FaultKind::Demote(it) => {
            format!("fault `{id}` made {} a replica{} {span}", it.host, leader(it))
        }
        FaultKind::Evict(one) => format!("fault `{id}` evicted the key on {} at {from}", one.host),
        FaultKind::Flush(it) => {
            format!("fault `{id}` flushed {}{} at {from}", database(it), it.host)
        }
        FaultKind::Swap(it) => {
            let [one, other] = it.databases;
            format!("fault `{id}` swapped databases {one} and {other} of {} at {from}", it.host)
        }
        FaultKind::Kill(it) => format!("fault `{id}` killed {} at {from}{}", it.host, proxy(it)),
        FaultKind::Power(it) => {
            format!("fault `{id}` cut {}’s power at {from}{}", it.host, proxy(it))
        }
        FaultKind::Pause(one) => format!("fault `{id}` stopped {} {span}", one.host),
        FaultKind::Suspend(one) => format!("fault `{id}` suspended {} {span}", one.host),
        FaultKind::Stall(one) => format!("fault `{id}` stalled {} {span}", one.host),
        FaultKind::Delete(one) => {
            format!("fault `{id}` deleted the key on {} at {from}", one.host)
        }
        FaultKind::Failover(it) => {
            format!("fault `{id}` put {} in the place of {} at {from}", it.to, it.node)
        }
        FaultKind::Shutdown(it) => {
            format!("fault `{id}` shut {} down at {from}{}", it.host, proxy(it))
        }
        FaultKind::Attach(_)
        | FaultKind::Delay(_)
        | FaultKind::DiskStall(_)
        | FaultKind::MemoryFull(_)
        | FaultKind::Partition(_)
        | FaultKind::Snapshot(_) => {
            format!("of fault `{id}` ({}) {span}", summary(fault))
        }
    }
}

/// The server that a demoted one follows, if it is in the scenario.
fn leader(it: &Demotion) -> String {
    it.of.as_ref().map(|leader| format!(" of {leader}")).unwrap_or_default()
}

/// The database that is emptied, if it is not all of them.
fn database(it: &Flush) -> String {
    it.database.map(|number| format!("database {number} of ")).unwrap_or_default()
}

/// Who hides the death from clients.
fn proxy(it: &Restarting) -> &'static str {
    if it.behind_a_proxy { " behind a proxy" } else { "" }
}

/// The hosts that a fault is about, where it is about hosts.
pub(super) fn hosts(fault: &Fault) -> &[String] {
    match fault.kinds().next() {
        Some(FaultKind::ClockJump(by) | FaultKind::ClockSlew(by)) => &by.host.0,
        Some(FaultKind::ClockRate(rate)) => &rate.host.0,
        Some(
            FaultKind::Attach(one)
            | FaultKind::Delete(one)
            | FaultKind::DiskStall(one)
            | FaultKind::Evict(one)
            | FaultKind::MemoryFull(one)
            | FaultKind::Pause(one)
            | FaultKind::Snapshot(one)
            | FaultKind::Stall(one)
            | FaultKind::Suspend(one),
        ) => &one.host.0,
        Some(FaultKind::Demote(it)) => &it.host.0,
        Some(FaultKind::Flush(it)) => &it.host.0,
        Some(FaultKind::Swap(it)) => &it.host.0,
        Some(FaultKind::Failover(it)) => core::slice::from_ref(&it.node),
        Some(FaultKind::Kill(it) | FaultKind::Power(it) | FaultKind::Shutdown(it)) => &it.host.0,
        Some(FaultKind::Partition(_) | FaultKind::Delay(_)) | None => &[],
    }
}

/// A family of faults that can explain one kind of fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Clock,
    Memory,
    Process,
}

fn is_of(fault: &Fault, family: Family) -> bool {
    fault.kinds().any(|kind| match kind {
        FaultKind::ClockJump(_) | FaultKind::ClockRate(_) | FaultKind::ClockSlew(_) => {
            family == Family::Clock
        }
        FaultKind::Delete(_)
        | FaultKind::Demote(_)
        | FaultKind::Evict(_)
        | FaultKind::Failover(_)
        | FaultKind::Flush(_)
        | FaultKind::MemoryFull(_)
        | FaultKind::Swap(_) => family == Family::Memory,
        FaultKind::Kill(_) | FaultKind::Power(_) | FaultKind::Shutdown(_) => {
            family != Family::Clock
        }
        FaultKind::Pause(_) | FaultKind::Suspend(_) | FaultKind::Stall(_) => {
            family == Family::Process
        }
        FaultKind::Attach(_)
        | FaultKind::Delay(_)
        | FaultKind::DiskStall(_)
        | FaultKind::Partition(_)
        | FaultKind::Snapshot(_) => false,
    })
}

/// The last fault of a family on `host` that was there at some instant of `from_ns..=to_ns`.
pub(super) fn on<'t>(
    timeline: &'t Timeline<'_>,
    family: Family,
    host: HostIndex,
    from_ns: u64,
    to_ns: u64,
) -> Option<&'t Trouble> {
    let name = timeline.host_name(host);
    timeline.troubles.iter().rev().find(|trouble| {
        let Some(fault) = timeline.scenario.faults.get(trouble.fault) else { return false };
        // A clock that was moved stays moved, so that the end of such a fault says nothing.
        let began_in_time = trouble.began.at_ns <= to_ns;
        let lasted = family == Family::Clock && trouble.ended.is_none()
            || trouble.ended.map_or(trouble.began, |ended| ended).at_ns >= from_ns;
        hosts(fault).iter().any(|it| it == name) && is_of(fault, family) && began_in_time && lasted
    })
}
