//! The fast engine: one event queue, without bytes or tasks.

mod application;
mod connections;
mod extension;
mod process;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use lock_judge::history::{ClientId, EventKind};
use lock_judge::ids::IdVec;
use lock_judge::scenario::Case;

use self::process::Process;
use super::run::{self, Run};
use super::{Kept, Outcome, Unsupported};
use crate::choice::Choices;
use crate::plan::{Plan, probe_ops};
use crate::world::{Due, World};

/// Bound on the steps of a run. A run with more steps is a bug of the engine, or of an unreasonable
/// scenario.
const STEPS_MAX: u64 = 20_000_000;

/// Runs one case, seed after seed, and reuses the allocated memory.
#[derive(Debug)]
pub struct Engine {
    world: World,
    /// The process of each client; `None` for a further task of another client's process.
    processes: IdVec<ClientId, Option<Process>>,
    /// The process of all probes.
    probe: Process,
    seed: u64,
    steps: u64,
}

impl Engine {
    /// Returns an engine for `case`.
    ///
    /// # Errors
    ///
    /// If the case asks for something that this engine cannot do.
    pub fn new(case: &Case) -> Result<Self, Unsupported> {
        let plan = Plan::new(case).map_err(|error| Unsupported::of("event", error))?;
        let clients = plan.scenario.client_ids();
        let processes = clients.map(|client| {
            let tasks = plan.tasks(client).into_iter();
            let tasks: Vec<_> = tasks.map(|task| (task, plan.ops[task].clone())).collect();
            (!tasks.is_empty()).then(|| Process::new(&plan, client, tasks))
        });
        let processes = processes.collect();
        let probes = plan.tasks(plan.probe()).into_iter().map(|task| (task, probe_ops()));
        let probe = Process::new(&plan, plan.probe(), probes.collect());
        let world = World::new(Arc::new(plan), &[]);
        Ok(Self { world, processes, probe, seed: 0, steps: 0 })
    }

    /// Runs the case with the seed `seed`; writes the events to `kept` if it is given.
    pub fn run(&mut self, seed: u64, kept: Kept<'_>) -> Outcome {
        self.begin(seed, kept.is_some());
        let done = run::run(self);
        run::judge(&mut self.world, (seed, done), kept)
    }

    /// Returns the number of entries of the agenda that the last run executed.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    fn begin(&mut self, seed: u64, keeps: bool) {
        let Self { world, processes, .. } = self;
        (self.seed, self.steps) = (seed, 0);
        if world.plan.is_drawn {
            let plan = Arc::make_mut(&mut world.plan);
            plan.draw(&Choices::new(seed));
            let processes = processes.values_mut().flatten();
            for task in processes.flat_map(|process| &mut process.tasks) {
                task.script.replace(plan.ops[task.client].clone());
            }
        }
        world.begin(seed, keeps);
        let warm = world.plan.warm;
        for process in processes.values_mut().flatten() {
            process.reset(world, warm);
            // After the faults that begin at time 0.
            world.agenda.schedule(0, Due::Timer { client: process.client, serial: 0 });
        }
        self.probe.end();
    }

    fn happen(&mut self, what: Due) {
        let Self { world, processes, probe, .. } = self;
        if let Due::Timer { client, serial } = what {
            let process = process_mut(processes, probe, client);
            if process.is_some_and(|it| it.is_current_timer(serial)) {
                world.clients.wake(client);
            }
        } else {
            world.happen(what);
        }
        self.run_clients();
    }

    /// Runs every client that has something to do.
    fn run_clients(&mut self) {
        let Self { world, processes, probe, .. } = self;
        while let Some(client) = world.clients.next_to_run() {
            if let Some(process) = process_mut(processes, probe, client) {
                process.run(world);
            }
        }
    }
}

impl Run for Engine {
    #[inline]
    fn with_world<T>(&self, at: impl FnOnce(&World) -> T) -> T {
        at(&self.world)
    }

    #[inline]
    fn are_clients_done(&self) -> bool {
        self.processes.values().flatten().all(Process::is_done)
    }

    fn start_probes(&mut self) {
        let Self { world, probe, .. } = self;
        let id = world.plan.probe();
        world.record_clocks(world.plan.client_host(id));
        world.record(EventKind::Healed { probe: id });
        probe.reset(world, true);
        world.clients.wake(id);
        self.run_clients();
    }

    fn have_probes_leases(&self) -> bool {
        self.probe.got_leases()
    }

    fn has_timers(&self) -> bool {
        self.processes.values().flatten().any(Process::has_timer) || self.probe.has_timer()
    }

    #[inline]
    fn step(&mut self, limit_ns: u64) -> bool {
        let seed = self.seed;
        let Some((at_ns, what)) = self.world.agenda.pop_until(limit_ns) else { return false };
        self.steps += 1;
        assert!(self.steps < STEPS_MAX, "a run without an end: seed {seed}");
        assert!(at_ns >= self.world.now_ns(), "time does not go back: seed {seed}");
        self.world.agenda.advance_to(at_ns);
        self.happen(what);
        true
    }
}

fn process_mut<'a>(
    processes: &'a mut IdVec<ClientId, Option<Process>>,
    probe: &'a mut Process,
    client: ClientId,
) -> Option<&'a mut Process> {
    match processes.get_mut(client) {
        Some(process) => process.as_mut(),
        None => (!probe.is_done()).then_some(probe),
    }
}
