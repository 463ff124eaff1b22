//! State shared by a set of nodes and the connections to them.

use core::task::Waker;
use std::sync::{Arc, Mutex};

use super::clock::{Clock, Reading};
use super::entropy::Entropy;
use super::node::Node;

/// Nodes, their clock, and the entropy of their clients.
pub(super) struct Fleet {
    pub(super) clock: Arc<Clock>,
    pub(super) entropy: Entropy,
    nodes: Mutex<Vec<Node>>,
}

impl Fleet {
    /// Returns `count` nodes that have the canary `canary_key`.
    pub(super) fn new(count: u8, canary_key: &[u8]) -> Self {
        let clock = Clock::new();
        let nodes = (0..count).map(|place| Node::new(place, canary_key, clock.read())).collect();
        Self { clock: Arc::new(clock), entropy: Entropy::default(), nodes: Mutex::new(nodes) }
    }

    /// Runs `act` on all nodes, then wakes the readers that it added.
    ///
    /// # Panics
    ///
    /// If a node has panicked before: its state is then unreliable.
    pub(super) fn turn<T>(
        &self,
        act: impl FnOnce(&mut [Node], Reading, &mut Vec<Waker>) -> T,
    ) -> T {
        let mut wakes = Vec::new();
        let mut nodes = self.nodes.lock().expect("no node has panicked");
        let result = act(&mut nodes, self.clock.read(), &mut wakes);
        drop(nodes);
        wakes.into_iter().for_each(Waker::wake);
        result
    }

    /// As [`Fleet::turn`] for destructors, which must not panic: does nothing after a panic.
    pub(super) fn last_turn(&self, act: impl FnOnce(&mut [Node])) {
        if !self.nodes.is_poisoned() {
            self.turn(|nodes, _, _| act(nodes));
        }
    }
}
