//! The fast engine: one event queue, without bytes or tasks.

mod application;
mod connections;
mod extension;
mod process;
#[cfg(test)]
mod tests;

use self::process::Process;
use super::stage::plan::{Op, Plan, PlannedOp};
use super::stage::{QueueEntry, Stage};
use super::{Kept, Outcome, Unsupported};
use crate::history::{ClientId, EventKind};
use crate::ids::IdVec;
use crate::scenario::{Acquire, Case};

/// Bound on the steps of a run. A run with more steps is a bug of the engine, or of an unreasonable
/// scenario.
const STEPS_MAX: u64 = 20_000_000;

/// Runs one case, seed after seed, and reuses the allocated memory.
#[derive(Debug)]
pub struct Engine {
    plan: Plan,
    stage: Stage,
    processes: IdVec<ClientId, Process>,
    probe: Process,
    steps: u64,
}

/// Part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunPhase {
    /// The clients run.
    Clients,
    /// The probe may try until `until_ns`.
    Probe { until_ns: u64 },
    /// The remaining messages may arrive until `until_ns`.
    Drain { until_ns: u64 },
}

impl Engine {
    /// Returns an engine for `case`.
    ///
    /// # Errors
    ///
    /// If the case asks for something that this engine cannot do.
    pub fn new(case: &Case) -> Result<Self, Unsupported> {
        let plan = Plan::new(case)?;
        let clients = plan.scenario.client_ids();
        let processes =
            clients.map(|client| Process::new(&plan, client, plan.ops[client].clone())).collect();
        let probe_ops =
            [Op::Acquire(Acquire { attempts: Some(u32::MAX), ..Acquire::default() }), Op::Release];
        let probe_ops = probe_ops.map(|op| PlannedOp { not_before_ns: 0, op }).to_vec();
        let probe = Process::new(&plan, plan.probe(), probe_ops);
        let stage = Stage::new(&plan);
        Ok(Self { plan, stage, processes, probe, steps: 0 })
    }

    /// Runs the case with the seed `seed`; writes the events to `kept` if it is given.
    pub fn run(&mut self, seed: u64, kept: Kept<'_>) -> Outcome {
        self.begin(seed, kept.is_some());
        let mut stretch = RunPhase::Clients;
        while let Some(next) = self.stretch(stretch) {
            stretch = next;
            let Some((at_ns, what)) = self.stage.queue.pop() else { break };
            let limit_ns = match stretch {
                RunPhase::Clients => self.plan.end_ns,
                RunPhase::Drain { until_ns } | RunPhase::Probe { until_ns } => until_ns,
            };
            if at_ns > limit_ns {
                break;
            }
            self.steps += 1;
            assert!(self.steps < STEPS_MAX, "a run without an end: seed {seed}");
            assert!(at_ns >= self.stage.now_ns, "time does not go back: seed {seed}");
            self.stage.now_ns = at_ns;
            self.happen(what);
        }
        self.wait_for_the_oracle();
        self.stage.record(EventKind::Ended);
        if let Some(kept) = kept {
            *kept = self.stage.recorder.take_kept();
        }
        let recorder = &mut self.stage.recorder;
        let verdicts = recorder.oracle.finish();
        let counters = recorder.oracle.counters();
        let faults_begun = recorder.oracle.faults_begun();
        Outcome { seed, hash: recorder.hash.value(), verdicts, counters, faults_begun }
    }

    /// Advances the time after the last event until the oracle can judge what is left, at most by
    /// the grace period.
    fn wait_for_the_oracle(&mut self) {
        let waiting = self.stage.recorder.oracle.must_last_until_ns();
        let last_ns = self.stage.now_ns + self.plan.grace_ns;
        if let Some(until_ns) = waiting {
            self.stage.now_ns = self.stage.now_ns.max(until_ns.min(last_ns));
        }
    }

    /// Returns the number of queue entries that the last run executed.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Returns the true time at which the last run ended, in nanoseconds.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.stage.now_ns
    }

    fn begin(&mut self, seed: u64, keep: bool) {
        let Self { plan, stage, processes, .. } = self;
        self.steps = 0;
        stage.begin(plan, seed, keep);
        for (client, process) in processes.iter_mut() {
            process.reset(plan, stage, plan.warm);
            // After the faults that begin at time 0.
            stage.queue.schedule(0, QueueEntry::Timer { client, serial: 0 });
        }
        self.probe.done = true;
    }

    fn happen(&mut self, what: QueueEntry) {
        let Self { plan, stage, processes, probe, .. } = self;
        if let QueueEntry::Timer { client, serial } = what {
            let process = process_mut(processes, probe, client);
            if process.is_some_and(|it| it.is_current_timer(serial)) {
                stage.wake(client);
            }
        } else {
            stage.happen(plan, what);
        }
        self.run_clients();
    }

    /// Runs every client that has something to do.
    fn run_clients(&mut self) {
        while let Some(client) = self.stage.to_run.pop_first() {
            let Self { plan, stage, processes, probe, .. } = self;
            if let Some(process) = process_mut(processes, probe, client) {
                process.run(plan, stage);
            }
        }
    }

    /// Returns the present stretch of the run; `None` if the run is over.
    fn stretch(&mut self, current: RunPhase) -> Option<RunPhase> {
        let now_ns = self.stage.now_ns;
        match current {
            RunPhase::Clients => {
                if !self.processes.values().all(|process| process.done) {
                    return Some(current);
                }
                if !self.plan.has_faults {
                    return Some(RunPhase::Drain { until_ns: now_ns + self.plan.grace_ns });
                }
                if self.stage.faults_open > 0 {
                    return Some(current);
                }
                self.start_probe();
                Some(RunPhase::Probe { until_ns: now_ns + self.plan.probe_patience_ns })
            }
            RunPhase::Probe { .. } if self.probe.got_lease => {
                Some(RunPhase::Drain { until_ns: now_ns + self.plan.grace_ns })
            }
            RunPhase::Probe { .. } => Some(current),
            RunPhase::Drain { .. } => {
                let waiting = self.stage.recorder.oracle.must_last_until_ns();
                let quiet = waiting.is_none_or(|until_ns| until_ns <= now_ns)
                    && self.stage.arrivals_due == 0
                    && self.processes.values().all(|process| !process.has_timer())
                    && !self.probe.has_timer();
                (!quiet).then_some(current)
            }
        }
    }

    fn start_probe(&mut self) {
        let Self { plan, stage, probe, .. } = self;
        let id = plan.probe();
        stage.record_clocks(plan, plan.client_host(id));
        stage.record(EventKind::Healed { probe: id });
        probe.reset(plan, stage, true);
        probe.done = false;
        stage.wake(id);
        self.run_clients();
    }
}

fn process_mut<'a>(
    processes: &'a mut IdVec<ClientId, Process>,
    probe: &'a mut Process,
    client: ClientId,
) -> Option<&'a mut Process> {
    processes.get_mut(client).or_else(|| (!probe.done).then_some(probe))
}
