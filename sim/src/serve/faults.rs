//! The scenario's faults, on the real clock.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;

use lock_judge::history::{ClientIds, ClockKind, EventKind, HostId, HostIds};
use lock_judge::ids::{IdVec, StrikeId};
use lock_judge::scenario::Message;
use redis_sim::server::Server;
use redis_sim::{Ended, Master};
use tokio::sync::MutexGuard;
use tokio::task::JoinHandle;

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
            Begin::Before { .. } => None,
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
            let due = due.filter_map(|(strike, next)| Some((self.at_ns((*next)?)?, strike)));
            let Some((at_ns, strike)) = due.min() else { return };
            self.world.clock.sleep_until(origin_ns.saturating_add(at_ns)).await;
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

    /// Returns the true time of a step at the current clock rates; `None` if it never comes.
    fn at_ns(&self, next: Next) -> Option<u64> {
        match next {
            Next::Begins(at_ns) | Next::Ends(at_ns) => Some(at_ns),
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

/// A planned fault at one host.
struct Strike {
    world: Arc<World>,
    id: StrikeId,
}

impl Strike {
    fn effect(&self) -> FaultEffect {
        self.world.plan.faults[self.id].effect
    }

    /// Returns the node whose server the fault strikes; `None` for a delay, a partition or a stall.
    fn victim(&self) -> Option<&Arc<Node>> {
        match self.effect() {
            FaultEffect::ClockJump { host, .. }
            | FaultEffect::ClockRate { host, .. }
            | FaultEffect::Die { host, .. } => Some(self.world.node_on(host)),
            FaultEffect::Delete { node }
            | FaultEffect::Evict { node }
            | FaultEffect::Flush { node, .. }
            | FaultEffect::SpuriousPush { node } => Some(&self.world.nodes[node]),
            FaultEffect::MemoryFull { server } | FaultEffect::Snapshot { server } => {
                Some(self.world.node_of(server))
            }
            FaultEffect::Delay { .. }
            | FaultEffect::Partition { .. }
            | FaultEffect::Stall { .. } => None,
            FaultEffect::Attach { .. }
            | FaultEffect::Demote { .. }
            | FaultEffect::DiskStall { .. }
            | FaultEffect::FailOver { .. }
            | FaultEffect::Stop { .. }
            | FaultEffect::Swap { .. } => unreachable!("they are refused"),
        }
    }

    async fn begin(&self) {
        match (self.victim(), self.effect()) {
            (Some(node), FaultEffect::Die { death, .. }) => {
                // A script that never ends must not keep its process alive.
                let server = node.executor.wrest().await;
                self.world.begins(self.id);
                self.die(node, server, death).await;
            }
            (Some(node), effect) => {
                let mut server = node.server().await;
                self.world.begins(self.id);
                self.strike(node, &mut server, effect);
            }
            (None, effect) => {
                self.world.begins(self.id);
                self.hinder(effect);
            }
        }
        self.world.has_begun(self.id);
    }

    /// Applies a fault to a server, which executes nothing meanwhile.
    fn strike(&self, node: &Node, server: &mut Server, effect: FaultEffect) {
        let world = &self.world;
        match effect {
            FaultEffect::ClockJump { by_ns, .. } => world.step_clock(node, server, by_ns),
            FaultEffect::ClockRate { host, rate_ppb } => {
                let (_, usual) = world.plan.clocks[host];
                world.set_rate(node, server, usual + rate_ppb);
            }
            FaultEffect::Delete { .. } => self.remove(node, server, Master::delete),
            FaultEffect::Evict { .. } => self.remove(node, server, Master::evict),
            FaultEffect::Flush { database, .. } if server.is_running() => {
                let tell = |ended: Ended| node.tell_of(&ended);
                match database {
                    None => server.flush(tell),
                    Some(database) => server.flush_database(database, tell),
                }
            }
            FaultEffect::MemoryFull { .. } => server.set_full(true),
            FaultEffect::Snapshot { .. } => server.disk_mut().save(),
            FaultEffect::SpuriousPush { .. } if server.is_running() => {
                for key in world.lock_keys(server) {
                    server.change_elsewhere(&key);
                }
            }
            // The server is down.
            FaultEffect::Flush { .. } | FaultEffect::SpuriousPush { .. } => {}
            _ => unreachable!("it strikes no server, or kills it"),
        }
        node.push(server);
    }

    /// Applies a fault to the messages to and from nodes, or stalls a node.
    fn hinder(&self, effect: FaultEffect) {
        let strike = self.id;
        match effect {
            FaultEffect::Delay { from, to, by_ns, only } => {
                for node in self.world.nodes.values() {
                    let (requests, replies) = self.concerned(node, from, to);
                    let nobody = ClientIds::EMPTY;
                    let requests = if only == Some(Message::Answer) { nobody } else { requests };
                    let sets_only = only == Some(Message::Set);
                    let replies = if sets_only { nobody } else { replies };
                    let slow = Slow { strike, requests, replies, by_ns, sets_only };
                    node.change(|node_faults| node_faults.slow(slow));
                }
            }
            FaultEffect::Partition { from, to, one_way, lost } => {
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
            FaultEffect::Stall { server } => {
                let node = self.world.node_of(server);
                node.change(|node_faults| node_faults.stalls += 1);
                self.world.recorder.tell(EventKind::NodeStalled { node: node.id });
            }
            _ => unreachable!("it strikes a server"),
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
            FaultEffect::ClockRate { host, .. } => {
                let (_, usual) = world.plan.clocks[host];
                let node = world.node_on(host);
                world.set_rate(node, &*node.server().await, usual);
            }
            FaultEffect::Delay { .. } | FaultEffect::Partition { .. } => {
                let strike = self.id;
                let nodes = world.nodes.values();
                nodes.for_each(|node| node.change(|node_faults| node_faults.clear(strike)));
            }
            FaultEffect::MemoryFull { server } => {
                world.node_of(server).server().await.set_full(false);
            }
            FaultEffect::Stall { server } => {
                let mut goes_on = false;
                let node = world.node_of(server);
                node.change(|node_faults| {
                    node_faults.stalls -= 1;
                    goes_on = node_faults.stalls == 0;
                });
                if goes_on {
                    world.recorder.tell(EventKind::NodeUnstalled { node: node.id });
                }
            }
            FaultEffect::Die { host, .. } => world.restart(world.node_on(host)).await,
            FaultEffect::ClockJump { .. }
            | FaultEffect::Delete { .. }
            | FaultEffect::Evict { .. }
            | FaultEffect::Flush { .. }
            | FaultEffect::Snapshot { .. }
            | FaultEffect::SpuriousPush { .. } => {}
            FaultEffect::Attach { .. }
            | FaultEffect::Demote { .. }
            | FaultEffect::DiskStall { .. }
            | FaultEffect::FailOver { .. }
            | FaultEffect::Stop { .. }
            | FaultEffect::Swap { .. } => unreachable!("they are refused"),
        }
        world.is_over(self.id);
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
