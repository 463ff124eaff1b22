//! The subset of scenarios that `serve` supports, and the errors for the rest.

use lock_judge::history::{HostId, HostIds};
use lock_judge::scenario::{ActiveExpiry, AttemptStep, Message, Rights};

use super::points;
use crate::engine::Unsupported;
use crate::plan::{Begin, Death, FaultEffect, Manner, Plan, PlannedFault};

/// Name of `serve` in histories, reports and errors.
pub const ENGINE: &str = "serve";

/// Rejects scenarios that cannot be run faithfully in real time.
///
/// With `owns_workers`, the caller has started the workers, so a fault can kill them.
pub(super) fn check(plan: &Plan, owns_workers: bool) -> Result<(), Unsupported> {
    let cluster = &plan.scenario.cluster;
    if plan.scenario.clients.iter().any(|client| client.nodes.is_some()) {
        return Err(unsupported("`nodes` of a client: give the worker its nodes"));
    }
    if plan.scenario.clients.iter().any(|client| client.copy_of.is_some()) {
        return Err(unsupported("`copy-of` of a client"));
    }
    if plan.scenario.clients.iter().any(|client| client.task_of.is_some()) {
        return Err(unsupported("`task-of` of a client"));
    }
    if plan.scenario.clients.iter().any(|client| client.deaf) {
        return Err(unsupported("`deaf = true` of a client"));
    }
    if plan.servers.values().any(|server| server.rights != Rights::All) {
        return Err(unsupported("`rights`: give the worker's user its rights"));
    }
    if !plan.scenario.lock.further_resources.is_empty() {
        return Err(unsupported("`lock.further-resources`"));
    }
    if plan.has_replicas() {
        return Err(unsupported("`[[cluster.replica]]`"));
    }
    if cluster.active_expiry == ActiveExpiry::Prompt {
        return Err(unsupported("`active-expiry = \"prompt\"`"));
    }
    if plan.servers.values().any(|node| node.ideal) {
        return Err(unsupported("the subject `lease-service`"));
    }
    if plan.servers.values().any(|node| node.answers_after_sync()) {
        return Err(unsupported("syncs that take time under `persistence = \"always\"`"));
    }
    for planned in plan.faults.values() {
        if let Some(what) = unplayable(plan, planned, owns_workers) {
            let id = plan.fault_name(planned.id);
            return Err(unsupported(&format!("{what} (the fault `{id}`)")));
        }
    }
    Ok(())
}

fn unplayable(plan: &Plan, fault: &PlannedFault, owns_workers: bool) -> Option<&'static str> {
    if let Begin::Before { step, attempt, .. } = fault.begin {
        if !points::is_seen(step) {
            return Some(
                "a step that masters do not see: `before` can be `t2`, `enter`, `execute` or `reply`, also of `extend-…` and `release-…`",
            );
        }
        if step == AttemptStep::Enter && attempt.is_some() {
            return Some("`enter` of an attempt with a number: write `attempt = \"granted\"`");
        }
    }
    let store = HostIds::just(plan.scenario.store_host());
    let is_node = |host: HostId| plan.server_at(host).is_some();
    match fault.effect {
        FaultEffect::Attach { .. } => Some("`attach`"),
        FaultEffect::ClockJump { host, .. } if !is_node(host) => Some("a jump of a client's clock"),
        FaultEffect::ClockRate { host, .. } if !is_node(host) => {
            Some("the rate of a client's clock")
        }
        FaultEffect::Delay { only: Some(Message::Write), .. } => Some("a delay of writes only"),
        FaultEffect::Delay { from, to, .. } if (from | to).meets(store) => {
            Some("a delay to the store")
        }
        FaultEffect::Die { host, death } if !is_node(host) => match owns_workers {
            true if death.manner == Manner::Killed => None,
            true => Some("the death of a client other than by `kill`"),
            false => Some("the death of a client"),
        },
        FaultEffect::Die { death: Death { is_hidden: true, .. }, .. } => Some("`behind-a-proxy`"),
        FaultEffect::Die { death: Death { torn: true, .. }, .. } => Some("`torn`"),
        FaultEffect::Die { death: Death { is_replaced: true, .. }, .. } => Some("`replaced`"),
        FaultEffect::Die { death: Death { backup_of_ns: Some(_), .. }, .. } => Some("`backup-of`"),
        FaultEffect::Demote { .. } => Some("`demote`"),
        FaultEffect::DiskStall { .. } => Some("`disk-stall`"),
        FaultEffect::FailOver { .. } => Some("`failover`"),
        FaultEffect::Partition { from, to, .. } if (from | to).meets(store) => {
            Some("a partition from the store")
        }
        FaultEffect::Stop { suspended: true, .. } => Some("`suspend` of a client"),
        FaultEffect::Swap { .. } => Some("`swap`"),
        FaultEffect::ClockJump { .. }
        | FaultEffect::ClockRate { .. }
        | FaultEffect::Delay { .. }
        | FaultEffect::Delete { .. }
        | FaultEffect::Die { .. }
        | FaultEffect::Evict { .. }
        | FaultEffect::Flush { .. }
        | FaultEffect::MemoryFull { .. }
        | FaultEffect::Partition { .. }
        | FaultEffect::Snapshot { .. }
        | FaultEffect::SpuriousPush { .. }
        | FaultEffect::Stall { .. }
        | FaultEffect::Stop { suspended: false, .. } => None,
    }
}

pub(super) fn unsupported(what: &str) -> Unsupported {
    Unsupported { engine: ENGINE, what: what.to_owned() }
}
