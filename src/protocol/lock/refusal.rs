//! Why an attempt was not granted: whether somebody else has the lock, nobody has, or nobody knows.

use super::{AttemptError, Lock, Vote};
use crate::protocol::command::Reply;
use crate::protocol::holder::Holder;
use crate::protocol::quorum::{MAX_NODES, NodeIndex, NodeMask};

/// What the nodes that refused have shown of the keys in the way.
#[derive(Clone, Copy, Debug)]
pub(super) struct InTheWay {
    holders: [Option<Holder>; MAX_NODES],
    /// Nodes whose key was gone when they were asked for its holder.
    gone: NodeMask,
}

impl InTheWay {
    pub(super) const NOTHING: Self = Self { holders: [None; MAX_NODES], gone: NodeMask::EMPTY };

    /// Takes in how `node` refused.
    pub(super) fn record(&mut self, node: NodeIndex, refusal: Reply) {
        match refusal {
            Reply::Gone => self.gone.insert(node),
            Reply::Held(holder) => self.holders[node.get()] = Some(holder),
            _ => {}
        }
    }

    /// The most nodes that showed one and the same holder, other than `own`.
    fn most(&self, own: Holder) -> usize {
        let shown = || self.holders.iter().flatten().filter(|&&holder| holder != own);
        shown().map(|holder| shown().filter(|&it| it == holder).count()).max().unwrap_or(0)
    }

    /// The nodes of `refused` that showed a holder other than `own`, or that there is none.
    fn told(&self, refused: NodeMask, own: Holder) -> NodeMask {
        let mut told = refused.intersection(self.gone);
        let others = |node: &NodeIndex| self.holders[node.get()].is_some_and(|it| it != own);
        refused.iter().filter(others).for_each(|node| told.insert(node));
        told
    }

    /// What `node` showed, as the canonical state tells it.
    #[cfg(any(test, feature = "simulation"))]
    pub(super) fn encode_node(
        &self,
        node: NodeIndex,
        out: &mut crate::protocol::canonical::Encoder,
    ) {
        out.flag(self.gone.contains(node));
        out.holder(self.holders[node.get()]);
    }
}

impl Lock {
    /// Why the attempt fails; `None` while nodes that have not answered may still show another
    /// reason. They have until the node timeout.
    ///
    /// An owner is one token. Somebody can have the lock only if a majority holds keys of one token,
    /// whether they have shown it or could not be asked.
    pub(super) fn why_not(&self) -> Option<AttemptError> {
        let (nodes, quorum) = (self.config.nodes.get(), self.config.nodes.quorum());
        let own = Holder::of(self.fresh.token.as_bytes());
        let granted = self.voting(Vote::Counted).union(self.voting(Vote::Ineligible));
        let told = granted.union(self.in_the_way.told(self.voting(Vote::Refused), own));
        let pending = self.voting(Vote::Pending).len();
        let (most, granted) = (self.in_the_way.most(own), granted.len());
        let untold = nodes - told.len() - pending;
        if most >= quorum {
            return Some(AttemptError::Taken);
        }
        if granted >= quorum {
            return Some(AttemptError::Quarantined);
        }
        if most + untold + pending < quorum {
            return Some(AttemptError::Split);
        }
        let is_open = most.max(granted) + pending >= quorum || most + untold < quorum;
        if pending > 0 && is_open { None } else { Some(self.why_too_few()) }
    }

    /// Why too few nodes answered: they did not, or this client did not ask them in time.
    fn why_too_few(&self) -> AttemptError {
        let silent = self.voting(Vote::Unknown).union(self.voting(Vote::NotSent));
        let unreachable = silent.union(self.voting(Vote::Failed));
        let tolerated = self.config.nodes.tolerated();
        let is_overloaded =
            unreachable.len() > tolerated && unreachable.without(self.crowded).len() <= tolerated;
        if is_overloaded { AttemptError::Overloaded } else { AttemptError::TooFewNodes }
    }
}
