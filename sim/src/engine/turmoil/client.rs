//! A client process: one future beneath one gate.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use redlock_client::environment::{BoxFuture, Environment};
use redlock_client::observe::Observer;
use redlock_client::{Builder, Redlock};

use super::application::Application;
use super::environment::{HostEnvironment, Sleep};
use super::observer::HistoryObserver;
use super::simulation::node_name;
use super::world::{Due, World};
use crate::engine::stage::plan::{Plan, PlannedOp};
use crate::scenario;

/// The client at `place`, but for its environment; the place after the last one is the probe's.
pub(super) fn builder(plan: &Plan, place: usize) -> Builder {
    let scenario = &plan.scenario;
    let lock = &scenario.lock;
    let ttl = |client: &scenario::Client| client.ttl.unwrap_or(lock.ttl);
    let own = scenario.clients.get(place).unwrap_or(&scenario.clients[0]);
    let nodes = (0..plan.nodes.len()).map(|node| format!("redis://{}", node_name(node)));
    Redlock::builder()
        .nodes(nodes)
        .ttl(ttl(own).duration())
        .fleet_max_ttl(scenario.fleet_max_ttl().duration())
        .node_timeout(lock.node_timeout.duration())
        .min_validity(lock.min_validity.duration())
        .restart_guard(lock.restart_guard.into())
        .tuning(lock.drift.into(), lock.retry.into())
}

/// Everything that a client process runs. While the process is stopped nothing of it is polled.
pub(super) struct Process {
    world: Arc<World>,
    client: u8,
    tasks: Vec<BoxFuture<'static, ()>>,
}

impl Process {
    /// The process of `client`, whose application does `ops`. Warm connections are opened before
    /// the scenario begins.
    pub(super) fn new(world: &Arc<World>, client: u8, warm: bool, ops: Vec<PlannedOp>) -> Self {
        let environment = HostEnvironment { world: Arc::clone(world), client };
        let observer = HistoryObserver { world: Arc::clone(world), client };
        let redlock = builder(&world.plan, usize::from(client))
            .environment(Arc::new(environment) as Arc<dyn Environment>)
            .observer(Arc::new(observer) as Arc<dyn Observer>)
            .build()
            .expect("what this engine cannot play has been refused");
        let shared = Arc::clone(world);
        let main = Box::pin(async move {
            if warm {
                redlock.connect().await;
            }
            Sleep::new(Arc::clone(&shared), Due::True { at_ns: 0 }).await;
            Application::new(shared, client, redlock, ops).run().await;
        });
        Self { world: Arc::clone(world), client, tasks: vec![main] }
    }
}

impl Future for Process {
    type Output = turmoil::Result;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let process = self.get_mut();
        loop {
            let mut state = process.world.lock();
            let host = &mut state.clients[usize::from(process.client)];
            host.waker = Some(context.waker().clone());
            process.tasks.append(&mut host.spawned);
            let runs = state.runs(process.client);
            drop(state);
            if !runs {
                return Poll::Pending;
            }
            process.tasks.retain_mut(|task| task.as_mut().poll(context).is_pending());
            // What a task has spawned is polled at once.
            if process.world.lock().clients[usize::from(process.client)].spawned.is_empty() {
                return Poll::Pending;
            }
        }
    }
}
