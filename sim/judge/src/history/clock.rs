//! Clock arithmetic: converts between true time and the reading of a host's clock.

use crate::ids::{ClockKind, HostId, IdVec};

const BILLION: i128 = 1_000_000_000;

/// Period in which a clock runs at one rate: it reads `local_ns` plus the true time since `true_ns`
/// times the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Start of the segment, in true time.
    pub true_ns: u64,
    /// Reading of the clock at the start.
    pub local_ns: u64,
    /// Rate of the clock relative to true time, in parts per billion; −1 000 000 000 stops the
    /// clock.
    pub rate_ppb: i32,
}

impl Segment {
    /// Returns the reading of the clock at `true_ns`, rounded down.
    ///
    /// # Panics
    ///
    /// If `true_ns` lies before the segment.
    #[must_use]
    pub fn local_at(&self, true_ns: u64) -> u64 {
        let elapsed = true_ns.checked_sub(self.true_ns).expect("asked before the segment begins");
        self.local_ns + u64::try_from(self.advance_ns(elapsed)).expect("a clock runs forward")
    }

    /// Returns by how much the clock advances in `span_ns` of true time, rounded towards zero.
    #[must_use]
    pub fn advance_ns(&self, span_ns: u64) -> i128 {
        // A division of 128 bits is slow, and most clocks are right.
        if self.rate_ppb == 0 { i128::from(span_ns) } else { self.scaled(span_ns) }
    }

    fn scaled(&self, span_ns: u64) -> i128 {
        i128::from(span_ns) * (BILLION + i128::from(self.rate_ppb)) / BILLION
    }

    /// Returns the first true instant at which the clock reads at least `local_ns`, assuming that
    /// the segment never ends; `None` if the clock never reads that much, or if the instant exceeds
    /// `u64`.
    #[must_use]
    pub fn true_at(&self, local_ns: u64) -> Option<u64> {
        let Some(wanted) = local_ns.checked_sub(self.local_ns).filter(|&wanted| wanted > 0) else {
            return Some(self.true_ns);
        };
        if self.rate_ppb == 0 {
            return self.true_ns.checked_add(wanted);
        }
        let rate = BILLION + i128::from(self.rate_ppb);
        if rate <= 0 {
            return None;
        }
        let elapsed = (i128::from(wanted) * BILLION + rate - 1) / rate;
        self.true_ns.checked_add(u64::try_from(elapsed).ok()?)
    }
}

/// Current segment of every clock of every host. Feed it each
/// [`EventKind::Clock`](super::EventKind::Clock).
#[derive(Clone, Debug, Default)]
pub struct ClockSegments {
    current: IdVec<HostId, [Segment; 3]>,
}

impl ClockSegments {
    /// Removes all segments and keeps the allocation.
    pub fn clear(&mut self) {
        self.current.clear();
    }

    /// Sets the segment that the clock follows from `segment.true_ns` on.
    pub fn set(&mut self, host: HostId, clock: ClockKind, segment: Segment) {
        let blank = Segment { true_ns: 0, local_ns: 0, rate_ppb: 0 };
        while self.current.get(host).is_none() {
            self.current.push([blank; 3]);
        }
        self.current[host][clock as usize] = segment;
    }

    /// Returns the current segment of the clock.
    ///
    /// # Panics
    ///
    /// If no clock has been set for this host or a host with a higher index.
    #[must_use]
    pub fn segment(&self, host: HostId, clock: ClockKind) -> Segment {
        self.current[host][clock as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fast_clock_gains_and_the_inverse_is_exact() {
        let fast = Segment { true_ns: 1_000, local_ns: 5_000, rate_ppb: 100_000_000 };
        assert_eq!(fast.local_at(1_100), 5_110);
        assert_eq!(fast.true_at(5_110), Some(1_100));
        assert_eq!(fast.true_at(5_000), Some(1_000));
    }

    #[test]
    fn a_stopped_clock_never_gets_there() {
        let stopped = Segment { true_ns: 7, local_ns: 9, rate_ppb: -1_000_000_000 };
        assert_eq!(stopped.local_at(1_000_000), 9);
        assert_eq!(stopped.true_at(10), None);
        assert_eq!(stopped.true_at(9), Some(7));
    }

    #[test]
    fn true_at_is_the_first_instant_that_reads_enough() {
        let slow = Segment { true_ns: 0, local_ns: 0, rate_ppb: -300_000_000 };
        for local in 1..200 {
            let at = slow.true_at(local).unwrap();
            assert!(slow.local_at(at) >= local && slow.local_at(at - 1) < local, "{local}");
        }
    }
}
