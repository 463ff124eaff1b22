//! Contention for one lock, as one client sees it.

use core::time::Duration;

use super::retry::RetryDelay;
use super::time::BootInstant;

/// A free lock that is taken within this many round trips was waited for by enough clients.
const SOON_ROUND_TRIPS: u32 = 3;

/// The contention window of one lock: the bound of the random delays that woken clients draw.
///
/// The window follows the number of clients that want the lock, which nobody counts. An attempt
/// that meets another one widens it. A free lock that nobody takes for a while narrows it. All
/// clients see how long the lock was free, so their windows stay alike, and nobody is favoured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Crowd {
    /// `None`: nothing is known yet.
    window: Option<Duration>,
    /// A client that has given up a contended lock lets the others go first until this instant.
    yields_until: BootInstant,
}

impl Crowd {
    /// Returns the present window.
    pub(crate) fn window(&self, retry: RetryDelay, round_trip: Duration) -> Duration {
        let longest = retry.longest.max(retry.first);
        let least = round_trip.saturating_mul(2);
        self.window.unwrap_or(retry.first).max(least).min(longest)
    }

    /// Records that an attempt met another one.
    pub(crate) fn collided(&mut self, retry: RetryDelay, round_trip: Duration) {
        let window = self.window(retry, round_trip).saturating_mul(2);
        self.window = Some(window.min(retry.longest.max(retry.first)));
    }

    /// Records that a free lock was taken `after` a woken client had noticed that it was free.
    pub(crate) fn taken(&mut self, after: Duration, retry: RetryDelay, round_trip: Duration) {
        if after > round_trip.saturating_mul(SOON_ROUND_TRIPS) {
            self.window = Some(self.window(retry, round_trip) / 8 * 7);
        }
    }

    /// Records that this client has given up a lease at `now` for which it had to wait.
    pub(crate) fn given_up(&mut self, now: BootInstant, retry: RetryDelay, round_trip: Duration) {
        self.yields_until = now.after(self.window(retry, round_trip));
    }

    /// Returns true if a use that begins at `now` lets the clients that wait go first.
    pub(crate) fn yields(&self, now: BootInstant) -> bool {
        now < self.yields_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn window(crowd: &Crowd) -> Duration {
        crowd.window(RetryDelay::default(), Duration::ZERO)
    }

    #[test]
    fn the_window_grows_with_collisions_and_shrinks_with_idle_time() {
        let (retry, mut crowd) = (RetryDelay::default(), Crowd::default());
        assert_eq!(window(&crowd), 5 * MS);
        crowd.collided(retry, MS);
        assert_eq!(window(&crowd), 10 * MS);
        crowd.taken(3 * MS, retry, MS);
        assert_eq!(window(&crowd), 10 * MS, "it was taken soon");
        crowd.taken(4 * MS, retry, MS);
        assert_eq!(window(&crowd), Duration::from_micros(8_750));
        (0..40).for_each(|_| crowd.collided(retry, MS));
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
}
