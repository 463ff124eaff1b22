//! A client process: one future behind one gate.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use lock_judge::history::ClientId;
use lock_judge::scenario::{self, AttemptStep};
use redlock_client::environment::{BoxFuture, Environment};
use redlock_client::observe::Observer;
use redlock_client::{Builder, Redlock, RestartGuard};

use super::application::Application;
use super::environment::HostEnvironment;
use super::names::node_name;
use super::observer::HistoryObserver;
use super::shared::{Phase, Shared, State};
use crate::plan::{Plan, PlannedOp};
use crate::terms;

/// Returns the builder of a client, without an environment. The probe has the first client's.
pub(super) fn builder(plan: &Plan, client: ClientId) -> Builder {
    let scenario = &plan.scenario;
    let lock = &scenario.lock;
    let own = scenario.client(client).unwrap_or(&scenario.clients[0]);
    let members = plan.members(client).iter();
    let nodes = members.map(|node| format!("redis://{}", node_name(*node)));
    Redlock::builder()
        .nodes(nodes)
        .ttl(scenario.ttl_of(own).duration())
        .fleet_max_ttl(scenario.fleet_max_ttl().duration())
        .node_timeout(lock.node_timeout.duration())
        .min_validity(lock.min_validity.duration())
        .restart_guard(restart_guard(lock.restart_guard))
        .extensions_max(lock.extensions_max)
        .tuning(terms::drift(lock.drift), terms::retry(lock.retry), terms::window(lock.window))
}

fn restart_guard(guard: scenario::RestartGuard) -> RestartGuard {
    match guard {
        scenario::RestartGuard::DelayedRestart => RestartGuard::DelayedRestart,
        scenario::RestartGuard::Durable => RestartGuard::Durable,
        scenario::RestartGuard::Quarantine => RestartGuard::Quarantine,
    }
}

/// Everything that a client process runs. While the process is stopped, none of it is polled.
pub(super) struct Process {
    shared: Arc<Shared>,
    client: ClientId,
    root: Arc<Root>,
    tasks: Vec<Task>,
}

impl Process {
    /// Returns the process of `client`. Its application does `ops` once the process is part of the
    /// world.
    pub(super) fn new(shared: &Arc<Shared>, client: ClientId, ops: Vec<PlannedOp>) -> Self {
        let environment = HostEnvironment { shared: Arc::clone(shared), client };
        let observer = HistoryObserver { shared: Arc::clone(shared), client };
        let redlock = builder(&shared.plan, client)
            .environment(Arc::new(environment) as Arc<dyn Environment>)
            .observer(Arc::new(observer) as Arc<dyn Observer>)
            .build()
            .expect("what this engine cannot play has been refused");
        let own = Arc::clone(shared);
        let main = Box::pin(async move {
            in_phase(&own, client, |phase| phase != Phase::Idle).await;
            if own.lock().is_warming(client) {
                // Not awaited: the connections are open when the world says so.
                let _ = redlock.ready(std::time::Duration::ZERO).await;
            }
            in_phase(&own, client, |phase| phase == Phase::Started).await;
            Application::new(own, client, redlock, ops).run().await;
        });
        let root = Arc::new(Root::default());
        let tasks = vec![Task::new(main, &root)];
        Self { shared: Arc::clone(shared), client, root, tasks }
    }
}

/// Waits until the process is in a `wanted` phase.
async fn in_phase(shared: &Shared, client: ClientId, wanted: impl Fn(Phase) -> bool) {
    poll_fn(|_| {
        let is_there = wanted(shared.lock().clients[client].phase);
        if is_there { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

impl Future for Process {
    type Output = turmoil::Result;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let process = self.get_mut();
        loop {
            let mut state = process.shared.lock();
            state.active = true;
            let host = &mut state.clients[process.client];
            host.waker = Some(context.waker().clone());
            let everybody = core::mem::take(&mut host.called);
            let spawned = core::mem::take(&mut host.spawned);
            drop(state);
            process.root.follow(context.waker());
            process.tasks.extend(spawned.into_iter().map(|it| Task::new(it, &process.root)));
            process.turn(everybody);
            let state = process.shared.lock();
            // A newly spawned task is polled at once.
            if !state.runs(process.client) || state.clients[process.client].spawned.is_empty() {
                return Poll::Pending;
            }
        }
    }
}

impl Process {
    /// Polls every woken task, as long as the process may run.
    fn turn(&mut self, everybody: bool) {
        let (shared, client) = (&self.shared, self.client);
        if everybody {
            self.tasks.iter().for_each(|task| task.wakes.woken.store(true, Ordering::Relaxed));
        }
        self.tasks.retain_mut(|task| {
            let goes_on = task.is_woken() && shared.lock().goes_on(client);
            !goes_on || task.poll().is_pending()
        });
    }
}

/// A task of the process; it runs when it is woken and the process runs.
struct Task {
    future: BoxFuture<'static, ()>,
    wakes: Arc<TaskWaker>,
}

impl Task {
    fn new(future: BoxFuture<'static, ()>, root: &Arc<Root>) -> Self {
        let (woken, root) = (AtomicBool::new(true), Arc::clone(root));
        Self { future, wakes: Arc::new(TaskWaker { woken, root }) }
    }

    fn is_woken(&self) -> bool {
        self.wakes.woken.load(Ordering::Relaxed)
    }

    fn poll(&mut self) -> Poll<()> {
        self.wakes.woken.store(false, Ordering::Relaxed);
        let waker = Waker::from(Arc::clone(&self.wakes));
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }
}

/// Wakes a task and its process.
struct TaskWaker {
    woken: AtomicBool,
    root: Arc<Root>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Relaxed);
        let root = self.root.0.lock().unwrap_or_else(PoisonError::into_inner);
        root.iter().for_each(Waker::wake_by_ref);
    }
}

/// Wakes the process.
#[derive(Default)]
struct Root(Mutex<Option<Waker>>);

impl Root {
    fn follow(&self, waker: &Waker) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker.clone());
    }
}

impl State {
    /// Returns true if the process takes its next step; a fault may stop it before it delivers a
    /// lease.
    fn goes_on(&mut self, client: ClientId) -> bool {
        let to_deliver = self.clients[client].to_deliver;
        if let Some(attempt) = to_deliver.filter(|_| self.runs(client)) {
            self.reach(attempt, AttemptStep::Deliver, None);
        }
        self.runs(client)
    }
}
