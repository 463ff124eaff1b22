//! What this engine can do, and the words for what it cannot.

use std::sync::Arc;

use redlock_client::environment::TokioEnvironment;

use super::ENGINE;
use super::client::builder;
use crate::engine::Unsupported;
use crate::engine::stage::plan::{Begin, Death, Doing, End, Manner, Op, Plan, PlannedFault};
use crate::scenario::{ActiveExpiry, Disk, Lost, Persistence, Server};

/// Refuses what cannot be played as the scenario says.
pub(super) fn check(plan: &Plan) -> Result<(), Unsupported> {
    for client in &plan.scenario.clients {
        if client.subject != "redlock" {
            return Err(unsupported(format!("the subject `{}`", client.subject)));
        }
    }
    if plan.ops.iter().flatten().any(|planned| matches!(planned.op, Op::Extend { .. })) {
        return Err(unsupported(String::from("`extend`")));
    }
    let keeps_alive = |op: Op| matches!(op, Op::Acquire(acquire) if acquire.keep_alive.is_some());
    if plan.ops.iter().flatten().any(|planned| keeps_alive(planned.op)) {
        return Err(unsupported(String::from("`keep-alive`")));
    }
    if plan.scenario.cluster.server != Server::default() {
        return Err(unsupported(String::from("`cluster.server`")));
    }
    for (place, client) in plan.scenario.clients.iter().enumerate() {
        let builder = builder(plan, place).environment(Arc::new(TokioEnvironment));
        if let Err(error) = builder.build() {
            return Err(unsupported(format!("the client `{}`: {error}", client.id)));
        }
    }
    if plan.scenario.cluster.active_expiry == ActiveExpiry::Prompt {
        return Err(unsupported(String::from("`active-expiry = \"prompt\"`")));
    }
    if plan.scenario.cluster.disk != Disk::default() {
        return Err(unsupported(String::from("`cluster.disk`")));
    }
    if plan.has_replicas() {
        return Err(unsupported(String::from("`[[cluster.replica]]`")));
    }
    for node in &plan.nodes {
        let name = match node.storage.persistence {
            Persistence::Always | Persistence::None => continue,
            Persistence::Everysec => "everysec",
            Persistence::No => "no",
            Persistence::Rdb => "rdb",
        };
        return Err(unsupported(format!("`persistence = \"{name}\"`")));
    }
    for planned in &plan.faults {
        if let Some(what) = unplayable(plan, planned) {
            let id = &plan.scenario.faults[usize::from(planned.place)].id;
            return Err(unsupported(format!("{what} (the fault `{id}`)")));
        }
    }
    for link in &plan.scenario.cluster.links {
        if link.delay.min != link.delay.max {
            return Err(unsupported(String::from("a delay `a..b` of a single link")));
        }
    }
    Ok(())
}

fn unplayable(plan: &Plan, fault: &PlannedFault) -> Option<&'static str> {
    match fault.begin {
        Begin::At(_) => {}
        Begin::Before { .. } => return Some("`at = { client, before }`"),
    }
    let store = 1 << plan.scenario.store_host().0;
    if let End::Measured { .. } = fault.end {
        return Some("`measured-on`");
    }
    match fault.doing {
        Doing::Delay { .. } => Some("`delay`"),
        Doing::Delete { .. } => Some("`delete`"),
        Doing::Die { death: Death { manner: Manner::ShutDown, .. }, .. } => Some("`shutdown`"),
        Doing::Die { death: Death { torn: true, .. }, .. } => Some("`torn`"),
        Doing::Die { death: Death { backup_of_ns: Some(_), .. }, .. } => Some("`backup-of`"),
        Doing::FailOver { .. } => Some("`failover`"),
        Doing::DiskStall { .. } => Some("`disk-stall`"),
        Doing::MemoryFull { .. } => Some("`memory-full`"),
        Doing::Snapshot { .. } => Some("`snapshot`"),
        Doing::Partition { one_way: true, .. } => Some("`one-way`"),
        Doing::Partition { lost: Lost::Silent, .. } => Some("`lost = \"silent\"`"),
        Doing::Partition { from, to, .. } if (from | to) & store != 0 => {
            Some("a partition from the store")
        }
        Doing::Stop { suspended: true, .. } => Some("`suspend`"),
        _ => None,
    }
}

fn unsupported(what: String) -> Unsupported {
    Unsupported { engine: ENGINE, what }
}
