//! State shared by a set of nodes and the connections to them.

use core::task::Waker;
use std::sync::{Arc, Mutex, MutexGuard};

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
        self.turn_on(self.nodes.lock().expect("no node has panicked"), act)
    }

    fn turn_on<T>(
        &self,
        mut nodes: MutexGuard<'_, Vec<Node>>,
        act: impl FnOnce(&mut [Node], Reading, &mut Vec<Waker>) -> T,
    ) -> T {
        let mut wakes = Vec::new();
        let result = act(&mut nodes, self.clock.read(), &mut wakes);
        drop(nodes);
        wakes.into_iter().for_each(Waker::wake);
        result
    }

    /// As [`Fleet::turn`] for destructors, which must not panic: does nothing after a panic.
    pub(super) fn last_turn(&self, act: impl FnOnce(&mut [Node])) {
        if let Ok(nodes) = self.nodes.lock() {
            self.turn_on(nodes, |nodes, _, _| act(nodes));
        }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "two threads wait for one mutex")]
    fn a_destructor_that_waits_for_a_turn_that_panics_does_nothing() {
        let fleet = Arc::new(Fleet::new(1, b"canary"));
        let (began, begins) = mpsc::channel();
        let panics = {
            let fleet = Arc::clone(&fleet);
            thread::spawn(move || {
                fleet.turn(|_, _, _| {
                    began.send(()).unwrap();
                    // Time for the destructor to wait for the nodes.
                    thread::sleep(Duration::from_millis(100));
                    panic!("a node panics");
                })
            })
        };
        begins.recv().unwrap();
        fleet.last_turn(|_| unreachable!("the nodes are unreliable"));
        assert!(panics.join().is_err());
    }
}
