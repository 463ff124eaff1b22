//! Faults prepared for a run: their effect at each of their hosts, and their times.

use lock_judge::history::{ClientId, ClientIds, ClockKind, FaultId, HostId, HostIds, Id, NodeId};
use lock_judge::ids::{ResourceId, ServerId};
use lock_judge::scenario::{
    At, AttemptPoint, Demotion, Ends, Failover, Fault, FaultKind, HostNames, OneHost, OneKey,
    Restarting, Scenario, Stopwatch, WhichAttempt,
};

use super::draws::{Drawn, Draws, Value};
use super::strike::{Begin, Death, End, FaultEffect, Manner, PlannedFault};
use super::{Unplannable, host_named, node_named};

/// Returns the strikes of all faults of the scenario, in the order of the faults.
pub(super) fn planned_faults(
    scenario: &Scenario,
    draws: Draws<'_>,
) -> Result<Vec<PlannedFault>, Unplannable> {
    let mut faults = Vec::new();
    for (id, fault) in FaultId::first(scenario.faults.len()).zip(&scenario.faults) {
        if !fault.enabled {
            continue;
        }
        for (occurrence, begin, drawn) in occurrences(scenario, fault, draws) {
            let end = planned_end(scenario, fault, drawn)?;
            let effects = planned_effects(scenario, (&fault.kind, drawn), begin, end)?;
            let last = effects.len().saturating_sub(1);
            for (number, effect) in effects.into_iter().enumerate() {
                let (opens, closes) = (number == 0, number == last);
                faults.push(PlannedFault { id, occurrence, opens, closes, begin, end, effect });
            }
        }
    }
    Ok(faults)
}

/// Returns the number and the beginning of each occurrence of a fault, with the draws for it.
fn occurrences<'c>(
    scenario: &Scenario,
    fault: &Fault,
    draws: Draws<'c>,
) -> Vec<(u16, Begin, Drawn<'c>)> {
    let drawn = |occurrence| draws.of_fault(&fault.id, occurrence);
    let mut at_ns = match &fault.at {
        At::Time(at) => drawn(0).span_ns(Value::At, *at),
        At::Point(point) => {
            let begin = planned_point(scenario, point);
            return [(0, begin, drawn(0))]
                .into_iter()
                .filter(|it| it.2.happens(fault.chance))
                .collect();
        }
    };
    let times = fault.times.map_or(1, |times| drawn(0).count(Value::Times, times));
    let mut occurrences = Vec::new();
    // A fault starts at most a thousand times.
    for occurrence in 0..times as u16 {
        if drawn(occurrence).happens(fault.chance) {
            occurrences.push((occurrence, Begin::At(at_ns), drawn(occurrence)));
        }
        at_ns += fault.every.map_or(0, |every| drawn(occurrence).span_ns(Value::Every, every));
    }
    occurrences
}

fn planned_point(scenario: &Scenario, point: &AttemptPoint) -> Begin {
    Begin::Before {
        client: client_named(scenario, &point.client),
        attempt: match point.attempt {
            // Only granted attempts reach the steps that the scenario format allows with `granted`.
            WhichAttempt::Any | WhichAttempt::Granted => None,
            WhichAttempt::Nth(number) => Some(number),
        },
        step: point.before,
        node: point.node.as_deref().map(|name| node_named(scenario, name)),
    }
}

fn planned_end(scenario: &Scenario, fault: &Fault, drawn: Drawn<'_>) -> Result<End, Unplannable> {
    match &fault.kind {
        FaultKind::Kill(it) | FaultKind::Power(it) | FaultKind::Shutdown(it) => {
            return planned_restart(scenario, it, drawn);
        }
        kind if kind.descriptor().ends == Ends::Never => return Ok(End::Instantly),
        _ => {}
    }
    Ok(match (fault.until, fault.lasts, &fault.kind) {
        (Some(until), ..) => End::At(until.0),
        (None, Some(lasts), _) => End::After(drawn.span_ns(Value::Length, lasts)),
        // The old master steps down at once, unless only some clients are notified.
        (None, None, FaultKind::Failover(Failover { told: None, .. })) => End::Instantly,
        (None, None, _) => End::Never,
    })
}

/// Returns the effect of a fault at each of its hosts.
fn planned_effects(
    scenario: &Scenario,
    (kind, drawn): (&FaultKind, Drawn<'_>),
    begin: Begin,
    end: End,
) -> Result<Vec<FaultEffect>, Unplannable> {
    let hosts = |names: &HostNames, effect: &dyn Fn(HostId) -> FaultEffect| -> Vec<FaultEffect> {
        names.0.iter().map(|name| effect(host_named(scenario, name))).collect()
    };
    let nodes = |names: &HostNames, effect: &dyn Fn(NodeId) -> FaultEffect| -> Vec<FaultEffect> {
        names.0.iter().map(|name| effect(node_named(scenario, name))).collect()
    };
    let keys = |it: &OneKey, effect: &dyn Fn(NodeId, ResourceId) -> FaultEffect| {
        let resource = scenario.resource_named(it.resource.as_deref());
        nodes(&it.host, &|node| effect(node, resource))
    };
    let servers = |names: &HostNames, effect: &dyn Fn(ServerId) -> FaultEffect| {
        nodes(names, &|node| effect(node.first_server()))
    };
    let stop = |it: &OneHost, suspended| {
        hosts(&it.host, &|host| match scenario.client_on(host) {
            Some(_) => FaultEffect::Stop { host, suspended },
            // A master has no timers that a stop could make late, and uses no monotonic clock.
            None => FaultEffect::Stall { server: NodeId(host.0).first_server() },
        })
    };
    let clock_rate = |names: &HostNames, rate_ppb| {
        hosts(names, &|host| FaultEffect::ClockRate { host, rate_ppb })
    };
    Ok(match kind {
        FaultKind::Attach(it) => planned_attachments(scenario, it),
        FaultKind::ClockJump(it) => {
            let by_ns = drawn.shift_ns(Value::By, it.by);
            hosts(&it.host, &|host| FaultEffect::ClockJump { host, by_ns })
        }
        FaultKind::ClockRate(it) => clock_rate(&it.host, it.ppm * 1_000),
        FaultKind::ClockSlew(it) => {
            let by_ns = drawn.shift_ns(Value::By, it.by);
            clock_rate(&it.host, slew_rate_ppb(by_ns, begin, end)?)
        }
        FaultKind::Delay(it) => {
            let (from, to) = (group(scenario, &it.from), group(scenario, &it.to));
            let by_ns = drawn.span_ns(Value::By, it.by);
            vec![FaultEffect::Delay { from, to, by_ns, only: it.only }]
        }
        FaultKind::Delete(it) => keys(it, &|node, resource| FaultEffect::Delete { node, resource }),
        FaultKind::Demote(it) => planned_demotions(scenario, it),
        FaultKind::DiskStall(it) => servers(&it.host, &|server| FaultEffect::DiskStall { server }),
        FaultKind::Evict(it) => keys(it, &|node, resource| FaultEffect::Evict { node, resource }),
        FaultKind::Flush(it) => {
            nodes(&it.host, &|node| FaultEffect::Flush { node, database: it.database })
        }
        FaultKind::Failover(it) => vec![planned_failover(scenario, it)],
        FaultKind::Kill(it) => planned_death(scenario, it, Manner::Killed),
        FaultKind::MemoryFull(it) => {
            servers(&it.host, &|server| FaultEffect::MemoryFull { server })
        }
        FaultKind::Power(it) => planned_death(scenario, it, Manner::PowerLost),
        FaultKind::Shutdown(it) => planned_death(scenario, it, Manner::ShutDown),
        FaultKind::Snapshot(it) => servers(&it.host, &|server| FaultEffect::Snapshot { server }),
        FaultKind::SpuriousPush(it) => {
            keys(it, &|node, resource| FaultEffect::SpuriousPush { node, resource })
        }
        FaultKind::Partition(it) => {
            let [from, to] = it.between.each_ref().map(|names| group(scenario, names));
            vec![FaultEffect::Partition { from, to, one_way: it.one_way, lost: it.lost }]
        }
        FaultKind::Pause(it) => stop(it, false),
        FaultKind::Suspend(it) => stop(it, true),
        FaultKind::Stall(it) => servers(&it.host, &|server| FaultEffect::Stall { server }),
        FaultKind::Swap(it) => {
            nodes(&it.host, &|node| FaultEffect::Swap { node, databases: it.databases })
        }
    })
}

fn planned_failover(scenario: &Scenario, it: &Failover) -> FaultEffect {
    let node = node_named(scenario, &it.node);
    let to = replica_named(scenario, &it.to).unwrap_or(node.first_server());
    let told = it.told.as_ref();
    let told: Option<ClientIds> =
        told.map(|names| names.iter().map(|name| client_named(scenario, name)).collect());
    FaultEffect::FailOver { node, to, told: told.unwrap_or(ClientIds::ALL) }
}

fn planned_attachments(scenario: &Scenario, it: &OneHost) -> Vec<FaultEffect> {
    let replicas = it.host.0.iter().filter_map(|name| replica_named(scenario, name));
    replicas.map(|replica| FaultEffect::Attach { replica }).collect()
}

fn planned_demotions(scenario: &Scenario, it: &Demotion) -> Vec<FaultEffect> {
    let of = it.of.as_deref().and_then(|name| replica_named(scenario, name));
    let nodes = it.host.0.iter().map(|name| node_named(scenario, name));
    nodes.map(|node| FaultEffect::Demote { node, of, keeps_keys: it.keeps_keys }).collect()
}

/// Returns the server of the replica with this name.
fn replica_named(scenario: &Scenario, name: &str) -> Option<ServerId> {
    let place = scenario.cluster.replicas.iter().position(|replica| replica.id == name)?;
    Some(ServerId::at(scenario.cluster.nodes.len() + place))
}

/// Returns the death of each of the fault's hosts.
fn planned_death(scenario: &Scenario, it: &Restarting, manner: Manner) -> Vec<FaultEffect> {
    let death = Death {
        manner,
        torn: it.torn,
        backup_of_ns: it.backup_of.map(|at| at.0),
        is_hidden: it.behind_a_proxy,
        is_replaced: it.replaced,
    };
    let dies = |name: &String| FaultEffect::Die { host: host_named(scenario, name), death };
    it.host.0.iter().map(dies).collect()
}

/// Returns the restart after a death, as the end of the fault.
fn planned_restart(
    scenario: &Scenario,
    it: &Restarting,
    drawn: Drawn<'_>,
) -> Result<End, Unplannable> {
    let drawn_ns = |after| drawn.span_ns(Value::RestartAfter, after);
    let is_client = |name: &String| scenario.clients.iter().any(|client| client.id == *name);
    Ok(match (it.restart_after, it.measured_on) {
        (None, _) => End::Never,
        (Some(_), _) if it.host.0.iter().any(is_client) => {
            return Err(Unplannable(String::from("restart-after of a client")));
        }
        (Some(after), Stopwatch::True) => End::After(drawn_ns(after)),
        (Some(after), Stopwatch::Boot) => {
            End::Measured { clock: ClockKind::Boot, after_ns: drawn_ns(after) }
        }
        (Some(after), Stopwatch::Wall) => {
            End::Measured { clock: ClockKind::Wall, after_ns: drawn_ns(after) }
        }
    })
}

/// Returns the extra clock rate that gains `by_ns` between beginning and end.
fn slew_rate_ppb(by_ns: i64, begin: Begin, end: End) -> Result<i32, Unplannable> {
    let length_ns = match (begin, end) {
        (Begin::At(begin), End::At(end)) => end.saturating_sub(begin),
        (_, End::After(length)) => length,
        _ => return Err(Unplannable(String::from("clock-slew without an end"))),
    };
    let ppb = i128::from(by_ns) * 1_000_000_000 / i128::from(length_ns.max(1));
    let rate_ppb = i32::try_from(ppb).ok().filter(|&ppb| ppb > -1_000_000_000);
    rate_ppb.ok_or_else(|| Unplannable(String::from("a slew as steep as that")))
}

fn group(scenario: &Scenario, names: &[String]) -> HostIds {
    names.iter().map(|name| host_named(scenario, name)).collect()
}

fn client_named(scenario: &Scenario, name: &str) -> ClientId {
    scenario.client_named(name).expect("a valid scenario names clients that exist")
}
