//! Simulated masters on loopback TCP, in real time, for any unmodified lock client in any language.
//!
//! [`Fleet::start`] listens on one port per master and on one for the observer. The scenario's
//! faults strike the masters and the network on the real clock, from the first command about the
//! lock on. Workers report to the observer when they enter and leave their sections. The reports of
//! workers and masters become a history that is judged and stored like any other.

mod executor;
mod faults;
mod history_builder;
mod identity;
pub mod in_process;
mod limits;
mod master;
mod meaning;
mod memory;
mod node;
mod node_faults;
mod observer;
mod points;
mod pushes;
mod recorder;
mod run_clock;
mod socket;
mod start;
mod support;
mod tls;
mod unknown_commands;
mod verdict;
mod worker_processes;
mod workers;
mod world;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

use lock_judge::history::NodeId;
use lock_judge::scenario::{Case, Scenario};
use redis_sim::profile::Profile;

use self::identity::RunMark;
pub use self::master::{Alone, Misuse};
use self::recorder::WORKERS_MAX;
use self::run_clock::RunClock;
use self::socket::{Door, Network};
pub use self::support::ENGINE;
pub use self::verdict::{
    Verdict, from_outside, is_untested, note, unjudged, unjudged_expectations, untested_in_words,
};
pub use self::worker_processes::{WorkerEnd, check};
pub use self::world::Describe;
use self::world::World;
use crate::choice::Choices;
use crate::engine::Unsupported;
use crate::plan::Plan;
use crate::terms;

/// Returns the profile of the servers of a scenario.
#[must_use]
pub fn profile(scenario: &Scenario) -> &'static Profile {
    terms::profile(scenario.cluster.server)
}

/// The configuration of a served run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The case to run.
    pub case: Case,
    /// Seed for message delays.
    pub seed: u64,
    /// Port of the first master; the others use the following ports. 0: any free ports.
    pub base_port: u16,
    /// Port of the observer. 0: any free port.
    pub observer_port: u16,
    /// Server software that the masters imitate.
    pub profile: &'static Profile,
    /// If true, time 0 is when the observer receives `START`, not when the first command about the
    /// lock arrives.
    pub waits_for_start: bool,
    /// True if the caller starts the workers and names their process groups by [`Fleet::adopt`].
    /// Faults can then kill workers, too.
    pub owns_workers: bool,
    /// Describes a verdict in words, for the observer's answers.
    pub describe: Describe,
    /// Directory for reports, as verdicts name it.
    pub out: PathBuf,
}

/// Reason why a case cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The scenario needs something that cannot be done in real time or to external clients.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// A listening socket cannot be opened, for example because the port is taken.
    #[error("cannot listen at {address}: {error}")]
    Port {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        error: io::Error,
    },
    /// The observer's listening socket cannot be opened.
    #[error("cannot listen at {address} for the observer: {error}")]
    ObserverPort {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        error: io::Error,
    },
    /// The runtime cannot start its threads.
    #[error("cannot start: {0}")]
    Runtime(#[from] io::Error),
}

/// A set of masters that are served until this value is dropped.
pub struct Fleet {
    world: Arc<World>,
    observer: SocketAddr,
    /// Dropped before the runtime, whose drop would wait for a running script.
    _leftovers: Leftovers,
    runtime: Runtime,
}

/// Aborts the scripts of all masters when dropped, and lets paused workers go on.
struct Leftovers(Arc<World>);

impl Drop for Leftovers {
    fn drop(&mut self) {
        self.0.nodes.values().for_each(|node| node.executor.abort());
        self.0.workers.release();
    }
}

impl Fleet {
    /// Starts to serve.
    ///
    /// # Errors
    ///
    /// If the scenario cannot be served, a port is taken, or the runtime cannot start.
    pub fn start(setup: &Setup) -> Result<Self, Refusal> {
        let mut plan = plan(&setup.case, setup.owns_workers)?;
        plan.draw(&Choices::new(setup.seed));
        let count = plan.node_count;
        // A script may block a thread for as long as it likes; each node runs at most one.
        let workers = count + 2;
        let runtime = Builder::new_multi_thread().worker_threads(workers).enable_all().build()?;
        let guard = runtime.enter();
        let clock = Arc::new(RunClock::begin());
        let on_loopback = |id: NodeId| {
            let port = match setup.base_port {
                0 => 0,
                base => base.saturating_add(id.0.into()),
            };
            listen(port).map(|(door, address)| (Network::Kernel, door, address))
        };
        let (world, doors) = start::build(setup, plan, clock, RunMark::unique(), on_loopback)?;
        let (door, observer) = listen(setup.observer_port).map_err(|refusal| match refusal {
            Refusal::Port { address, error } => Refusal::ObserverPort { address, error },
            other => other,
        })?;
        runtime.block_on(start::begin(&world, doors));
        runtime.spawn(observer::accept(Arc::clone(&world), door));
        drop(guard);
        let _leftovers = Leftovers(Arc::clone(&world));
        Ok(Self { world, observer, _leftovers, runtime })
    }

    /// Returns the address of each master.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.world.nodes.values().map(|node| node.address()).collect()
    }

    /// Returns the address of the observer.
    #[must_use]
    pub fn observer(&self) -> SocketAddr {
        self.observer
    }

    /// Waits until the observer receives `END`, a signal of [`Fleet::end_at_signals`] arrives, or
    /// `limit` has passed since the scenario's time 0.
    pub fn wait(&self, limit: Option<Duration>) {
        let world = &self.world;
        let over = async {
            let Some(limit) = limit else { return core::future::pending().await };
            let limit_ns = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
            let until_ns = world.started().await.saturating_add(limit_ns);
            world.clock.sleep_until(until_ns).await;
        };
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                () = world.ended() => {}
                () = over => {}
            }
        });
    }

    /// Makes SIGINT and SIGTERM end the run.
    ///
    /// # Errors
    ///
    /// If the system refuses a signal handler.
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

    /// Names the commands that clients sent and the masters do not know, in a sentence for each client.
    #[must_use]
    pub fn unknown_commands(&self) -> Vec<String> {
        self.world.recorder.unknown_in_words()
    }

    /// Judges the run so far.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.world.verdict()
    }

    /// Ends the run: [`Fleet::wait`] returns.
    pub fn end(&self) {
        self.world.end();
    }

    /// Stops serving and judges the run.
    #[must_use]
    pub fn finish(self) -> Verdict {
        let Self { world, runtime, _leftovers, .. } = self;
        let verdict = world.verdict();
        runtime.shutdown_background();
        verdict
    }
}

/// Prepares the masters and the network. The clients are known only when they connect.
fn plan(case: &Case, owns_workers: bool) -> Result<Plan, Refusal> {
    if case.scenario.clients.len() > WORKERS_MAX {
        return Err(support::unsupported(&format!("more than {WORKERS_MAX} clients")).into());
    }
    let plan = Plan::without_subjects(case).map_err(|error| Unsupported::of(ENGINE, error))?;
    support::check(&plan, owns_workers)?;
    Ok(plan)
}

fn listen(port: u16) -> Result<(Door, SocketAddr), Refusal> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let refused = |error| Refusal::Port { address, error };
    let door = Door::at(address).map_err(refused)?;
    let address = door.address().map_err(refused)?;
    Ok((door, address))
}
