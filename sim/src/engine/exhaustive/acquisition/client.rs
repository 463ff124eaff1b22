//! Interface between the model and a client.

use super::{Action, Input, NODES, Policy, Production, Token};

/// A client of the lock.
pub trait Client: Clone + Send + Sync {
    /// Returns true if the client can take `input` now.
    fn can(&self, input: Input, now: u8) -> bool;
    /// Handles `input`; returns what the client does, the commands to each node in order.
    fn handle(&mut self, input: Input, now: u8) -> Vec<Action>;
    /// Returns true if the client believes at `now` that it holds the lock.
    fn believes(&self, now: u8) -> bool;
    /// Returns the token of the attempt that is under way, or of the lease.
    fn current(&self) -> Option<Token>;
    /// Returns the token of the attempt that is under way.
    fn tries(&self) -> Option<Token>;
    /// Returns true if the client counts the node's key for its attempt or lease.
    fn counts(&self, node: usize) -> bool;
    /// Returns true if the client makes no further attempt, and has released its lease.
    fn is_done(&self) -> bool;
    /// Returns true if a release of `token` is on its way to the node, or owed to it.
    fn owes(&self, node: usize, token: Token) -> bool;
    /// Encodes the state that decides future steps, without the parts about single nodes.
    fn encode(&self, now: u8) -> u128;
    /// Encodes the part of the state that concerns one node.
    fn encode_node(&self, node: usize, now: u8) -> u128;
    /// Returns a further hash that distinguishes states; the nodes are taken in `order`.
    fn fingerprint(&self, order: [usize; NODES], now: u8) -> u128;
}

/// Both forms of the rule as built, run side by side step by step: the machines that a client runs,
/// and the short rule with which the weaker wordings are compared.
#[derive(Clone)]
pub struct Both {
    policy: Policy,
    production: Production,
}

impl Both {
    /// Returns both forms before the first attempt.
    #[must_use]
    pub fn new(policy: Policy, production: Production) -> Self {
        Self { policy, production }
    }
}

impl Client for Both {
    fn can(&self, input: Input, now: u8) -> bool {
        let can = self.policy.can(input, now);
        if input == Input::Timer {
            assert_eq!(self.production.is_due(now), can, "one of them has a timer");
        }
        can
    }

    fn handle(&mut self, input: Input, now: u8) -> Vec<Action> {
        let place = |action: &Action| match action {
            Action::Write(node, _) => *node,
            _ => NODES,
        };
        let (mut words, mut actions) =
            (self.policy.handle(input, now), self.production.handle(input, now));
        words.sort_by_key(place);
        actions.sort_by_key(place);
        assert_eq!(words, actions, "{input:?}: the wording is on the left, the machines right");
        assert_eq!(self.policy.believes(now), self.production.believes(now));
        for node in 0..NODES {
            assert_eq!(self.policy.debts(node), self.production.debts(node), "{input:?}");
        }
        actions
    }

    fn believes(&self, now: u8) -> bool {
        self.policy.believes(now)
    }

    fn current(&self) -> Option<Token> {
        self.policy.current()
    }

    fn tries(&self) -> Option<Token> {
        self.policy.tries()
    }

    fn counts(&self, node: usize) -> bool {
        self.policy.counts(node)
    }

    fn is_done(&self) -> bool {
        self.policy.is_done()
    }

    fn owes(&self, node: usize, token: Token) -> bool {
        self.policy.owes(node, token)
    }

    fn encode(&self, now: u8) -> u128 {
        self.policy.encode(now)
    }

    fn encode_node(&self, node: usize, now: u8) -> u128 {
        self.policy.encode_node(node, now)
    }

    fn fingerprint(&self, order: [usize; NODES], now: u8) -> u128 {
        self.production.fingerprint(order, now)
    }
}
