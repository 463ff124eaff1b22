//! A lock client in Rust as the workers of a run, in this thread and in simulated time.
//!
//! The masters are those of [`Fleet`](super::Fleet), on a network in memory. Each worker is a process
//! of its own: a tokio runtime whose clock stands still while no step is taken, so that a fault can
//! stop or kill everything that the worker has spawned. In every millisecond the masters act first,
//! then the workers in the order of the scenario. A run depends on scenario, seed and build alone, as
//! long as the worker takes its time from `tokio::time`, its connections from [`Host::connect`] and its
//! random numbers from [`Host::random`].

mod host;
mod process;

use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use lock_judge::history::{ClientId, NodeId};
use lock_judge::scenario::Case;
use lock_judge::text;
use tokio::runtime::Builder;

pub use self::host::{Host, NoFault, Section};
use self::process::{End, Process};
use super::identity::RunMark;
pub use super::memory::End as Connection;
use super::memory::Memory;
use super::run_clock::RunClock;
use super::socket::Network;
use super::world::World;
use super::{Refusal, Setup, WorkerEnd, plan, profile, start};
use crate::choice::Choices;
use crate::search::Played;

/// Time between two steps: nothing happens faster.
const TICK: Duration = Duration::from_millis(1);

/// A worker that runs for longer than this, in simulated time, hangs.
const PATIENCE: Duration = Duration::from_secs(600);

/// A program that locks: what one machine of the user's does with the client under test.
///
/// Functions from [`Host`] to a future are workers:
///
/// ```
/// use redlock_sim::serve::in_process::{Host, Worker};
///
/// async fn lock_once(host: Host) {
///     let connection = host.connect(host.nodes()[0]).await;
///     // … take the lock, then:
///     let section = host.enter("the value of my keys");
///     tokio::time::sleep(host.ttl() / 2).await;
///     drop(section);
/// }
/// let worker: &dyn Worker = &lock_once;
/// ```
pub trait Worker: Send + Sync {
    /// Runs the worker on `host`. The process ends with the future, and with it all tasks that it has
    /// spawned and all connections.
    fn run(&self, host: Host) -> Pin<Box<dyn Future<Output = ()>>>;
}

impl<F, R> Worker for F
where
    F: Fn(Host) -> R + Send + Sync,
    R: Future<Output = ()> + 'static,
{
    fn run(&self, host: Host) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(self(host))
    }
}

/// Runs `case` with `seed`, with a process of `worker` for each client of the scenario, until the last
/// process has ended.
///
/// # Errors
///
/// If the scenario needs something that `drive` cannot do, either.
pub fn play(case: &Case, seed: u64, worker: &dyn Worker) -> Result<Played, Refusal> {
    let setup = Setup {
        case: case.clone(),
        seed,
        base_port: 0,
        observer_port: 0,
        profile: profile(&case.scenario),
        waits_for_start: false,
        owns_workers: true,
        describe: |_| Vec::new(),
        out: PathBuf::new(),
    };
    let mut plan = plan(case, true)?;
    plan.draw(&Choices::new(seed));
    let masters = Builder::new_current_thread().enable_time().start_paused(true).build()?;
    let memory = Arc::new(Memory::default());
    let clock = Arc::new(RunClock::simulated(masters.handle().clone()));
    let in_memory = |id: NodeId| {
        let address = SocketAddr::from(([10, 0, 0, id.0 + 1], 6_379));
        let network = Network::Memory(Arc::clone(&memory));
        let door = network.listen(address).map_err(|error| Refusal::Port { address, error })?;
        Ok((network, door, address))
    };
    let (world, doors) = start::build(&setup, plan, clock, RunMark::of_seed(seed), in_memory)?;
    masters.block_on(start::begin(&world, doors));
    let mut run = Run { world: &world, processes: Vec::new(), incomplete: Vec::new() };
    for client in case.scenario.client_ids() {
        world.workers.simulate(client);
        let host = Host::new(&world, &memory, client);
        run.processes.push((client, Process::start(worker.run(host))?));
    }
    while !run.processes.is_empty() {
        masters.block_on(async { pass(TICK).await });
        if world.clock.now_ns() >= PATIENCE.as_nanos() as u64 {
            run.give_up();
        }
        run.step();
    }
    Ok(run.judge())
}

/// Waits in simulated time.
#[expect(clippy::disallowed_methods, reason = "the clock of this runtime is simulated")]
async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

/// A run with its workers.
struct Run<'a> {
    world: &'a World,
    /// The processes that have not ended.
    processes: Vec<(ClientId, Process)>,
    incomplete: Vec<String>,
}

impl Run<'_> {
    fn name(&self, client: ClientId) -> &str {
        &self.world.case.scenario.clients[client.0 as usize].id
    }

    /// Lets every process that is not stopped act.
    fn step(&mut self) {
        let (workers, mut ends) = (&self.world.workers, Vec::new());
        self.processes.retain_mut(|(client, process)| {
            let end = match () {
                () if workers.is_killed(*client) => Some(End::Killed),
                () if workers.is_stopped(*client) => {
                    process.miss(TICK);
                    None
                }
                () => process.step(TICK),
            };
            let goes_on = end.is_none();
            ends.extend(end.map(|end| (*client, end)));
            goes_on
        });
        ends.into_iter().for_each(|(client, end)| self.ended(client, end));
    }

    /// Notes the end of a process.
    fn ended(&mut self, client: ClientId, end: End) {
        let WorkerEnd { was_inside, .. } = self.world.worker_ended(client, end == End::Returned);
        let name = self.name(client);
        let why = match end {
            End::Panicked(message) => format!("worker {name} panicked: {message}"),
            End::Returned if was_inside => {
                format!("worker {name} ended inside its section: drop the section first")
            }
            End::Killed | End::Returned => return,
        };
        self.incomplete.push(why);
    }

    /// Ends all processes: they hang.
    fn give_up(&mut self) {
        let after = text::length(PATIENCE.as_nanos() as u64);
        for (client, process) in core::mem::take(&mut self.processes) {
            drop(process);
            self.world.worker_ended(client, false);
            let name = self.name(client);
            self.incomplete.push(format!("worker {name} hangs: it still ran after {after}"));
        }
    }

    fn judge(mut self) -> Played {
        self.incomplete.extend(self.world.unbegun_faults());
        let unasked = "no worker asked for the lock: see `Host::resource`";
        self.world.verdict().played(self.incomplete, unasked)
    }
}

#[cfg(test)]
mod tests;
