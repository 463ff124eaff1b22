//! The end of a lease.

use core::fmt;

use redlock_protocol::BootInstant;

/// The instant at which a lease is over, on this process's own clock. It has no meaning in any
/// other process.
///
/// Displays the reading of that clock, as in `8123.250 s on the boot clock`. On Linux this is the time
/// since the machine was booted, including time asleep.
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

impl fmt::Display for Deadline {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.0.since(BootInstant::ZERO);
        write!(formatter, "{}.{:03} s on the boot clock", at.as_secs(), at.subsec_millis())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_displayed_in_seconds_rounded_down() {
        let deadline = Deadline::new(BootInstant::from_nanos(8_123_250_999_999));
        assert_eq!(deadline.to_string(), "8123.250 s on the boot clock");
        assert_eq!(Deadline::new(BootInstant::ZERO).to_string(), "0.000 s on the boot clock");
    }
}
