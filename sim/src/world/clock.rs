//! The three clocks of a host.

use crate::history::{ClockKind, Segment};

/// What every boot and monotonic clock reads when a scenario begins: the hosts have been up for
/// 30 days.
pub const BOOT_AT_START_NS: u64 = 30 * 24 * 60 * 60 * 1_000_000_000;

/// What a wall clock without offset reads when a scenario begins, in milliseconds since 1970.
/// Unrelated to the boot clock, so that mixing the two shows.
pub const WALL_AT_START_MS: u64 = 1_454_889_600_000;

const STOPPED_PPB: i32 = -1_000_000_000;

/// Wall, monotonic and boot clock over true time.
///
/// A step moves the wall clock only; a rate bends all three, as adjusting the kernel's tick does;
/// while the host sleeps the monotonic clock stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostClocks {
    segments: [Segment; 3],
    rate_ppb: i32,
    asleep: bool,
}

impl HostClocks {
    /// Clocks as a scenario begins. `wall_offset_ns` is how far the wall clock is ahead,
    /// `rate_ppb` how much faster than true time all three run.
    #[must_use]
    pub fn new(wall_offset_ns: i64, rate_ppb: i32) -> Self {
        let wall = (WALL_AT_START_MS * 1_000_000).saturating_add_signed(wall_offset_ns);
        let segment = |local_ns| Segment { true_ns: 0, local_ns, rate_ppb };
        let segments = [segment(BOOT_AT_START_NS), segment(BOOT_AT_START_NS), segment(wall)];
        Self { segments, rate_ppb, asleep: false }
    }

    /// What `clock` reads at `true_ns`.
    #[must_use]
    pub fn read(&self, clock: ClockKind, true_ns: u64) -> u64 {
        self.segments[clock as usize].local_at(true_ns)
    }

    /// The wall clock in whole milliseconds, as a master uses it.
    #[must_use]
    pub fn wall_ms(&self, true_ns: u64) -> u64 {
        self.read(ClockKind::Wall, true_ns) / 1_000_000
    }

    /// The first true instant at which `clock` reads `local_ns`, if nothing changes.
    #[must_use]
    pub fn true_at(&self, clock: ClockKind, local_ns: u64) -> Option<u64> {
        self.segments[clock as usize].true_at(local_ns)
    }

    /// What `clock` follows now.
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

    /// From now on all clocks run `rate_ppb` faster than true time.
    pub fn set_rate(&mut self, rate_ppb: i32, true_ns: u64) {
        self.rebase(true_ns);
        self.rate_ppb = rate_ppb;
        self.apply_rates();
    }

    /// The rate in force, sleep aside.
    #[must_use]
    pub fn rate_ppb(&self) -> i32 {
        self.rate_ppb
    }

    /// The host falls asleep, or wakes.
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
