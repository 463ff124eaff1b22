//! Patience of each client, and round trips between clients and nodes without faults.

use super::super::setting::Setting;
use super::cuts::{across, both};
use crate::ids::{PerClient, PerNode};
use crate::scenario::{Connections, Scenario, SpanRange};

/// Returns the time for which each client waits for an answer before it closes the connection.
pub(super) fn patience_ns(scenario: &Scenario, setting: &Setting) -> PerClient<u64> {
    PerClient::from_fn(|client| {
        let connections = scenario.client(client).and_then(|client| client.connections);
        // Each command has a connection of its own, so the next command has to dial a new one at once;
        // or it may have to wait for room, that is for answers.
        let waits = connections == Some(Connections::FreshPerCommand) || setting.narrow;
        if waits { 0 } else { setting.give_up_ns }
    })
}

/// Returns the longest round trip between each client and node, without faults.
pub(super) fn round_trips_ns(scenario: &Scenario, setting: &Setting) -> PerClient<PerNode<u64>> {
    let there_and_back = |delay: SpanRange| delay.max.0.saturating_mul(2);
    let usual = there_and_back(scenario.cluster.network.delay);
    let mut round_trips_ns = PerClient::filled(PerNode::filled(usual));
    for link in &scenario.cluster.links {
        let [one, other] = &link.between;
        let there = (across(scenario, setting, one, other), across(scenario, setting, other, one));
        let linked = both(there.0, there.1);
        for (round_trips_ns, nodes) in round_trips_ns.values_mut().zip(linked.values()) {
            for node in nodes.iter() {
                round_trips_ns[node] = there_and_back(link.delay);
            }
        }
    }
    round_trips_ns
}
