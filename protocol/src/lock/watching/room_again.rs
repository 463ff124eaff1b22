//! Reads that find no room on a connection, because so many leases read at once.

use core::time::Duration;

use super::READ_AGAIN;
use crate::canonical::Encoder;
use crate::time::BootInstant;

/// When reads that found no room are repeated.
///
/// The pause doubles while there is none: thousands of leases that ask for room take time from others.
/// Reads that are refused during a pause, because news lead to reads at once, wait for its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoomAgain {
    ends_at: BootInstant,
    next: Duration,
}

impl RoomAgain {
    pub(super) const FIRST: Self =
        Self { ends_at: BootInstant::ZERO, next: Duration::from_millis(50) };

    /// Returns when the read that is refused at `now` is repeated.
    pub(super) fn refused(&mut self, now: BootInstant) -> BootInstant {
        if self.ends_at <= now {
            self.ends_at = now.after(self.next);
            self.next = READ_AGAIN.min(self.next * 2);
        }
        self.ends_at
    }

    pub(super) fn encode(self, out: &mut Encoder) {
        out.ahead(self.ends_at);
        out.word(self.next.as_nanos() as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at_ms;

    #[test]
    fn reads_refused_during_a_pause_do_not_prolong_it() {
        let mut room_again = RoomAgain::FIRST;
        let table =
            [(1_000, 1_050), (1_010, 1_050), (1_050, 1_150), (1_149, 1_150), (1_150, 1_350)];
        for (now, repeated) in table {
            assert_eq!(room_again.refused(at_ms(now)), at_ms(repeated), "refused at {now} ms");
        }
    }
}
