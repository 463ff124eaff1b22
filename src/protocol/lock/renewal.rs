//! Keeping a lease alive: extensions that the machine begins by itself, up to a limit.
//!
//! A round begins when about a third of the TTL has passed, so that several can fail before anything
//! is lost; the first one sooner, if some nodes had not answered when the lease was granted. Rounds of
//! many leases are spread by a share of randomness each.

use core::time::Duration;

use super::{Happened, Lock, Vote};
#[cfg(any(test, feature = "simulation"))]
use crate::protocol::canonical::Encoder;
use crate::protocol::time::BootInstant;
use crate::protocol::validity::deadline;

/// Which part of the TTL passes between the beginnings of two rounds; after a failed one.
const PERIOD: u32 = 3;
const PERIOD_AFTER_FAILURE: u32 = 12;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Renewal {
    /// Nothing is asked for beyond this instant.
    until: BootInstant,
    /// When the next round begins.
    next: Option<BootInstant>,
    /// The limit allows no further round.
    exhausted: bool,
    /// The round under way asks for all that the limit allows.
    last: bool,
    /// Too few nodes confirmed the last round in time, whoever began it.
    failing: bool,
    /// T1 and TTL of the last round.
    round: Option<(BootInstant, Duration)>,
    /// How often randomness was spread.
    spread: u32,
}

impl Renewal {
    pub(super) fn next(&self) -> Option<BootInstant> {
        self.next
    }

    pub(super) fn round(&self) -> Option<(BootInstant, Duration)> {
        self.round
    }

    /// Whether the lease ends because it may be kept alive for no longer.
    pub(super) fn is_exhausted(&self) -> bool {
        self.exhausted
    }

    /// Whether the lease ends because too few nodes confirm that it goes on.
    pub(super) fn is_failing(&self) -> bool {
        self.failing
    }

    pub(super) fn round_failed(&mut self) {
        self.last = false;
    }

    #[cfg(any(test, feature = "simulation"))]
    pub(super) fn encode(&self, jitter: u64, out: &mut Encoder) {
        out.flag(self.exhausted);
        out.flag(self.next.is_some());
        if let Some(next) = self.next {
            out.ahead(next);
            out.ahead(self.until);
            out.word(u64::from(self.spread));
            out.word(jitter);
            out.flag(self.last);
            out.flag(self.failing);
        }
    }
}

impl Lock {
    /// The lease is in the caller's hands from `now` on.
    pub(super) fn start_keeping(&mut self, now: BootInstant) {
        self.renewal = Renewal::default();
        if let Some(at_most) = self.config.keep_alive {
            self.renewal.until = now.after(at_most);
            // Keys set behind the grant count for no round before one has succeeded without them:
            // until then the loss of a single other node would end the lease.
            let all_count = self.voting(Vote::Pending).union(self.young()).is_empty();
            if all_count { self.keep_on() } else { self.try_again_later(now) }
        }
    }

    /// Begins the next round if it is time for one.
    pub(super) fn renew(&mut self, now: BootInstant) -> Option<Happened> {
        if self.renewal.next.is_none_or(|at| at > now) {
            return None;
        }
        if self.is_extending() {
            // The caller's own round comes first; what becomes of it decides when the next is due.
            self.try_again_later(now);
            return None;
        }
        let left = self.renewal.until.since(now);
        let whole_ms = Duration::from_millis(u64::try_from(left.as_millis()).unwrap_or(u64::MAX));
        let ttl = self.config.ttl.min(whole_ms);
        let is_last = ttl < self.config.ttl;
        if deadline(now, ttl, self.config.drift) > self.deadline {
            (self.renewal.last, self.renewal.round) = (is_last, Some((now, ttl)));
            // In case it fails: a success says itself when the next is due.
            self.try_again_later(now);
            return self.begin_round(ttl, now);
        }
        if is_last {
            (self.renewal.next, self.renewal.exhausted) = (None, true);
        } else {
            // The drift allowed eats what has passed of the lease so far.
            self.try_again_later(now);
        }
        None
    }

    /// A round, the caller's or one of these, has moved the deadline.
    pub(super) fn keep_on(&mut self) {
        if self.config.keep_alive.is_none() || self.renewal.exhausted {
            return;
        }
        self.renewal.failing = false;
        if core::mem::take(&mut self.renewal.last) {
            (self.renewal.next, self.renewal.exhausted) = (None, true);
            return;
        }
        let period = self.spread(self.config.ttl / PERIOD);
        self.renewal.next = Some(self.deadline.before(self.config.ttl - period));
    }

    /// A round has failed before the deadline, for want of nodes.
    pub(super) fn nodes_failed(&mut self) {
        self.renewal.failing = self.config.keep_alive.is_some();
    }

    fn try_again_later(&mut self, now: BootInstant) {
        let period = self.spread(self.config.ttl / PERIOD_AFTER_FAILURE);
        self.renewal.next = Some(now.after(period));
    }

    /// `period`, a tenth of it more or less.
    fn spread(&mut self, period: Duration) -> Duration {
        self.renewal.spread += 1;
        // The number is mixed in by Fibonacci hashing: one draw serves all rounds.
        let mixed = (self.fresh.jitter ^ u64::from(self.renewal.spread))
            .wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let fifth = ((period / 5).as_nanos() * u128::from(mixed)) >> 64;
        let share = Duration::from_nanos(u64::try_from(fifth).unwrap_or(u64::MAX));
        period - period / 10 + share
    }
}

#[cfg(test)]
mod tests;
