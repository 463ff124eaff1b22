//! A client in one state, with everything that the search asks of it.

use core::hash::Hash;
use std::sync::OnceLock;

use siphasher::sip128::{Hasher128, SipHasher13};

use super::client::Client;
use super::table::Table;
use super::{Action, Answer, Input, NODES, QUORUM, Request, Token};

/// All orders of the nodes.
const ORDERS: [[usize; NODES]; 6] =
    [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

/// Incarnations of a node within the bounds: of all nodes, one restarts once.
const INCARNATIONS: usize = 2;

/// A client at one tick. What it does next is worked out once for each input.
pub(super) struct ClientState<C> {
    client: C,
    number: usize,
    now: u8,
    /// Nodes whose acknowledgements the client has received in its current attempt.
    acknowledged: [bool; NODES],
    pub(super) can_begin: bool,
    pub(super) can_release: bool,
    pub(super) is_due: bool,
    pub(super) can_connect: [bool; NODES],
    pub(super) is_done: bool,
    pub(super) believes: bool,
    /// Token of the attempt under way, or of the lease.
    pub(super) current: Option<Token>,
    pub(super) counts: [bool; NODES],
    /// Hash of all but the parts about single nodes.
    pub(super) whole: u128,
    /// Hash of the part about each node.
    pub(super) parts: [u128; NODES],
    /// Hash of everything, for each order of the nodes.
    hashes: [u128; ORDERS.len()],
    after: [OnceLock<Box<After>>; 4 + NODES * (3 + INCARNATIONS)],
}

/// The effect of an input.
pub(super) struct After {
    input: Input,
    /// Number of the client's state.
    pub(super) client: u32,
    pub(super) actions: Vec<Action>,
    /// True if a lease was granted without a majority, or after its deadline.
    pub(super) is_unsound: bool,
}

pub(super) fn hash(value: impl Hash) -> u128 {
    let mut hasher = SipHasher13::new();
    value.hash(&mut hasher);
    hasher.finish128().as_u128()
}

impl<C: Client> ClientState<C> {
    /// Returns the number of the client's state.
    pub(super) fn number(
        table: &Table<Self>,
        client: C,
        number: usize,
        acknowledged: [bool; NODES],
        now: u8,
    ) -> u32 {
        let all = |order| Self::hash_all(&client, acknowledged, order, now);
        let key = hash((number, now, all(ORDERS[0])));
        table.number(key, || {
            let node = |node| hash((client.encode_node(node, now), acknowledged[node]));
            Self {
                number,
                now,
                acknowledged,
                can_begin: client.can(Input::Begin, now),
                can_release: client.can(Input::Release, now),
                is_due: client.can(Input::Timer, now),
                can_connect: core::array::from_fn(|it| client.can(Input::Connected(it, 0), now)),
                is_done: client.is_done(),
                believes: client.believes(now),
                current: client.current(),
                counts: core::array::from_fn(|node| client.counts(node)),
                whole: hash(client.encode(now)),
                parts: core::array::from_fn(node),
                hashes: ORDERS.map(all),
                after: [const { OnceLock::new() }; 4 + NODES * (3 + INCARNATIONS)],
                client: client.clone(),
            }
        })
    }

    fn hash_all(client: &C, acknowledged: [bool; NODES], order: [usize; NODES], now: u8) -> u128 {
        let nodes = order.map(|node| (client.encode_node(node, now), acknowledged[node]));
        hash((client.encode(now), nodes, client.fingerprint(order, now)))
    }

    /// Returns the hash of everything, with the nodes taken in `order`.
    pub(super) fn hash(&self, order: [usize; NODES]) -> u128 {
        // Orders are sorted, and each node comes first in two.
        self.hashes[2 * order[0] + usize::from(order[1] > order[2])]
    }

    /// Returns true if a release of `token` is on its way to the node, or owed to it.
    pub(super) fn owes(&self, node: usize, token: Token) -> bool {
        self.client.owes(node, token)
    }

    /// Handles `input`.
    pub(super) fn handle(&self, table: &Table<Self>, input: Input) -> &After {
        let after = self.after[slot(input)].get_or_init(|| Box::new(self.after(table, input)));
        assert_eq!(after.input, input, "an answer belongs to the oldest command");
        after
    }

    /// Returns the number of the same client a tick later.
    pub(super) fn later(&self, table: &Table<Self>) -> u32 {
        let later = || {
            let client = self.client.clone();
            let client = Self::number(table, client, self.number, self.acknowledged, self.now + 1);
            Box::new(After { input: Input::Timer, client, actions: Vec::new(), is_unsound: false })
        };
        self.after[0].get_or_init(later).client
    }

    fn after(&self, table: &Table<Self>, input: Input) -> After {
        let (mut client, mut acknowledged) = (self.client.clone(), self.acknowledged);
        if let Input::Answer(node, request, Answer::Done) = input {
            let is_current = client.tries().is_some_and(|it| request == Request::Set(it));
            acknowledged[node] |= is_current;
        }
        let actions = client.handle(input, self.now);
        let mut is_unsound = false;
        for action in &actions {
            if let Action::Granted { deadline } = action {
                let votes = acknowledged.iter().filter(|&&it| it).count();
                is_unsound |= votes < QUORUM || *deadline <= self.now;
            }
            if matches!(action, Action::Granted { .. } | Action::Failed) {
                acknowledged = [false; NODES];
            }
        }
        let client = Self::number(table, client, self.number, acknowledged, self.now);
        After { input, client, actions, is_unsound }
    }
}

/// Returns the place of the input's effect; the first one is for the passing of a tick.
fn slot(input: Input) -> usize {
    let of = |node: usize, what: usize| 4 + node * (3 + INCARNATIONS) + what;
    match input {
        Input::Begin => 1,
        Input::Release => 2,
        Input::Timer => 3,
        Input::Closed(node) => of(node, 0),
        Input::Answer(node, _, Answer::Done) => of(node, 1),
        Input::Answer(node, _, Answer::Refused) => of(node, 2),
        Input::Connected(node, incarnation) => {
            assert!(usize::from(incarnation) < INCARNATIONS, "at most one restart");
            of(node, 3 + usize::from(incarnation))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_each_order_is_found() {
        for (place, [first, second, third]) in ORDERS.into_iter().enumerate() {
            assert_eq!(2 * first + usize::from(second > third), place);
        }
    }
}
