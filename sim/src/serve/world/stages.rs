//! Stages of the planned faults: waiting, begun, over.

use std::sync::{MutexGuard, PoisonError};

use lock_judge::history::{EventKind, FaultId, Id};
use lock_judge::ids::{IdVec, StrikeId};
use lock_judge::scenario::{At, AttemptPoint, Fault, WhichAttempt};

use super::World;
use crate::plan::PlannedFault;

/// Reason why a fault cannot begin now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::serve) enum Unready {
    #[error("this scenario has no such fault: see FAULTS")]
    NoFault,
    #[error("this fault has begun, or does not happen in this run: see FAULTS")]
    NotWaiting,
    #[error("the run has not started: send START first")]
    NotStarted,
}

/// Progress of a planned fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::serve) enum Stage {
    Waiting,
    Begun,
    Over,
}

impl World {
    fn stages(&self) -> MutexGuard<'_, IdVec<StrikeId, Stage>> {
        self.stages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Yields the stages of the occurrence of a fault to which `strike` belongs, one per host.
    fn stages_of(
        &self,
        stages: &IdVec<StrikeId, Stage>,
        strike: StrikeId,
    ) -> impl Iterator<Item = Stage> {
        let PlannedFault { id, occurrence, .. } = self.plan.faults[strike];
        let planned = self.plan.faults.values().zip(stages.values());
        let is_same = move |it: &PlannedFault| (it.id, it.occurrence) == (id, occurrence);
        planned.filter(move |(it, _)| is_same(it)).map(|(_, stage)| *stage)
    }

    /// Notes that a planned fault is about to strike its host. The event is recorded at the first
    /// host.
    pub(in crate::serve) fn begins(&self, strike: StrikeId) {
        let fault = self.plan.faults[strike].id;
        let stages = self.stages();
        if self.stages_of(&stages, strike).all(|stage| stage == Stage::Waiting) {
            self.recorder.tell(EventKind::FaultBegan { fault });
        }
    }

    /// Notes that a planned fault has struck its host.
    pub(in crate::serve) fn has_begun(&self, strike: StrikeId) {
        let mut stages = self.stages();
        stages[strike] = Stage::Begun;
        if self.stages_of(&stages, strike).all(|stage| stage != Stage::Waiting) {
            drop(stages);
            self.recorder.points.begun(self.plan.faults[strike].id);
            // Requests and replies may wait for it.
            self.nodes.values().for_each(|node| node.changed.notify_waiters());
        }
    }

    /// Notes that a planned fault is over for its host. The event is recorded at the last host.
    pub(in crate::serve) fn is_over(&self, strike: StrikeId) {
        let fault = self.plan.faults[strike].id;
        let mut stages = self.stages();
        stages[strike] = Stage::Over;
        if self.stages_of(&stages, strike).all(|stage| stage == Stage::Over) {
            self.recorder.tell(EventKind::FaultEnded { fault });
        }
    }

    /// Asks for the beginning of the fault called `name`, whose time has not come.
    pub(in crate::serve) fn ask_for_fault(&self, name: &[u8]) -> Result<(), Unready> {
        let mut faults = self.plan.scenario.faults.iter();
        let place = faults.position(|it| it.id.as_bytes() == name).ok_or(Unready::NoFault)?;
        let fault = FaultId::at(place);
        self.clock.origin_ns().ok_or(Unready::NotStarted)?;
        let waits = |(strike, stage): (StrikeId, &Stage)| {
            self.plan.faults[strike].id == fault && *stage == Stage::Waiting
        };
        if !self.stages().iter().any(waits) {
            return Err(Unready::NotWaiting);
        }
        self.recorder.points.ask(fault);
        Ok(())
    }

    /// Describes each fault that should happen in this run and has not begun anywhere.
    pub(in crate::serve) fn unbegun_faults(&self) -> Vec<String> {
        let stages = self.stages();
        let scenario = &self.plan.scenario;
        let faults = FaultId::first(scenario.faults.len()).zip(&scenario.faults);
        let strikes = self.plan.faults.values().zip(stages.values());
        let waits = |fault| {
            let mut own = strikes.clone().filter(|(it, _)| it.id == fault).peekable();
            own.peek().is_some() && own.all(|(_, stage)| *stage == Stage::Waiting)
        };
        let waiting = faults.filter(|(fault, _)| waits(*fault));
        let why = |it: &Fault| {
            let remedy = match &it.at {
                At::Time(_) => "let the workers run longer, or let it begin earlier".to_owned(),
                At::Point(point) => self.unreached(point),
            };
            format!("the fault `{}` never began: {remedy}", it.id)
        };
        waiting.map(|(_, it)| why(it)).collect()
    }

    /// Explains why no attempt reached the step of `point`.
    fn unreached(&self, point: &AttemptPoint) -> String {
        let client = &point.client;
        if !self.recorder.has_asked(client) {
            return format!(
                "no connection that asked for the lock was named `{client}`: a worker gives its \
                 connections to the masters the client's name (`CLIENT SETNAME {client}`)"
            );
        }
        match point.attempt {
            WhichAttempt::Any => format!("no attempt of `{client}` reached its step"),
            _ => String::from("no such attempt reached its step; `attempt = \"any\"` takes any"),
        }
    }

    /// Returns the id and the stage of every fault: the stage of the host that is least far.
    pub(in crate::serve) fn faults(&self) -> Vec<(String, Stage)> {
        let stages = self.stages();
        let scenario = &self.plan.scenario;
        let faults = FaultId::first(scenario.faults.len()).zip(&scenario.faults);
        let strikes = self.plan.faults.values().zip(stages.values());
        let stage = |fault| {
            let own = strikes.clone().filter(|(it, _)| it.id == fault);
            own.map(|(_, stage)| *stage).min().unwrap_or(Stage::Waiting)
        };
        faults.map(|(fault, it)| (it.id.clone(), stage(fault))).collect()
    }
}
