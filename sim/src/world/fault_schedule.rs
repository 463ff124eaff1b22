//! The faults that have not begun, and those that have not ended.

use lock_judge::history::{AttemptId, ClockKind, HostId, NodeId};
use lock_judge::ids::{IdVec, StrikeId};
use lock_judge::scenario::AttemptStep;

use super::agenda::{Agenda, Due};
use super::clocks::Clocks;
use crate::plan::{Begin, Death, End, FaultEffect, Plan};

/// A restart whose delay is measured on a clock of its host.
#[derive(Clone, Copy, Debug)]
struct MeasuredRestart {
    strike: StrikeId,
    host: HostId,
    clock: ClockKind,
    due_local_ns: u64,
}

/// Schedule of the faults of one run.
#[derive(Debug, Default)]
pub(crate) struct FaultSchedule {
    /// True for each fault at a step of an attempt that has begun.
    set_off: IdVec<StrikeId, bool>,
    /// Pending restarts that depend on clocks.
    restarts: Vec<MeasuredRestart>,
    /// Number of faults with an end that have not ended.
    open: u32,
}

impl FaultSchedule {
    /// Schedules every fault that begins at a given time.
    pub(super) fn begin(&mut self, plan: &Plan, agenda: &mut Agenda) {
        self.restarts.clear();
        self.set_off.clear();
        self.set_off.resize(plan.faults.len(), false);
        self.open = 0;
        for (strike, fault) in plan.faults.iter() {
            self.open += u32::from(fault.end != End::Never);
            if let Begin::At(at_ns) = fault.begin {
                agenda.schedule(at_ns, Due::FaultBegins(strike));
            }
            if let FaultEffect::Die { death: Death { backup_of_ns: Some(at_ns), .. }, .. } =
                fault.effect
            {
                agenda.schedule(at_ns, Due::BackUp(strike));
            }
        }
    }

    /// Takes the first fault that waits for this step of an attempt and has not begun.
    pub(super) fn take_waiting(
        &mut self,
        plan: &Plan,
        attempt: AttemptId,
        step: AttemptStep,
        node: Option<NodeId>,
    ) -> Option<StrikeId> {
        let waits = |begin: Begin| match begin {
            Begin::At(_) => false,
            Begin::Before { client, attempt: number, step: awaited, node: at } => {
                (client, awaited) == (attempt.client, step)
                    && number.is_none_or(|number| number == attempt.number)
                    && (at.is_none() || at == node)
            }
        };
        let mut faults = plan.faults.iter();
        let (strike, _) = faults.find(|&(id, it)| waits(it.begin) && !self.set_off[id])?;
        self.set_off[strike] = true;
        Some(strike)
    }

    /// Starts the delay of a restart on a clock of the host.
    pub(super) fn measure_restart(
        &mut self,
        (strike, host): (StrikeId, HostId),
        (clock, after_ns): (ClockKind, u64),
        clocks: &Clocks,
        agenda: &mut Agenda,
    ) {
        let due_local_ns = clocks[host].read(clock, agenda.now_ns()) + after_ns;
        let restart = MeasuredRestart { strike, host, clock, due_local_ns };
        self.restarts.push(restart);
        restart.schedule(clocks, agenda);
    }

    /// Schedules the restarts again that depend on the clocks of `host`.
    pub(super) fn clocks_changed(&self, host: HostId, clocks: &Clocks, agenda: &mut Agenda) {
        let concerned = self.restarts.iter().filter(|it| it.host == host);
        concerned.for_each(|it| it.schedule(clocks, agenda));
    }

    /// Takes the restart and returns true if its clock has reached the due time. A clock change may
    /// have moved that time since the restart was scheduled.
    pub(super) fn take_due_restart(
        &mut self,
        strike: StrikeId,
        clocks: &Clocks,
        now_ns: u64,
    ) -> bool {
        let place = self.restarts.iter().position(|it| it.strike == strike);
        let due = place.filter(|&place| {
            let MeasuredRestart { host, clock, due_local_ns, .. } = self.restarts[place];
            clocks[host].read(clock, now_ns) >= due_local_ns
        });
        due.map(|place| self.restarts.swap_remove(place)).is_some()
    }

    /// Counts the end of a fault.
    pub(super) fn ended(&mut self) {
        self.open -= 1;
    }

    /// Returns true if a fault with an end has not ended.
    pub(crate) fn has_open(&self) -> bool {
        self.open > 0
    }
}

impl MeasuredRestart {
    fn schedule(self, clocks: &Clocks, agenda: &mut Agenda) {
        if let Some(at_ns) = clocks[self.host].true_at(self.clock, self.due_local_ns) {
            agenda.schedule(at_ns.max(agenda.now_ns()), Due::FaultEnds(self.strike));
        }
    }
}
