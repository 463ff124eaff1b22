//! Faults prepared for a run: their effect at each of their hosts, and their times.

use lock_judge::history::{ClientId, ClientIds, ClockKind, FaultId, HostId, HostIds, Id, NodeId};
use lock_judge::ids::ServerId;
use lock_judge::scenario::{
    At, Demotion, Failover, FaultKind, HostNames, OneHost, Restarting, Scenario, Stopwatch,
    WhichAttempt,
};

use super::Unplannable;
use super::strike::{Begin, Death, End, FaultEffect, Manner, PlannedFault};

pub(super) fn planned_faults(scenario: &Scenario) -> Result<Vec<PlannedFault>, Unplannable> {
    let mut faults = Vec::new();
    for (id, fault) in FaultId::first(scenario.faults.len()).zip(&scenario.faults) {
        let begin = match &fault.at {
            _ if !fault.enabled => continue,
            At::Time(span) => Begin::At(span.0),
            At::Point(point) => Begin::Before {
                client: client_named(scenario, &point.client),
                attempt: match point.attempt {
                    // Only granted attempts reach the steps that the scenario format allows with
                    // `granted`.
                    WhichAttempt::Any | WhichAttempt::Granted => None,
                    WhichAttempt::Nth(number) => Some(number),
                },
                step: point.before,
                node: point.node.as_deref().map(|name| node_named(scenario, name)),
            },
        };
        let end = match (fault.until, fault.lasts) {
            (Some(until), _) => End::At(until.0),
            (None, Some(lasts)) => End::After(lasts.0),
            (None, None) => End::Never,
        };
        let (effects, end) = planned_effects(scenario, &fault.kind, begin, end)?;
        let last = effects.len().saturating_sub(1);
        for (number, effect) in effects.into_iter().enumerate() {
            let (opens, closes) = (number == 0, number == last);
            faults.push(PlannedFault { id, opens, closes, begin, end, effect });
        }
    }
    Ok(faults)
}

/// Returns the effect of a fault at each of its hosts, and its end.
fn planned_effects(
    scenario: &Scenario,
    kind: &FaultKind,
    begin: Begin,
    end: End,
) -> Result<(Vec<FaultEffect>, End), Unplannable> {
    let group = |names: &[String]| -> HostIds {
        names.iter().map(|name| host_named(scenario, name)).collect()
    };
    let each = |names: &HostNames, effect: &dyn Fn(HostId) -> FaultEffect| -> Vec<FaultEffect> {
        names.0.iter().map(|name| effect(host_named(scenario, name))).collect()
    };
    let at_once = |names: &HostNames, effect: &dyn Fn(NodeId) -> FaultEffect| {
        let nodes = names.0.iter().map(|name| node_named(scenario, name));
        (nodes.map(effect).collect::<Vec<_>>(), End::Instantly)
    };
    let servers =
        |names: &HostNames, effect: &dyn Fn(ServerId) -> FaultEffect| -> Vec<FaultEffect> {
            names.0.iter().map(|name| effect(node_named(scenario, name).first_server())).collect()
        };
    Ok(match kind {
        FaultKind::Attach(it) => (planned_attachments(scenario, it), End::Instantly),
        FaultKind::ClockJump(_) | FaultKind::ClockRate(_) | FaultKind::ClockSlew(_) => {
            planned_clock_fault(scenario, kind, begin, end)?
        }
        FaultKind::Delay(it) => {
            let (from, to) = (group(&it.from), group(&it.to));
            (vec![FaultEffect::Delay { from, to, by_ns: it.by.0, only: it.only }], end)
        }
        FaultKind::Delete(it) => at_once(&it.host, &|node| FaultEffect::Delete { node }),
        FaultKind::Demote(it) => (planned_demotions(scenario, it), end),
        FaultKind::DiskStall(it) => {
            (servers(&it.host, &|server| FaultEffect::DiskStall { server }), end)
        }
        FaultKind::Evict(it) => at_once(&it.host, &|node| FaultEffect::Evict { node }),
        FaultKind::Flush(it) => {
            let database = it.database;
            at_once(&it.host, &|node| FaultEffect::Flush { node, database })
        }
        FaultKind::Failover(it) => planned_failover(scenario, it, end),
        FaultKind::Kill(it) => planned_death(scenario, it, Manner::Killed)?,
        FaultKind::MemoryFull(it) => {
            (servers(&it.host, &|server| FaultEffect::MemoryFull { server }), end)
        }
        FaultKind::Power(it) => planned_death(scenario, it, Manner::PowerLost)?,
        FaultKind::Shutdown(it) => planned_death(scenario, it, Manner::ShutDown)?,
        FaultKind::Snapshot(it) => {
            (servers(&it.host, &|server| FaultEffect::Snapshot { server }), End::Instantly)
        }
        FaultKind::SpuriousPush(it) => {
            at_once(&it.host, &|node| FaultEffect::SpuriousPush { node })
        }
        FaultKind::Partition(it) => {
            let (from, to) = (group(&it.between[0]), group(&it.between[1]));
            let (one_way, lost) = (it.one_way, it.lost);
            (vec![FaultEffect::Partition { from, to, one_way, lost }], end)
        }
        FaultKind::Pause(it) => {
            (each(&it.host, &|host| FaultEffect::Stop { host, suspended: false }), end)
        }
        FaultKind::Suspend(it) => {
            (each(&it.host, &|host| FaultEffect::Stop { host, suspended: true }), end)
        }
        FaultKind::Stall(it) => (servers(&it.host, &|server| FaultEffect::Stall { server }), end),
        FaultKind::Swap(it) => {
            let databases = it.databases;
            at_once(&it.host, &|node| FaultEffect::Swap { node, databases })
        }
    })
}

/// Without an end the old master steps down at once, unless only some clients are notified.
fn planned_failover(scenario: &Scenario, it: &Failover, end: End) -> (Vec<FaultEffect>, End) {
    let node = node_named(scenario, &it.node);
    let to = replica_named(scenario, &it.to).unwrap_or(node.first_server());
    let told = it.told.as_ref();
    let told: Option<ClientIds> =
        told.map(|names| names.iter().map(|name| client_named(scenario, name)).collect());
    let end = if end == End::Never && told.is_none() { End::Instantly } else { end };
    (vec![FaultEffect::FailOver { node, to, told: told.unwrap_or(ClientIds::ALL) }], end)
}

/// Returns the effect of a fault on the clocks of each of its hosts, and its end.
fn planned_clock_fault(
    scenario: &Scenario,
    kind: &FaultKind,
    begin: Begin,
    end: End,
) -> Result<(Vec<FaultEffect>, End), Unplannable> {
    let each = |names: &HostNames, effect: &dyn Fn(HostId) -> FaultEffect| -> Vec<FaultEffect> {
        names.0.iter().map(|name| effect(host_named(scenario, name))).collect()
    };
    Ok(match kind {
        FaultKind::ClockJump(it) => {
            let by_ns = it.by.0;
            (each(&it.host, &|host| FaultEffect::ClockJump { host, by_ns }), End::Instantly)
        }
        FaultKind::ClockRate(it) => {
            let rate_ppb = it.ppm * 1_000;
            (each(&it.host, &|host| FaultEffect::ClockRate { host, rate_ppb }), end)
        }
        FaultKind::ClockSlew(it) => {
            let rate_ppb = slew_rate_ppb(it.by.0, begin, end)?;
            (each(&it.host, &|host| FaultEffect::ClockRate { host, rate_ppb }), end)
        }
        _ => unreachable!("not about clocks"),
    })
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

/// Returns the death of each of the fault's hosts, and the restart.
fn planned_death(
    scenario: &Scenario,
    it: &Restarting,
    manner: Manner,
) -> Result<(Vec<FaultEffect>, End), Unplannable> {
    let (torn, is_hidden) = (it.torn, it.behind_a_proxy);
    let death = Death { manner, torn, backup_of_ns: it.backup_of.map(|at| at.0), is_hidden };
    let is_client = |name: &String| scenario.clients.iter().any(|client| client.id == *name);
    let end = match (it.restart_after, it.measured_on) {
        (None, _) => End::Never,
        (Some(_), _) if it.host.0.iter().any(is_client) => {
            return Err(Unplannable(String::from("restart-after of a client")));
        }
        (Some(after), Stopwatch::True) => End::After(after.0),
        (Some(after), Stopwatch::Boot) => {
            End::Measured { clock: ClockKind::Boot, after_ns: after.0 }
        }
        (Some(after), Stopwatch::Wall) => {
            End::Measured { clock: ClockKind::Wall, after_ns: after.0 }
        }
    };
    let dies = |name: &String| FaultEffect::Die { host: host_named(scenario, name), death };
    Ok((it.host.0.iter().map(dies).collect(), end))
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

fn host_named(scenario: &Scenario, name: &str) -> HostId {
    scenario.host_named(name).expect("a valid scenario names hosts that exist")
}

fn client_named(scenario: &Scenario, name: &str) -> ClientId {
    scenario.client_named(name).expect("a valid scenario names clients that exist")
}

fn node_named(scenario: &Scenario, name: &str) -> NodeId {
    scenario.node_named(name).expect("a valid scenario names nodes that exist")
}
