//! State of the nodes' keys according to the looks of a waiting use.

use crate::quorum::{MAX_NODES, NodeCount, NodeIndex, NodeMask};
use crate::time::BootInstant;

/// State of one node's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    /// Nothing is known.
    Unseen,
    /// There is no key.
    Free,
    /// There is a key, until this instant of the client's clock at the latest; for ever if it has no
    /// time to live.
    Held(BootInstant),
}

/// State of all nodes' keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sights {
    nodes: NodeCount,
    of: [Sight; MAX_NODES],
}

impl Sights {
    pub(super) const fn none(nodes: NodeCount) -> Self {
        Self { nodes, of: [Sight::Unseen; MAX_NODES] }
    }

    pub(super) fn of(&self, node: NodeIndex) -> Sight {
        self.of[node.get()]
    }

    pub(super) fn set(&mut self, node: NodeIndex, sight: Sight) {
        self.of[node.get()] = sight;
    }

    /// Returns the nodes whose key lives at `now`.
    pub(super) fn held(&self, now: BootInstant) -> NodeMask {
        self.which(|sight| matches!(sight, Sight::Held(until) if until > now))
    }

    /// Returns the nodes whose key is missing or expired at `now`.
    pub(super) fn free(&self, now: BootInstant) -> NodeMask {
        self.which(|sight| sight == Sight::Free).union(self.expired(now))
    }

    /// Returns the nodes that had a key, which has expired by `now`.
    pub(super) fn expired(&self, now: BootInstant) -> NodeMask {
        self.which(|sight| matches!(sight, Sight::Held(until) if until <= now))
    }

    /// Returns true if the keys show that no attempt can succeed at `now`: so many nodes have one
    /// that no majority is left, or every node that was looked at has one. The others are presumed
    /// to be like these.
    pub(super) fn is_blocked(&self, now: BootInstant) -> bool {
        let held = self.held(now).len();
        held > self.nodes.tolerated() || held > 0 && self.free(now).is_empty()
    }

    /// Returns the earliest instant at which expiries alone end what blocks the attempts.
    pub(super) fn free_at(&self, now: BootInstant) -> Option<BootInstant> {
        let mut until = [BootInstant::NEVER; MAX_NODES];
        let held = self.held(now);
        for (place, node) in held.iter().enumerate() {
            if let Sight::Held(at) = self.of(node) {
                until[place] = at;
            }
        }
        until[..held.len()].sort_unstable();
        let to_end = held.len().saturating_sub(self.nodes.tolerated()).max(1);
        until[..held.len()].get(to_end - 1).copied().filter(|&at| at != BootInstant::NEVER)
    }

    fn which(&self, is_meant: impl Fn(Sight) -> bool) -> NodeMask {
        let mut mask = NodeMask::EMPTY;
        self.nodes.iter().filter(|&node| is_meant(self.of(node))).for_each(|it| mask.insert(it));
        mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at_ms, mask, node};

    fn sights(of: &[Sight]) -> Sights {
        let mut sights = Sights::none(NodeCount::new(of.len()).expect("one to nine"));
        of.iter().enumerate().for_each(|(place, &sight)| sights.set(node(place), sight));
        sights
    }

    use super::Sight::{Free, Unseen};

    #[test]
    fn keys_block_without_a_majority_or_other_knowledge() {
        let lives = Sight::Held(at_ms(9));
        for (of, is_blocked) in [
            ([lives, Unseen, Unseen, Unseen, Unseen], true),
            ([lives, Free, Unseen, Unseen, Unseen], false),
            ([lives, lives, Free, Unseen, Unseen], false),
            ([lives, lives, Free, lives, Unseen], true),
            ([Unseen; 5], false),
            ([Free; 5], false),
        ] {
            assert_eq!(sights(&of).is_blocked(at_ms(8)), is_blocked, "{of:?}");
        }
        assert!(!sights(&[lives; 5]).is_blocked(at_ms(9)), "all have expired");
    }

    #[test]
    fn a_lock_is_free_when_enough_keys_have_expired() {
        let held = |at: u64| Sight::Held(at_ms(at));
        let keys = sights(&[held(9), held(7), held(8), Free, Free]);
        assert_eq!(keys.free_at(at_ms(1)), Some(at_ms(7)));
        let keys = sights(&[held(9), held(7), held(8), held(6), held(5)]);
        assert_eq!(keys.free_at(at_ms(1)), Some(at_ms(7)), "three of five");
        let keys = sights(&[held(9), Unseen, Unseen, Unseen, Unseen]);
        assert_eq!(keys.free_at(at_ms(1)), Some(at_ms(9)));
        let keys = sights(&[Sight::Held(BootInstant::NEVER), Unseen, Unseen]);
        assert_eq!(keys.free_at(at_ms(1)), None);
        assert_eq!(keys.held(at_ms(1)), mask(&[0]));
    }
}
