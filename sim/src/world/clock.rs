//! The three clocks of a host.

use lock_judge::history::{ClockKind, Segment};

/// Reading of every boot and monotonic clock at the start of a scenario: the hosts have been up for
/// 30 days.
pub const BOOT_AT_START_NS: u64 = 30 * 24 * 60 * 60 * 1_000_000_000;

/// Reading of a wall clock without offset at the start of a scenario, in milliseconds since 1970.
/// The value is unrelated to the boot clock, so that a mix-up of the two shows.
pub const WALL_AT_START_MS: u64 = 1_454_889_600_000;

const STOPPED_PPB: i32 = -1_000_000_000;

/// The wall, monotonic and boot clocks over true time.
///
/// A step moves only the wall clock. A rate changes the speed of all three, as an adjustment of the
/// kernel's tick does. While the host sleeps, the monotonic clock stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostClocks {
    segments: [Segment; 3],
    rate_ppb: i32,
    asleep: bool,
}

impl HostClocks {
    /// Returns the clocks at the start of a scenario. `wall_offset_ns` is the lead of the wall
    /// clock; `rate_ppb` is the extra speed of all three clocks over true time.
    #[must_use]
    pub fn new(wall_offset_ns: i64, rate_ppb: i32) -> Self {
        let wall = (WALL_AT_START_MS * 1_000_000).saturating_add_signed(wall_offset_ns);
        let segment = |local_ns| Segment { true_ns: 0, local_ns, rate_ppb };
        let segments = [segment(BOOT_AT_START_NS), segment(BOOT_AT_START_NS), segment(wall)];
        Self { segments, rate_ppb, asleep: false }
    }

    /// Returns the reading of `clock` at `true_ns`.
    #[must_use]
    pub fn read(&self, clock: ClockKind, true_ns: u64) -> u64 {
        self.segments[clock as usize].local_at(true_ns)
    }

    /// Returns the wall clock in whole milliseconds, as a master uses it.
    #[must_use]
    pub fn wall_ms(&self, true_ns: u64) -> u64 {
        self.read(ClockKind::Wall, true_ns) / 1_000_000
    }

    /// Returns the first true instant at which `clock` reads `local_ns`, if nothing changes before.
    #[must_use]
    pub fn true_at(&self, clock: ClockKind, local_ns: u64) -> Option<u64> {
        self.segments[clock as usize].true_at(local_ns)
    }

    /// Returns the segment that `clock` follows now.
    #[must_use]
    pub fn segment(&self, clock: ClockKind) -> Segment {
        self.segments[clock as usize]
    }

    /// Sets the wall clock forward, or back if `by_ns` is negative.
    pub fn step_wall(&mut self, by_ns: i64, true_ns: u64) {
        self.rebase(true_ns);
        let wall = &mut self.segments[ClockKind::Wall as usize];
        wall.local_ns = wall.local_ns.saturating_add_signed(by_ns);
    }

    /// Sets the rate of all clocks from now on: `rate_ppb` faster than true time.
    pub fn set_rate(&mut self, rate_ppb: i32, true_ns: u64) {
        self.rebase(true_ns);
        self.rate_ppb = rate_ppb;
        self.apply_rates();
    }

    /// Returns the present rate, without the effect of sleep.
    #[must_use]
    pub fn rate_ppb(&self) -> i32 {
        self.rate_ppb
    }

    /// Puts the host to sleep, or wakes it.
    pub fn set_asleep(&mut self, asleep: bool, true_ns: u64) {
        self.rebase(true_ns);
        self.asleep = asleep;
        self.apply_rates();
    }

    fn rebase(&mut self, true_ns: u64) {
        for segment in &mut self.segments {
            segment.local_ns = segment.local_at(true_ns);
            segment.true_ns = true_ns;
        }
    }

    fn apply_rates(&mut self) {
        for segment in &mut self.segments {
            segment.rate_ppb = self.rate_ppb;
        }
        if self.asleep {
            self.segments[ClockKind::Monotonic as usize].rate_ppb = STOPPED_PPB;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_step_moves_the_wall_clock_alone() {
        let mut clocks = HostClocks::new(0, 0);
        clocks.step_wall(-5 * SECOND as i64, SECOND);
        assert_eq!(clocks.wall_ms(2 * SECOND), WALL_AT_START_MS - 3_000);
        assert_eq!(clocks.read(ClockKind::Boot, 2 * SECOND), BOOT_AT_START_NS + 2 * SECOND);
    }

    #[test]
    fn sleep_stops_the_monotonic_clock_alone() {
        let mut clocks = HostClocks::new(0, 0);
        clocks.set_asleep(true, SECOND);
        clocks.set_asleep(false, 11 * SECOND);
        assert_eq!(clocks.read(ClockKind::Monotonic, 12 * SECOND), BOOT_AT_START_NS + 2 * SECOND);
        assert_eq!(clocks.read(ClockKind::Boot, 12 * SECOND), BOOT_AT_START_NS + 12 * SECOND);
    }

    #[test]
    fn a_rate_bends_all_three() {
        let mut clocks = HostClocks::new(0, 0);
        clocks.set_rate(100_000_000, SECOND);
        for clock in ClockKind::ALL {
            let gained = clocks.read(clock, 11 * SECOND) - clocks.read(clock, SECOND);
            assert_eq!(gained, 11 * SECOND, "{clock:?}");
        }
    }
}
