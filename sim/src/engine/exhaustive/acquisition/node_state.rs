//! A node in one state, with everything that the search asks of it.

use std::sync::OnceLock;

use super::client_state::hash;
use super::node::{Ended, Executed, Node};
use super::table::Table;
use super::{Answer, CLIENTS, Request, Terms, Token};

/// Attempts of a client within the bounds.
const ATTEMPTS: usize = 3;

/// A node at one tick. Its next state is worked out once for each input.
pub(super) struct NodeState {
    pub(super) node: Node,
    now: u8,
    /// Hash of the state, if the first client has this number.
    pub(super) hashes: [u128; CLIENTS],
    ways: OnceLock<Vec<(Vec<Executed>, u32)>>,
    after: [OnceLock<u32>; 2 + CLIENTS * (3 + 3 * ATTEMPTS)],
}

/// An input to a node. The numbers are clients.
#[derive(Clone, Copy)]
pub(super) enum NodeInput {
    Tick,
    Restart,
    /// An answer is delivered.
    Answer(usize),
    Connect(usize),
    /// The connection is lost.
    Close(usize),
    /// A command is written.
    Receive(usize, Request),
}

impl NodeState {
    /// Returns the number of the node's state.
    pub(super) fn number(table: &Table<Self>, node: Node, terms: Terms, now: u8) -> u32 {
        table.number(hash((now, &node)), || {
            let hashed = |first: usize| {
                let mut words = Vec::new();
                node.encode(first as u8, now, terms.ttl, &mut words);
                hash(words)
            };
            let hashes = core::array::from_fn(hashed);
            let after = [const { OnceLock::new() }; 2 + CLIENTS * (3 + 3 * ATTEMPTS)];
            Self { node: node.clone(), now, hashes, ways: OnceLock::new(), after }
        })
    }

    /// Returns all ways in which the node can execute commands now, with the number of its state.
    pub(super) fn ways(&self, table: &Table<Self>, terms: Terms) -> &[(Vec<Executed>, u32)] {
        self.ways.get_or_init(|| {
            let ways = self.node.ways(terms, self.now).into_iter();
            ways.map(|(executed, node)| (executed, Self::number(table, node, terms, self.now)))
                .collect()
        })
    }

    /// Returns the number of the state after `input`.
    pub(super) fn after(&self, table: &Table<Self>, terms: Terms, input: NodeInput) -> u32 {
        *self.after[slot(input)].get_or_init(|| {
            let (mut node, mut now) = (self.node.clone(), self.now);
            match input {
                NodeInput::Tick => now += 1,
                NodeInput::Restart => node.restart(now),
                NodeInput::Answer(client) => {
                    node.answer(client);
                }
                NodeInput::Connect(client) => node.connect(client),
                NodeInput::Close(client) => node.close(client),
                NodeInput::Receive(client, request) => node.receive(client, request, now),
            }
            Self::number(table, node, terms, now)
        })
    }

    /// Returns the next answer to the client.
    pub(super) fn next_answer(&self, client: usize) -> Option<(Request, Answer)> {
        self.node.connection(client)?.answers.front().copied()
    }

    /// Returns true if the client's connection has ended so, as far as the client knows.
    pub(super) fn has_ended(&self, client: usize, ended: Ended) -> bool {
        self.node.connection(client).is_some_and(|it| it.ended == ended)
    }

    /// Returns the token of the node's key, if the key was not set late and is less than a TTL old.
    pub(super) fn judged(&self, ttl: u8) -> Option<Token> {
        let key = self.node.key.filter(|key| !key.is_late && self.now < key.since + ttl);
        key.map(|key| key.token)
    }
}

fn slot(input: NodeInput) -> usize {
    let of = |client: usize, what: usize| 2 + client * (3 + 3 * ATTEMPTS) + what;
    match input {
        NodeInput::Tick => 0,
        NodeInput::Restart => 1,
        NodeInput::Answer(client) => of(client, 0),
        NodeInput::Connect(client) => of(client, 1),
        NodeInput::Close(client) => of(client, 2),
        NodeInput::Receive(client, request) => {
            let (kind, token) = match request {
                Request::Set(token) => (0, token),
                Request::Release(token) => (1, token),
                Request::Delete(token) => (2, token),
            };
            assert!((1..=ATTEMPTS).contains(&usize::from(token.attempt)), "few attempts");
            assert_eq!(usize::from(token.client), client, "a client's commands have its token");
            of(client, 3 + kind * ATTEMPTS + usize::from(token.attempt) - 1)
        }
    }
}
