//! The end of a lease.

use crate::protocol::BootInstant;

/// The instant at which a lease is over, on this process's own clock. It has no meaning in any
/// other process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Deadline(pub(crate) BootInstant);

impl Deadline {
    pub(crate) fn new(instant: BootInstant) -> Self {
        Self(instant)
    }

    /// Returns the reading of the client's clock.
    #[cfg(feature = "simulation")]
    #[doc(hidden)]
    #[must_use]
    pub fn instant(self) -> BootInstant {
        self.0
    }
}
