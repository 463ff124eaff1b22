//! Since when each client can reach each node.
//!
//! A node that is down or stalled can be reached by nobody. A partition cuts the pairs of clients
//! and nodes across it in either direction, whichever it blocks; so does a delay, which lets
//! everything pass but late. What a fault held back arrives later than its end: what a delay held,
//! by its amount; what a partition held, with a retransmission, which comes after about as long
//! again as the partition lasted, since the pauses between retransmissions double.

use super::leases::{NEVER, just, nodes_in};
use super::setting::{CLIENTS_MAX, NODES_MAX, Setting};
use crate::scenario::{FaultKind, Lost, Message, Scenario, SpanRange};

/// The first pause between retransmissions, twice: it adds to what the doubling makes of it.
const RETRANSMISSION_NS: u64 = 400_000_000;

/// What a fault of the scenario keeps apart.
#[derive(Clone, Copy, Debug)]
struct Cut {
    /// Nodes, by client.
    nodes: [u16; CLIENTS_MAX],
    aftermath: Aftermath,
    began_ns: u64,
}

/// For how long a fault is felt after its end.
#[derive(Clone, Copy, Debug)]
enum Aftermath {
    AsLongAgain,
    Fixed(u64),
}

/// Which nodes can be reached by which clients.
#[derive(Clone, Debug)]
pub(super) struct Reach {
    /// By fault; `None` if it keeps no client from a node.
    faults: Vec<Option<Cut>>,
    down: u16,
    stalled: u16,
    node_since_ns: [u64; NODES_MAX],
    cuts: [[u8; NODES_MAX]; CLIENTS_MAX],
    pair_since_ns: [[u64; NODES_MAX]; CLIENTS_MAX],
    at_first_ns: u64,
    written_ns: [[u64; NODES_MAX]; CLIENTS_MAX],
    answered_ns: [[u64; NODES_MAX]; CLIENTS_MAX],
    /// Nodes, by client, on links too slow for the node timeout.
    too_slow: [u16; CLIENTS_MAX],
}

impl Reach {
    pub(super) fn new(scenario: &Scenario, setting: &Setting) -> Self {
        let cut = |kind| cut_of(scenario, setting, kind);
        // A cold connection is one that can be dialled from the first nanosecond on.
        let at_first_ns = u64::from(!setting.warm);
        Self {
            faults: scenario.faults.iter().map(|fault| cut(fault.kinds().next()?)).collect(),
            down: 0,
            stalled: 0,
            node_since_ns: [0; NODES_MAX],
            cuts: [[0; NODES_MAX]; CLIENTS_MAX],
            pair_since_ns: [[at_first_ns; NODES_MAX]; CLIENTS_MAX],
            at_first_ns,
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
        if self.faults.iter().any(Option::is_some) {
            self.cuts = [[0; NODES_MAX]; CLIENTS_MAX];
            self.pair_since_ns = [[self.at_first_ns; NODES_MAX]; CLIENTS_MAX];
            self.faults.iter_mut().flatten().for_each(|cut| cut.began_ns = NEVER);
        }
    }

    /// Since when `client` has been able to reach `node`: 0 if always, [`NEVER`] if it cannot.
    pub(super) fn since_ns(&self, client: u8, node: u8) -> u64 {
        let (client, place) = (usize::from(client), usize::from(node));
        if (self.down | self.stalled) & just(node) != 0 || self.cuts[client][place] > 0 {
            return NEVER;
        }
        self.pair_since_ns[client][place].max(self.node_since_ns[place])
    }

    /// `client` wrote a command to `node`.
    pub(super) fn written(&mut self, client: u8, node: u8, at_ns: u64) {
        // One more, so that 0 is never.
        self.written_ns[usize::from(client)][usize::from(node)] = at_ns.saturating_add(1);
    }

    /// `client` took in an answer of `node`.
    pub(super) fn answered(&mut self, client: u8, node: u8, at_ns: u64) {
        self.answered_ns[usize::from(client)][usize::from(node)] = at_ns.saturating_add(1);
    }

    /// Whether `node` has answered since `client` wrote to it last.
    pub(super) fn has_answered(&self, client: u8, node: u8) -> bool {
        let (client, node) = (usize::from(client), usize::from(node));
        self.answered_ns[client][node] >= self.written_ns[client][node]
    }

    /// Whether the link between the two is fast enough for the node timeout.
    pub(super) fn answers_in_time(&self, client: u8, node: u8) -> bool {
        self.too_slow[usize::from(client)] & just(node) == 0
    }

    pub(super) fn node_down(&mut self, node: u8) {
        self.down |= just(node);
    }

    pub(super) fn node_up(&mut self, node: u8, at_ns: u64) {
        self.down &= !just(node);
        self.healed(node, at_ns);
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
        for (cuts, &nodes) in self.cuts.iter_mut().zip(&cut.nodes) {
            for (node, count) in cuts.iter_mut().enumerate() {
                *count = count.saturating_add(((nodes >> node) & 1) as u8);
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
        for (client, &nodes) in cut.nodes.iter().enumerate() {
            for node in nodes_in(nodes).map(usize::from) {
                self.cuts[client][node] = self.cuts[client][node].saturating_sub(1);
                let since_ns = &mut self.pair_since_ns[client][node];
                *since_ns = at_ns.saturating_add(felt_ns).max(*since_ns);
            }
        }
    }

    fn healed(&mut self, node: u8, at_ns: u64) {
        if let Some(since_ns) = self.node_since_ns.get_mut(usize::from(node)) {
            *since_ns = at_ns;
        }
    }
}

fn cut_of(scenario: &Scenario, setting: &Setting, kind: FaultKind<'_>) -> Option<Cut> {
    let (groups, aftermath) = match kind {
        FaultKind::Partition(it) => {
            let aftermath = match it.lost {
                Lost::Hold => Aftermath::AsLongAgain,
                Lost::Reset | Lost::Silent => Aftermath::Fixed(0),
            };
            ([&it.between[0], &it.between[1]], aftermath)
        }
        FaultKind::Delay(it) if it.only != Some(Message::Write) => {
            ([&it.from, &it.to], Aftermath::Fixed(it.by.0))
        }
        _ => return None,
    };
    let nodes = between(scenario, setting, groups);
    (nodes != [0; CLIENTS_MAX]).then_some(Cut { nodes, aftermath, began_ns: NEVER })
}

fn too_slow(scenario: &Scenario, setting: &Setting) -> [u16; CLIENTS_MAX] {
    let is_too_slow = |delay: SpanRange| delay.max.0.saturating_mul(2) >= setting.node_timeout_ns;
    let all_nodes = (1u16 << setting.nodes) - 1;
    let all = if is_too_slow(scenario.cluster.network.delay) { all_nodes } else { 0 };
    let mut too_slow = [all; CLIENTS_MAX];
    for link in &scenario.cluster.links {
        let nodes = between(scenario, setting, [&link.between[0], &link.between[1]]);
        for (too_slow, nodes) in too_slow.iter_mut().zip(nodes) {
            *too_slow &= !nodes;
            *too_slow |= if is_too_slow(link.delay) { nodes } else { 0 };
        }
    }
    too_slow
}

/// The nodes that are across from each client.
fn between(
    scenario: &Scenario,
    setting: &Setting,
    groups: [&Vec<String>; 2],
) -> [u16; CLIENTS_MAX] {
    let hosts = |names: &Vec<String>| {
        let hosts = names.iter().filter_map(|name| scenario.host_named(name));
        hosts.map(|host| 1u32 << host.get()).fold(0, core::ops::BitOr::bitor)
    };
    let [one, other] = groups.map(hosts);
    let all_nodes = (1u32 << setting.nodes) - 1;
    core::array::from_fn(|client| {
        let client = 1u32 << setting.client_host(client as u8).get();
        let across = |near: u32, far: u32| if near & client == 0 { 0 } else { far & all_nodes };
        (across(one, other) | across(other, one)) as u16
    })
}
