//! Computes since when each client can reach each node, and since when it can send requests to it.
//!
//! No client can reach a node that is down or stalled. Reaching a node requires that requests and
//! answers pass: a partition or a delay in either direction prevents it. Sending requires only that
//! requests pass, as long as the client has its connection. A delay counts as a partition, because
//! messages pass but arrive late. Messages that a fault held back arrive after its end. After a
//! delay they arrive later by the amount of the delay. After a partition they arrive with a
//! retransmission, which comes after about as long again as the partition lasted, because the
//! pauses between retransmissions double.
//!
//! Histories do not record connections. A client may have closed a connection once it has waited
//! for an answer for longer than its patience. It has lost the connection if a partition resets it
//! or the node's process ends. Dialling again requires that answers pass.

use super::ground::{NEVER, just, nodes_in};
use super::setting::{CLIENTS_MAX, NODES_MAX, Setting};
use crate::scenario::{Connections, Fault, FaultKind, Lost, Message, Scenario, SpanRange};

/// Twice the first pause between retransmissions: the extra time on top of the doubled pauses.
const RETRANSMISSION_NS: u64 = 400_000_000;

/// Set of nodes for each client, as bit sets.
type Nodes = [u16; CLIENTS_MAX];

const NOBODY: Nodes = [0; CLIENTS_MAX];

/// Effect of one fault of the scenario on the paths between clients and nodes.
#[derive(Clone, Copy, Debug)]
struct Cut {
    /// Nodes whose requests or answers the fault holds back.
    either_way: Nodes,
    /// Nodes that requests do not reach.
    requests: Nodes,
    /// True if the fault also closes connections.
    resets: bool,
    aftermath: Aftermath,
    began_ns: u64,
}

/// Time for which a fault has an effect after its end.
#[derive(Clone, Copy, Debug)]
enum Aftermath {
    AsLongAgain,
    Fixed(u64),
}

/// Paths between clients and nodes: the number of faults that cut each, and since when it is free.
#[derive(Clone, Debug)]
struct Ways {
    cuts: [[u8; NODES_MAX]; CLIENTS_MAX],
    since_ns: [[u64; NODES_MAX]; CLIENTS_MAX],
}

impl Ways {
    fn free_since(at_ns: u64) -> Self {
        let (cuts, since_ns) = ([[0; NODES_MAX]; CLIENTS_MAX], [[at_ns; NODES_MAX]; CLIENTS_MAX]);
        Self { cuts, since_ns }
    }

    fn cut(&mut self, nodes: &Nodes) {
        for (cuts, &nodes) in self.cuts.iter_mut().zip(nodes) {
            for node in nodes_in(nodes) {
                let count = &mut cuts[usize::from(node)];
                *count = count.saturating_add(1);
            }
        }
    }

    fn heal(&mut self, nodes: &Nodes, at_ns: u64) {
        for (client, &nodes) in nodes.iter().enumerate() {
            for node in nodes_in(nodes).map(usize::from) {
                self.cuts[client][node] = self.cuts[client][node].saturating_sub(1);
                self.since_ns[client][node] = self.since_ns[client][node].max(at_ns);
            }
        }
    }

    /// Returns since when the path is free; [`NEVER`] if it is cut.
    fn since_ns(&self, client: usize, node: usize) -> u64 {
        if self.cuts[client][node] > 0 { NEVER } else { self.since_ns[client][node] }
    }
}

/// State of a client's connection to a node, derived from the history.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// Number of the last command that was written.
    last: u32,
    /// Time from which the client may have closed the connection; [`NEVER`] if it awaits no answer.
    let_go_ns: u64,
    /// End of the last period in which the connection may have been closed; 0 if there was none.
    dialled_ns: u64,
}

const OPEN: Line = Line { last: 0, let_go_ns: NEVER, dialled_ns: 0 };

/// Reachability of each node for each client.
#[derive(Clone, Debug)]
pub(super) struct Reach {
    /// Effect of each fault; `None` if the fault keeps no client from a node.
    faults: Vec<Option<Cut>>,
    down: u16,
    stalled: u16,
    node_since_ns: [u64; NODES_MAX],
    either_way: Ways,
    requests: Ways,
    at_first_ns: u64,
    /// Time for which each client waits for an answer before it closes the connection.
    patience_ns: [u64; CLIENTS_MAX],
    lines: [[Line; NODES_MAX]; CLIENTS_MAX],
    written_ns: [[u64; NODES_MAX]; CLIENTS_MAX],
    answered_ns: [[u64; NODES_MAX]; CLIENTS_MAX],
    /// Nodes, by client, on links too slow for the node timeout.
    too_slow: [u16; CLIENTS_MAX],
}

impl Reach {
    pub(super) fn new(scenario: &Scenario, setting: &Setting) -> Self {
        let cut = |fault: &Fault| cut_of(scenario, setting, &fault.kind);
        // A cold connection can be dialled from the first nanosecond on.
        let at_first_ns = u64::from(!setting.warm);
        Self {
            faults: scenario.faults.iter().map(cut).collect(),
            down: 0,
            stalled: 0,
            node_since_ns: [0; NODES_MAX],
            either_way: Ways::free_since(at_first_ns),
            requests: Ways::free_since(at_first_ns),
            at_first_ns,
            patience_ns: patience_ns(scenario, setting),
            lines: [[OPEN; NODES_MAX]; CLIENTS_MAX],
            written_ns: [[0; NODES_MAX]; CLIENTS_MAX],
            answered_ns: [[0; NODES_MAX]; CLIENTS_MAX],
            too_slow: too_slow(scenario, setting),
        }
    }

    pub(super) fn reset(&mut self) {
        (self.down, self.stalled) = (0, 0);
        self.node_since_ns = [0; NODES_MAX];
        self.written_ns = [[0; NODES_MAX]; CLIENTS_MAX];
        self.answered_ns = [[0; NODES_MAX]; CLIENTS_MAX];
        self.lines = [[OPEN; NODES_MAX]; CLIENTS_MAX];
        if self.faults.iter().any(Option::is_some) {
            self.either_way = Ways::free_since(self.at_first_ns);
            self.requests = Ways::free_since(self.at_first_ns);
            self.faults.iter_mut().flatten().for_each(|cut| cut.began_ns = NEVER);
        }
    }

    /// Returns since when `client` can reach `node`: 0 if always, [`NEVER`] if it cannot now.
    pub(super) fn since_ns(&self, client: u8, node: u8) -> u64 {
        self.by(&self.either_way, client, node)
    }

    /// Returns since when `client` can send `node` a request that was due at `at_ns`: 0 if always,
    /// [`NEVER`] if it cannot now.
    pub(super) fn can_send_since_ns(&self, client: u8, node: u8, at_ns: u64) -> u64 {
        let line = &self.lines[usize::from(client)][usize::from(node)];
        let dials_again = line.let_go_ns <= at_ns || at_ns < line.dialled_ns;
        let ways = if dials_again { &self.either_way } else { &self.requests };
        self.by(ways, client, node)
    }

    fn by(&self, ways: &Ways, client: u8, node: u8) -> u64 {
        if (self.down | self.stalled) & just(node) != 0 {
            return NEVER;
        }
        let (client, node) = (usize::from(client), usize::from(node));
        ways.since_ns(client, node).max(self.node_since_ns[node])
    }

    /// Records that `client` wrote a command to `node`.
    pub(super) fn written(&mut self, client: u8, node: u8, command: u32, at_ns: u64) {
        let (client, node) = (usize::from(client), usize::from(node));
        // Stored plus one, so that 0 means never.
        self.written_ns[client][node] = at_ns.saturating_add(1);
        let line = &mut self.lines[client][node];
        line.last = command;
        line.let_go_ns = line.let_go_ns.min(at_ns.saturating_add(self.patience_ns[client]));
    }

    /// Records that `client` received an answer of `node`.
    pub(super) fn answered(&mut self, client: u8, node: u8, command: u32, at_ns: u64) {
        let (client, node) = (usize::from(client), usize::from(node));
        self.answered_ns[client][node] = at_ns.saturating_add(1);
        let line = &mut self.lines[client][node];
        // Answers come in order: after the answer to the last command, no answer is awaited.
        if line.last == command {
            let had_let_go = core::mem::replace(&mut line.let_go_ns, NEVER) <= at_ns;
            line.dialled_ns = if had_let_go { at_ns } else { line.dialled_ns };
        }
    }

    /// Returns true if `node` has answered since `client` last wrote to it.
    pub(super) fn has_answered(&self, client: u8, node: u8) -> bool {
        let (client, node) = (usize::from(client), usize::from(node));
        self.answered_ns[client][node] >= self.written_ns[client][node]
    }

    /// Returns true if the link between `client` and `node` is fast enough for the node timeout.
    pub(super) fn answers_in_time(&self, client: u8, node: u8) -> bool {
        self.too_slow[usize::from(client)] & just(node) == 0
    }

    pub(super) fn node_down(&mut self, node: u8) {
        self.down |= just(node);
    }

    pub(super) fn node_up(&mut self, node: u8, at_ns: u64) {
        self.down &= !just(node);
        self.healed(node, at_ns);
        (0..CLIENTS_MAX).for_each(|client| self.lost_connection(client, node, at_ns));
    }

    pub(super) fn node_stalled(&mut self, node: u8) {
        self.stalled |= just(node);
    }

    pub(super) fn node_unstalled(&mut self, node: u8, at_ns: u64) {
        self.stalled &= !just(node);
        self.healed(node, at_ns);
    }

    pub(super) fn fault_began(&mut self, fault: u16, at_ns: u64) {
        let Some(Some(cut)) = self.faults.get_mut(usize::from(fault)) else { return };
        cut.began_ns = at_ns;
        let cut = *cut;
        self.either_way.cut(&cut.either_way);
        self.requests.cut(&cut.requests);
        if cut.resets {
            for (client, &nodes) in cut.either_way.iter().enumerate() {
                nodes_in(nodes).for_each(|node| self.lost_connection(client, node, at_ns));
            }
        }
    }

    pub(super) fn fault_ended(&mut self, fault: u16, at_ns: u64) {
        let Some(Some(cut)) = self.faults.get(usize::from(fault)) else { return };
        let felt_ns = match cut.aftermath {
            Aftermath::AsLongAgain => {
                at_ns.saturating_sub(cut.began_ns).saturating_add(RETRANSMISSION_NS)
            }
            Aftermath::Fixed(felt_ns) => felt_ns,
        };
        let over_ns = at_ns.saturating_add(felt_ns);
        self.either_way.heal(&cut.either_way, over_ns);
        self.requests.heal(&cut.requests, over_ns);
    }

    fn lost_connection(&mut self, client: usize, node: u8, at_ns: u64) {
        if let Some(line) = self.lines[client].get_mut(usize::from(node)) {
            line.let_go_ns = line.let_go_ns.min(at_ns);
        }
    }

    fn healed(&mut self, node: u8, at_ns: u64) {
        if let Some(since_ns) = self.node_since_ns.get_mut(usize::from(node)) {
            *since_ns = at_ns;
        }
    }
}

fn cut_of(scenario: &Scenario, setting: &Setting, kind: &FaultKind) -> Option<Cut> {
    let across = |from, to| across(scenario, setting, from, to);
    let (requests, answers, resets, aftermath) = match kind {
        FaultKind::Partition(it) => {
            let [one, other] = &it.between;
            let aftermath = match it.lost {
                Lost::Hold => Aftermath::AsLongAgain,
                Lost::Reset | Lost::Silent => Aftermath::Fixed(0),
            };
            let there = (across(one, other), across(other, one));
            let (requests, answers) = match it.one_way {
                true => there,
                false => (both(there.0, there.1), both(there.0, there.1)),
            };
            (requests, answers, it.lost == Lost::Reset, aftermath)
        }
        FaultKind::Delay(it) => {
            let (requests, answers) = (across(&it.from, &it.to), across(&it.to, &it.from));
            let (requests, answers) = match it.only {
                None => (requests, answers),
                Some(Message::Extend | Message::Release | Message::Set) => (requests, NOBODY),
                Some(Message::Answer) => (NOBODY, answers),
                Some(Message::Write) => (NOBODY, NOBODY),
            };
            (requests, answers, false, Aftermath::Fixed(it.by.0))
        }
        // A demoted node executes nothing, and clients close their connections.
        FaultKind::Demote(it) => {
            let nodes = it.host.0.iter().filter_map(|name| scenario.host_named(name));
            let nodes = nodes.map(|host| just(host.0)).fold(0, core::ops::BitOr::bitor);
            let refused = [nodes; CLIENTS_MAX];
            (refused, refused, true, Aftermath::Fixed(0))
        }
        _ => return None,
    };
    let either_way = both(requests, answers);
    let cut = Cut { either_way, requests, resets, aftermath, began_ns: NEVER };
    (either_way != NOBODY).then_some(cut)
}

fn both(one: Nodes, other: Nodes) -> Nodes {
    core::array::from_fn(|client| one[client] | other[client])
}

/// Returns the time for which each client waits for an answer before it closes the connection.
fn patience_ns(scenario: &Scenario, setting: &Setting) -> [u64; CLIENTS_MAX] {
    core::array::from_fn(|place| {
        let connections = scenario.clients.get(place).and_then(|client| client.connections);
        // Each command has a connection of its own: the next command has to dial a new one at once.
        if connections == Some(Connections::FreshPerCommand) { 0 } else { setting.give_up_ns }
    })
}

fn too_slow(scenario: &Scenario, setting: &Setting) -> [u16; CLIENTS_MAX] {
    let is_too_slow = |delay: SpanRange| delay.max.0.saturating_mul(2) >= setting.node_timeout_ns;
    let all_nodes = (1u16 << setting.nodes) - 1;
    let all = if is_too_slow(scenario.cluster.network.delay) { all_nodes } else { 0 };
    let mut too_slow = [all; CLIENTS_MAX];
    for link in &scenario.cluster.links {
        let [one, other] = &link.between;
        let there = (across(scenario, setting, one, other), across(scenario, setting, other, one));
        let nodes = both(there.0, there.1);
        for (too_slow, nodes) in too_slow.iter_mut().zip(nodes) {
            *too_slow &= !nodes;
            *too_slow |= if is_too_slow(link.delay) { nodes } else { 0 };
        }
    }
    too_slow
}

/// Returns, for each client whose host is in `near`, the nodes in `far`.
fn across(scenario: &Scenario, setting: &Setting, near: &[String], far: &[String]) -> Nodes {
    let hosts = |names: &[String]| {
        let hosts = names.iter().filter_map(|name| scenario.host_named(name));
        hosts.map(|host| 1u32 << host.get()).fold(0, core::ops::BitOr::bitor)
    };
    let (near, far) = (hosts(near), hosts(far) & ((1u32 << setting.nodes) - 1));
    core::array::from_fn(|client| {
        let client = 1u32 << setting.client_host(client as u8).get();
        if near & client == 0 { 0 } else { far as u16 }
    })
}
