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
//! for an answer for longer than its patience. It has lost the connection if a partition resets it,
//! the node's process ends, or the node was no master. Dialling again requires that answers pass.
//! After a silent partition the connection may be half open, until an answer shows that it works.
//! If the node's process ends meanwhile, the client does not hear of it, and requests on that
//! connection are lost.

mod connection;
mod cuts;
mod links;

use self::connection::{Connection, OPEN};
use self::cuts::{Aftermath, Cut, Nodes, Severed};
use self::links::{patience_ns, round_trips_ns};
use super::ground::NEVER;
use super::setting::Setting;
use crate::history::{ClientId, CommandId, FaultId, Id, NodeId, NodeIds};
use crate::ids::{IdVec, PerClient, PerNode};
use crate::scenario::{Fault, Scenario};

/// Twice the first pause between retransmissions: the extra time on top of the doubled pauses.
const RETRANSMISSION_NS: u64 = 400_000_000;

/// Paths between clients and nodes: the number of faults that cut each, and since when it is free.
#[derive(Clone, Debug)]
struct Paths {
    cuts: PerClient<PerNode<u16>>,
    since_ns: PerClient<PerNode<u64>>,
}

impl Paths {
    fn free_since(at_ns: u64) -> Self {
        let cuts = PerClient::filled(PerNode::filled(0));
        Self { cuts, since_ns: PerClient::filled(PerNode::filled(at_ns)) }
    }

    /// Frees the paths of the first `clients` clients.
    fn reset(&mut self, clients: usize, at_ns: u64) {
        self.cuts.first_mut(clients).fill(PerNode::filled(0));
        self.since_ns.first_mut(clients).fill(PerNode::filled(at_ns));
    }

    fn cut(&mut self, nodes: &Nodes) {
        for (cuts, nodes) in self.cuts.values_mut().zip(nodes.values()) {
            for node in nodes.iter() {
                cuts[node] = cuts[node].saturating_add(1);
            }
        }
    }

    fn heal(&mut self, nodes: &Nodes, at_ns: u64) {
        for (client, nodes) in nodes.iter() {
            for node in nodes.iter() {
                self.cuts[client][node] = self.cuts[client][node].saturating_sub(1);
                self.since_ns[client][node] = self.since_ns[client][node].max(at_ns);
            }
        }
    }

    /// Returns since when the path is free; [`NEVER`] if it is cut.
    fn since_ns(&self, client: ClientId, node: NodeId) -> u64 {
        if self.cuts[client][node] > 0 { NEVER } else { self.since_ns[client][node] }
    }
}

/// Reachability of each node for each client.
#[derive(Clone, Debug)]
pub(super) struct Reach {
    /// Effect of each fault; `None` if the fault keeps no client from a node.
    faults: IdVec<FaultId, Option<Cut>>,
    /// Number of clients, with the probes.
    clients: usize,
    down: NodeIds,
    stalled: NodeIds,
    node_since_ns: PerNode<u64>,
    either_way: Paths,
    requests: Paths,
    at_first_ns: u64,
    /// Time for which each client waits for an answer before it closes the connection.
    patience_ns: PerClient<u64>,
    connections: PerClient<PerNode<Connection>>,
    written_ns: PerClient<PerNode<u64>>,
    /// Longest round trip on each link, without faults.
    round_trip_ns: PerClient<PerNode<u64>>,
    /// Nodes that may restart behind a proxy.
    proxied: NodeIds,
    /// See [`Setting`].
    heal_ns: u64,
}

impl Reach {
    pub(super) fn new(scenario: &Scenario, setting: &Setting) -> Self {
        let cut = |fault: &Fault| Cut::of(&fault.kind, scenario, setting);
        // A cold connection can be dialled from the first nanosecond on.
        let at_first_ns = u64::from(!setting.warm);
        Self {
            faults: scenario.faults.iter().map(cut).collect(),
            clients: setting.clients,
            down: NodeIds::EMPTY,
            stalled: NodeIds::EMPTY,
            node_since_ns: PerNode::filled(0),
            either_way: Paths::free_since(at_first_ns),
            requests: Paths::free_since(at_first_ns),
            at_first_ns,
            patience_ns: patience_ns(scenario, setting),
            connections: PerClient::filled(PerNode::filled(OPEN)),
            written_ns: PerClient::filled(PerNode::filled(0)),
            round_trip_ns: round_trips_ns(scenario, setting),
            proxied: setting.proxied,
            heal_ns: setting.heal_ns,
        }
    }

    pub(super) fn reset(&mut self) {
        (self.down, self.stalled) = (NodeIds::EMPTY, NodeIds::EMPTY);
        self.node_since_ns.fill(0);
        self.written_ns.first_mut(self.clients).fill(PerNode::filled(0));
        self.connections.first_mut(self.clients).fill(PerNode::filled(OPEN));
        if self.faults.values().any(Option::is_some) {
            self.either_way.reset(self.clients, self.at_first_ns);
            self.requests.reset(self.clients, self.at_first_ns);
            self.faults.values_mut().flatten().for_each(|cut| cut.began_ns = NEVER);
        }
    }

    /// Returns since when `client` can reach `node`: 0 if always, [`NEVER`] if it cannot now.
    pub(super) fn since_ns(&self, client: ClientId, node: NodeId) -> u64 {
        self.by(&self.either_way, client, node)
    }

    /// Returns since when `client` can send `node` a request that was due at `at_ns`: 0 if always,
    /// [`NEVER`] if it cannot now.
    pub(super) fn can_send_since_ns(&self, client: ClientId, node: NodeId, at_ns: u64) -> u64 {
        let connection = &self.connections[client][node];
        // A loss after `at_ns` may have taken the request along.
        let is_lost = connection.let_go_ns != NEVER && at_ns < connection.lost_ns;
        // A request may still be on its way, or be held back, when the client closes the connection.
        let held_ns = self.by(&self.requests, client, node);
        let arrives_ns = at_ns.saturating_add(self.round_trip_ns(client, node) / 2);
        let is_dropped = connection.let_go_ns < held_ns.max(arrives_ns);
        let is_closed = connection.let_go_ns <= at_ns || at_ns < connection.dialled_ns;
        let dials_again = is_lost || is_dropped || is_closed || connection.is_dead;
        if dials_again { self.by(&self.either_way, client, node) } else { held_ns }
    }

    fn by(&self, paths: &Paths, client: ClientId, node: NodeId) -> u64 {
        if (self.down | self.stalled).contains(node) {
            return NEVER;
        }
        paths.since_ns(client, node).max(self.node_since_ns[node])
    }

    /// Records that `client` wrote a command to `node`. A stop may have come before the writing: the
    /// client waits for the answer from `began_ns` on, if that is earlier.
    pub(super) fn written(
        &mut self,
        client: ClientId,
        node: NodeId,
        command: CommandId,
        (began_ns, at_ns): (u64, u64),
    ) {
        // Stored plus one, so that 0 means never.
        self.written_ns[client][node] = at_ns.saturating_add(1);
        let connection = &mut self.connections[client][node];
        (connection.last, connection.answered_ns) = (Some(command), NEVER);
        let let_go_ns = began_ns.min(at_ns).saturating_add(self.patience_ns[client]);
        connection.let_go_ns = connection.let_go_ns.min(let_go_ns);
        connection.half_open_let_go_ns = connection.half_open_let_go_ns.min(let_go_ns);
    }

    /// Records that `client` received an answer of `node`.
    pub(super) fn answered(
        &mut self,
        client: ClientId,
        node: NodeId,
        command: CommandId,
        at_ns: u64,
    ) {
        let is_cut = self.either_way.cuts[client][node] > 0;
        let connection = &mut self.connections[client][node];
        // An earlier command may have been executed before the partition.
        let is_proof = Some(command) > connection.last_before_silence;
        if connection.works_since_ns == NEVER && !is_cut && is_proof {
            (connection.works_since_ns, connection.is_dead) = (at_ns, false);
        }
        if connection.last == Some(command) {
            connection.answered_ns = at_ns;
        }
        // Answers come in order: after the answer to the last command, no answer is awaited. An
        // answer that had arrived when the connection was lost does not bring it back.
        let is_of_this_connection = self.written_ns[client][node] > connection.lost_ns;
        if connection.last == Some(command) && is_of_this_connection {
            let had_let_go = core::mem::replace(&mut connection.let_go_ns, NEVER) <= at_ns;
            connection.dialled_ns = if had_let_go { at_ns } else { connection.dialled_ns };
            connection.half_open_let_go_ns = NEVER;
        }
    }

    /// Returns true if `node` had answered the last command that `client` wrote to it before
    /// `at_ns`.
    pub(super) fn had_answered(&self, client: ClientId, node: NodeId, at_ns: u64) -> bool {
        let connection = &self.connections[client][node];
        connection.last.is_none() || connection.answered_ns < at_ns
    }

    /// Returns the time from which `client` may have closed its connection to `node` for lack of an
    /// answer; [`NEVER`] if it awaits none.
    pub(super) fn let_go_ns(&self, client: ClientId, node: NodeId) -> u64 {
        self.connections[client][node].let_go_ns
    }

    /// Returns true if `client` awaits an answer of `node`.
    pub(super) fn awaits_answer(&self, client: ClientId, node: NodeId) -> bool {
        self.connections[client][node].let_go_ns != NEVER
    }

    /// Returns true if what `client` wrote to `node` by `at_ns` may have gone into a half-open
    /// connection that the client had no time to replace: `heal_ns` after it lost patience.
    pub(super) fn may_be_half_open(&self, client: ClientId, node: NodeId, at_ns: u64) -> bool {
        let connection = &self.connections[client][node];
        let replaced_ns = connection.half_open_let_go_ns.saturating_add(self.heal_ns);
        connection.works_since_ns == NEVER && at_ns < replaced_ns
    }

    /// Returns since when the connection of `client` to `node` is not half open; [`NEVER`] if it may
    /// be.
    pub(super) fn works_since_ns(&self, client: ClientId, node: NodeId) -> u64 {
        self.connections[client][node].works_since_ns
    }

    /// Returns the longest round trip between `client` and `node`, without faults.
    pub(super) fn round_trip_ns(&self, client: ClientId, node: NodeId) -> u64 {
        self.round_trip_ns[client][node]
    }

    /// Returns true if `client` may have sent what it wrote from `at_ns` on over a connection of
    /// which a proxy hides that `node` restarted and owes an answer for ever: the next answer
    /// matches no command. The client has noticed that `heal_ns` after the restart. Or to a master
    /// that a failover had replaced.
    pub(super) fn may_be_mismatched(&self, client: ClientId, node: NodeId, at_ns: u64) -> bool {
        let Connection { owes_since, outdated_until_ns, .. } = self.connections[client][node];
        owes_since != 0 && at_ns < owes_since.saturating_add(self.heal_ns)
            || at_ns < outdated_until_ns
    }

    pub(super) fn node_down(&mut self, node: NodeId) {
        self.down.insert(node);
    }

    pub(super) fn node_up(&mut self, node: NodeId, at_ns: u64) {
        self.down.remove(node);
        self.healed(node, at_ns);
        let clients = ClientId::first(self.clients);
        for client in clients {
            let connection = &mut self.connections[client][node];
            if self.proxied.contains(node) && connection.answered_ns == NEVER {
                connection.owes_since = at_ns.saturating_add(1);
            }
            self.lost_connection(client, node, at_ns);
        }
    }

    pub(super) fn node_stalled(&mut self, node: NodeId) {
        self.stalled.insert(node);
    }

    pub(super) fn node_unstalled(&mut self, node: NodeId, at_ns: u64) {
        self.stalled.remove(node);
        self.healed(node, at_ns);
    }

    pub(super) fn fault_began(&mut self, fault: FaultId, at_ns: u64) {
        let Some(Some(cut)) = self.faults.get_mut(fault) else { return };
        cut.began_ns = at_ns;
        let cut = *cut;
        self.either_way.cut(&cut.either_way);
        self.requests.cut(&cut.requests);
        for (client, nodes) in cut.either_way.iter() {
            for node in nodes.iter() {
                match cut.connections {
                    Severed::No => {}
                    Severed::Closed | Severed::ClosedThroughout => {
                        self.lost_connection(client, node, at_ns);
                    }
                    Severed::Outdated => {
                        self.connections[client][node].outdated_until_ns = NEVER;
                    }
                    Severed::HalfOpen => {
                        let connection = &mut self.connections[client][node];
                        connection.works_since_ns = NEVER;
                        connection.last_before_silence = connection.last;
                        let awaits = connection.let_go_ns > at_ns;
                        connection.half_open_let_go_ns =
                            if awaits { connection.let_go_ns } else { NEVER };
                        connection.is_dead |= cut.requests[client].contains(node);
                    }
                }
            }
        }
    }

    pub(super) fn fault_ended(&mut self, fault: FaultId, at_ns: u64) {
        let Some(Some(cut)) = self.faults.get(fault) else { return };
        let felt_ns = match cut.aftermath {
            Aftermath::AsLongAgain => {
                at_ns.saturating_sub(cut.began_ns).saturating_add(RETRANSMISSION_NS)
            }
            Aftermath::Fixed(felt_ns) => felt_ns,
        };
        let over_ns = at_ns.saturating_add(felt_ns);
        let cut = *cut;
        let is_outdated = cut.connections == Severed::Outdated;
        if is_outdated || cut.connections == Severed::ClosedThroughout {
            for (client, nodes) in cut.either_way.iter() {
                for node in nodes.iter() {
                    self.lost_connection(client, node, at_ns);
                    if is_outdated {
                        self.connections[client][node].outdated_until_ns = at_ns;
                    }
                }
            }
        }
        self.either_way.heal(&cut.either_way, over_ns);
        self.requests.heal(&cut.requests, over_ns);
    }

    fn lost_connection(&mut self, client: ClientId, node: NodeId, at_ns: u64) {
        let Some(connection) = self.connections[client].get_mut(node) else { return };
        if connection.works_since_ns == NEVER {
            // The client does not hear of it.
            connection.is_dead = true;
            return;
        }
        connection.let_go_ns = connection.let_go_ns.min(at_ns);
        connection.lost_ns = at_ns.saturating_add(1);
    }

    fn healed(&mut self, node: NodeId, at_ns: u64) {
        if let Some(since_ns) = self.node_since_ns.get_mut(node) {
            // 0 means always.
            *since_ns = at_ns.max(1);
        }
    }
}
