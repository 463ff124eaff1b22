//! The most commands on one connection.

use core::num::NonZeroU16;

/// Most commands that may wait or be unanswered on one connection. What finds no room is not
/// asked; a release that finds no room is owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window(NonZeroU16);

impl Window {
    /// Returns a window of `commands`, of which a sixteenth may be written and unanswered, and at
    /// least four.
    #[must_use]
    pub const fn new(commands: NonZeroU16) -> Self {
        Self(commands)
    }

    /// Most commands that may wait or be unanswered.
    pub(crate) fn commands(self) -> usize {
        usize::from(self.0.get())
    }

    /// Most commands that may be written and unanswered. Further commands wait for room, at most for
    /// the node timeout. A use has up to four under way: the introduction behind a SET must not wait
    /// for the answer to it.
    pub(crate) fn in_flight(self) -> usize {
        (self.commands() / 16).max(4)
    }

    /// New SETs, extensions and queries stop here, so that room is left for the releases of leases.
    pub(crate) fn new_work(self) -> usize {
        (self.commands() / 2).max(1)
    }

    /// Most attempts that are under way at once: half of what may be written, so that an attempt is
    /// written without waiting, and the releases of failed ones are, too.
    pub(crate) fn attempts(self) -> usize {
        (self.in_flight() / 2).min(self.new_work())
    }

    /// Reads of leases stop here, at half of what may be written: when all leases look at once,
    /// attempts and extensions are still written without waiting.
    pub(crate) fn reads(self) -> usize {
        self.in_flight() / 2
    }
}

impl Default for Window {
    fn default() -> Self {
        const COMMANDS: NonZeroU16 = NonZeroU16::new(8_192).expect("it is not zero");
        Self(COMMANDS)
    }
}
