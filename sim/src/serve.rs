//! Simulated masters on loopback TCP, in real time: any lock client, in any language, unmodified.
//!
//! [`Fleet::start`] listens at a port for each master and at one for the observer. What a scenario
//! does to masters and to the network is done to them on the real clock, from the first command
//! about the lock on. Workers tell the observer when they enter and leave their sections; what
//! they and the masters told becomes a history that is judged and stored like any other.

mod chronicle;
mod executor;
mod faults;
mod hours;
mod identity;
mod limits;
mod master;
mod meaning;
mod node;
mod observer;
mod pushes;
mod socket;
mod support;
mod tale;
mod tls;
mod verdict;
mod weather;
mod world;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

pub use master::{Alone, Misuse};
pub use support::ENGINE;
pub use verdict::{Verdict, unjudged};
pub use world::Describe;

use self::chronicle::{Chronicle, WORKERS_MAX};
use self::faults::Faults;
use self::hours::Hours;
use self::node::{Node, Roads};
use self::socket::Door;
use self::world::World;
use crate::engine::Unsupported;
use crate::engine::stage::plan::Plan;
use crate::history::HostIndex;
use crate::master::Master;
use crate::master::profile::Profile;
use crate::master::server::Server;
use crate::scenario::Case;
use crate::world::Choices;

/// What to serve.
#[derive(Clone, Debug)]
pub struct Setup {
    /// What is played.
    pub case: Case,
    /// By which the lengths of the ways are drawn.
    pub seed: u64,
    /// The port of the first master, those of the others follow; 0: any that are free.
    pub base_port: u16,
    /// The port of the observer; 0: any that is free.
    pub observer_port: u16,
    /// Which server the masters are.
    pub profile: &'static Profile,
    /// Whether time 0 is when the observer says `START`, and not the first command about the lock.
    pub waits_for_start: bool,
    /// How the observer is told a verdict.
    pub describe: Describe,
    /// The directory where reports are to be written, as verdicts name it.
    pub out: PathBuf,
}

/// Why nothing can be served.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The scenario asks for what cannot be done to real masters.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// A port is taken, or there can be no more threads.
    #[error("cannot listen at {address}: {error}")]
    Port {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
    /// There can be no threads.
    #[error("cannot begin: {0}")]
    Runtime(#[from] io::Error),
}

/// Masters that are being served, until this is dropped.
pub struct Fleet {
    world: Arc<World>,
    observer: SocketAddr,
    /// Dropped before the runtime, which waits for whoever is executing.
    _scripts: Scripts,
    runtime: Runtime,
}

/// Ends all scripts when it is dropped.
struct Scripts(Arc<World>);

impl Drop for Scripts {
    fn drop(&mut self) {
        self.0.nodes.iter().for_each(|node| node.executor.abort());
    }
}

impl Fleet {
    /// Begins to serve.
    ///
    /// # Errors
    ///
    /// If the scenario asks for what cannot be done, or a port is taken.
    pub fn start(setup: &Setup) -> Result<Self, Refusal> {
        let plan = plan(&setup.case)?;
        let count = plan.node_count;
        // A script may keep a worker for as long as it likes, one for each node.
        let workers = count + 2;
        let runtime = Builder::new_multi_thread().worker_threads(workers).enable_all().build()?;
        let guard = runtime.enter();
        let hours = Arc::new(Hours::begin());
        let names = plan.scenario.clients.iter().map(|client| client.id.clone()).collect();
        let resource = &plan.scenario.lock.resource;
        let chronicle = Chronicle::new(Arc::clone(&hours), resource, names, !setup.waits_for_start);
        let chronicle = Arc::new(chronicle);
        let (mut nodes, mut doors) = (Vec::new(), Vec::new());
        for place in 0..count {
            let port = match setup.base_port {
                0 => 0,
                base => base.saturating_add(place as u16),
            };
            let (door, address) = listen(port)?;
            let parts = parts(setup, &plan, &hours, place);
            let told = Some(Arc::clone(&chronicle));
            nodes.push(Arc::new(Node::new(place as u8, Arc::clone(&hours), told, address, parts)));
            doors.push(door);
        }
        let (door, observer) = listen(setup.observer_port)?;
        let case = (setup.case.clone(), plan, setup.seed);
        let telling = (setup.describe, setup.out.clone());
        let world = Arc::new(World::new(case, telling, (hours, chronicle, nodes)));
        for (node, door) in world.nodes.iter().zip(doors) {
            runtime.block_on(node.open_door(door));
            runtime.spawn(Arc::clone(node).expire_keys());
            runtime.spawn(Arc::clone(&world).sync_disk(Arc::clone(node)));
        }
        runtime.spawn(observer::accept(Arc::clone(&world), door));
        runtime.spawn(Faults::new(Arc::clone(&world)).run());
        drop(guard);
        let _scripts = Scripts(Arc::clone(&world));
        Ok(Self { world, observer, _scripts, runtime })
    }

    /// Where each master listens.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.world.nodes.iter().map(|node| node.address()).collect()
    }

    /// Where the observer listens.
    #[must_use]
    pub fn observer(&self) -> SocketAddr {
        self.observer
    }

    /// Waits until the observer is told to end, a signal of [`Fleet::end_at_signals`] comes, or `limit` has passed
    /// since the scenario's time 0.
    pub fn wait(&self, limit: Option<Duration>) {
        let world = &self.world;
        let over = async {
            let Some(limit) = limit else { return core::future::pending().await };
            let limit_ns = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
            let until_ns = world.started().await.saturating_add(limit_ns);
            world.hours.sleep_until(until_ns).await;
        };
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                () = world.ended() => {}
                () = over => {}
            }
        });
    }

    /// Ends the run when the process is interrupted (SIGINT) or told to terminate (SIGTERM).
    ///
    /// # Errors
    ///
    /// If the system takes no handler.
    pub fn end_at_signals(&self) -> io::Result<()> {
        let _guard = self.runtime.enter();
        for kind in [SignalKind::interrupt(), SignalKind::terminate()] {
            let (world, mut signal) = (Arc::clone(&self.world), signal(kind)?);
            self.runtime.spawn(async move {
                signal.recv().await;
                world.end();
            });
        }
        Ok(())
    }

    /// Serves no more, and judges what happened.
    #[must_use]
    pub fn finish(self) -> Verdict {
        let Self { world, runtime, _scripts, .. } = self;
        let verdict = world.verdict();
        runtime.shutdown_background();
        verdict
    }
}

/// The scenario as far as it is about masters and the network: who the clients are is seen when
/// they come.
fn plan(case: &Case) -> Result<Plan, Refusal> {
    let mut case = case.clone();
    for client in &mut case.scenario.clients {
        if !client.subject.starts_with("lease-service") {
            client.subject = String::from("redlock");
        }
        client.connections = None;
    }
    if case.scenario.clients.len() > WORKERS_MAX {
        return Err(support::unsupported("more than 7 clients").into());
    }
    let plan = Plan::new(&case).map_err(|error| support::unsupported(&error.what))?;
    support::check(&plan)?;
    Ok(plan)
}

fn listen(port: u16) -> Result<(Door, SocketAddr), Refusal> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let refused = |error| Refusal::Port { address, error };
    let door = Door::at(address).map_err(refused)?;
    let address = door.address().map_err(refused)?;
    Ok((door, address))
}

/// What the master at `place` is made of.
fn parts(
    setup: &Setup,
    plan: &Plan,
    hours: &Hours,
    place: usize,
) -> (crate::world::HostClocks, Server, Roads) {
    let (offset_ns, _) = plan.clocks[place];
    let clocks = hours.clocks(offset_ns);
    let uptime_ms = plan.scenario.cluster.uptime.0 / 1_000_000;
    let started_wall_ms = clocks.wall_ms(hours.now_ns()).saturating_sub(uptime_ms);
    let run_id = identity::run_id(place as u8, 0);
    let master = Master::new(plan.nodes[place].storage, run_id, started_wall_ms);
    let server = Server::new(master, setup.profile);
    let clients = plan.scenario.clients.iter().enumerate().map(|(client, it)| {
        let HostIndex(host) = plan.scenario.client_host(client);
        (it.id.clone(), plan.delays[usize::from(host)][place])
    });
    let usual = plan.scenario.cluster.network.delay;
    let roads = Roads {
        choices: Choices::new(setup.seed),
        clients: clients.collect(),
        usual: (usual.min.0, usual.max.0),
        drawn: AtomicU32::new(0),
    };
    (clocks, server, roads)
}
