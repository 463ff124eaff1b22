//! Encodes a watched lease for [`NodeSet::canonical`](crate::NodeSet::canonical).

use super::{CALM, Watching};
use crate::canonical::Encoder;
use crate::quorum::NodeIndex;

impl Watching {
    /// Encodes the state that does not belong to a single node.
    pub(in crate::lock) fn encode(&self, out: &mut Encoder) {
        out.flag(self.has_begun);
        out.maybe_ahead(self.begins_at);
        out.maybe_ahead(self.later_at);
        out.word(u64::from(self.idle_pushes));
        out.ahead(self.pushed_at.after(CALM));
    }

    /// Encodes the state that belongs to `node`.
    pub(in crate::lock) fn encode_node(&self, node: NodeIndex, out: &mut Encoder) {
        let knowledge = [self.away, self.mute, self.has, self.lacks, self.unsure];
        let reads = [self.asked, self.overtaken, self.later, self.waits];
        for mask in knowledge.into_iter().chain(reads) {
            out.flag(mask.contains(node));
        }
    }
}
