//! All masters, and everything around them that a scenario describes.

#![expect(clippy::disallowed_methods, reason = "disks are synced in real time")]

mod judging;
mod stages;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lock_judge::history::{ClockKind, EventKind, HostId, NodeId};
use lock_judge::ids::{IdVec, StrikeId};
use lock_judge::scenario::Case;
use redis_sim::server::Server;
use redis_sim::{Persistence, SmallBytes};
use tokio::sync::Notify;

pub(super) use self::stages::Stage;
use super::Setup;
use super::identity::RunMark;
use super::node::Node;
use super::recorder::Recorder;
use super::run_clock::RunClock;
use super::verdict::Verdict;
use super::workers::{NoWorker, Workers};
use crate::keys::writer_of;
use crate::plan::{FaultEffect, Plan, PlannedFault};

/// The world of one run.
pub(super) struct World {
    pub(super) case: Case,
    pub(super) plan: Plan,
    pub(super) seed: u64,
    pub(super) clock: Arc<RunClock>,
    pub(super) recorder: Arc<Recorder>,
    pub(super) nodes: IdVec<NodeId, Arc<Node>>,
    ended: Notify,
    is_ended: AtomicBool,
    describe: Describe,
    /// Directory for reports.
    pub(super) out: PathBuf,
    mark: RunMark,
    /// The processes of workers.
    pub(super) workers: Workers,
    /// Stage of each planned fault. A fault of several hosts has one planned fault per host.
    stages: Mutex<IdVec<StrikeId, Stage>>,
}

/// A function that describes a verdict in words.
pub type Describe = fn(&Verdict) -> Vec<String>;

impl World {
    pub(super) fn new(
        setup: &Setup,
        plan: Plan,
        clock: Arc<RunClock>,
        recorder: Arc<Recorder>,
        nodes: IdVec<NodeId, Arc<Node>>,
        mark: RunMark,
    ) -> Self {
        let stages = Mutex::new(IdVec::filled(plan.faults.len(), Stage::Waiting));
        Self {
            case: setup.case.clone(),
            plan,
            seed: setup.seed,
            clock,
            recorder,
            nodes,
            ended: Notify::new(),
            is_ended: AtomicBool::new(false),
            describe: setup.describe,
            out: setup.out.clone(),
            mark,
            workers: Workers::default(),
            stages,
        }
    }

    /// Returns the node whose server is on `host`; `serve` has no replicas.
    ///
    /// # Panics
    ///
    /// If the host has no server.
    pub(super) fn node_on(&self, host: HostId) -> &Arc<Node> {
        &self.nodes[self.plan.node_at(host)]
    }

    /// Ends the run.
    pub(super) fn end(&self) {
        self.is_ended.store(true, Ordering::Release);
        self.ended.notify_waiters();
    }

    /// Waits until the run is ended by [`World::end`].
    pub(super) async fn ended(&self) {
        loop {
            let mut ended = core::pin::pin!(self.ended.notified());
            ended.as_mut().enable();
            if self.is_ended.load(Ordering::Acquire) {
                return;
            }
            ended.await;
        }
    }

    /// Describes a verdict in words.
    pub(super) fn describe(&self, verdict: &Verdict) -> Vec<String> {
        (self.describe)(verdict)
    }

    /// Returns the readings of the nodes' wall clocks at time 0.
    pub(super) fn walls_at_start_ns(&self) -> IdVec<NodeId, u64> {
        let origin_ns = self.clock.origin_ns().unwrap_or(0);
        let offsets = self.nodes.ids().map(|node| self.plan.clocks[node.first_host()].0);
        let clocks = offsets.map(|offset_ns| self.clock.clocks(offset_ns));
        clocks.map(|clocks| clocks.read(ClockKind::Wall, origin_ns)).collect()
    }

    /// Waits for the scenario's time 0, and returns it.
    pub(super) async fn started(&self) -> u64 {
        loop {
            let mut started = core::pin::pin!(self.recorder.started.notified());
            started.as_mut().enable();
            if let Some(origin_ns) = self.clock.origin_ns() {
                return origin_ns;
            }
            started.await;
        }
    }

    /// Notes the process of a client that a fault pauses.
    pub(super) fn name_worker(&self, who: &[u8], pid: &[u8]) -> Result<(), NoWorker> {
        let is_paused = |host| {
            let stops = |it: &PlannedFault| matches!(it.effect, FaultEffect::Stop { host: it, .. } if it == host);
            self.plan.faults.values().any(stops)
        };
        let client =
            core::str::from_utf8(who).ok().and_then(|it| self.plan.scenario.client_named(it));
        let client = client.filter(|&it| is_paused(self.plan.client_host(it)));
        self.workers.name(client.ok_or(NoWorker::NeverPaused)?, pid)
    }

    /// Returns the keys under which clients keep the lock at a server.
    pub(super) fn lock_keys(&self, server: &Server) -> Vec<SmallBytes> {
        let keys = server.keyspace().iter().map(|(key, _)| key);
        keys.filter(|key| self.recorder.is_key(0, key)).cloned().collect()
    }

    /// Moves the wall clock of `node`. The caller holds its server as `_still`, so that every
    /// command is executed and recorded on the same side of the jump.
    pub(super) fn step_clock(&self, node: &Node, _still: &Server, by_ns: i64) {
        node.clocks().step_wall(by_ns, self.clock.now_ns());
        self.tell_clock(node);
    }

    /// Changes the rate of the clocks of `node`, whose server the caller holds as `_still`.
    pub(super) fn set_rate(&self, node: &Node, _still: &Server, rate_ppb: i32) {
        node.clocks().set_rate(rate_ppb, self.clock.now_ns());
        self.tell_clock(node);
    }

    /// Records the wall clock of `node`; a master uses no other clock.
    fn tell_clock(&self, node: &Node) {
        let segment = node.clocks().segment(ClockKind::Wall);
        self.recorder.tell(EventKind::Clock {
            host: node.id.first_host(),
            clock: ClockKind::Wall,
            local_ns: segment.local_at(self.clock.now_ns()),
            rate_ppb: segment.rate_ppb,
        });
    }

    /// Starts a new process on `node`, unless one is running.
    pub(super) async fn restart(&self, node: &Arc<Node>) {
        let mut server = node.server().await;
        if server.is_running() {
            return;
        }
        let wall_ms = node.wall_ns() / 1_000_000;
        let incarnation = server.incarnation() + 1;
        let id = node.id;
        server.restart(
            self.mark.run_id(id, incarnation),
            wall_ms,
            |ended| node.tell_of(&ended),
            |database, key, entry| {
                if self.recorder.is_key(database, key) {
                    let expires_wall_ms = entry.expires_wall_ms.unwrap_or(u64::MAX);
                    let writer = writer_of(entry.writer);
                    let returned = EventKind::KeyReturned { node: id, writer, expires_wall_ms };
                    self.recorder.tell(returned);
                }
            },
        );
        server.forget();
        node.executor.revive(&server);
        self.recorder.tell(EventKind::NodeUp { node: id, incarnation });
        drop(server);
        node.change(|node_faults| node_faults.rise(incarnation));
        node.reopen_door(incarnation).await;
    }

    /// Runs the background syncs of a node, once a second.
    pub(super) async fn sync_disk(self: Arc<Self>, node: Arc<Node>) {
        let storage = self.plan.servers[node.id.first_server()].storage;
        if storage.persistence != Persistence::Everysec {
            return;
        }
        let origin_ns = self.started().await;
        let takes = Duration::from_nanos(self.plan.sync_takes_ns);
        let mut at_ns = origin_ns + self.plan.sync_at_ns.unwrap_or(0);
        loop {
            self.clock.sleep_until(at_ns).await;
            at_ns += 1_000_000_000;
            let incarnation = {
                let mut server = node.server().await;
                let disk = server.disk_mut();
                if disk.is_syncing() || !disk.is_sync_due() {
                    continue;
                }
                disk.begin_sync();
                node.sync_begins();
                server.incarnation()
            };
            tokio::time::sleep(takes).await;
            let mut server = node.server().await;
            if server.incarnation() == incarnation && server.disk().is_syncing() {
                server.disk_mut().end_sync();
                node.sync_ends();
            }
        }
    }
}
