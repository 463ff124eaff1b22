//! How much of what a client sent is kept for it.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

use crate::serve::limits::{HELD_BYTES_FREE, HELD_BYTES_MAX};

/// What all connections of the process keep.
static ALL: AtomicUsize = AtomicUsize::new(0);

/// Bytes that came over one connection and are not done with.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// Of a request that is not whole.
    pub(super) partial: usize,
    /// Of requests that are not executed.
    pub(super) arrivals: usize,
    /// Of what stands between MULTI and EXEC.
    pub(super) queued: usize,
    /// How many of them are among those of the process.
    settled: usize,
}

impl Held {
    /// What a request takes.
    pub(super) fn cost(request: &[Bytes]) -> usize {
        request.iter().map(|argument| argument.len() + size_of::<Bytes>()).sum()
    }

    /// Counts what is kept now among what the process keeps.
    ///
    /// # Errors
    ///
    /// If it is more than before, and more than may be. Who keeps little is not meant.
    pub(super) fn settle(&mut self) -> io::Result<()> {
        let now = self.partial + self.arrivals + self.queued;
        let before = core::mem::replace(&mut self.settled, now);
        if now <= before {
            ALL.fetch_sub(before - now, Ordering::Relaxed);
            return Ok(());
        }
        let all = ALL.fetch_add(now - before, Ordering::Relaxed) + (now - before);
        let is_meant = all > HELD_BYTES_MAX && now > HELD_BYTES_FREE;
        if is_meant { Err(io::ErrorKind::OutOfMemory.into()) } else { Ok(()) }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        ALL.fetch_sub(self.settled, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_may_keep_more_than_all_may() {
        let mut one = Held { partial: HELD_BYTES_MAX, ..Held::default() };
        assert!(one.settle().is_ok());
        let mut little = Held { queued: HELD_BYTES_FREE, ..Held::default() };
        assert!(little.settle().is_ok());
        let mut other = Held { queued: HELD_BYTES_FREE + 1, ..Held::default() };
        assert!(other.settle().is_err());
        drop((one, little, other));
        let mut next = Held { arrivals: HELD_BYTES_MAX, ..Held::default() };
        assert!(next.settle().is_ok());
    }
}
