//! Looks and reads by which a client follows pushes although nothing changes.
//!
//! A push is a hint, and may come without a change: another database is emptied, or a key of the same
//! name changes there. A client of this project follows the first pushes of such a storm at once, and
//! then grows slow. Its connections, the node's data and its own attempts and extensions are other
//! reasons to ask a node; each of them begins a new second here. Where clocks are wrong or are set,
//! nothing counts: a key whose time passes at another pace looks like a key that has changed.

use crate::history::{ClientId, ClientIds, NodeId};
use crate::ids::{PerClient, PerNode};
use crate::oracle::facts::Facts;
use crate::oracle::measured::Measured;
use crate::scenario::Quantity;

const SECOND_NS: u64 = 1_000_000_000;

/// Looks and reads of a run so far.
#[derive(Debug)]
pub(super) struct Reads {
    clients: ClientIds,
    of: PerClient<Reading>,
    /// Time of the last change that any client may look into.
    changed_ns: u64,
    most: u64,
}

/// Looks and reads of one client.
#[derive(Clone, Copy, Debug)]
struct Reading {
    /// Begin of its last attempt or extension.
    began_ns: u64,
    /// First look or read of the current second on each node, and their number.
    seconds: PerNode<(u64, u64)>,
}

impl Reading {
    fn none() -> Self {
        Self { began_ns: 0, seconds: PerNode::filled((0, 0)) }
    }
}

impl Reads {
    pub(super) fn new() -> Self {
        let of = PerClient::filled(Reading::none());
        Self { clients: ClientIds::EMPTY, of, changed_ns: 0, most: 0 }
    }

    pub(super) fn reset(&mut self) {
        (self.clients, self.changed_ns, self.most) = (ClientIds::EMPTY, 0, 0);
    }

    /// Records T1 of an attempt or an extension of `client`.
    pub(super) fn began(&mut self, now_ns: u64, client: ClientId) {
        self.of(client).began_ns = now_ns;
    }

    /// Records a change that any client may look into.
    pub(super) fn changes(&mut self, now_ns: u64) {
        self.changed_ns = now_ns;
    }

    /// Records a look or a read.
    pub(super) fn written(&mut self, facts: &Facts, client: ClientId, node: NodeId) {
        if !facts.setting.steady {
            return;
        }
        let changed_ns = self.changed_ns;
        let of = self.of(client);
        let members = facts.setting.members(client).iter();
        let opened = members.map(|node| facts.connected_since_ns(client, node));
        let opened_ns = opened.filter(|&at| at <= facts.now_ns).max().unwrap_or(0);
        let since_ns = changed_ns.max(of.began_ns).max(opened_ns);
        let (first_ns, count) = &mut of.seconds[node];
        if *first_ns <= since_ns || facts.now_ns - *first_ns >= SECOND_NS {
            (*first_ns, *count) = (facts.now_ns, 0);
        }
        *count += 1;
        let count = *count;
        self.most = self.most.max(count);
    }

    fn of(&mut self, client: ClientId) -> &mut Reading {
        if !self.clients.contains(client) {
            self.clients.insert(client);
            self.of[client] = Reading::none();
        }
        &mut self.of[client]
    }

    pub(super) fn measure(&self, measured: &mut Measured) {
        measured.set(Quantity::ReadsInASecond, Some(self.most));
    }
}
