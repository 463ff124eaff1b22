//! Panics of the application's code, and of tokio.

use std::mem;
use std::panic::{self, AssertUnwindSafe};

/// Runs code that may panic. Returns `None` if it panics; the panic hook has reported that.
pub(crate) fn contain<T>(act: impl FnOnce() -> T) -> Option<T> {
    match panic::catch_unwind(AssertUnwindSafe(act)) {
        Ok(output) => Some(output),
        Err(payload) => {
            // Its destructor may be the application's, too: it may panic.
            mem::forget(payload);
            None
        }
    }
}
