//! Contention for one lock, as one client sees it.

use core::time::Duration;

use super::retry::{RetryDelay, share};
use super::time::BootInstant;

/// A free lock that is taken within this many round trips was waited for by enough clients.
const SOON_ROUND_TRIPS: u32 = 3;

/// Round trips within which a waiting client has heard of a release and has looked at the key.
const HEARD_ROUND_TRIPS: u32 = 2;

/// Time for which a client takes the lock again and again before it lets others go first.
const TURN: Duration = Duration::from_millis(250);

/// Time for which a client lets others go first after another one had the lock or wanted it. While it
/// holds the lock, and as long as it is faster than the others, it does not hear of them.
const COURTESY: Duration = Duration::from_secs(1);

/// Time after which a lock that this client has not met is as new.
const MEMORY: Duration = Duration::from_secs(60);

/// The contention window of one lock: the bound of the random delays that woken clients draw.
///
/// The window adapts to the number of clients that want the lock, which is unknown. An attempt that
/// meets another one widens the window; a lock that stays free for a while narrows it. All clients
/// see how long the lock was free, so their windows stay similar. Only the slower of two clients that
/// meet hears of the other. It widens its window a little if the other has the lock, or it would be
/// the slower one from then on, and doubles it if neither has.
///
/// A client that arrives while the lock is free must not be faster than clients that have waited
/// for it. If it has met others, it draws a delay, too. A client that uses the lock all the time
/// meets no other client, because sleeping clients change no key. So it yields once in every turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Crowd {
    /// `None`: nothing is known yet.
    window: Option<Duration>,
    /// Last instant at which another client had the lock or wanted it.
    met_at: Option<BootInstant>,
    /// Last instant at which this client gave up the lock.
    released_at: Option<BootInstant>,
    /// Begin of the present turn: since then this client has used the lock without a pause.
    turn_began: BootInstant,
}

impl Crowd {
    /// Returns the present window.
    pub(crate) fn window(&self, retry: RetryDelay, round_trip: Duration) -> Duration {
        let longest = retry.longest.max(retry.first);
        let least = round_trip.saturating_mul(2);
        self.window.unwrap_or(retry.first).max(least).min(longest)
    }

    /// Records that an attempt met another one: their votes were split, or the other has the lock.
    pub(crate) fn collided(&mut self, is_split: bool, retry: RetryDelay, round_trip: Duration) {
        let window = self.window(retry, round_trip);
        let wider = if is_split { window.saturating_mul(2) } else { window.saturating_mul(5) / 4 };
        self.window = Some(wider.min(retry.longest.max(retry.first)));
    }

    /// Records that a free lock was taken `after` a woken client had noticed that it was free.
    pub(crate) fn taken(&mut self, after: Duration, retry: RetryDelay, round_trip: Duration) {
        if after > round_trip.saturating_mul(SOON_ROUND_TRIPS) {
            self.window = Some(self.window(retry, round_trip) / 8 * 7);
        }
    }

    /// Returns what of this still holds at `now`: of a lock that has not been used for long, nothing.
    pub(crate) fn remembered(self, now: BootInstant) -> Self {
        let is_old = |at: BootInstant| at.after(MEMORY) <= now;
        let is_forgotten = self.met_at.is_none_or(is_old) && self.released_at.is_none_or(is_old);
        if is_forgotten { Self::default() } else { self }
    }

    /// Records that another client has had the lock, or has wanted it, until `now`.
    pub(crate) fn met(&mut self, now: BootInstant) {
        self.met_at = Some(now);
    }

    /// Records that this client has given up a lease at `now`.
    pub(crate) fn given_up(&mut self, now: BootInstant) {
        self.released_at = Some(now);
    }

    /// Returns the delay of the first attempt of a use that begins at `now`, if it lets the clients
    /// that wait go first. `jitter` is uniform over `u64`.
    pub(crate) fn courtesy(
        &mut self,
        now: BootInstant,
        retry: RetryDelay,
        round_trip: Duration,
        jitter: u64,
    ) -> Option<Duration> {
        if !self.is_others_turn(now, retry, round_trip) {
            return None;
        }
        if self.is_turn_over(now) {
            self.turn_began = now;
        }
        let unheard_until = self.unheard_until(retry, round_trip);
        let unheard = unheard_until.map_or(Duration::ZERO, |until| until.since(now));
        Some(unheard + share(self.window(retry, round_trip), jitter))
    }

    /// Returns true if a use that begins at `now` lets the clients that wait go first.
    pub(crate) fn is_others_turn(
        &mut self,
        now: BootInstant,
        retry: RetryDelay,
        round_trip: Duration,
    ) -> bool {
        let window = self.window(retry, round_trip);
        let unheard_until = self.unheard_until(retry, round_trip);
        if unheard_until.is_none_or(|until| until.after(window) <= now) {
            // A pause ends the turn.
            self.turn_began = now;
        }
        let knows_others = self.met_at.is_some_and(|at| now < at.after(COURTESY));
        knows_others || self.is_turn_over(now)
    }

    fn is_turn_over(&self, now: BootInstant) -> bool {
        self.turn_began.after(TURN) <= now
    }

    /// Returns the instant by which waiting clients have heard that this client gave up the lock.
    fn unheard_until(&self, retry: RetryDelay, round_trip: Duration) -> Option<BootInstant> {
        // A round trip that a pause has lengthened puts off no lock that is free for long.
        let longest = retry.longest.max(retry.first);
        let heard = round_trip.saturating_mul(HEARD_ROUND_TRIPS).min(longest);
        self.released_at.map(|at| at.after(heard))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at_ms, ms};

    const MS: Duration = Duration::from_millis(1);

    fn window(crowd: &Crowd) -> Duration {
        crowd.window(RetryDelay::default(), Duration::ZERO)
    }

    /// The longest delay of a use that begins at `now_ms`, on a network of 1 ms.
    fn courtesy(crowd: &mut Crowd, now_ms: u64) -> Option<u128> {
        let delay = crowd.courtesy(at_ms(now_ms), RetryDelay::default(), MS, u64::MAX);
        delay.map(|delay| (delay + Duration::from_nanos(1)).as_millis())
    }

    #[test]
    fn the_window_grows_with_collisions_and_shrinks_with_idle_time() {
        let (retry, mut crowd) = (RetryDelay::default(), Crowd::default());
        assert_eq!(window(&crowd), 5 * MS);
        crowd.collided(true, retry, MS);
        assert_eq!(window(&crowd), 10 * MS);
        crowd.collided(false, retry, MS);
        assert_eq!(window(&crowd), Duration::from_micros(12_500), "the other has the lock");
        crowd.window = Some(10 * MS);
        crowd.taken(3 * MS, retry, MS);
        assert_eq!(window(&crowd), 10 * MS, "it was taken soon");
        crowd.taken(4 * MS, retry, MS);
        assert_eq!(window(&crowd), Duration::from_micros(8_750));
        (0..40).for_each(|_| crowd.collided(true, retry, MS));
        assert_eq!(window(&crowd), retry.longest);
        (0..400).for_each(|_| crowd.taken(9 * MS, retry, MS));
        assert_eq!(crowd.window(retry, MS), 2 * MS, "never below two round trips");
    }

    #[test]
    fn a_slow_network_widens_the_window_within_its_limit() {
        let crowd = Crowd::default();
        assert_eq!(crowd.window(RetryDelay::default(), 20 * MS), 40 * MS);
        assert_eq!(crowd.window(RetryDelay::default(), 900 * MS), 200 * MS);
    }

    #[test]
    fn a_client_that_is_alone_waits_once_a_turn() {
        let mut crowd = Crowd::default();
        let mut delays = Vec::new();
        for now_ms in (10_000..11_000).step_by(10) {
            delays.extend(courtesy(&mut crowd, now_ms));
            crowd.given_up(at_ms(now_ms + 9));
        }
        assert_eq!(delays, [6; 3], "two round trips less the pause, and the window");
    }

    #[test]
    fn a_client_that_pauses_begins_a_new_turn() {
        let mut crowd = Crowd::default();
        for now_ms in (10_000..20_000).step_by(100) {
            assert_eq!(courtesy(&mut crowd, now_ms), None);
            crowd.given_up(at_ms(now_ms + 50));
            assert_eq!(courtesy(&mut crowd, now_ms + 51), None, "a turn is longer");
            crowd.given_up(at_ms(now_ms + 93));
        }
    }

    #[test]
    fn a_client_that_knows_of_others_draws_a_delay_like_theirs() {
        let mut crowd = Crowd::default();
        crowd.met(at_ms(10_000));
        assert_eq!(courtesy(&mut crowd, 10_000), Some(5));
        crowd.given_up(at_ms(10_100));
        assert_eq!(courtesy(&mut crowd, 10_100), Some(7), "they have to hear of the release first");
        assert_eq!(courtesy(&mut crowd, 10_900), Some(5));
        assert_eq!(courtesy(&mut crowd, 11_000), None, "they may be gone");
    }

    #[test]
    fn a_reply_after_a_pause_delays_a_free_lock_briefly() {
        let (retry, mut crowd) = (RetryDelay::default(), Crowd::default());
        crowd.given_up(at_ms(10_000));
        let delay = crowd.courtesy(at_ms(10_000), retry, ms(2_000), u64::MAX);
        assert!(delay.is_some_and(|it| it <= 2 * retry.longest), "{delay:?}");
    }

    #[test]
    fn a_lock_that_was_not_used_for_long_is_as_new() {
        let mut crowd = Crowd::default();
        crowd.met(at_ms(10_000));
        crowd.collided(true, RetryDelay::default(), MS);
        assert_eq!(crowd.remembered(at_ms(69_000)), crowd);
        assert_eq!(crowd.remembered(at_ms(70_000)), Crowd::default());
    }

    #[test]
    fn a_long_lease_is_a_turn() {
        let mut crowd = Crowd::default();
        assert_eq!(courtesy(&mut crowd, 10_000), None);
        crowd.given_up(at_ms(10_000).after(ms(9_000)));
        assert_eq!(courtesy(&mut crowd, 19_000), Some(7));
    }
}
