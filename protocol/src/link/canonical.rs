//! Encodes a link for [`NodeSet::canonical`](crate::NodeSet::canonical).

use super::owed_releases::Stage;
use super::{Link, Pending, State};
use crate::canonical::Encoder;
use crate::command::{CommandId, Op};

impl Link {
    /// Encodes the connection, the node's eligibility, and the releases owed.
    pub(crate) fn encode_connection(&self, out: &mut Encoder) {
        let (state, until) = match self.state {
            State::Idle => (0, None),
            State::DialWanted => (1, None),
            State::Dialing { since } => (2, Some(since.after(self.config.connect_timeout))),
            State::Introducing => (3, None),
            State::Open => (4, None),
            State::Backoff { until } => (5, Some(until)),
        };
        out.word(state);
        out.maybe_ahead(until);
        out.flag(self.opens_first());
        out.flag(self.writable);
        out.flag(self.reset_wanted.is_some());
        out.word(self.redial_after.as_nanos() as u64);
        out.word(self.jitter);
        out.word(if self.jitter == 0 { 0 } else { u64::from(self.epoch) });
        let known = self.eligibility.known();
        out.run(known.map(|it| it.run_id));
        out.flag(known.is_some_and(|it| it.is_master));
        out.memory(known.and_then(|it| it.memory));
        out.memory(known.and_then(|it| it.succession).map(|history| (history, history)));
        out.maybe_ahead(known.and_then(|it| it.from));
        out.maybe_ahead(self.eligibility.from());
        out.ahead(self.eligibility.lost_until());
        out.maybe_ahead(self.asked_again_at());
        out.word(self.refused.map_or(0, |(_, pause)| pause.as_nanos() as u64));
        out.word(self.owed_releases.len() as u64);
        for owed in self.owed_releases.iter() {
            out.word(u64::from(owed.resource.0));
            out.token(owed.token);
            out.ahead(owed.until);
            match owed.stage {
                Stage::Owed => out.word(0),
                Stage::Sent => out.word(1),
                Stage::AgainAt(at) => {
                    out.word(2);
                    out.ahead(at);
                }
                Stage::SentAgain => out.word(3),
            }
        }
    }

    /// Encodes the unanswered commands; returns their ids, whose meaning the caller must encode.
    pub(crate) fn encode_pipeline(&self, out: &mut Encoder) -> Vec<CommandId> {
        out.word(self.written as u64);
        out.word(self.pipeline.len() as u64);
        self.pipeline.iter().for_each(|it| self.encode_pending(it, out));
        let withheld = self.introductions.encode(&self.config, out);
        self.pipeline.iter().map(|it| it.id).chain(withheld).collect()
    }

    fn encode_pending(&self, pending: &Pending, out: &mut Encoder) {
        let (kind, about, ttl) = match pending.op {
            Op::Introduce => (0, None, None),
            Op::Extend { resource, token, ttl, plain } => {
                (if plain { 4 } else { 1 }, Some((resource, token)), Some(ttl))
            }
            Op::Release { resource, token } => (2, Some((resource, token)), None),
            Op::Set { resource, token, ttl } => (3, Some((resource, token)), Some(ttl)),
            Op::TimeLeft { resource, token } => (5, Some((resource, token)), None),
            Op::Look { resource, token } => (6, Some((resource, token)), None),
            Op::Read { resource, token } => (7, Some((resource, token)), None),
        };
        out.word(kind);
        if let Some((resource, token)) = about {
            out.word(u64::from(resource.0));
            out.token(token);
        }
        out.word(ttl.map_or(0, |ttl| ttl.as_nanos() as u64));
        out.word(pending.key_ttl.as_nanos() as u64);
        out.flag(pending.confirmed_behind);
        out.flag(pending.overdue);
        if !pending.overdue {
            out.ahead(pending.since.after(self.config.node_timeout));
        }
        match pending.written_at {
            Some(at) => out.ahead(at.after(self.config.patience())),
            None => out.maybe_ahead(pending.write_before),
        }
    }
}
