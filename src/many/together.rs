//! Futures that run at the same time.

use core::future::{Future, poll_fn};
use core::task::Poll;

/// Runs all of `futures` at the same time. Returns their outputs in the same order.
pub(super) async fn all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<_> = futures.map(|future| Err(Box::pin(future))).collect();
    poll_fn(|context| {
        for entry in &mut running {
            if let Err(future) = entry
                && let Poll::Ready(output) = future.as_mut().poll(context)
            {
                *entry = Ok(output);
            }
        }
        if running.iter().all(Result::is_ok) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    running.into_iter().filter_map(Result::ok).collect()
}
