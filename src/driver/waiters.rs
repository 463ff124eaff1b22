//! Callers that wait for a condition of the whole client, each with a deadline of its own.

use core::future::poll_fn;
use core::task::{Context, Poll};
use std::sync::Arc;

use redlock_protocol::BootInstant;

use super::wakers::{Caller, Wakers};
use super::{Driver, State};

/// Waiting callers, in the order of their deadlines. All are woken to check again whenever the
/// condition may hold.
pub(super) type Waiters = Wakers<BootInstant>;

/// Identifies a waiting caller.
pub(crate) type Waiter = Caller<BootInstant>;

/// Wait of one caller. Dropping it removes the caller's waker.
struct Waiting<'a> {
    driver: &'a Driver,
    waiter: Option<Waiter>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(waiter) = self.waiter {
            self.driver.last_turn(|state, _| state.waiters.remove(waiter));
        }
    }
}

impl Driver {
    /// Waits until `poll`, which calls [`Driver::poll_waiting`], is ready.
    pub(crate) async fn wait<T>(
        self: &Arc<Self>,
        mut poll: impl FnMut(&Self, &mut Option<Waiter>, &Context<'_>) -> Poll<T>,
    ) -> T {
        let mut waiting = Waiting { driver: self, waiter: None };
        poll_fn(|context| self.serve(|it| poll(it, &mut waiting.waiter, context))).await
    }

    /// Ready with the output of `look` once that is ready, or with `None` when the client's clock
    /// reads `until`.
    pub(super) fn poll_waiting<T>(
        &self,
        waiter: &mut Option<Waiter>,
        until: BootInstant,
        context: &Context<'_>,
        look: impl FnOnce(&mut State, BootInstant) -> Poll<T>,
    ) -> Poll<Option<T>> {
        self.turn(|state, now| {
            if let Poll::Ready(output) = look(state, now) {
                return Poll::Ready(Some(output));
            }
            if until <= now {
                return Poll::Ready(None);
            }
            let waiter = state.waiters.identify(waiter, until);
            state.waiters.listen(waiter, context);
            Poll::Pending
        })
    }

    /// Ready when the client's clock reads `until`, or once the client is closed.
    pub(crate) fn poll_pause(
        &self,
        waiter: &mut Option<Waiter>,
        until: BootInstant,
        context: &Context<'_>,
    ) -> Poll<()> {
        let closed = |state: &mut State, _| {
            if state.closed { Poll::Ready(()) } else { Poll::Pending }
        };
        self.poll_waiting(waiter, until, context, closed).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use core::future::Future;
    use core::pin::pin;
    use core::task::Waker;
    use core::time::Duration;
    use std::task::Wake;

    use super::*;
    use crate::driver::offline::{Clock, driver_of};

    struct Task;

    impl Wake for Task {
        fn wake(self: Arc<Self>) {}
    }

    #[test]
    fn a_wait_that_is_dropped_leaves_no_waker() {
        let driver = Arc::new(driver_of("redis://a", &Arc::new(Clock::default())));
        let until = BootInstant::ZERO.after(Duration::from_secs(3_600));
        let task = Arc::new(Task);
        let waker = Waker::from(Arc::clone(&task));
        {
            let mut context = Context::from_waker(&waker);
            let pause =
                pin!(driver.wait(|it, waiter, context| it.poll_pause(waiter, until, context)));
            assert!(pause.poll(&mut context).is_pending());
            assert_eq!(Arc::strong_count(&task), 3, "the driver keeps a waker of the task");
        }
        assert_eq!(Arc::strong_count(&task), 2, "the task and its own waker are left");
        assert_eq!(driver.turn(|state, _| state.waiters.first()), None);
    }
}
