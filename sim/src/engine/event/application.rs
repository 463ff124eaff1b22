//! The application of a task: the scenario's steps, one after the other.

use lock_judge::history::{BasedOn, EventKind};
use lock_judge::scenario::AttemptStep;

use super::process::{Held, Process, Task, Waiting};
use crate::plan::{Op, PlannedOp};
use crate::resource::StoreRequest;
use crate::subject::{Now, Patience, Wanted};
use crate::world::{Arrival, Direction, Packet, World};

impl Process {
    /// Takes the application's next step, if that is possible now.
    pub(super) fn use_lock(&mut self, world: &mut World, task: usize) -> bool {
        let Task { waiting, held, .. } = self.tasks[task];
        match waiting {
            Waiting::Nothing => {}
            Waiting::UntilTrue(at_ns) if at_ns <= world.now_ns() => {}
            Waiting::UntilBoot(at_ns) | Waiting::UntilBootOrLoss(at_ns)
                if at_ns <= self.now(world).boot_ns => {}
            Waiting::ForExtension
            | Waiting::ForLoss
            | Waiting::ForWrite
            | Waiting::UntilBootOrLoss(_)
                if held.is_none_or(|held| held.lost) => {}
            Waiting::ForLease { cancel_at_true_ns: Some(at_ns) } if at_ns <= world.now_ns() => {
                let now = self.now(world);
                self.tasks[task].to_deliver = None;
                self.subject.release(task, now);
                self.tasks[task].without_lease(world);
                return true;
            }
            _ => return false,
        }
        let own = &mut self.tasks[task];
        own.waiting = Waiting::Nothing;
        let Some(PlannedOp { not_before_ns, op }) = own.script.next() else {
            own.done = true;
            return false;
        };
        if not_before_ns > world.now_ns() {
            own.waiting = Waiting::UntilTrue(not_before_ns);
            return false;
        }
        let before = match op {
            Op::Enter => Some(AttemptStep::Enter),
            Op::Check => Some(AttemptStep::Check),
            Op::Write { .. } => Some(AttemptStep::StoreWrite),
            _ => None,
        };
        if let (Some(point), Some(held)) = (before, held)
            && !self.reach(world, held.attempt, point, None)
        {
            return false;
        }
        self.tasks[task].script.advance();
        self.perform(world, task, op);
        true
    }

    fn perform(&mut self, world: &mut World, task: usize, op: Op) {
        let now = self.now(world);
        match (op, self.tasks[task].held) {
            // An application that holds a live lease does not ask for another.
            (Op::Acquire(_), Some(held)) if !held.lost => {}
            (Op::Acquire(acquire), _) => {
                self.release(world, task, now);
                let patience = match (acquire.wait, acquire.attempts, acquire.until) {
                    (Some(wait), _, _) => Patience::UntilBoot(now.boot_ns + wait.min.0),
                    (_, Some(attempts), _) => Patience::Attempts(attempts),
                    (_, _, Some(_)) => Patience::UntilBoot(u64::MAX),
                    (None, None, None) if acquire.at_once => Patience::AtOnce,
                    (None, None, None) => Patience::Attempts(1),
                };
                let cancel_at_true_ns = acquire.until.map(|until| until.0);
                self.tasks[task].waiting = Waiting::ForLease { cancel_at_true_ns };
                self.tasks[task].wanted_ttl = acquire.ttl;
                let keep_alive_ns = acquire.keep_alive.map(|at_most| at_most.0);
                let ttl_ns = acquire.ttl.map(|ttl| ttl.0);
                self.subject.acquire(task, Wanted { patience, keep_alive_ns, ttl_ns }, now);
            }
            (Op::Sleep { ns }, _) => {
                self.tasks[task].waiting = Waiting::UntilBoot(now.boot_ns + ns)
            }
            (_, None) => {}
            (Op::SleepOrLost { ns }, Some(_)) => {
                self.tasks[task].waiting = Waiting::UntilBootOrLoss(now.boot_ns + ns);
            }
            (Op::AwaitLost, Some(_)) => self.tasks[task].waiting = Waiting::ForLoss,
            (Op::Check, Some(Held { attempt, .. })) => {
                let alive = self.subject.is_alive(task, now);
                world.record(EventKind::Checked { attempt, alive });
                if !alive {
                    self.tasks[task].go_on_at_release(world);
                }
            }
            (Op::Enter, Some(held)) => {
                world.record(EventKind::SectionEntered { attempt: held.attempt });
                self.tasks[task].held = Some(Held { in_section: true, ..held });
            }
            (Op::Leave, Some(_)) => self.tasks[task].leave(world),
            (Op::Extend { ttl_ns }, Some(Held { attempt, .. })) => {
                self.extend(world, task, attempt, ttl_ns);
            }
            (Op::Release, Some(_)) => self.release(world, task, now),
            (Op::Read, Some(Held { attempt, fencing_token, .. })) => {
                self.tasks[task].waiting = Waiting::ForVersion;
                let request = StoreRequest::Read { attempt, fencing_token };
                self.ask_store(world, request);
            }
            (Op::Write { blind }, Some(held)) => self.write_store(world, task, held, blind),
        }
    }

    /// Releases the lease, if the application holds one.
    fn release(&mut self, world: &mut World, task: usize, now: Now) {
        self.tasks[task].leave(world);
        if let Some(Held { attempt, .. }) = self.tasks[task].held.take() {
            world.record(EventKind::ReleaseCalled { attempt });
            self.subject.release(task, now);
        }
    }

    fn write_store(&mut self, world: &mut World, task: usize, held: Held, blind: bool) {
        let Held { attempt, fencing_token, seen, .. } = held;
        let based_on = if blind { BasedOn::NOTHING } else { seen };
        let write = world.resource.number_write();
        world.record(EventKind::WriteSent { attempt, write, based_on, fencing_token });
        self.tasks[task].waiting = Waiting::ForWrite;
        let request = StoreRequest::Write { attempt, write, based_on, fencing_token };
        self.ask_store(world, request);
    }

    fn ask_store(&self, world: &mut World, request: StoreRequest) {
        let message = Arrival::Message(Packet::StoreRequest(request));
        world.send(self.store, Direction::Up, message);
    }
}

impl Task {
    fn leave(&mut self, world: &mut World) {
        if let Some(held) = self.held.as_mut().filter(|held| held.in_section) {
            held.in_section = false;
            let attempt = held.attempt;
            world.record(EventKind::SectionLeft { attempt });
        }
    }

    /// Skips to the next release: the lease is over, and nothing else is left to do with it.
    fn go_on_at_release(&mut self, world: &mut World) {
        self.leave(world);
        self.script.skip_to_release();
    }

    /// Skips to the next acquisition, because there is no lease.
    pub(super) fn without_lease(&mut self, world: &mut World) {
        world.record(EventKind::GaveUp { client: self.client });
        self.waiting = Waiting::Nothing;
        self.script.skip_to_acquire();
    }
}
