//! The end of a lease.

use redlock_protocol::BootInstant;

/// The instant at which a lease is over, on this process's own clock. It has no meaning in any
/// other process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Deadline(pub(crate) BootInstant);

impl Deadline {
    pub(crate) fn new(instant: BootInstant) -> Self {
        Self(instant)
    }
}

impl From<Deadline> for BootInstant {
    fn from(deadline: Deadline) -> Self {
        deadline.0
    }
}
