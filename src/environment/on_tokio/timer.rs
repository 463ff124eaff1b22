//! Timers on a clock that counts time asleep. Tokio's own timers stop while the host sleeps.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use redlock_protocol::BootInstant;

use super::now;
use crate::environment::Timer;

/// A kernel timer where there is one, else a tokio timer that checks the clock at intervals.
pub(super) enum TokioTimer {
    /// Not used yet: the kernel timer belongs to the runtime that polls it first.
    New,
    #[cfg(any(target_os = "linux", target_os = "android"))]
    Kernel(kernel::KernelTimer),
    Watching(Option<Pin<Box<tokio::time::Sleep>>>),
}

/// Longest delay of a `Watching` timer after the host has slept.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

impl Timer for TokioTimer {
    fn poll_until(&mut self, at: BootInstant, context: &mut Context<'_>) -> Poll<()> {
        loop {
            let left = at.since(now());
            if left.is_zero() {
                return Poll::Ready(());
            }
            match self {
                #[cfg(any(target_os = "linux", target_os = "android"))]
                Self::New => {
                    *self = match kernel::KernelTimer::new() {
                        Ok(timer) => Self::Kernel(timer),
                        Err(error) => {
                            tracing::debug!(target: "redlock_client", %error, "no kernel timer");
                            Self::Watching(None)
                        }
                    };
                }
                #[cfg(not(any(target_os = "linux", target_os = "android")))]
                Self::New => *self = Self::Watching(None),
                #[cfg(any(target_os = "linux", target_os = "android"))]
                Self::Kernel(timer) => {
                    if core::task::ready!(timer.poll_fired(at, context)).is_err() {
                        *self = Self::Watching(None);
                    }
                }
                Self::Watching(sleep) => {
                    let nap = left.min(LONGEST_SLEEP);
                    // An earlier sleep may be for another instant, so each poll starts a new one.
                    let sleep = sleep.insert(Box::pin(tokio::time::sleep(nap)));
                    core::task::ready!(sleep.as_mut().poll(context));
                }
            }
        }
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod kernel {
    use core::task::{Context, Poll};
    use std::io;
    use std::os::fd::OwnedFd;

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    use redlock_protocol::BootInstant;

    /// A `timerfd` on `CLOCK_BOOTTIME`.
    pub(in super::super) struct KernelTimer {
        descriptor: AsyncFd<OwnedFd>,
        /// Instant that the timer is set for; `None` after it has fired.
        set: Option<BootInstant>,
    }

    impl KernelTimer {
        pub(super) fn new() -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let descriptor = timerfd_create(TimerfdClockId::Boottime, flags)?;
            #[expect(
                deprecated,
                reason = "the other is unsafe; an owned descriptor stays the same"
            )]
            let descriptor = AsyncFd::try_with_interest(descriptor, Interest::READABLE)?;
            Ok(Self { descriptor, set: None })
        }

        /// Ready when the timer has fired; the caller then reads the clock.
        pub(super) fn poll_fired(
            &mut self,
            at: BootInstant,
            context: &mut Context<'_>,
        ) -> Poll<io::Result<()>> {
            if self.set != Some(at) {
                let nanos = at.as_nanos();
                let value = Timespec {
                    tv_sec: (nanos / 1_000_000_000).try_into().unwrap_or(i64::MAX),
                    tv_nsec: (nanos % 1_000_000_000) as _,
                };
                let interval = Timespec { tv_sec: 0, tv_nsec: 0 };
                let time = Itimerspec { it_interval: interval, it_value: value };
                timerfd_settime(self.descriptor.get_ref(), TimerfdTimerFlags::ABSTIME, &time)?;
                self.set = Some(at);
            }
            let mut fired = core::task::ready!(self.descriptor.poll_read_ready(context))?;
            // The descriptor need not be read: setting the timer again resets it.
            fired.clear_ready();
            self.set = None;
            Poll::Ready(Ok(()))
        }
    }
}

#[cfg(test)]
mod tests {
    use core::future::poll_fn;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    async fn never_early(mut timer: TokioTimer) {
        for wait in [3 * MS, Duration::ZERO, Duration::from_nanos(1), 2 * MS] {
            let at = now().after(wait);
            poll_fn(|context| timer.poll_until(at, context)).await;
            assert!(now() >= at);
        }
        poll_fn(|context| timer.poll_until(BootInstant::ZERO, context)).await;
    }

    #[tokio::test]
    async fn a_timer_is_never_early() {
        never_early(TokioTimer::New).await;
        never_early(TokioTimer::Watching(None)).await;
    }

    #[tokio::test]
    async fn a_timer_may_be_set_again_before_it_fires() {
        for mut timer in [TokioTimer::New, TokioTimer::Watching(None)] {
            let begin = now();
            let (soon, late) = (begin.after(2 * MS), begin.after(Duration::from_secs(3_600)));
            for at in [late, soon, late] {
                let first = poll_fn(|context| Poll::Ready(timer.poll_until(at, context))).await;
                assert!(first.is_pending());
            }
            // At this instant the second setting would fire, had it not been replaced.
            let mut other = TokioTimer::New;
            poll_fn(|context| other.poll_until(soon, context)).await;
            let at = now().after(2 * MS);
            poll_fn(|context| timer.poll_until(at, context)).await;
            assert!(now() >= at);
        }
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[tokio::test]
    async fn the_kernel_keeps_the_time() {
        let mut timer = TokioTimer::New;
        let at = now().after(MS);
        poll_fn(|context| timer.poll_until(at, context)).await;
        assert!(matches!(timer, TokioTimer::Kernel(_)));
    }
}
