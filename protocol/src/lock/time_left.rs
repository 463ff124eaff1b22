//! Remaining life of the keys that blocked a last attempt, for the report to the caller.

use core::time::Duration;

use super::{AttemptError, Lock, LockOutcome, Phase};
use crate::command::{CommandId, NoAnswer, Op, Reply, Send};
use crate::quorum::{MAX_NODES, NodeIndex, NodeMask};

/// The nodes' answers about the remaining life of their keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimeLeft {
    /// Nodes that must still be asked.
    to_ask: NodeMask,
    /// Nodes whose answer is outstanding.
    asked: NodeMask,
    of: [Option<Duration>; MAX_NODES],
}

impl TimeLeft {
    pub(super) const UNKNOWN: Self =
        Self { to_ask: NodeMask::EMPTY, asked: NodeMask::EMPTY, of: [None; MAX_NODES] };

    /// Encodes the state of `node` for the canonical state.
    pub(super) fn encode_node(&self, node: NodeIndex, out: &mut crate::canonical::Encoder) {
        out.flag(self.asked.contains(node));
        out.word(self.of[node.get()].map_or(0, |left| 1 + left.as_nanos() as u64));
    }
}

impl Lock {
    /// Asks, if the last attempt has failed because the lock is taken, every node that took part:
    /// after its release, for the remaining life of the key that it then holds.
    pub(crate) fn ask_for_time_left(&mut self) {
        let gave_up = self.phase == Phase::Ended && self.why_behind == AttemptError::Taken;
        if gave_up && !self.to_release.is_empty() {
            let asked = self.to_release;
            self.time_left = TimeLeft { to_ask: asked, asked, ..TimeLeft::UNKNOWN };
            self.phase = Phase::AskingTimeLeft;
        }
    }

    /// Asks every node whose key's remaining life is not among the `known` ones. Returns false if
    /// enough is known already.
    pub(super) fn ask_for_other_times_left(
        &mut self,
        known: [Option<Duration>; MAX_NODES],
    ) -> bool {
        let mut asked = self.all_nodes();
        self.all_nodes().iter().filter(|it| known[it.get()].is_some()).for_each(|node| {
            asked.remove(node);
        });
        self.time_left = TimeLeft { to_ask: asked, asked, of: known };
        let is_enough = self.taken_for().is_some();
        if !is_enough {
            self.phase = Phase::AskingTimeLeft;
        }
        !is_enough
    }

    /// Returns the time after which a majority of the nodes is free if no key is released or
    /// extended before; `None` until a majority has answered.
    pub(crate) fn taken_for(&self) -> Option<Duration> {
        let mut known: [Option<Duration>; MAX_NODES] = self.time_left.of;
        // The derived order puts `None` first; an unknown time must come last.
        known.sort_unstable_by_key(|left| left.unwrap_or(Duration::MAX));
        known[self.config.nodes.quorum() - 1]
    }

    /// Returns the question to the next node that must be asked.
    pub(super) fn ask_time_left(&mut self) -> Option<Send> {
        let node = self.time_left.to_ask.pop().filter(|_| self.phase == Phase::AskingTimeLeft)?;
        let id = self.command(self.time_left_serial(node));
        let op = Op::TimeLeft { resource: self.resource, token: self.fresh.token };
        Some(Send { node, id, op, after: None, write_before: None, key_ttl: self.key_ttl })
    }

    /// Returns true if `id` is the unanswered question to `node` about its key's remaining life.
    pub(super) fn is_time_left(&self, node: NodeIndex, id: CommandId) -> bool {
        self.phase == Phase::AskingTimeLeft
            && self.time_left.asked.contains(node)
            && id.serial == self.time_left_serial(node)
    }

    /// Records the answer of `node`. Once a majority has answered, the other nodes are not waited
    /// for: the keys of one attempt were set together.
    pub(super) fn handle_time_left(
        &mut self,
        node: NodeIndex,
        outcome: Result<Reply, NoAnswer>,
    ) -> Option<LockOutcome> {
        self.time_left.asked.remove(node);
        self.time_left.of[node.get()] = match outcome {
            // -2: the key is gone.
            Ok(Reply::Integer(-2)) => Some(Duration::ZERO),
            // -1: the key never expires, so no time is known.
            Ok(Reply::Integer(left_ms)) => u64::try_from(left_ms).ok().map(Duration::from_millis),
            _ => None,
        };
        if self.taken_for().is_none() && !self.time_left.asked.is_empty() {
            return None;
        }
        self.phase = Phase::Ended;
        Some(LockOutcome::GaveUp)
    }

    fn time_left_serial(&self, node: NodeIndex) -> u32 {
        self.first_set + (2 * self.config.nodes.get() + node.get()) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::LockId;
    use crate::lock::{Limit, LockConfig};
    use crate::node_set::Event;
    use crate::testing::{NODE_TIMEOUT, TTL, World, held_by_three, lock_config, ms, token};

    /// Five nodes; the first ones hold another attempt's keys, which live for `left_ms`.
    fn taken(left_ms: &[u64]) -> World {
        let mut world = World::warm(5);
        for (node, &left_ms) in world.nodes.iter_mut().zip(left_ms) {
            (node.key, node.expires) = (Some(token(9)), world.now.after(ms(left_ms)));
        }
        world
    }

    /// An attempt that all nodes have answered; the releases and the questions are under way.
    fn refused(world: &mut World, limit: Limit) -> LockId {
        let lock = world.acquire(LockConfig { limit, ..lock_config(5) }, 1);
        (0..5).for_each(|index| world.answer(index));
        lock
    }

    fn answer_all(world: &mut World) {
        for index in (0..world.nodes.len()).rev() {
            (0..world.nodes[index].inbox.len()).for_each(|_| world.answer(index));
        }
    }

    fn gave_up(world: &mut World) -> Option<(AttemptError, Option<Duration>)> {
        world.events().into_iter().find_map(|event| match event {
            Event::GaveUp { reason, taken_for, .. } => Some((reason, taken_for)),
            _ => None,
        })
    }

    #[test]
    fn a_lock_is_taken_until_a_majority_of_the_keys_has_expired() {
        let known = |left_ms| Some((AttemptError::Taken, Some(ms(left_ms))));
        for limit in [Limit::Attempts(1), Limit::AT_ONCE, Limit::Until(World::warm(5).now)] {
            let mut world = taken(&[6_000, 5_000, 4_000]);
            refused(&mut world, limit);
            assert_eq!(gave_up(&mut world), None, "the nodes are still asked");
            answer_all(&mut world);
            assert_eq!(gave_up(&mut world), known(4_000), "two are free again");
        }
        let mut world = taken(&[4_000, 6_000, 5_000, 8_000, 7_000]);
        refused(&mut world, Limit::AT_ONCE);
        answer_all(&mut world);
        assert_eq!(gave_up(&mut world), known(8_000), "of the three that told first");
    }

    #[test]
    fn a_majority_of_times_left_is_enough() {
        let mut world = taken(&[4_000; 5]);
        refused(&mut world, Limit::AT_ONCE);
        for index in 0..3 {
            assert_eq!(gave_up(&mut world), None);
            (0..2).for_each(|_| world.answer(index));
        }
        assert_eq!(gave_up(&mut world), Some((AttemptError::Taken, Some(ms(4_000)))));
    }

    #[test]
    fn nodes_without_an_answer_are_given_up_after_the_timeout() {
        let mut world = taken(&[4_000; 5]);
        refused(&mut world, Limit::AT_ONCE);
        (0..2).for_each(|index| (0..2).for_each(|_| world.answer(index)));
        world.pass(NODE_TIMEOUT);
        assert_eq!(gave_up(&mut world), Some((AttemptError::Taken, None)));
    }

    #[test]
    fn endless_key_gives_no_time_left_and_a_gone_key_does_not_block() {
        let mut world = taken(&[4_000; 5]);
        refused(&mut world, Limit::AT_ONCE);
        for (index, left) in [-1, 3_000, -2, 2_000, -1].into_iter().enumerate() {
            world.answer(index);
            world.answer_with(index, Reply::Integer(left));
        }
        assert_eq!(gave_up(&mut world), Some((AttemptError::Taken, Some(ms(3_000)))));
    }

    #[test]
    fn time_left_is_asked_only_after_the_last_taken_attempt() {
        let mut world = taken(&[4_000; 5]);
        refused(&mut world, Limit::Attempts(2));
        let asks = |world: &World| {
            let written = world.nodes.iter().flat_map(|node| &node.written);
            written.filter(|op| matches!(op, Op::TimeLeft { .. })).count()
        };
        assert_eq!(asks(&world), 0, "another attempt follows");
        let mut world = taken(&[4_000, 4_000]);
        world.nodes[2].key = Some(token(8));
        world.nodes[2].expires = world.now.after(TTL);
        world.nodes[3].key = world.nodes[2].key;
        world.nodes[3].expires = world.now.after(TTL);
        refused(&mut world, Limit::Attempts(1));
        assert_eq!(gave_up(&mut world), Some((AttemptError::Split, None)));
        assert_eq!(asks(&world), 0);
    }

    #[test]
    fn a_cancelled_acquisition_fails_once() {
        let mut world = taken(&[4_000; 5]);
        let lock = refused(&mut world, Limit::AT_ONCE);
        world.release(lock);
        assert_eq!(gave_up(&mut world), Some((AttemptError::Cancelled, None)));
        answer_all(&mut world);
        assert_eq!(gave_up(&mut world), None);
    }

    #[test]
    fn a_lease_of_this_client_is_known_without_asking() {
        let (mut world, holder) = held_by_three();
        let deadline = world.client.deadline(holder).expect("it is held");
        world.pass(ms(1_000));
        world.acquire(lock_config(3), 2);
        (0..2).for_each(|index| world.answer(index));
        let left = Some(deadline.since(world.now));
        assert_eq!(gave_up(&mut world), Some((AttemptError::Taken, left)));
        assert!(
            world.nodes.iter().all(|it| !matches!(it.written.last(), Some(Op::TimeLeft { .. })))
        );
    }
}
