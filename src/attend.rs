//! Work that ends when its lease is lost.

use core::future::{Future, poll_fn};
use core::pin::{Pin, pin};
use core::task::Poll;

use crate::error::WithError;

/// Runs `work` until `lost` is ready. Returns its output with the result of `check` after it.
pub(crate) async fn attend<F: Future, L>(
    mut lost: impl Future<Output = L> + Unpin,
    check: impl Fn() -> Result<(), L>,
    work: F,
) -> Result<(F::Output, Result<(), L>), L> {
    let mut work = pin!(work);
    poll_fn(|context| {
        if let Poll::Ready(loss) = Pin::new(&mut lost).poll(context) {
            return Poll::Ready(Err(loss));
        }
        let value = core::task::ready!(work.as_mut().poll(context));
        Poll::Ready(Ok((value, check())))
    })
    .await
}

/// Returns the outcome of work that was attended.
pub(crate) fn outcome<T, L>(attended: Result<(T, Result<(), L>), L>) -> Result<T, WithError<T, L>> {
    match attended {
        Ok((value, Ok(()))) => Ok(value),
        Ok((value, Err(_))) => Err(WithError::LostAfter(value)),
        Err(loss) => Err(WithError::Lost(loss)),
    }
}
