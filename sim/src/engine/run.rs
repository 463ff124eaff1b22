//! The course of a run: the clients, then the probes, then the remaining messages.

use super::{Kept, Outcome};
use crate::world::World;

/// An engine in the middle of a run, as its course needs it.
pub(super) trait Run {
    /// Reads the world.
    fn with_world<T>(&self, at: impl FnOnce(&World) -> T) -> T;

    /// Returns true if every client but the probes has done all its steps, or is dead.
    fn are_clients_done(&self) -> bool;

    /// Starts the probes, one for each lock, all at once: clients that show that the locks are
    /// available again after the faults.
    fn start_probes(&mut self);

    /// Returns true if every probe has been granted a lease.
    fn have_probes_leases(&self) -> bool;

    /// Returns true if a client has a timer that will fire.
    fn has_timers(&self) -> bool;

    /// Lets the next thing happen, if it is due by `limit_ns`; returns false if nothing is.
    fn step(&mut self, limit_ns: u64) -> bool;
}

/// Part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The clients run.
    Clients,
    /// The probes may try until `until_ns`.
    Probe { until_ns: u64 },
    /// The remaining messages may arrive until `until_ns`.
    Drain { until_ns: u64 },
}

/// Runs to the end. Returns true if the clients have done all that they do, and false if the end of
/// the scenario cut them off.
pub(super) fn run(run: &mut impl Run) -> bool {
    let mut phase = Phase::Clients;
    while let Some(next) = phase.next(run) {
        phase = next;
        let limit_ns = match phase {
            Phase::Clients => run.with_world(|world| world.plan.end_ns),
            Phase::Drain { until_ns } | Phase::Probe { until_ns } => until_ns,
        };
        if !run.step(limit_ns) {
            let goes_on =
                run.with_world(|world| world.agenda.next_ns().is_some()) || run.has_timers();
            return phase != Phase::Clients || !goes_on;
        }
    }
    true
}

impl Phase {
    /// Returns the present phase; `None` if the run is over.
    fn next(self, run: &mut impl Run) -> Option<Self> {
        match self {
            Self::Clients if !run.are_clients_done() => Some(self),
            Self::Clients if !run.with_world(|world| world.plan.has_faults) => {
                Some(Self::drain(run))
            }
            Self::Clients if run.with_world(|world| world.faults.has_open()) => Some(self),
            Self::Clients => {
                let until_ns =
                    run.with_world(|world| world.now_ns() + world.plan.probe_patience_ns);
                run.start_probes();
                Some(Self::Probe { until_ns })
            }
            Self::Probe { .. } if run.have_probes_leases() => Some(Self::drain(run)),
            Self::Probe { .. } => Some(self),
            Self::Drain { .. } => {
                let is_quiet = run.with_world(|world| {
                    let until_ns = || world.recorder.oracle().must_last_until_ns();
                    !world.agenda.awaits_arrivals()
                        && until_ns().is_none_or(|until_ns| until_ns <= world.now_ns())
                });
                (!is_quiet || run.has_timers()).then_some(self)
            }
        }
    }

    fn drain(run: &impl Run) -> Self {
        Self::Drain { until_ns: run.with_world(|world| world.now_ns() + world.plan.grace_ns) }
    }
}

/// Ends the history of a run and judges it; moves the events to `kept` if it is given. A run whose
/// clients are not `done` ends now, because what they still do is not in the history.
pub(super) fn judge(world: &mut World, (seed, done): (u64, bool), kept: Kept<'_>) -> Outcome {
    world.end(done);
    let ended_ns = world.now_ns();
    let recorder = &mut world.recorder;
    if let Some(kept) = kept {
        *kept = recorder.take_kept();
    }
    let hash = recorder.hash();
    let oracle = recorder.oracle_mut();
    let verdicts = oracle.finish();
    let (counters, faults_begun) = (oracle.counters(), oracle.faults_begun());
    let measured = oracle.measured();
    Outcome { seed, hash, verdicts, counters, faults_begun, measured, ended_ns }
}
