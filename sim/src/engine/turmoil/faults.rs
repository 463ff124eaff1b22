//! What faults do when they begin and when they end.

use turmoil::Sim;

use super::simulation::{client_name, node_name};
use super::world::{State, World};
use crate::engine::stage::nodes::key_ended;
use crate::engine::stage::plan::{Begin, Doing, End, Hosts, Manner, PlannedFault};
use crate::history::{EventKind, HostIndex};
use crate::master::run_id;
use crate::scenario::Lost;

/// The faults of one run, and when each begins or ends next.
#[derive(Debug)]
pub(super) struct Faults {
    planned: Vec<PlannedFault>,
    next: Vec<Option<Next>>,
    /// How many partitions hold each pair of hosts apart.
    held: Vec<((u8, u8), u32)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    Begins(u64),
    Ends(u64),
}

impl Next {
    fn at_ns(self) -> u64 {
        match self {
            Self::Begins(at_ns) | Self::Ends(at_ns) => at_ns,
        }
    }
}

impl Faults {
    pub(super) fn new(planned: &[PlannedFault]) -> Self {
        let next = planned.iter().map(|fault| match fault.begin {
            Begin::At(u64::MAX) | Begin::Before { .. } => None,
            Begin::At(at_ns) => Some(Next::Begins(at_ns)),
        });
        Self { next: next.collect(), planned: planned.to_vec(), held: Vec::new() }
    }

    /// Whether every fault that has an end has ended.
    pub(super) fn are_over(&self) -> bool {
        let open = self.next.iter().zip(&self.planned);
        open.filter(|(_, fault)| fault.end != End::Never).all(|(next, _)| next.is_none())
    }

    /// Everything that is due by now, in the order of its time.
    pub(super) fn run(&mut self, world: &World, sim: &mut Sim<'_>) {
        let now_ns = world.lock().now_ns;
        loop {
            let due = self.next.iter().enumerate().filter_map(|(place, next)| {
                next.filter(|next| next.at_ns() <= now_ns).map(|next| (next.at_ns(), place, next))
            });
            let Some((_, place, next)) = due.min() else { return };
            match next {
                Next::Begins(at_ns) => self.begin(world, sim, place, at_ns),
                Next::Ends(_) => self.end(world, sim, place),
            }
        }
    }

    fn begin(&mut self, world: &World, sim: &mut Sim<'_>, place: usize, at_ns: u64) {
        let PlannedFault { place: named, opens, doing, end, .. } = self.planned[place];
        if opens {
            world.lock().record(EventKind::FaultBegan { fault: named });
        }
        self.next[place] = match end {
            End::At(ends_ns) => Some(Next::Ends(ends_ns)),
            End::After(lasts_ns) => Some(Next::Ends(at_ns + lasts_ns)),
            End::Instantly => Some(Next::Ends(at_ns)),
            End::Never => None,
            End::Measured { .. } => unreachable!("this engine refuses other clocks"),
        };
        let mut state = world.lock();
        match doing {
            Doing::ClockJump { host, by_ns } => {
                let now_ns = state.now_ns;
                state.clocks[host.get()].step_wall(by_ns, now_ns);
                state.record_clocks(host);
            }
            Doing::ClockRate { host, rate_ppb } => {
                let (_, usual) = world.plan.clocks[host.get()];
                state.set_rate(host, usual + rate_ppb);
            }
            Doing::Die { host, death } => {
                let power = death.manner == Manner::PowerLost;
                drop(state);
                self.die(world, sim, host, power);
            }
            Doing::Evict { node } => {
                let master = &mut state.nodes[usize::from(node)].master;
                let running = master.is_running();
                if let Some(ended) = running.then(|| master.evict(&world.plan.key)).flatten() {
                    state.record(key_ended(node, &ended));
                }
            }
            Doing::Flush { node } => state.flush(node),
            Doing::Partition { from, to, lost, .. } => {
                if lost == Lost::Reset {
                    state.cut(from, to);
                }
                drop(state);
                self.part(world, sim, from, to);
            }
            Doing::Stall { node } => {
                state.nodes[usize::from(node)].stalls += 1;
                state.record(EventKind::NodeStalled { node });
            }
            Doing::Stop { host, suspended } => {
                let client = host.get() - state.nodes.len();
                state.clients[client].stops += 1;
                state.record(EventKind::Stopped { host, suspended });
            }
            Doing::Delay { .. }
            | Doing::Delete { .. }
            | Doing::DiskStall { .. }
            | Doing::FailOver { .. }
            | Doing::MemoryFull { .. }
            | Doing::Snapshot { .. } => unreachable!("this engine refuses them"),
        }
    }

    fn end(&mut self, world: &World, sim: &mut Sim<'_>, place: usize) {
        self.next[place] = None;
        let mut state = world.lock();
        match self.planned[place].doing {
            Doing::ClockRate { host, .. } => {
                let (_, usual) = world.plan.clocks[host.get()];
                state.set_rate(host, usual);
            }
            Doing::Die { host, .. } => {
                if state.restart(host.0) {
                    state.wake_node(host.0);
                    drop(state);
                    let name = node_name(host.get());
                    if !sim.is_host_running(name.as_str()) {
                        sim.bounce(name);
                    }
                    state = world.lock();
                }
            }
            Doing::Partition { from, to, .. } => {
                drop(state);
                self.heal(world, sim, from, to);
                state = world.lock();
            }
            Doing::Stall { node } => {
                let host = &mut state.nodes[usize::from(node)];
                host.stalls -= 1;
                if host.stalls == 0 {
                    state.record(EventKind::NodeUnstalled { node });
                    state.wake_node(node);
                }
            }
            Doing::Stop { host, .. } => {
                let client = (host.get() - state.nodes.len()) as u8;
                state.clients[usize::from(client)].stops -= 1;
                if state.runs(client) {
                    state.record(EventKind::Continued { host });
                    state.wake_client(client);
                }
            }
            Doing::ClockJump { .. } | Doing::Evict { .. } | Doing::Flush { .. } => {}
            Doing::Delay { .. }
            | Doing::Delete { .. }
            | Doing::DiskStall { .. }
            | Doing::FailOver { .. }
            | Doing::MemoryFull { .. }
            | Doing::Snapshot { .. } => unreachable!("this engine refuses them"),
        }
        let PlannedFault { place: named, closes, .. } = self.planned[place];
        if closes {
            state.record(EventKind::FaultEnded { fault: named });
        }
    }

    fn die(&mut self, world: &World, sim: &mut Sim<'_>, host: HostIndex, power: bool) {
        let mut state = world.lock();
        let nodes = state.nodes.len();
        if host.get() < nodes {
            state.node_dies(host.0, power);
        } else if !core::mem::replace(&mut state.clients[host.get() - nodes].dead, true) {
            state.record(EventKind::Killed { host, power });
        }
        drop(state);
        let name = host_name(host, nodes);
        // A node whose process alone dies has a kernel that goes on refusing connections.
        let crashes = power || host.get() >= nodes;
        if !crashes || !sim.is_host_running(name.as_str()) {
            return;
        }
        // Turmoil's crash says goodbye as a kernel does. Without power there is no kernel: nothing
        // may pass while it crashes.
        let others: Vec<String> = (0..nodes + world.plan.scenario.clients.len())
            .filter(|&other| power && (other < nodes) != (host.get() < nodes))
            .map(|other| host_name(HostIndex(other as u8), nodes))
            .collect();
        others.iter().for_each(|other| sim.partition(name.as_str(), other.as_str()));
        sim.crash(name.as_str());
        others.iter().for_each(|other| sim.repair(name.as_str(), other.as_str()));
        for &((one, other), count) in &self.held {
            if power && count > 0 && (one == host.0 || other == host.0) {
                hold(sim, one, other, nodes);
            }
        }
    }

    fn part(&mut self, world: &World, sim: &mut Sim<'_>, from: Hosts, to: Hosts) {
        for pair in pairs(from, to) {
            match self.held.iter_mut().find(|(known, _)| *known == pair) {
                Some((_, count)) => *count += 1,
                None => self.held.push((pair, 1)),
            }
            hold(sim, pair.0, pair.1, world.plan.nodes.len());
        }
    }

    fn heal(&mut self, world: &World, sim: &mut Sim<'_>, from: Hosts, to: Hosts) {
        let nodes = world.plan.nodes.len();
        for pair in pairs(from, to) {
            let held = self.held.iter_mut().find(|(known, _)| *known == pair);
            let (_, count) = held.expect("a partition ends after it began");
            *count -= 1;
            if *count == 0 && is_link(pair.0, pair.1, nodes) {
                let name = |host| host_name(HostIndex(host), nodes);
                sim.release(name(pair.0), name(pair.1));
            }
        }
    }
}

fn hold(sim: &Sim<'_>, one: u8, other: u8, nodes: usize) {
    if is_link(one, other, nodes) {
        sim.hold(host_name(HostIndex(one), nodes), host_name(HostIndex(other), nodes));
    }
}

/// Only a node and a client ever talk to each other.
fn is_link(one: u8, other: u8, nodes: usize) -> bool {
    (usize::from(one) < nodes) != (usize::from(other) < nodes)
}

fn host_name(host: HostIndex, nodes: usize) -> String {
    match host.get().checked_sub(nodes) {
        None => node_name(host.get()),
        Some(client) => client_name(client),
    }
}

/// Every pair of a host of one group and a host of the other, the smaller first.
fn pairs(from: Hosts, to: Hosts) -> impl Iterator<Item = (u8, u8)> {
    let hosts = move |set: Hosts| (0..32_u8).filter(move |host| set & (1 << host) != 0);
    hosts(from).flat_map(move |from| hosts(to).map(move |to| (from.min(to), from.max(to))))
}

impl State {
    fn set_rate(&mut self, host: HostIndex, rate_ppb: i32) {
        let now_ns = self.now_ns;
        self.clocks[host.get()].set_rate(rate_ppb, now_ns);
        self.record_clocks(host);
    }

    fn flush(&mut self, node: u8) {
        let now_ns = self.now_ns;
        let Self { nodes, recorder, .. } = self;
        let master = &mut nodes[usize::from(node)].master;
        if master.is_running() {
            master.flush(|ended| recorder.record(now_ns, key_ended(node, &ended)));
        }
    }

    /// Both ends of every connection between the two groups see a reset.
    fn cut(&mut self, from: Hosts, to: Hosts) {
        let nodes = self.nodes.len() as u8;
        let (mut clients, mut servers) = (Vec::new(), Vec::new());
        for connection in self.connections.values_mut() {
            let pair = (connection.node, connection.client + nodes);
            if pairs(from, to).any(|it| it == pair) {
                connection.cut = true;
                clients.push(connection.client);
                servers.push(connection.node);
            }
        }
        clients.into_iter().for_each(|client| self.wake_client(client));
        servers.into_iter().for_each(|node| self.wake_node(node));
    }

    fn node_dies(&mut self, node: u8, power: bool) {
        let master = &mut self.nodes[usize::from(node)].master;
        let was_alive = master.is_running();
        if power {
            master.power();
        } else if was_alive {
            master.kill();
        }
        if was_alive {
            self.record(EventKind::NodeDown { node, power });
        }
        self.wake_node(node);
    }

    /// Starts a new process on `node`; whether there was none.
    fn restart(&mut self, node: u8) -> bool {
        if self.nodes[usize::from(node)].master.is_running() {
            return false;
        }
        let wall_ms = self.wall_ms(node);
        let now_ns = self.now_ns;
        let incarnation = self.nodes[usize::from(node)].master.incarnation() + 1;
        let run_id = run_id(node, incarnation);
        let Self { nodes, recorder, .. } = self;
        let master = &mut nodes[usize::from(node)].master;
        // With nothing or everything kept no key comes back.
        master.restart(
            run_id,
            wall_ms,
            |ended| recorder.record(now_ns, key_ended(node, &ended)),
            |_, _| {},
        );
        self.record(EventKind::NodeUp { node, incarnation });
        true
    }
}
