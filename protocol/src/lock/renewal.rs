//! Keep-alive: extensions that the machine itself begins, up to a limit.
//!
//! A round begins when about a third of the TTL has passed, so that several rounds can fail before
//! the lease is lost. It begins sooner after a failed round, and soon if it can set a missing key again
//! or make more keys count: the fewer keys count, the fewer nodes may be lost before the lease is. The
//! rounds of many leases are spread by a random share of the period.

use core::time::Duration;

use super::attempt::Vote;
use super::{Lock, LockOutcome};
use crate::canonical::Encoder;
use crate::quorum::NodeIndex;
use crate::retry::share;
use crate::time::BootInstant;
use crate::validity::deadline;

/// Fractions of the TTL between the beginnings of two rounds: normally, and after a failed round.
const PERIOD: u32 = 3;
const PERIOD_AFTER_FAILURE: u32 = 12;
/// First pause before a round that sets keys again or makes them count. A section shorter than this
/// pays for no round.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// Pause between the rounds that one event brings forward, such as the opening of a connection. Without
/// it, the rounds of thousands of leases would begin at once, and fail for want of room until the
/// leases are lost.
const PAUSE_BETWEEN_LEASES: Duration = Duration::from_micros(500);

#[derive(Clone, Copy, Debug)]
pub(super) struct Renewal {
    /// Keep-alive limit: no round asks for a lease beyond this instant.
    until: BootInstant,
    /// When the next round begins.
    next: Option<BootInstant>,
    /// Pause before the next round that sets keys again or makes them count.
    pause: Duration,
    /// Begin of the lease's turn among those that may have lost keys by one event.
    turn: BootInstant,
    /// The limit allows no further round.
    exhausted: bool,
    /// The round under way asks for all that the limit allows.
    last: bool,
    /// Too few nodes confirmed the last round in time, whether the caller or the machine began it.
    failing: bool,
    /// T1 and TTL of the last round.
    round: Option<(BootInstant, Duration)>,
    /// Number of random spreads so far.
    spread: u32,
}

impl Renewal {
    /// State of a lease that is not kept alive.
    pub(super) const NONE: Self = Self {
        until: BootInstant::ZERO,
        next: None,
        pause: FIRST_PAUSE,
        turn: BootInstant::ZERO,
        exhausted: false,
        last: false,
        failing: false,
        round: None,
        spread: 0,
    };

    pub(super) fn next(&self) -> Option<BootInstant> {
        self.next
    }

    pub(super) fn round(&self) -> Option<(BootInstant, Duration)> {
        self.round
    }

    /// Returns true if the lease ends because it may not be kept alive any longer.
    pub(super) fn is_exhausted(&self) -> bool {
        self.exhausted
    }

    /// Returns true if the lease ends because too few nodes confirm its extension.
    pub(super) fn is_failing(&self) -> bool {
        self.failing
    }

    pub(super) fn round_failed(&mut self) {
        self.last = false;
    }

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
            out.word(self.pause.as_nanos() as u64);
            out.ahead(self.turn);
        }
    }
}

impl Lock {
    /// Starts keep-alive when the lease is handed to the caller at `now`.
    pub(super) fn start_keeping(&mut self, now: BootInstant) {
        self.renewal = Renewal::NONE;
        if let Some(at_most) = self.config.keep_alive {
            self.renewal.until = now.after(at_most);
            self.keep_on();
            if self.granted().without(self.young()) != self.all_nodes() {
                self.renew_soon(now);
            }
        }
    }

    /// Brings the next round forward if a key is young, or was lost since its node confirmed the last
    /// round, so that every key soon counts.
    ///
    /// The pause before such a round doubles while keys stay young or missing. So a node that loses its
    /// key again and again brings no more rounds than a failure does.
    pub(super) fn count_all_soon(&mut self, now: BootInstant) {
        let lost_since = self.granted().intersection(self.watching.lacks());
        if !self.young().union(lost_since).is_empty() {
            self.renew_soon(now);
        }
    }

    /// Brings the next round forward if `node`, whose connection has opened, has not granted its vote,
    /// is known to lack the key, or has missed the last round: the round shows whether it has the key,
    /// prolongs one that would soon end, and a missing key is set again. Of any other node, a read shows
    /// it. Returns true if the lease may have such a round; those of `ahead` other leases come first.
    pub(super) fn look_for_key_soon(
        &mut self,
        node: NodeIndex,
        ahead: u32,
        now: BootInstant,
    ) -> bool {
        self.take_turn(ahead, now);
        let lacks = self.watching.lacks().contains(node) || !self.granted().contains(node);
        if lacks || self.has_missed_round(node) {
            self.renew_soon(self.renewal.turn);
        }
        self.renewal.next.is_some()
    }

    /// Lets the rounds of `ahead` other leases come first if an event at `now` has cost all of them a
    /// key.
    pub(crate) fn take_turn(&mut self, ahead: u32, now: BootInstant) {
        self.renewal.turn = now.after(PAUSE_BETWEEN_LEASES * ahead);
    }

    /// Brings the next round forward, which sets a key again: a read has shown that a node has lost it,
    /// or another attempt's key, which is soon gone, has kept it from being set.
    pub(super) fn set_again_soon(&mut self, now: BootInstant) {
        self.renew_soon(self.renewal.turn.max(now));
    }

    /// Brings the next round forward to soon after `from`.
    fn renew_soon(&mut self, from: BootInstant) {
        if let Some(next) = self.renewal.next {
            let pause = self.renewal.pause.min(self.config.ttl / PERIOD_AFTER_FAILURE);
            let soon = from.after(self.spread(pause));
            self.renewal.next = Some(next.min(soon));
        }
    }

    /// Begins the next round if it is due.
    pub(super) fn renew(&mut self, now: BootInstant) -> Option<LockOutcome> {
        if self.renewal.next.is_none_or(|at| at > now) {
            return None;
        }
        if self.is_extending() {
            // The caller's own round has priority; its result decides when the next one is due.
            self.try_again_later(now);
            return None;
        }
        let left = self.renewal.until.since(now);
        let whole_ms = Duration::from_millis(u64::try_from(left.as_millis()).unwrap_or(u64::MAX));
        let ttl = self.config.ttl.min(whole_ms);
        let is_last = ttl < self.config.ttl;
        if deadline(now, ttl, self.config.drift) > self.deadline {
            (self.renewal.last, self.renewal.round) = (is_last, Some((now, ttl)));
            // For the case that the round fails; a success sets the next instant itself.
            self.try_again_later(now);
            let longer = (self.renewal.pause * 2).min(self.config.ttl / PERIOD_AFTER_FAILURE);
            let missing = self.watching.lacks().union(self.voting(Vote::Refused));
            let is_whole = self.young().union(missing).is_empty();
            self.renewal.pause = if is_whole { FIRST_PAUSE } else { longer };
            return self.begin_round(ttl, now);
        }
        if is_last {
            (self.renewal.next, self.renewal.exhausted) = (None, true);
        } else {
            // The drift allowance exceeds the part of the lease that has passed so far.
            self.try_again_later(now);
        }
        None
    }

    /// Schedules the next round after a round, the caller's or the machine's, has moved the
    /// deadline.
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

    /// Records that a round failed before the deadline because too few nodes confirmed it.
    pub(super) fn nodes_failed(&mut self) {
        self.renewal.failing = self.config.keep_alive.is_some();
    }

    fn try_again_later(&mut self, now: BootInstant) {
        let period = self.spread(self.config.ttl / PERIOD_AFTER_FAILURE);
        self.renewal.next = Some(now.after(period));
    }

    /// Returns `period`, changed at random by at most a tenth.
    fn spread(&mut self, period: Duration) -> Duration {
        self.renewal.spread += 1;
        // The counter is mixed in by Fibonacci hashing: one draw serves all rounds.
        let mixed = (self.fresh.jitter ^ u64::from(self.renewal.spread))
            .wrapping_mul(0x9E37_79B9_7F4A_7C15);
        period - period / 10 + share(period / 5, mixed)
    }
}

#[cfg(test)]
mod tests;
