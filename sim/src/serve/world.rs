//! All masters, and everything around them that a scenario speaks of.

#![expect(clippy::disallowed_methods, reason = "disks are synced in real time")]

mod judging;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::chronicle::Chronicle;
use super::hours::Hours;
use super::identity;
use super::node::Node;
use super::verdict::Verdict;
use crate::engine::stage::plan::Plan;
use crate::history::{ClockKind, EventKind, HostIndex};
use crate::master::SmallBytes;
use crate::master::server::Server;
use crate::scenario::{Case, Persistence};

/// The world of one run.
pub(super) struct World {
    pub(super) case: Case,
    pub(super) plan: Plan,
    pub(super) seed: u64,
    pub(super) hours: Arc<Hours>,
    pub(super) chronicle: Arc<Chronicle>,
    pub(super) nodes: Vec<Arc<Node>>,
    ended: Notify,
    is_ended: AtomicBool,
    describe: Describe,
    /// Where reports are to be written.
    pub(super) out: PathBuf,
    /// How far each of the planned faults is, of which a fault at a group of hosts has several.
    stages: Mutex<Vec<Stage>>,
}

/// How a verdict is told to people.
pub type Describe = fn(&Verdict) -> Vec<String>;

/// How far a fault is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    Waiting,
    Begun,
    Over,
}

impl World {
    pub(super) fn new(
        (case, plan, seed): (Case, Plan, u64),
        (describe, out): (Describe, PathBuf),
        (hours, chronicle, nodes): (Arc<Hours>, Arc<Chronicle>, Vec<Arc<Node>>),
    ) -> Self {
        let stages = Mutex::new(vec![Stage::Waiting; plan.faults.len()]);
        Self {
            case,
            plan,
            seed,
            hours,
            chronicle,
            nodes,
            ended: Notify::new(),
            is_ended: AtomicBool::new(false),
            describe,
            out,
            stages,
        }
    }

    /// The run is to end.
    pub(super) fn end(&self) {
        self.is_ended.store(true, Ordering::Release);
        self.ended.notify_waiters();
    }

    /// Waits until somebody ends the run.
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

    /// A verdict in words.
    pub(super) fn describe(&self, verdict: &Verdict) -> Vec<String> {
        (self.describe)(verdict)
    }

    /// What the nodes' wall clocks read at time 0.
    pub(super) fn walls_at_start_ns(&self) -> Vec<u64> {
        let origin_ns = self.hours.origin_ns().unwrap_or(0);
        let offsets =
            self.plan.clocks.iter().take(self.nodes.len()).map(|(offset_ns, _)| offset_ns);
        let clocks = offsets.map(|offset_ns| self.hours.clocks(*offset_ns));
        clocks.map(|clocks| clocks.read(ClockKind::Wall, origin_ns)).collect()
    }

    /// Waits for the scenario's time 0, and says when it was.
    pub(super) async fn started(&self) -> u64 {
        loop {
            let mut started = core::pin::pin!(self.chronicle.started.notified());
            started.as_mut().enable();
            if let Some(origin_ns) = self.hours.origin_ns() {
                return origin_ns;
            }
            started.await;
        }
    }

    fn stages(&self) -> MutexGuard<'_, Vec<Stage>> {
        self.stages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far each host of `fault` is with it.
    fn stages_of(&self, stages: &[Stage], fault: usize) -> impl Iterator<Item = Stage> {
        let planned = self.plan.faults.iter().zip(stages);
        planned.filter(move |(it, _)| usize::from(it.place) == fault).map(|(_, stage)| *stage)
    }

    /// A planned fault is about to happen to its host: history tells of the first host.
    pub(super) fn begins(&self, place: usize) {
        let fault = self.plan.faults[place].place;
        let stages = self.stages();
        if self.stages_of(&stages, fault.into()).all(|stage| stage == Stage::Waiting) {
            self.chronicle.tell(EventKind::FaultBegan { fault });
        }
    }

    /// It has happened.
    pub(super) fn has_begun(&self, place: usize) {
        self.stages()[place] = Stage::Begun;
    }

    /// It is over for its host: history tells of the last one.
    pub(super) fn is_over(&self, place: usize) {
        let fault = self.plan.faults[place].place;
        let mut stages = self.stages();
        stages[place] = Stage::Over;
        if self.stages_of(&stages, fault.into()).all(|stage| stage == Stage::Over) {
            self.chronicle.tell(EventKind::FaultEnded { fault });
        }
    }

    /// The faults, and how far each is: as far as the host that is least far.
    pub(super) fn faults(&self) -> Vec<(String, Stage)> {
        let stages = self.stages();
        let faults = self.plan.scenario.faults.iter().enumerate();
        let stage = |fault| self.stages_of(&stages, fault).min().unwrap_or(Stage::Waiting);
        faults.map(|(fault, it)| (it.id.clone(), stage(fault))).collect()
    }

    /// The names under which clients keep the lock at a server.
    pub(super) fn lock_keys(&self, server: &Server) -> Vec<SmallBytes> {
        let keys = server.keyspace().iter().map(|(key, _)| key);
        keys.filter(|key| self.chronicle.is_key(key)).cloned().collect()
    }

    /// Moves the wall clock of `node`, whose server is `_still` meanwhile: what it executes is told
    /// on the same side of the jump as it is done.
    pub(super) fn step_clock(&self, node: &Node, _still: &Server, by_ns: i64) {
        node.clocks().step_wall(by_ns, self.hours.now_ns());
        self.tell_clock(node);
    }

    /// Bends the clocks of `node`, whose server is `_still` meanwhile.
    pub(super) fn set_rate(&self, node: &Node, _still: &Server, rate_ppb: i32) {
        node.clocks().set_rate(rate_ppb, self.hours.now_ns());
        self.tell_clock(node);
    }

    /// A master uses its wall clock alone.
    fn tell_clock(&self, node: &Node) {
        let segment = node.clocks().segment(ClockKind::Wall);
        self.chronicle.tell(EventKind::Clock {
            host: HostIndex(node.place),
            clock: ClockKind::Wall,
            local_ns: segment.local_at(self.hours.now_ns()),
            rate_ppb: segment.rate_ppb,
        });
    }

    /// Starts a new process on `node`, if there is none.
    pub(super) async fn restart(&self, node: &Arc<Node>) {
        let mut server = node.server().await;
        if server.is_running() {
            return;
        }
        let wall_ms = node.wall_ns() / 1_000_000;
        let incarnation = server.incarnation() + 1;
        let place = node.place;
        server.restart(
            identity::run_id(place, incarnation),
            wall_ms,
            |ended| node.tell_of(&ended),
            |key, entry| {
                if self.chronicle.is_key(key) {
                    let expires_wall_ms = entry.expires_wall_ms.unwrap_or(u64::MAX);
                    let writer = entry.writer;
                    let returned = EventKind::KeyReturned { node: place, writer, expires_wall_ms };
                    self.chronicle.tell(returned);
                }
            },
        );
        server.forget();
        node.executor.revive(&server);
        self.chronicle.tell(EventKind::NodeUp { node: place, incarnation });
        drop(server);
        node.change(|weather| weather.rise(incarnation));
        node.reopen_door(incarnation).await;
    }

    /// The background syncs of a node, once a second.
    pub(super) async fn sync_disk(self: Arc<Self>, node: Arc<Node>) {
        let storage = self.plan.nodes[usize::from(node.place)].storage;
        if storage.persistence != Persistence::Everysec {
            return;
        }
        let origin_ns = self.started().await;
        let takes = Duration::from_nanos(self.plan.sync_takes_ns);
        let mut at_ns = origin_ns + self.plan.sync_at_ns.unwrap_or(0);
        loop {
            self.hours.sleep_until(at_ns).await;
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
