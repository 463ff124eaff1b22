//! The runtime of a call.

use core::future::Future;

use tokio::runtime::Builder;

use crate::exit::Stop;

/// Runs a call to its end on a runtime of one thread.
pub(crate) fn block_on<T>(call: impl Future<Output = T>) -> Result<T, Stop> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| Stop::failed(format!("no runtime can be started: {error}")))?;
    let done = runtime.block_on(call);
    // Dropping it would wait for the system's resolver, which may take its time for a name.
    runtime.shutdown_background();
    Ok(done)
}

#[cfg(test)]
mod tests {
    use core::time::Duration;
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    use super::*;

    /// A name that the system's resolver looks up is such a thread.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "the thread is what is tested here")]
    fn the_end_of_a_call_does_not_wait_for_a_blocked_thread() {
        let alive = Arc::new(());
        let blocked = Arc::downgrade(&alive);
        let (_end, until_end) = channel::<()>();
        let thread = move || {
            let _ = until_end.recv_timeout(Duration::from_secs(5));
            drop(alive);
        };
        let call = async { drop(tokio::task::spawn_blocking(thread)) };
        assert_eq!(block_on(call), Ok(()));
        assert_eq!(blocked.strong_count(), 1, "the thread has ended before the call");
    }
}
