//! Encodes a waiting use for [`NodeSet::canonical`](crate::NodeSet::canonical).

use super::sights::Sight;
use super::{Awake, Listening};
use crate::canonical::Encoder;
use crate::quorum::NodeIndex;
use crate::time::BootInstant;

impl Listening {
    /// Encodes the state that does not belong to a single node.
    pub(in crate::lock) fn encode(&self, out: &mut Encoder) {
        out.word(self.jitter);
        out.word(u64::from(self.draws));
        out.age(self.began);
        out.maybe_ahead(self.awake.map(|Awake { attempt_at, .. }| attempt_at));
        out.maybe_ahead(self.more_at);
        out.maybe_ahead(self.pace_at);
        out.ahead(self.looked_at.after(self.retry.silence));
        out.age(self.checked_at);
        out.maybe_ahead(self.put_off.map(|(_, at)| at));
        out.word(u64::from(self.idle_pushes));
        out.word(u64::from(self.restless));
        out.flag(self.is_contended);
        out.flag(self.lacks_nodes);
    }

    /// Encodes the state that belongs to `node`.
    pub(in crate::lock) fn encode_node(&self, node: NodeIndex, out: &mut Encoder) {
        out.age(self.seen_at[node.get()]);
        match self.sights.of(node) {
            Sight::Unseen => out.word(0),
            Sight::Free => out.word(1),
            Sight::Held(BootInstant::NEVER) => out.word(2),
            Sight::Held(until) => {
                out.word(3);
                out.ahead(until);
            }
        }
        let attempt = [self.refused, self.quarantined];
        let looks = [self.registered, self.asked, self.overtaken, self.checked];
        for mask in attempt.into_iter().chain(looks).chain([self.away, self.late, self.mute]) {
            out.flag(mask.contains(node));
        }
        out.flag(self.anchor == Some(node));
    }
}
