//! The scenario's faults, on the real clock.

use std::sync::Arc;

use super::node::Node;
use super::weather::{Clients, Cut, Life, Slow};
use super::world::{Stage, World};
use crate::engine::stage::plan::{Begin, Death, Doing, End, Hosts, Manner, PlannedFault};
use crate::history::{ClockKind, EventKind, HostIndex};
use crate::master::{Ended, Master};
use crate::scenario::Message;

/// The faults of a run, and when each begins or ends next.
pub(super) struct Faults {
    world: Arc<World>,
    next: Vec<Option<Next>>,
}

/// What comes next of a fault, in true time since the scenario began.
#[derive(Clone, Copy, Debug)]
enum Next {
    Begins(u64),
    Ends(u64),
    /// When a clock of the host reads this.
    EndsOn {
        host: HostIndex,
        clock: ClockKind,
        local_ns: u64,
    },
}

impl Faults {
    pub(super) fn new(world: Arc<World>) -> Self {
        let next = world.plan.faults.iter().map(|fault| match fault.begin {
            Begin::At(at_ns) => Some(Next::Begins(at_ns)),
            Begin::Before { .. } => None,
        });
        Self { next: next.collect(), world }
    }

    /// Plays them all, from the scenario's beginning on.
    pub(super) async fn run(mut self) {
        let origin_ns = self.world.started().await;
        for (place, node) in self.world.nodes.iter().enumerate() {
            let (_, rate_ppb) = self.world.plan.clocks[place];
            if rate_ppb != 0 {
                self.world.set_rate(node, rate_ppb);
            }
        }
        loop {
            let due = self.next.iter().enumerate();
            let due = due.filter_map(|(place, next)| Some((self.at_ns((*next)?)?, place)));
            let Some((at_ns, place)) = due.min() else { return };
            self.world.hours.sleep_until(origin_ns.saturating_add(at_ns)).await;
            match self.next[place] {
                Some(Next::Begins(_)) => self.begin(place, at_ns).await,
                _ => self.end(place).await,
            }
        }
    }

    /// When that is, as the clocks run now; `None`: never.
    fn at_ns(&self, next: Next) -> Option<u64> {
        match next {
            Next::Begins(at_ns) | Next::Ends(at_ns) => Some(at_ns),
            Next::EndsOn { host, clock, local_ns } => {
                let node = &self.world.nodes[host.get()];
                let true_ns = node.clocks().true_at(clock, local_ns)?;
                Some(true_ns.saturating_sub(self.world.hours.origin_ns()?))
            }
        }
    }

    async fn begin(&mut self, place: usize, at_ns: u64) {
        let PlannedFault { place: named, opens, doing, end, .. } = self.world.plan.faults[place];
        if opens {
            self.world.stage(named, Stage::Begun);
            self.world.chronicle.tell(EventKind::FaultBegan { fault: named });
        }
        self.next[place] = match end {
            End::At(ends_ns) => Some(Next::Ends(ends_ns)),
            End::After(lasts_ns) => Some(Next::Ends(at_ns + lasts_ns)),
            End::Instantly => Some(Next::Ends(at_ns)),
            End::Never => None,
            End::Measured { clock, after_ns } => {
                let Doing::Die { host, .. } = doing else {
                    unreachable!("only restarts are measured")
                };
                let node = &self.world.nodes[host.get()];
                let now_ns = self.world.hours.now_ns();
                let local_ns = node.clocks().read(clock, now_ns).saturating_add(after_ns);
                Some(Next::EndsOn { host, clock, local_ns })
            }
        };
        self.do_it(place, doing).await;
    }

    async fn do_it(&self, place: usize, doing: Doing) {
        let world = &self.world;
        let node = |place: u8| &world.nodes[usize::from(place)];
        match doing {
            Doing::ClockJump { host, by_ns } => world.step_clock(node(host.0), by_ns),
            Doing::ClockRate { host, rate_ppb } => {
                let (_, usual) = world.plan.clocks[host.get()];
                world.set_rate(node(host.0), usual + rate_ppb);
            }
            Doing::Delay { from, to, by_ns, only } => {
                for node in &world.nodes {
                    let (requests, replies) = self.concerned(node, from, to);
                    let requests = if only == Some(Message::Answer) { 0 } else { requests };
                    let sets_only = only == Some(Message::Set);
                    let replies = if sets_only { 0 } else { replies };
                    let slow = Slow { fault: place, requests, replies, by_ns, sets_only };
                    node.change(|weather| weather.slow(slow));
                }
            }
            Doing::Partition { from, to, one_way, lost } => {
                for node in &world.nodes {
                    let there = self.concerned(node, from, to);
                    let back = if one_way { (0, 0) } else { self.concerned(node, to, from) };
                    let (requests, replies) = (there.0 | back.0, there.1 | back.1);
                    let cut = Cut { fault: place, requests, replies, lost };
                    node.change(|weather| weather.cut(cut));
                }
            }
            Doing::Delete { node: place } => self.remove(node(place), Master::delete).await,
            Doing::Evict { node: place } => self.remove(node(place), Master::evict).await,
            Doing::Flush { node: place } => {
                let mut server = node(place).server().await;
                if server.is_running() {
                    server.flush(|ended| node(place).tell_of(&ended));
                }
            }
            Doing::MemoryFull { node: place } => node(place).server().await.set_full(true),
            Doing::Snapshot { node: place } => node(place).server().await.disk_mut().save(),
            Doing::Stall { node: place } => {
                node(place).change(|weather| weather.stalls += 1);
                world.chronicle.tell(EventKind::NodeStalled { node: place });
            }
            Doing::Die { host, death } => self.die(node(host.0), death).await,
            Doing::DiskStall { .. } | Doing::FailOver { .. } | Doing::Stop { .. } => {
                unreachable!("they are refused")
            }
        }
    }

    /// Takes the lock's keys from a node that runs.
    async fn remove(&self, node: &Node, how: fn(&mut Master, &[u8]) -> Option<Ended>) {
        let mut server = node.server().await;
        if !server.is_running() {
            return;
        }
        for key in self.world.lock_keys(&server) {
            how(&mut server, &key).iter().for_each(|ended| node.tell_of(ended));
        }
    }

    async fn end(&mut self, place: usize) {
        self.next[place] = None;
        let world = &self.world;
        let PlannedFault { place: named, closes, doing, .. } = world.plan.faults[place];
        match doing {
            Doing::ClockRate { host, .. } => {
                let (_, usual) = world.plan.clocks[host.get()];
                world.set_rate(&world.nodes[host.get()], usual);
            }
            Doing::Delay { .. } | Doing::Partition { .. } => {
                world.nodes.iter().for_each(|node| node.change(|weather| weather.clear(place)));
            }
            Doing::MemoryFull { node } => {
                world.nodes[usize::from(node)].server().await.set_full(false);
            }
            Doing::Stall { node } => {
                let mut goes_on = false;
                world.nodes[usize::from(node)].change(|weather| {
                    weather.stalls -= 1;
                    goes_on = weather.stalls == 0;
                });
                if goes_on {
                    world.chronicle.tell(EventKind::NodeUnstalled { node });
                }
            }
            Doing::Die { host, .. } => world.restart(&world.nodes[host.get()]).await,
            _ => {}
        }
        if closes {
            world.stage(named, Stage::Over);
            world.chronicle.tell(EventKind::FaultEnded { fault: named });
        }
    }

    async fn die(&self, node: &Arc<Node>, death: Death) {
        // A script that never ends does not keep its process alive.
        node.executor.abort();
        let mut server = node.server().await;
        let was_alive = server.is_running();
        let power = death.manner == Manner::PowerLost;
        match death.manner {
            Manner::PowerLost => server.power(),
            Manner::Killed if was_alive => server.kill(),
            Manner::ShutDown if was_alive => server.shut_down(),
            Manner::Killed | Manner::ShutDown => return,
        }
        if was_alive {
            self.world.chronicle.tell(EventKind::NodeDown { node: node.place, power });
        }
        drop(server);
        if power {
            node.change(|weather| weather.life = Life::Dark);
        } else {
            node.close_door().await;
            node.change(|weather| weather.life = Life::Killed);
        }
    }

    /// Whose requests to `node`, and answers from it, go from one group to the other.
    fn concerned(&self, node: &Node, from: Hosts, to: Hosts) -> (Clients, Clients) {
        let count = self.world.plan.node_count;
        let clients = |hosts: Hosts| (hosts >> count) as Clients;
        let has = |hosts: Hosts| hosts & (1 << node.place) != 0;
        let requests = if has(to) { clients(from) } else { 0 };
        let replies = if has(from) { clients(to) } else { 0 };
        (requests, replies)
    }
}
