//! Accounting of the bytes that clients sent and that are not processed yet.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

use crate::serve::limits::{HELD_BYTES_FREE, HELD_BYTES_MAX};

/// Unprocessed bytes of all connections of this process.
static ALL: AtomicUsize = AtomicUsize::new(0);

/// Unprocessed bytes of one connection.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// Bytes of an incomplete request.
    pub(super) partial: usize,
    /// Bytes of requests that are not executed.
    pub(super) arrivals: usize,
    /// Bytes of requests queued between MULTI and EXEC.
    pub(super) queued: usize,
    /// Bytes of this connection already included in [`ALL`].
    settled: usize,
}

impl Held {
    /// Returns the memory that a request takes, in bytes.
    pub(super) fn cost(request: &[Bytes]) -> usize {
        request.iter().map(|argument| argument.len() + size_of::<Bytes>()).sum()
    }

    /// Updates the total of the process.
    ///
    /// # Errors
    ///
    /// If this connection holds more than before and the process is over its budget
    /// [`HELD_BYTES_MAX`]. Connections with at most [`HELD_BYTES_FREE`] bytes are exempt.
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
    fn one_connection_may_not_exceed_the_global_limit() {
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
