//! The section in which a worker is, and the extensions of its lease.

use lock_judge::history::{NodeId, NodeIds, RoundId};

/// A worker's section.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inside {
    /// Preliminary number of the attempt by which the worker entered.
    pub(super) number: usize,
    /// Number of nodes that are a majority.
    needed: u8,
    /// Time until which its lease lasts.
    ends_ns: u64,
    /// The last extension, and the nodes that took part in it: each does so once.
    round: RoundId,
    nodes: NodeIds,
    /// True once the extension has made the lease longer.
    has_helped: bool,
}

/// Change of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Renewal {
    /// The lease ends when it did.
    Nothing,
    /// The lease was alive and is not any more: the worker has released it.
    Over,
    /// The lease lasts longer, by this extension if it is the first change to do so.
    Longer(Option<RoundId>),
}

impl Inside {
    pub(super) fn new(number: usize, needed: u8, ends_ns: u64) -> Self {
        let (round, nodes, has_helped) = (RoundId(0), NodeIds::EMPTY, false);
        Self { number, needed, ends_ns, round, nodes, has_helped }
    }

    /// Notes that the lease lasts until `ends_ns`, now that its key on `node` has another life. A
    /// late vote, without `node`, begins no extension. An extension makes the lease longer once a
    /// majority has taken part, or a late vote completes one.
    pub(super) fn renew(&mut self, node: Option<NodeId>, ends_ns: u64, now_ns: u64) -> Renewal {
        if let Some(node) = node {
            if self.round == RoundId(0) || self.nodes.contains(node) {
                self.round = RoundId(self.round.0.saturating_add(1));
                (self.nodes, self.has_helped) = (NodeIds::EMPTY, false);
            }
            self.nodes.insert(node);
            if ends_ns > self.ends_ns && self.nodes.count() < self.needed.into() {
                return Renewal::Nothing;
            }
        }
        let before_ns = core::mem::replace(&mut self.ends_ns, ends_ns);
        if ends_ns > before_ns && ends_ns > now_ns {
            let helps = self.round != RoundId(0) && !self.has_helped;
            self.has_helped |= helps;
            return Renewal::Longer(helps.then_some(self.round));
        }
        let is_over = before_ns > now_ns && ends_ns <= now_ns;
        if is_over { Renewal::Over } else { Renewal::Nothing }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_is_reported_once_and_a_release_ends_it() {
        let mut inside = Inside::new(0, 2, 100);
        assert_eq!(inside.renew(None, 110, 50), Renewal::Longer(None));
        let changes = [(0, 111), (1, 200), (2, 210), (0, 210), (1, 300), (1, 20), (2, 20)];
        let told = changes.map(|(node, ends_ns)| inside.renew(Some(NodeId(node)), ends_ns, 50));
        let [first, second] = [1, 2].map(|round| Renewal::Longer(Some(RoundId(round))));
        let (nothing, more, over) = (Renewal::Nothing, Renewal::Longer(None), Renewal::Over);
        assert_eq!(told, [nothing, first, more, nothing, second, over, nothing]);
    }

    #[test]
    fn a_late_vote_may_complete_an_extension() {
        let mut inside = Inside::new(0, 2, 100);
        assert_eq!(inside.renew(Some(NodeId(0)), 100, 50), Renewal::Nothing);
        assert_eq!(inside.renew(None, 200, 50), Renewal::Longer(Some(RoundId(1))));
    }
}
