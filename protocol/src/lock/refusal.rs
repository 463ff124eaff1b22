//! Reason why an attempt was not granted: another owner, a split vote, or too few answers to tell.

use super::{AttemptError, Lock, Vote};
use crate::command::Reply;
use crate::holder::Holder;
use crate::quorum::{MAX_NODES, NodeIndex, NodeMask};

/// Keys that blocked the attempt, as shown by the nodes that refused.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockingKeys {
    holders: [Option<Holder>; MAX_NODES],
    /// Nodes whose key was gone when they were asked for its holder.
    gone: NodeMask,
}

impl BlockingKeys {
    pub(super) const NOTHING: Self = Self { holders: [None; MAX_NODES], gone: NodeMask::EMPTY };

    /// Records the refusal of `node`.
    pub(super) fn record(&mut self, node: NodeIndex, refusal: Reply) {
        match refusal {
            Reply::Gone => self.gone.insert(node),
            Reply::Held(holder) => self.holders[node.get()] = Some(holder),
            _ => {}
        }
    }

    /// Returns the largest number of nodes that showed the same holder, other than `own`.
    fn most(&self, own: Holder) -> usize {
        let shown = || self.holders.iter().flatten().filter(|&&holder| holder != own);
        shown().map(|holder| shown().filter(|&it| it == holder).count()).max().unwrap_or(0)
    }

    /// Returns the nodes of `refused` that showed a holder other than `own`, or showed that there
    /// is none.
    fn heard(&self, refused: NodeMask, own: Holder) -> NodeMask {
        let mut heard = refused.intersection(self.gone);
        let others = |node: &NodeIndex| self.holders[node.get()].is_some_and(|it| it != own);
        refused.iter().filter(others).for_each(|node| heard.insert(node));
        heard
    }

    /// Encodes the refusal of `node` for the canonical state.
    pub(super) fn encode_node(&self, node: NodeIndex, out: &mut crate::canonical::Encoder) {
        out.flag(self.gone.contains(node));
        out.holder(self.holders[node.get()]);
    }
}

impl Lock {
    /// Returns why the attempt fails; `None` while unanswered nodes may still change the reason.
    /// These nodes have until the node timeout.
    ///
    /// An owner is one token. Another owner can have the lock only if a majority holds keys of one
    /// token, whether those nodes have shown it or could not be asked.
    ///
    /// An attempt at whose beginning too many nodes cannot be asked fails before its SETs are written.
    /// They could only be in the way of clients that reach a majority.
    pub(super) fn why_not(&self) -> Option<AttemptError> {
        let (nodes, quorum) = (self.config.nodes.get(), self.config.nodes.quorum());
        let own = Holder::of(self.fresh.token.as_bytes());
        let granted = self.granted();
        let heard = granted.union(self.blocking_keys.heard(self.voting(Vote::Refused), own));
        let pending = self.voting(Vote::Pending).len();
        let (most, granted) = (self.blocking_keys.most(own), granted.len());
        let silent = nodes - heard.len() - pending;
        if most >= quorum {
            return Some(AttemptError::Taken);
        }
        if granted >= quorum {
            return Some(AttemptError::Quarantined);
        }
        // Of an even number of nodes, half may be silent: too few answers, not a split vote.
        let is_split = most + silent + pending < quorum && granted + pending < quorum;
        if is_split && heard.len() >= quorum {
            return Some(AttemptError::Split);
        }
        let may_split = heard.len() + pending >= quorum && most + silent < quorum;
        let is_open = most.max(granted) + pending >= quorum || may_split;
        if pending > 0 && is_open { None } else { Some(self.why_too_few()) }
    }

    /// Returns why too few nodes answered: they did not answer, or this client did not ask them in
    /// time.
    fn why_too_few(&self) -> AttemptError {
        let unheard = self.voting(Vote::Unknown).union(self.voting(Vote::Unconfirmed));
        let silent = unheard.union(self.voting(Vote::NotSent));
        let unreachable = silent.union(self.voting(Vote::Failed));
        let tolerated = self.config.nodes.tolerated();
        let is_overloaded =
            unreachable.len() > tolerated && unreachable.without(self.crowded).len() <= tolerated;
        if is_overloaded { AttemptError::Overloaded } else { AttemptError::TooFewNodes }
    }
}
