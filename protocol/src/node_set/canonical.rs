//! The canonical state of all machines of a client.

use super::NodeSet;
use crate::canonical::{Canonical, Encoder, Meaning};
use crate::command::CommandId;
use crate::link::Link;
use crate::lock::Lock;
use crate::quorum::NodeIndex;
use crate::time::BootInstant;

impl NodeSet {
    /// Returns the canonical state at `now`, with the nodes taken in `order`.
    ///
    /// # Panics
    ///
    /// If commands or events have not been drained, or `order` does not name every node once.
    #[must_use]
    pub fn canonical(&self, order: &[NodeIndex], now: BootInstant) -> Canonical {
        assert!(self.is_drained(), "a state between two steps is none");
        assert_eq!(order.len(), self.nodes().get(), "every node once");
        let mut out = Encoder::at(now, 32 + 32 * order.len());
        let locks: Vec<Option<&Lock>> = self.locks().collect();
        for lock in &locks {
            out.flag(lock.is_some());
            if let Some(lock) = lock {
                lock.encode(&mut out);
                for place in [self.place_in_line(lock), self.admission.place_of(lock.id())] {
                    out.word(place.map_or(0, |place| 1 + place as u64));
                }
            }
        }
        for &node in order {
            for lock in locks.iter().flatten() {
                lock.encode_node(node, &mut out);
            }
            let meaning = |id: CommandId| {
                let asked = locks.iter().enumerate().find_map(|(slot, lock)| {
                    lock.filter(|it| Some(it.id()) == id.lock).map(|lock| (slot, lock))
                });
                match asked {
                    Some((slot, lock)) => (slot as u64, lock.meaning(node, id)),
                    None => (0, Meaning::Nothing),
                }
            };
            self.link(node).encode(meaning, &mut out);
        }
        out.finish()
    }
}

/// Encodes a link for [`NodeSet::canonical`], with the slot that sent each command and the effect
/// that the answer would have.
impl Link {
    fn encode(&self, meaning: impl Fn(CommandId) -> (u64, Meaning), out: &mut Encoder) {
        self.encode_connection(out);
        for waiting in self.encode_pipeline(out) {
            let (slot, meaning) = meaning(waiting);
            out.word(slot);
            out.word(meaning as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Reply;
    use crate::testing::{NODE_TIMEOUT, World, lock_config, ms, node};

    fn canonical(world: &World, order: [usize; 3]) -> Canonical {
        world.client.canonical(&order.map(node), world.now)
    }

    /// A client of three nodes that is making an attempt under the token `byte`, `late` ms after a
    /// day.
    fn trying(late: u64, byte: u8) -> World {
        let mut world = World::warm(3);
        world.pass(ms(late));
        world.acquire(lock_config(3), byte);
        world
    }

    #[test]
    fn when_it_happened_and_under_which_token_makes_no_difference() {
        let (one, other) = (trying(0, 1), trying(77, 2));
        assert_eq!(canonical(&one, [0, 1, 2]), canonical(&other, [0, 1, 2]));
    }

    #[test]
    fn the_time_that_has_passed_makes_a_difference() {
        let (one, mut other) = (trying(0, 1), trying(0, 1));
        other.pass(NODE_TIMEOUT / 2);
        assert_ne!(canonical(&one, [0, 1, 2]), canonical(&other, [0, 1, 2]));
    }

    #[test]
    fn an_answer_makes_a_difference_and_so_does_which() {
        let world = trying(0, 1);
        let after = |reply| {
            let mut world = world.clone();
            world.answer_with(0, reply);
            canonical(&world, [0, 1, 2])
        };
        let all = [canonical(&world, [0, 1, 2]), after(Reply::Ok), after(Reply::Nil)];
        assert!(all[0] != all[1] && all[1] != all[2] && all[0] != all[2]);
    }

    #[test]
    fn swapped_nodes_give_the_same_canonical_state() {
        let (mut one, mut other) = (trying(0, 1), trying(0, 1));
        one.answer(0);
        other.answer(2);
        assert_ne!(canonical(&one, [0, 1, 2]), canonical(&other, [0, 1, 2]));
        assert_eq!(canonical(&one, [0, 1, 2]), canonical(&other, [2, 1, 0]));
    }
}
