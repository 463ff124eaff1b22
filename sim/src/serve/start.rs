//! Builds the masters of a run, and starts them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use lock_judge::history::NodeId;
use lock_judge::ids::IdVec;
use redis_sim::Master;
use redis_sim::server::Server;

use super::faults::Faults;
use super::identity::RunMark;
use super::node::{MessageDelays, Node, NodeParts};
use super::points::Points;
use super::recorder::Recorder;
use super::run_clock::RunClock;
use super::socket::{Door, Network};
use super::world::World;
use super::{Refusal, Setup};
use crate::choice::Choices;
use crate::plan::Plan;

/// Builds the masters of `plan`, each at the listening socket that `listen` returns.
///
/// # Errors
///
/// If `listen` fails.
pub(super) fn build(
    setup: &Setup,
    plan: Plan,
    clock: Arc<RunClock>,
    mark: RunMark,
    listen: impl Fn(NodeId) -> Result<(Network, Door, SocketAddr), Refusal>,
) -> Result<(Arc<World>, Vec<Door>), Refusal> {
    let names = plan.scenario.clients.iter().map(|client| client.id.clone()).collect();
    let resource = &plan.scenario.lock.resource;
    let points = Points::new(&plan);
    // The caller's own workers are the clients of the scenario.
    let rules = (!setup.waits_for_start, !setup.owns_workers);
    let recorder = Recorder::new(Arc::clone(&clock), resource, names, rules, points);
    let recorder = Arc::new(recorder);
    let (mut nodes, mut doors) = (IdVec::new(), Vec::new());
    for id in plan.node_ids() {
        let (network, door, address) = listen(id)?;
        let parts = parts(setup, &plan, &clock, mark.run_id(id, 0), id);
        let (clock, recorder) = (Arc::clone(&clock), Some(Arc::clone(&recorder)));
        nodes.push(Arc::new(Node::new(id, clock, recorder, (network, address), parts)));
        doors.push(door);
    }
    Ok((Arc::new(World::new(setup, plan, clock, recorder, nodes, mark)), doors))
}

/// Starts the masters, each at its listening socket, and the scenario's faults.
#[expect(clippy::disallowed_methods, reason = "masters are tasks of their runtime")]
pub(super) async fn begin(world: &Arc<World>, doors: Vec<Door>) {
    for (node, door) in world.nodes.values().zip(doors) {
        node.open_door(door).await;
        tokio::spawn(Arc::clone(node).expire_keys());
        tokio::spawn(Arc::clone(world).sync_disk(Arc::clone(node)));
    }
    tokio::spawn(Faults::new(Arc::clone(world)).run());
}

/// Creates the clocks, the server and the message delays of a node.
fn parts(
    setup: &Setup,
    plan: &Plan,
    clock: &RunClock,
    run_id: [u8; 20],
    node: NodeId,
) -> NodeParts {
    let (offset_ns, _) = plan.clocks[node.first_host()];
    let clocks = clock.clocks(offset_ns);
    let uptime_ms = plan.scenario.cluster.uptime.0 / 1_000_000;
    let started_wall_ms = clocks.wall_ms(clock.now_ns()).saturating_sub(uptime_ms);
    let master = Master::new(plan.servers[node.first_server()].storage, run_id, started_wall_ms);
    let mut server = Server::new(master, setup.profile);
    server.set_seed(setup.seed ^ u64::from(node.0));
    let clients = plan.scenario.client_ids().zip(&plan.scenario.clients).map(|(client, it)| {
        (it.id.clone(), plan.delays[plan.client_host(client)][node.first_host()])
    });
    let usual = plan.scenario.cluster.network.delay;
    let delays = MessageDelays {
        choices: Choices::new(setup.seed),
        clients: clients.collect(),
        usual: (usual.min.0, usual.max.0),
        drawn: AtomicU32::new(0),
    };
    NodeParts { clocks, server, delays }
}
