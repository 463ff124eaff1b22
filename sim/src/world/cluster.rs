//! The cluster: its servers, which of them acts for each node, and what clients know of that.

mod disk_work;
mod replication;
mod tracking;

use core::ops::{Index, IndexMut};
use std::collections::VecDeque;

use lock_judge::history::{ClientId, Id, NodeId};
use lock_judge::ids::{ConnectionId, IdVec, PerNode, ServerId};
use redis_sim::profile::Profile;
use redis_sim::server::Server;
use redis_sim::{Master, Persistence, run_id};
use redlock_protocol::Canary;

use self::disk_work::DiskWork;
use self::replication::Replication;
pub(super) use self::replication::{Link, Role, Wait};
use self::tracking::Tracking;
use crate::native::{self, SeededCanary};
use crate::plan::Plan;
use crate::subject::Request;
use crate::terms;

/// One server, with its host.
#[derive(Debug)]
pub(crate) struct ServerHost {
    /// The Redis process, or what it left on its disk.
    pub(crate) redis: Server,
    /// Number of faults that stall the process.
    pub(super) stalls: u16,
    /// True if the host has no power.
    pub(super) dark: bool,
    /// True if a proxy keeps the clients' connections although the process is gone.
    pub(super) is_hidden: bool,
    /// Number of faults that fill the memory.
    full: u16,
    /// Requests that the process has not read.
    pub(super) inbox: VecDeque<(ConnectionId, Request)>,
    /// A request has been taken up whose effect is yet to come: no other may overtake it.
    pub(super) has_taken_up: bool,
    pub(super) disk: DiskWork,
    pub(super) replication: Replication,
    /// Expiry for which the active expiry cycle is on the agenda, on the wall clock.
    pub(super) expiry_due_ms: Option<u64>,
}

impl ServerHost {
    fn new(master: Master, profile: &'static Profile) -> Self {
        Self {
            redis: Server::new(master, profile),
            stalls: 0,
            dark: false,
            is_hidden: false,
            full: 0,
            inbox: VecDeque::new(),
            has_taken_up: false,
            disk: DiskWork::default(),
            replication: Replication::default(),
            expiry_due_ms: None,
        }
    }

    /// Resets to the beginning of a run, except for the process, which the caller sets.
    pub(super) fn reset(&mut self) {
        (self.stalls, self.dark, self.full) = (0, false, 0);
        self.is_hidden = false;
        self.inbox.clear();
        self.disk.reset();
        self.expiry_due_ms = None;
    }

    /// Returns true if this server acts for its node.
    pub(super) fn is_master(&self) -> bool {
        self.replication.role == Role::Master
    }

    /// Returns true if the process executes nothing now.
    pub(super) fn is_blocked(&self) -> bool {
        let disk = self.redis.disk();
        self.stalls > 0 || (disk.is_syncing() && disk.storage().persistence == Persistence::Always)
    }

    pub(super) fn fill_memory(&mut self) {
        self.full += 1;
        self.redis.set_full(true);
    }

    pub(super) fn free_memory(&mut self) {
        self.full -= 1;
        self.redis.set_full(self.full > 0);
    }
}

/// A server that calls itself a replica although it is its node's master.
#[derive(Clone, Copy, Debug)]
struct Demoted {
    node: NodeId,
    server: ServerId,
}

/// The cluster of one run.
#[derive(Debug)]
pub(crate) struct Cluster {
    /// The servers of the nodes, followed by the replicas.
    servers: IdVec<ServerId, ServerHost>,
    /// Server that is each node's master.
    masters: PerNode<ServerId>,
    /// Number of starts of each node.
    starts: PerNode<u32>,
    /// Server that each client dials for each node.
    known: IdVec<ClientId, PerNode<ServerId>>,
    demoted: Vec<Demoted>,
    /// Canary of each node's master at the beginning of a run.
    canaries: IdVec<NodeId, SeededCanary>,
    pub(super) tracking: Tracking,
    /// Position in its server's stream up to which each connection has written.
    wrote: IdVec<ConnectionId, u32>,
    waits: u32,
    attachments: u32,
}

impl Cluster {
    /// Returns the cluster of `plan`, before any run.
    pub(super) fn new(plan: &Plan) -> Self {
        let profile = terms::profile(plan.scenario.cluster.server);
        let server = |storage| ServerHost::new(Master::new(storage, [0; 20], 0), profile);
        Self {
            servers: plan.servers.values().map(|it| server(it.storage)).collect(),
            masters: PerNode::default(),
            starts: PerNode::default(),
            known: IdVec::new(),
            demoted: Vec::new(),
            canaries: IdVec::new(),
            tracking: Tracking::default(),
            wrote: IdVec::new(),
            waits: 0,
            attachments: 0,
        }
    }

    /// Resets to the beginning of a run with this number of clients, except for the servers.
    pub(super) fn reset(&mut self, clients: usize) {
        let first = PerNode::from_fn(NodeId::first_server);
        self.masters = first;
        self.starts.fill(0);
        self.known.clear();
        self.known.resize(clients, first);
        self.demoted.clear();
        self.tracking.reset();
        self.wrote.clear();
        (self.waits, self.attachments) = (0, 0);
    }

    /// Sets the canary of a server of `node`, whose master started when its wall clock read
    /// `started_wall_ms`.
    pub(super) fn seed_canary(&mut self, server: ServerId, node: NodeId, started_wall_ms: u64) {
        let run_id = run_id(node.0, 0);
        let known = self.canaries.get_mut(node);
        if !known.as_ref().is_some_and(|it| it.is_of(run_id, started_wall_ms)) {
            let canary = SeededCanary::new(run_id, started_wall_ms);
            match known {
                Some(known) => *known = canary,
                None => _ = self.canaries.push(canary),
            }
        }
        self.canaries[node].seed(&mut self.servers[server].redis);
    }

    /// Returns the introduction of a server of `node`, with its canary; `None` if the server's memory
    /// is full and its canary has to be written.
    pub(super) fn introduction(
        &mut self,
        server: ServerId,
        node: NodeId,
        wall_us: u64,
    ) -> Option<(redis_sim::Introduction, Option<Canary>)> {
        let seeded = self.canaries.get(node);
        native::introduce(&mut self.servers[server].redis, seeded, wall_us).ok()
    }

    /// Returns the servers of two different identities.
    pub(super) fn pair_mut(&mut self, servers: [ServerId; 2]) -> [&mut ServerHost; 2] {
        self.servers.pair_mut(servers)
    }

    /// Returns the server that is the node's master.
    pub(super) fn master(&self, node: NodeId) -> ServerId {
        self.masters[node]
    }

    /// Makes `server` the node's master.
    pub(super) fn promote(&mut self, node: NodeId, server: ServerId) {
        self.masters[node] = server;
        self.servers[server].replication.role = Role::Master;
    }

    /// Counts a start of the node; returns the number of its starts.
    pub(super) fn count_start(&mut self, node: NodeId) -> u32 {
        self.starts[node] += 1;
        self.starts[node]
    }

    /// Returns the server that a client takes for the master of a node.
    #[inline]
    pub(crate) fn known(&self, client: ClientId, node: NodeId) -> ServerId {
        self.known[client][node]
    }

    /// Tells a client the master of a node.
    pub(super) fn introduce(&mut self, client: ClientId, node: NodeId, server: ServerId) {
        self.known[client][node] = server;
    }

    /// Tells every client the present master of a node; returns that master.
    pub(super) fn introduce_master(&mut self, node: NodeId) -> ServerId {
        let master = self.masters[node];
        self.known.values_mut().for_each(|known| known[node] = master);
        master
    }

    /// Makes the master of `node` call itself a replica; returns the master.
    pub(super) fn demote(&mut self, node: NodeId) -> ServerId {
        let server = self.masters[node];
        self.demoted.push(Demoted { node, server });
        self.assume_role(server);
        server
    }

    /// Promotes the demoted server of `node` again, and returns it.
    pub(super) fn end_demotion(&mut self, node: NodeId) -> Option<ServerId> {
        let place = self.demoted.iter().position(|it| it.node == node)?;
        let Demoted { server, .. } = self.demoted.swap_remove(place);
        self.assume_role(server);
        Some(server)
    }

    /// Removes the demotion of a server whose process is gone: its next process reads its
    /// configuration.
    pub(super) fn forget_demotion(&mut self, server: ServerId) {
        self.demoted.retain(|it| it.server != server);
        self.assume_role(server);
    }

    /// Sets the role that the process reports.
    pub(super) fn assume_role(&mut self, server: ServerId) {
        let is_demoted = self.demoted.iter().any(|it| it.server == server);
        let host = &mut self.servers[server];
        host.redis.set_replica(is_demoted || host.replication.role == Role::Replica);
    }

    /// Returns the position in its server's stream up to which the connection has written.
    pub(super) fn wrote(&self, connection: ConnectionId) -> u32 {
        self.wrote.get(connection).copied().unwrap_or(0)
    }

    /// Notes that the connection has written up to the end of the server's stream.
    #[cold]
    pub(super) fn note_written(&mut self, server: ServerId, connection: ConnectionId) {
        if self.wrote.get(connection).is_none() {
            self.wrote.resize(connection.index() + 1, 0);
        }
        self.wrote[connection] = self.servers[server].redis.stream().len();
    }

    /// Returns the number of the next `WAIT`.
    pub(super) fn number_wait(&mut self) -> u32 {
        self.waits += 1;
        self.waits
    }

    /// Returns the number of the next connection of a replica to its master.
    pub(super) fn number_attachment(&mut self) -> u32 {
        self.attachments += 1;
        self.attachments
    }
}

impl Index<ServerId> for Cluster {
    type Output = ServerHost;

    #[inline]
    fn index(&self, server: ServerId) -> &ServerHost {
        &self.servers[server]
    }
}

impl IndexMut<ServerId> for Cluster {
    #[inline]
    fn index_mut(&mut self, server: ServerId) -> &mut ServerHost {
        &mut self.servers[server]
    }
}
