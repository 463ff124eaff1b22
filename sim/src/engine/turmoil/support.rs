//! Features that this engine supports, and the messages for those that it does not.

use std::sync::Arc;

use lock_judge::scenario::{AttemptStep, Rights, Span};
use redlock_client::environment::TokioEnvironment;

use super::ENGINE;
use super::client::builder;
use crate::engine::Unsupported;
use crate::plan::{Begin, FaultEffect, Plan, PlannedFault, steps};

/// One tick for each direction.
const SHORTEST_ROUND_TRIP: Span = Span::from_ms(2);

/// Rejects a scenario that this engine cannot run exactly. Other subjects have no tokio shell. The
/// production client has fewer settings than a policy. It reads T1 of a retry together with the
/// step before it, so it cannot be stopped between the two.
pub(super) fn check(plan: &Plan) -> Result<(), Unsupported> {
    let scenario = &plan.scenario;
    let clients = || scenario.client_ids().zip(&scenario.clients);
    if let Some((_, client)) = clients().find(|(id, _)| !plan.is_ours(*id)) {
        return Err(unsupported(format!("the subject `{}`", client.subject)));
    }
    if clients().any(|(_, client)| client.deaf) {
        return Err(unsupported(String::from("`deaf = true`")));
    }
    if clients().any(|(_, client)| client.copy_of.is_some()) {
        return Err(unsupported(String::from("`copy-of` of a client")));
    }
    // The client's reports do not name the acquisition that an attempt is for.
    if clients().any(|(_, client)| client.task_of.is_some()) {
        return Err(unsupported(String::from("`task-of` of a client")));
    }
    if plan.servers.values().any(|server| server.rights != Rights::All) {
        return Err(unsupported(String::from("`rights`")));
    }
    if !scenario.lock.further_resources.is_empty() {
        return Err(unsupported(String::from("`lock.further-resources`")));
    }
    for (id, client) in clients() {
        let builder = builder(plan, id).environment(Arc::new(TokioEnvironment::default()));
        if let Err(error) = builder.build() {
            return Err(unsupported(format!("the client `{}`: {error}", client.id)));
        }
    }
    if scenario.lock.node_timeout <= SHORTEST_ROUND_TRIP {
        let node_timeout = scenario.lock.node_timeout;
        return Err(unsupported(format!("`node-timeout = \"{node_timeout}\"`, no two ticks")));
    }
    if scenario.cluster.server.extends_plainly() && !scenario.lock.plain_extensions {
        return Err(unsupported(String::from("`plain-extensions = false` on this server")));
    }
    for planned in plan.faults.values() {
        if let Some(what) = unplayable(plan, planned) {
            let id = plan.fault_name(planned.id);
            return Err(unsupported(format!("{what} (the fault `{id}`)")));
        }
    }
    Ok(())
}

fn unplayable(plan: &Plan, fault: &PlannedFault) -> Option<&'static str> {
    let Begin::Before { step, .. } = fault.begin else { return None };
    if !steps::is_seen_by_turmoil(step) {
        return Some(
            "a point at which an extension or a release leaves its client, or is answered",
        );
    }
    stops_before_a_retry(plan, fault).then_some("a stop before `t1` of a later attempt")
}

fn stops_before_a_retry(plan: &Plan, fault: &PlannedFault) -> bool {
    let Begin::Before { client, attempt: Some(2..), step: AttemptStep::T1, .. } = fault.begin
    else {
        return false;
    };
    let stopped = match fault.effect {
        FaultEffect::Die { host, .. } | FaultEffect::Stop { host, .. } => host,
        _ => return false,
    };
    stopped == plan.client_host(client)
}

fn unsupported(what: String) -> Unsupported {
    Unsupported { engine: ENGINE, what }
}
