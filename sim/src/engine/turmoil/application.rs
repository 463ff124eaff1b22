//! The application that uses the lock: the scenario's steps, one after the other.

use std::future::{Future, IntoFuture, pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use lock_judge::history::{AttemptId, BasedOn, ClientId, EventKind, FencingToken, Refusal};
use lock_judge::scenario::{Acquire, AttemptStep};
use redlock_client::environment::Environment;
use redlock_client::{AcquireError, AcquireErrorKind, ExtendErrorKind, KeepAlive, Lease, Redlock};

use super::environment::{HostEnvironment, Sleep};
use super::shared::{Due, Shared};
use crate::plan::{Op, PlannedOp, Script};
use crate::resource::StoreRequest;
use crate::world::{Arrival, Direction, Input, Packet};

/// The lease that the application holds.
struct Held {
    lease: Lease,
    attempt: AttemptId,
    fencing_token: FencingToken,
    seen: BasedOn,
    in_section: bool,
}

/// One client's application.
pub(super) struct Application {
    shared: Arc<Shared>,
    client: ClientId,
    redlock: Redlock,
    script: Script,
    held: Option<Held>,
}

impl Application {
    pub(super) fn new(
        shared: Arc<Shared>,
        client: ClientId,
        redlock: Redlock,
        ops: Vec<PlannedOp>,
    ) -> Self {
        Self { shared, client, redlock, script: Script::new(ops), held: None }
    }

    /// Takes all steps, then stays: a process with nothing left to do keeps its lease.
    pub(super) async fn run(mut self) {
        while let Some(PlannedOp { not_before_ns, op }) = self.script.next() {
            self.until(not_before_ns).await;
            self.reach(op).await;
            self.script.advance();
            self.perform(op).await;
        }
        self.shared.lock().clients[self.client].done = true;
        pending::<()>().await;
    }

    async fn perform(&mut self, op: Op) {
        match op {
            Op::Acquire(acquire) => self.acquire(acquire).await,
            Op::Sleep { ns } => self.sleep(ns).await,
            Op::SleepOrLost { ns } => self.sleep_or_lost(ns).await,
            Op::AwaitLost => {
                if let Some(held) = &self.held {
                    held.lease.lost().await;
                }
            }
            Op::Check => self.check(),
            Op::Enter => self.enter(),
            Op::Leave => self.leave(),
            Op::Extend { ttl_ns } => self.extend(ttl_ns).await,
            Op::Release => self.release().await,
            Op::Read => self.read().await,
            Op::Write { blind } => self.write(blind).await,
        }
    }

    fn sleep(&self, ns: u64) -> Sleep {
        let boot_ns = self.shared.lock().boot_ns(self.client);
        let due = Due::Boot { client: self.client, at_ns: boot_ns + ns };
        Sleep::new(Arc::clone(&self.shared), due)
    }

    async fn sleep_or_lost(&self, ns: u64) {
        let Some(held) = &self.held else { return };
        let (mut sleep, mut lost) = (self.sleep(ns), held.lease.lost());
        poll_fn(|context| {
            let is_over = Pin::new(&mut sleep).poll(context).is_ready()
                || Pin::new(&mut lost).poll(context).is_ready();
            if is_over { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    fn until(&self, at_ns: u64) -> Sleep {
        Sleep::new(Arc::clone(&self.shared), Due::True { client: self.client, at_ns })
    }

    /// Begins the faults that wait for this step; if they stop the process, the step waits too.
    async fn reach(&self, op: Op) {
        let held = self.held.as_ref().map(|held| held.attempt);
        let next = || {
            let number = self.shared.lock().clients[self.client].draws as u16 + 1;
            AttemptId { client: self.client, number }
        };
        let (attempt, point) = match (op, held) {
            (Op::Acquire(_), _) if !self.has_lease() => (next(), AttemptStep::T1),
            (Op::Enter, Some(attempt)) => (attempt, AttemptStep::Enter),
            (Op::Check, Some(attempt)) => (attempt, AttemptStep::Check),
            (Op::Write { .. }, Some(attempt)) => (attempt, AttemptStep::StoreWrite),
            _ => return,
        };
        poll_fn(|_| {
            let goes_on = self.shared.lock().reach(attempt, point, None);
            if goes_on { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    fn has_lease(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.lease.is_valid())
    }

    fn record(&self, kind: EventKind) {
        self.shared.lock().record(kind);
    }

    async fn acquire(&mut self, acquire: Acquire) {
        // An application that holds a live lease does not ask for another.
        if self.has_lease() {
            return;
        }
        self.release().await;
        let resource = self.shared.plan.scenario.lock.resource.as_str();
        let wanted = self.redlock.acquire(resource);
        let wanted = match (acquire.wait, acquire.attempts, acquire.until) {
            (Some(wait), _, _) => wanted.wait(wait.min.duration()),
            (_, Some(attempts), _) => wanted.attempts(attempts),
            (_, _, Some(_)) => wanted.wait(Duration::MAX),
            (None, None, None) if acquire.at_once => self.redlock.try_acquire(resource),
            (None, None, None) => wanted.attempts(1),
        };
        let wanted = match acquire.keep_alive {
            Some(at_most) => wanted.keep_alive(KeepAlive::at_most(at_most.duration())),
            None => wanted,
        };
        let wanted = match acquire.ttl {
            Some(ttl) => wanted.ttl(ttl.duration()),
            None => wanted,
        };
        let mut acquiring = wanted.into_future();
        let mut cancelled = pin!(self.until(acquire.until.map_or(u64::MAX, |until| until.0)));
        let outcome = poll_fn(|context| match Pin::new(&mut acquiring).poll(context) {
            Poll::Ready(outcome) => Poll::Ready(lease(outcome)),
            Poll::Pending => cancelled.as_mut().poll(context).map(|()| None),
        });
        let outcome = outcome.await;
        drop(acquiring);
        match outcome {
            Some(lease) => {
                let (attempt, fencing_token) = {
                    let host = &self.shared.lock().clients[self.client];
                    (host.attempts[lease.owner().as_bytes()], host.fencing_token)
                };
                let (seen, in_section) = (BasedOn::NOTHING, false);
                self.held = Some(Held { lease, attempt, fencing_token, seen, in_section });
            }
            None => {
                self.record(EventKind::GaveUp { client: self.client });
                self.script.skip_to_acquire();
            }
        }
    }

    /// Asks for an extension, and continues whether it succeeds or fails. Records a refusal to
    /// begin one: the client's observer reports only extensions that have begun.
    async fn extend(&mut self, ttl_ns: u64) {
        let Some(held) = &self.held else { return };
        let rounds = self.rounds();
        let extended = held.lease.extend(Duration::from_nanos(ttl_ns)).await;
        let is_lost = |kind| matches!(kind, ExtendErrorKind::Lost(_));
        let attempt = held.attempt;
        let why = match extended.map_err(|error| error.kind()) {
            Err(ExtendErrorKind::Invalid) => Refusal::TooLong,
            Err(ExtendErrorKind::TooMany) => Refusal::TooMany,
            Err(ExtendErrorKind::WouldShorten) => Refusal::WouldShorten,
            // The lease may have ended while the extension was under way.
            Err(kind) if is_lost(kind) && self.rounds() == rounds => Refusal::Lost,
            _ => return,
        };
        self.record(EventKind::ExtensionRefused { attempt, ttl_ns, why });
    }

    /// Returns the number of extensions of the lease that the client has reported.
    fn rounds(&self) -> u16 {
        self.shared.lock().clients[self.client].rounds
    }

    fn check(&mut self) {
        let Some(held) = &self.held else { return };
        let (attempt, alive) = (held.attempt, held.lease.is_valid());
        self.record(EventKind::Checked { attempt, alive });
        if !alive {
            self.leave();
            self.script.skip_to_release();
        }
    }

    fn enter(&mut self) {
        if let Some(held) = &mut self.held {
            held.in_section = true;
            let attempt = held.attempt;
            self.record(EventKind::SectionEntered { attempt });
        }
    }

    fn leave(&mut self) {
        if let Some(held) = self.held.as_mut().filter(|held| held.in_section) {
            held.in_section = false;
            let attempt = held.attempt;
            self.record(EventKind::SectionLeft { attempt });
        }
    }

    /// Releases the lease. The release continues in the background; the application does not wait
    /// for the nodes.
    async fn release(&mut self) {
        self.leave();
        let Some(held) = self.held.take() else { return };
        let mut releasing = Box::pin(held.lease.release());
        let begun = poll_fn(|context| Poll::Ready(releasing.as_mut().poll(context))).await;
        if begun.is_pending() {
            let environment =
                HostEnvironment { shared: Arc::clone(&self.shared), client: self.client };
            environment.spawn(Box::pin(async move { drop(releasing.await) }));
        }
    }

    async fn read(&mut self) {
        let Some(held) = &self.held else { return };
        let (attempt, fencing_token) = (held.attempt, held.fencing_token);
        self.ask_store(StoreRequest::Read { attempt, fencing_token });
        let version = poll_fn(|_| match self.served() {
            Some(Input::StoreVersion(_, version)) => Poll::Ready(version),
            _ => Poll::Pending,
        });
        let version = version.await;
        if let Some(held) = &mut self.held {
            held.seen = BasedOn::on(version);
        }
        self.record(EventKind::ReadDone { attempt, version });
    }

    /// Writes to the resource. The wait for the reply ends early if the application learns that the
    /// lease is over.
    async fn write(&mut self, blind: bool) {
        let Some(held) = &self.held else { return };
        let Held { attempt, fencing_token, seen, .. } = *held;
        let based_on = if blind { BasedOn::NOTHING } else { seen };
        let write = {
            let mut state = self.shared.lock();
            let write = state.world.resource.number_write();
            state.record(EventKind::WriteSent { attempt, write, based_on, fencing_token });
            write
        };
        self.ask_store(StoreRequest::Write { attempt, write, based_on, fencing_token });
        let mut lost = held.lease.lost();
        poll_fn(|context| {
            let is_served = matches!(self.served(), Some(Input::StoreServed(_)));
            let is_over = is_served || Pin::new(&mut lost).poll(context).is_ready();
            if is_over { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    fn ask_store(&self, request: StoreRequest) {
        let mut state = self.shared.lock();
        let client = &mut state.clients[self.client];
        client.served = None;
        let (store, message) = (client.store, Arrival::Message(Packet::StoreRequest(request)));
        state.world.send(store, Direction::Up, message);
    }

    /// Takes the latest reply of the resource.
    fn served(&self) -> Option<Input> {
        self.shared.lock().clients[self.client].served.take()
    }
}

/// Returns the lease of an acquisition, if it has one.
fn lease(outcome: Result<Lease, AcquireError>) -> Option<Lease> {
    match outcome {
        Err(error) if error.kind() == AcquireErrorKind::Invalid => {
            panic!("the check of the scenario has let through what the client refuses: {error}")
        }
        outcome => outcome.ok(),
    }
}
