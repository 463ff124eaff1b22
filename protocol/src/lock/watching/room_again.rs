//! Reads that find no room on a connection, because so many leases read at once.

use core::time::Duration;

use super::READ_AGAIN;
use crate::canonical::Encoder;

/// Pause after which a read that found no room is repeated.
///
/// It doubles while there is none: thousands of leases that ask for room take time from others.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoomAgain(Duration);

impl RoomAgain {
    pub(super) const FIRST: Self = Self(Duration::from_millis(50));

    /// Returns the pause. The next one is longer if the refused read is the `first` of the lease's
    /// reads, which are refused together.
    pub(super) fn pause(&mut self, first: bool) -> Duration {
        let pause = self.0;
        if first {
            self.0 = READ_AGAIN.min(pause * 2);
        }
        pause
    }

    pub(super) fn encode(self, out: &mut Encoder) {
        out.word(self.0.as_nanos() as u64);
    }
}
