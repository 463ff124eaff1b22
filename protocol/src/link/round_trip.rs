//! How long a node takes to answer.

use core::time::Duration;

use crate::time::BootInstant;

/// Time without an answer after which the answers before say nothing of the next one.
const MEMORY: Duration = Duration::from_secs(10);

/// Estimate of the time from a command to its answer: the longest of the last answers, each of which
/// counts for an eighth less with every answer since.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTrip {
    estimate: Duration,
    measured_at: BootInstant,
}

impl RoundTrip {
    pub(super) fn estimate(&self) -> Duration {
        self.estimate
    }

    /// Records an answer at `now` to a command that was written at `written_at`.
    pub(super) fn measured(&mut self, written_at: BootInstant, now: BootInstant) {
        let is_old = self.measured_at.after(MEMORY) <= now;
        let before = if is_old { Duration::ZERO } else { self.estimate * 7 / 8 };
        *self = Self { estimate: now.since(written_at).max(before), measured_at: now };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_answer_is_forgotten_by_and_by_or_after_a_pause() {
        let at = |ms: u64| BootInstant::from_nanos(ms * 1_000_000);
        let mut slow = RoundTrip::default();
        slow.measured(at(0), at(8_000));
        let mut busy = slow;
        busy.measured(at(8_000), at(8_001));
        assert_eq!(busy.estimate(), Duration::from_secs(7));
        slow.measured(at(18_000), at(18_001));
        assert_eq!(slow.estimate(), Duration::from_millis(1));
    }
}
