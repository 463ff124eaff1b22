//! Waits for a future by parking the thread.

use core::future::IntoFuture;
use core::pin::pin;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Poll, Waker};
use std::sync::Arc;
use std::task::Wake;
use std::thread::{self, Thread};

/// Wakes a parked thread.
struct Unpark {
    thread: Thread,
    /// True if the future must be polled. The thread's own token is not enough: whatever else the
    /// thread does during a poll may park it, and take the token.
    woken: AtomicBool,
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// Parks the thread until `future` is ready, and returns its output.
pub(super) fn block_on<F: IntoFuture>(future: F) -> F::Output {
    let mut future = pin!(future.into_future());
    let unpark = Arc::new(Unpark { thread: thread::current(), woken: AtomicBool::new(false) });
    let waker = Waker::from(Arc::clone(&unpark));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        while !unpark.woken.swap(false, Ordering::Acquire) {
            thread::park();
        }
    }
}

#[cfg(test)]
mod tests {
    use core::future::poll_fn;

    use tokio::sync::oneshot;

    use super::*;

    #[test]
    fn another_thread_wakes_the_parked_one() {
        let (sender, receiver) = oneshot::channel();
        thread::scope(|scope| {
            scope.spawn(|| sender.send(7));
            assert_eq!(block_on(receiver), Ok(7));
        });
    }

    #[test]
    fn a_token_taken_during_the_poll_loses_no_wake() {
        let mut polls = 0;
        let ready = poll_fn(|context| {
            polls += 1;
            if polls > 1 {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            thread::park(); // returns at once, and takes the token
            Poll::Pending
        });
        block_on(ready);
        assert_eq!(polls, 2);
    }
}
