//! The scenario's faults, on the real clock.

mod effect;

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;

use lock_judge::history::{
    ClientIds, ClockKind, EventKind, FaultId, HostId, HostIds, NodeId, OpKind,
};
use lock_judge::ids::{IdVec, StrikeId};
use lock_judge::scenario::Message;
use redis_sim::server::Server;
use redis_sim::{Ended, Master};
use tokio::sync::MutexGuard;
use tokio::task::JoinHandle;

use self::effect::{Effect, LinkChange, ServerChange};
use super::node::Node;
use super::node_faults::{Cut, Life, Slow};
use super::world::World;
use crate::plan::{Begin, Death, End, FaultEffect, Manner, PlannedFault};

/// The faults of a run, and when each begins or ends next.
pub(super) struct Faults {
    world: Arc<World>,
    next: IdVec<StrikeId, Option<Next>>,
    /// The previous step of each fault, if it is still waiting for a script.
    under_way: IdVec<StrikeId, Option<JoinHandle<()>>>,
}

/// The next step of a fault, in true time since the scenario's time 0.
#[derive(Clone, Copy, Debug)]
enum Next {
    Begins(u64),
    /// The fault begins when it is asked for.
    Asked,
    Ends(u64),
    /// The fault ends when a clock of the host reads this.
    EndsOn {
        host: HostId,
        clock: ClockKind,
        local_ns: u64,
    },
}

impl Faults {
    pub(super) fn new(world: Arc<World>) -> Self {
        let next = world.plan.faults.values().map(|fault| match fault.begin {
            Begin::At(at_ns) => Some(Next::Begins(at_ns)),
            Begin::Before { .. } => Some(Next::Asked),
        });
        let under_way = world.plan.faults.values().map(|_| None).collect();
        Self { next: next.collect(), under_way, world }
    }

    /// Runs all faults, from the scenario's time 0 on.
    pub(super) async fn run(mut self) {
        let origin_ns = self.world.started().await;
        for id in self.world.nodes.ids() {
            let (_, rate_ppb) = self.world.plan.clocks[id.first_host()];
            if rate_ppb != 0 {
                let world = Arc::clone(&self.world);
                go(async move {
                    let node = &world.nodes[id];
                    world.set_rate(node, &*node.server().await, rate_ppb);
                })
                .await;
            }
        }
        loop {
            let due = self.next.iter();
            let due = due.filter_map(|(strike, next)| Some((self.at_ns((*next)?)?, strike))).min();
            let due_ns = due.map_or(u64::MAX, |(at_ns, _)| origin_ns.saturating_add(at_ns));
            tokio::select! {
                biased;
                fault = self.world.recorder.points.asked() => {
                    self.begin_now(fault, self.world.clock.now_ns() - origin_ns);
                    continue;
                }
                () = self.world.clock.sleep_until(due_ns) => {}
            }
            let Some((at_ns, strike)) = due else { return };
            let begins = matches!(self.next[strike], Some(Next::Begins(_)));
            self.next[strike] = if begins { self.end_of(strike, at_ns) } else { None };
            let strike_now = Strike { world: Arc::clone(&self.world), id: strike };
            let before = self.under_way[strike].take();
            let step = async move {
                if let Some(before) = before {
                    // If the previous step panicked, the panic was already reported.
                    let _ = before.await;
                }
                if begins { strike_now.begin().await } else { strike_now.end().await }
            };
            self.under_way[strike] = go(step).await;
        }
    }

    /// Makes the next occurrence of a fault begin at `now_ns`.
    fn begin_now(&mut self, fault: FaultId, now_ns: u64) {
        let planned = |strike| &self.world.plan.faults[strike];
        let waits = |(strike, next): &(StrikeId, &mut Option<Next>)| {
            planned(*strike).id == fault && matches!(next, Some(Next::Begins(_) | Next::Asked))
        };
        let waiting: Vec<_> = self.next.iter_mut().filter(waits).collect();
        let first = waiting.iter().map(|(strike, _)| planned(*strike).occurrence).min();
        for (strike, next) in waiting {
            if Some(planned(strike).occurrence) == first {
                *next = Some(Next::Begins(now_ns));
            }
        }
    }

    /// Returns the true time of a step at the current clock rates; `None` if it never comes.
    fn at_ns(&self, next: Next) -> Option<u64> {
        match next {
            Next::Begins(at_ns) | Next::Ends(at_ns) => Some(at_ns),
            Next::Asked => None,
            Next::EndsOn { host, clock, local_ns } => {
                let node = self.world.node_on(host);
                let true_ns = node.clocks().true_at(clock, local_ns)?;
                Some(true_ns.saturating_sub(self.world.clock.origin_ns()?))
            }
        }
    }

    /// Returns the end of a fault that begins at `at_ns`.
    fn end_of(&self, strike: StrikeId, at_ns: u64) -> Option<Next> {
        let PlannedFault { effect, end, .. } = self.world.plan.faults[strike];
        match end {
            End::At(ends_ns) => Some(Next::Ends(ends_ns)),
            End::After(lasts_ns) => Some(Next::Ends(at_ns + lasts_ns)),
            End::Instantly => Some(Next::Ends(at_ns)),
            End::Never => None,
            End::Measured { clock, after_ns } => {
                let FaultEffect::Die { host, .. } = effect else {
                    unreachable!("only restarts are measured")
                };
                let node = self.world.node_on(host);
                let now_ns = self.world.clock.now_ns();
                let local_ns = node.clocks().read(clock, now_ns).saturating_add(after_ns);
                Some(Next::EndsOn { host, clock, local_ns })
            }
        }
    }
}

/// Polls `step` once, and spawns the rest of it if it has to wait. So steps that are due at the
/// same time happen in order, and a script that blocks one master delays the faults of no other.
#[expect(clippy::disallowed_methods, reason = "masters on real sockets in real time")]
async fn go(step: impl Future<Output = ()> + Send + 'static) -> Option<JoinHandle<()>> {
    let mut step = Box::pin(step);
    let is_done = poll_fn(|context| Poll::Ready(step.as_mut().poll(context).is_ready())).await;
    if is_done { None } else { Some(tokio::spawn(step)) }
}

/// Returns the purpose of the requests that are such messages, if requests are.
fn op_of(message: Message) -> Option<OpKind> {
    match message {
        Message::Set => Some(OpKind::Set),
        Message::Extend => Some(OpKind::Extend),
        Message::Release => Some(OpKind::Release),
        Message::Answer | Message::Write => None,
    }
}

/// A planned fault at one host.
struct Strike {
    world: Arc<World>,
    id: StrikeId,
}

impl Strike {
    fn effect(&self) -> Effect {
        let plan = &self.world.plan;
        Effect::of(plan, plan.faults[self.id].effect)
    }

    async fn begin(&self) {
        let nodes = &self.world.nodes;
        match self.effect() {
            Effect::Death { node, death } => {
                let node = &nodes[node];
                // A script that never ends must not keep its process alive.
                let server = node.executor.wrest().await;
                self.world.begins(self.id);
                self.die(node, server, death).await;
            }
            Effect::Server { node, change } => {
                let node = &nodes[node];
                let mut server = node.server().await;
                self.world.begins(self.id);
                self.change_server(node, &mut server, change);
            }
            Effect::Links(change) => {
                self.world.begins(self.id);
                self.change_links(change);
            }
            Effect::Pause { client } => {
                let world = &self.world;
                world.workers.named(client).await;
                world.begins(self.id);
                if world.workers.stop(client) {
                    let host = world.plan.client_host(client);
                    world.recorder.tell(EventKind::Stopped { host, suspended: false });
                }
            }
            Effect::Kill { client } => {
                let world = &self.world;
                world.workers.named(client).await;
                world.begins(self.id);
                world.workers.kill(client, || {
                    world.recorder.killed(client, world.plan.client_host(client));
                    world.has_begun(self.id);
                });
            }
            Effect::Stall { node } => {
                self.world.begins(self.id);
                let node = &nodes[node];
                node.change(|node_faults| node_faults.stalls += 1);
                self.world.recorder.tell(EventKind::NodeStalled { node: node.id });
            }
        }
        self.world.has_begun(self.id);
    }

    fn change_server(&self, node: &Node, server: &mut Server, change: ServerChange) {
        let world = &self.world;
        match change {
            ServerChange::ClockJump { by_ns } => world.step_clock(node, server, by_ns),
            ServerChange::ClockRate { rate_ppb } => {
                let (_, usual) = world.plan.clocks[node.id.first_host()];
                world.set_rate(node, server, usual + rate_ppb);
            }
            ServerChange::Delete => self.remove(node, server, Master::delete),
            ServerChange::Evict => self.remove(node, server, Master::evict),
            ServerChange::Flush { database } if server.is_running() => {
                let tell = |ended: Ended| node.tell_of(&ended);
                match database {
                    None => server.flush(tell),
                    Some(database) => server.flush_database(database, tell),
                }
            }
            ServerChange::MemoryFull => {
                node.node_faults().full += 1;
                server.set_full(true);
            }
            ServerChange::Snapshot => server.disk_mut().save(),
            ServerChange::SpuriousPush if server.is_running() => {
                for key in world.lock_keys(server) {
                    server.change_elsewhere(&key);
                }
            }
            // The server is down.
            ServerChange::Flush { .. } | ServerChange::SpuriousPush => {}
        }
        node.push(server);
    }

    fn change_links(&self, change: LinkChange) {
        let strike = self.id;
        match change {
            LinkChange::Delay { from, to, by_ns, only } => {
                for node in self.world.nodes.values() {
                    let (requests, replies) = self.concerned(node, from, to);
                    let nobody = ClientIds::EMPTY;
                    let only_op = only.and_then(op_of);
                    let requests = if only == Some(Message::Answer) { nobody } else { requests };
                    let replies = if only_op.is_some() { nobody } else { replies };
                    let slow = Slow { strike, requests, replies, by_ns, only: only_op };
                    node.change(|node_faults| node_faults.slow(slow));
                }
            }
            LinkChange::Partition { from, to, one_way, lost } => {
                for node in self.world.nodes.values() {
                    let there = self.concerned(node, from, to);
                    let back = match one_way {
                        true => (ClientIds::EMPTY, ClientIds::EMPTY),
                        false => self.concerned(node, to, from),
                    };
                    let (requests, replies) = (there.0 | back.0, there.1 | back.1);
                    let cut = Cut { strike, requests, replies, lost };
                    node.change(|node_faults| node_faults.cut(cut));
                }
            }
        }
    }

    /// Removes the lock's keys from a running node.
    fn remove(
        &self,
        node: &Node,
        server: &mut Server,
        how: fn(&mut Master, &[u8]) -> Option<Ended>,
    ) {
        if !server.is_running() {
            return;
        }
        for key in self.world.lock_keys(server) {
            how(server, &key).iter().for_each(|ended| node.tell_of(ended));
        }
    }

    async fn end(&self) {
        let world = &self.world;
        match self.effect() {
            Effect::Death { node, .. } => world.restart(&world.nodes[node]).await,
            Effect::Server { node, change } => self.change_server_back(node, change).await,
            // A killed worker stays dead.
            Effect::Kill { .. } => {}
            Effect::Links(_) => {
                let strike = self.id;
                // Recorded before the first message that passes again.
                world.is_over(strike);
                let nodes = world.nodes.values();
                nodes.for_each(|node| node.change(|node_faults| node_faults.clear(strike)));
                return;
            }
            Effect::Pause { client } => {
                let host = world.plan.client_host(client);
                if world.workers.go_on(client) {
                    world.recorder.tell(EventKind::Continued { host });
                }
            }
            Effect::Stall { node } => {
                let node = &world.nodes[node];
                node.change(|node_faults| {
                    node_faults.stalls -= 1;
                    if node_faults.stalls == 0 {
                        // Recorded before the first request that is executed again.
                        world.recorder.tell(EventKind::NodeUnstalled { node: node.id });
                    }
                });
            }
        }
        world.is_over(self.id);
    }

    async fn change_server_back(&self, node: NodeId, change: ServerChange) {
        let node = &self.world.nodes[node];
        match change {
            ServerChange::ClockRate { .. } => {
                let (_, usual) = self.world.plan.clocks[node.id.first_host()];
                self.world.set_rate(node, &*node.server().await, usual);
            }
            ServerChange::MemoryFull => {
                let mut server = node.server().await;
                let mut node_faults = node.node_faults();
                node_faults.full -= 1;
                server.set_full(node_faults.full > 0);
            }
            ServerChange::ClockJump { .. }
            | ServerChange::Delete
            | ServerChange::Evict
            | ServerChange::Flush { .. }
            | ServerChange::Snapshot
            | ServerChange::SpuriousPush => {}
        }
    }

    async fn die(&self, node: &Arc<Node>, mut server: MutexGuard<'_, Server>, death: Death) {
        let was_alive = server.is_running();
        let power = death.manner == Manner::PowerLost;
        match death.manner {
            Manner::PowerLost => server.power(),
            Manner::Killed if was_alive => server.kill(),
            Manner::ShutDown if was_alive => server.shut_down(),
            Manner::Killed | Manner::ShutDown => return,
        }
        if was_alive {
            self.world.recorder.tell(EventKind::NodeDown { node: node.id, power });
        }
        drop(server);
        if power {
            node.change(|node_faults| node_faults.life = Life::Dark);
        } else {
            node.close_door().await;
            node.change(|node_faults| node_faults.life = Life::Killed);
        }
    }

    /// Returns the clients whose requests to `node`, and those whose replies from `node`, travel
    /// from the group `from` to the group `to`.
    fn concerned(&self, node: &Node, from: HostIds, to: HostIds) -> (ClientIds, ClientIds) {
        let scenario = &self.world.plan.scenario;
        let clients = |hosts: HostIds| -> ClientIds {
            hosts.iter().filter_map(|host| scenario.client_on(host)).collect()
        };
        let has = |hosts: HostIds| hosts.contains(node.id.first_host());
        let requests = if has(to) { clients(from) } else { ClientIds::EMPTY };
        let replies = if has(from) { clients(to) } else { ClientIds::EMPTY };
        (requests, replies)
    }
}
