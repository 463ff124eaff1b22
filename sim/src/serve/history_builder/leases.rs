//! Leases as the masters saw them: the keys of each attempt, and how long its client may rely on
//! them.
//!
//! A key is due to live from the command that sets it for the TTL of that command, or until its own
//! attempt deletes it. What faults and other clients do to it does not count, because the holder
//! cannot know. Any attempt of the key's client extends it: a command without a value belongs to the
//! client's newest attempt. A lease lasts as long as the keys on a majority are due to live. It
//! begins with the first command, so this is later than any deadline that its client can have.

use lock_judge::history::{
    Answer, AttemptId, ClientId, EventKind, Id, NodeId, NodeIds, OpKind, Segment, Writer,
};
use lock_judge::ids::IdVec;

use crate::serve::recorder::number_of;

const MS_NS: u64 = 1_000_000;

/// A key that lives longer, or not as long, as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChangedKey {
    /// Preliminary number of its attempt.
    pub(super) number: usize,
    pub(super) node: NodeId,
    /// True if the attempt has never had a key on the node.
    pub(super) is_new: bool,
}

/// The keys of all attempts, by their preliminary numbers.
#[derive(Debug)]
pub(super) struct Leases {
    nodes: usize,
    /// Client of each attempt.
    clients: Vec<ClientId>,
    /// Time until which each key is due to live, in true time; 0 if it was never set. `nodes`
    /// entries for each attempt.
    due_ns: Vec<u64>,
    /// Nodes whose replies said that they set the attempt's key.
    confirmed: Vec<NodeIds>,
    /// Wall clock of each node.
    walls: IdVec<NodeId, Segment>,
}

impl Leases {
    /// Creates the state of time 0, at which the nodes' wall clocks read `walls_ns`, for the attempts
    /// of these `clients`.
    pub(super) fn new(clients: Vec<ClientId>, walls_ns: &IdVec<NodeId, u64>) -> Self {
        let segment = |&local_ns: &u64| Segment { true_ns: 0, local_ns, rate_ppb: 0 };
        Self {
            nodes: walls_ns.len(),
            due_ns: vec![0; clients.len() * walls_ns.len()],
            confirmed: vec![NodeIds::EMPTY; clients.len()],
            clients,
            walls: walls_ns.values().map(segment).collect(),
        }
    }

    /// Folds in an event at a master. Returns the key that has another life.
    pub(super) fn observe(&mut self, at_ns: u64, kind: EventKind) -> Option<ChangedKey> {
        match kind {
            EventKind::Clock { host, local_ns, rate_ppb, .. } => {
                let wall = self.walls.get_mut(NodeId(host.0))?;
                *wall = Segment { true_ns: at_ns, local_ns, rate_ppb };
                None
            }
            EventKind::Delivered {
                attempt,
                node,
                op: OpKind::Get | OpKind::GetSet | OpKind::Set,
                answer: Answer::Yes,
                ..
            } => {
                self.confirmed[number_of(attempt)].insert(node);
                None
            }
            EventKind::Executed {
                attempt,
                node,
                changed: true,
                before,
                after,
                expires_wall_ms,
                ..
            } => {
                let own = Writer::Attempt(attempt);
                let (number, due_ns) = match after {
                    Writer::Attempt(owner) if before == after && !self.is_same(owner, attempt) => {
                        return None;
                    }
                    Writer::Attempt(owner) => {
                        (number_of(owner), self.expiry_ns(at_ns, node, expires_wall_ms))
                    }
                    _ if before == own => (number_of(attempt), at_ns),
                    _ => return None,
                };
                let due = &mut self.due_ns[number * self.nodes + node.index()];
                let is_new = core::mem::replace(due, due_ns) == 0;
                Some(ChangedKey { number, node, is_new })
            }
            _ => None,
        }
    }

    /// Returns true if both attempts are of the same client.
    fn is_same(&self, one: AttemptId, other: AttemptId) -> bool {
        self.clients.get(number_of(one)) == self.clients.get(number_of(other))
    }

    /// Returns the true time at which a key expires, if the node's clock runs true from now on.
    fn expiry_ns(&self, at_ns: u64, node: NodeId, expires_wall_ms: u64) -> u64 {
        let expiry_ns = expires_wall_ms.saturating_mul(MS_NS);
        let left_ns = expiry_ns.saturating_sub(self.walls[node].local_at(at_ns));
        if expires_wall_ms == u64::MAX { u64::MAX } else { at_ns.saturating_add(left_ns) }
    }

    /// Returns the time until which `needed` keys of an attempt are due to live; 0 if fewer were
    /// set.
    pub(super) fn ends_ns(&self, number: usize, needed: u8) -> u64 {
        let Some(keys) = self.keys(number) else { return 0 };
        let mut latest_first = keys.to_vec();
        latest_first.sort_unstable_by(|one, other| other.cmp(one));
        latest_first.get(usize::from(needed) - 1).copied().unwrap_or(0)
    }

    /// Returns the nodes that have confirmed an attempt's key and on which it is due to live after
    /// `at_ns`.
    pub(super) fn counted(&self, number: usize, at_ns: u64) -> NodeIds {
        let keys = self.keys(number).unwrap_or_default();
        let lives = NodeId::first(self.nodes).zip(keys).filter(|(_, due_ns)| **due_ns > at_ns);
        let lives: NodeIds = lives.map(|(node, _)| node).collect();
        lives & self.confirmed.get(number).copied().unwrap_or_default()
    }

    /// Returns the end of each key of an attempt; `None` for an attempt without commands.
    fn keys(&self, number: usize) -> Option<&[u64]> {
        self.due_ns.get(number * self.nodes..(number + 1) * self.nodes)
    }
}

#[cfg(test)]
mod tests {
    use lock_judge::history::{ClockKind, CommandId, HostId};

    use super::*;

    const OWN: AttemptId = AttemptId { client: ClientId(0), number: 0 };
    const OTHER: AttemptId = AttemptId { client: ClientId(0), number: 1 };
    const FOREIGN: AttemptId = AttemptId { client: ClientId(0), number: 2 };

    fn executed(node: u8, before: Writer, after: Writer, expires_wall_ms: u64) -> EventKind {
        executed_by(OWN, node, (before, after), expires_wall_ms)
    }

    fn executed_by(
        attempt: AttemptId,
        node: u8,
        (before, after): (Writer, Writer),
        expires_wall_ms: u64,
    ) -> EventKind {
        EventKind::Executed {
            command: CommandId(0),
            attempt,
            node: NodeId(node),
            op: OpKind::Set,
            answer: Answer::Yes,
            changed: true,
            before,
            after,
            expires_wall_ms,
        }
    }

    /// Three nodes whose clocks read 1 s; the attempt sets its keys at 10 ms for 100 ms. The first two
    /// attempts are of one client, the third is of another.
    fn set() -> Leases {
        let walls_ns = (0..3).map(|_| 1_000 * MS_NS).collect();
        let clients = [0, 0, 1].map(ClientId).to_vec();
        let mut leases = Leases::new(clients, &walls_ns);
        for node in 0..3 {
            let set = executed(node, Writer::Nobody, Writer::Attempt(OWN), 1_110);
            let changed = ChangedKey { number: 0, node: NodeId(node), is_new: true };
            assert_eq!(leases.observe(10 * MS_NS, set), Some(changed));
        }
        leases
    }

    #[test]
    fn a_lease_lasts_as_long_as_a_majority_of_its_keys() {
        let mut leases = set();
        assert_eq!((leases.ends_ns(0, 2), leases.ends_ns(1, 2)), (110 * MS_NS, 0));
        for (node, end_ms) in [(0, 110), (1, 210)] {
            let own = Writer::Attempt(OWN);
            leases.observe(20 * MS_NS, executed(node, own, own, 1_210));
            assert_eq!(leases.ends_ns(0, 2), end_ms * MS_NS);
        }
        leases.observe(30 * MS_NS, executed(0, Writer::Attempt(OWN), Writer::Nobody, u64::MAX));
        assert_eq!(leases.ends_ns(0, 2), 110 * MS_NS);
        leases.observe(40 * MS_NS, executed(2, Writer::Attempt(OWN), Writer::Nobody, u64::MAX));
        assert_eq!(leases.ends_ns(0, 2), 40 * MS_NS);
    }

    #[test]
    fn a_loss_unknown_to_the_holder_does_not_end_its_lease() {
        let mut leases = set();
        let (host, clock) = (HostId(0), ClockKind::Wall);
        let local_ns = 5_000 * MS_NS;
        leases.observe(20 * MS_NS, EventKind::Clock { host, clock, local_ns, rate_ppb: 0 });
        for node in 0..3 {
            let deleted = executed(node, Writer::Attempt(OTHER), Writer::Nobody, u64::MAX);
            assert_eq!(leases.observe(30 * MS_NS, deleted), None);
        }
        assert_eq!(leases.ends_ns(0, 2), 110 * MS_NS);
        let again = executed(0, Writer::Nobody, Writer::Attempt(OWN), 5_120);
        let changed = ChangedKey { number: 0, node: NodeId(0), is_new: false };
        assert_eq!(leases.observe(40 * MS_NS, again), Some(changed), "it had a key there");
        assert_eq!(leases.ends_ns(0, 1), 140 * MS_NS, "by the clock that has jumped");
    }

    #[test]
    fn another_clients_extension_does_not_prolong_a_lease() {
        let mut leases = set();
        let own = Writer::Attempt(OWN);
        for node in 0..3 {
            let retimed = executed_by(FOREIGN, node, (own, own), 1_510);
            assert_eq!(leases.observe(20 * MS_NS, retimed), None);
        }
        assert_eq!(leases.ends_ns(0, 2), 110 * MS_NS);
    }

    #[test]
    fn another_attempt_of_the_same_client_prolongs_its_lease() {
        let mut leases = set();
        let own = Writer::Attempt(OWN);
        for node in 0..3 {
            let retimed = executed_by(OTHER, node, (own, own), 1_510);
            let changed = ChangedKey { number: 0, node: NodeId(node), is_new: false };
            assert_eq!(leases.observe(20 * MS_NS, retimed), Some(changed));
        }
        assert_eq!(leases.ends_ns(0, 2), 510 * MS_NS);
    }

    #[test]
    fn only_keys_that_live_and_are_confirmed_count() {
        let mut leases = set();
        let (op, answer) = (OpKind::Set, Answer::Yes);
        let (command, attempt) = (CommandId(0), OWN);
        for node in [NodeId(0), NodeId(1)] {
            leases.observe(0, EventKind::Delivered { command, attempt, node, op, answer });
        }
        leases.observe(30 * MS_NS, executed(0, Writer::Attempt(OWN), Writer::Nobody, u64::MAX));
        assert_eq!(leases.counted(0, 40 * MS_NS), NodeIds::just(NodeId(1)));
        assert_eq!(leases.counted(0, 110 * MS_NS), NodeIds::EMPTY);
        assert_eq!(leases.counted(9, 40 * MS_NS), NodeIds::EMPTY);
    }
}
