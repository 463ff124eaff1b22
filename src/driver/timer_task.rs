//! The timer task: wakes the machines when a timeout is due. One timer serves the whole client.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::sync::Arc;

use redlock_protocol::BootInstant;

use super::Driver;
use crate::environment::Timer;

/// Waits for the next timeout of the machines. It runs apart from the application's tasks, so that
/// none of them can delay the end of a lease.
pub(crate) struct TimerTask {
    driver: Arc<Driver>,
    timer: Box<dyn Timer>,
    /// Instant that the timer is set for. It may be earlier than the machines' next timeout: a
    /// needless wake-up costs less than setting the timer again with every command.
    armed: Option<BootInstant>,
}

impl TimerTask {
    pub(crate) fn new(driver: Arc<Driver>) -> Self {
        let timer = driver.environment().timer();
        Self { driver, timer, armed: None }
    }
}

impl Future for TimerTask {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let task = self.get_mut();
        loop {
            let Some(next) = task.driver.tick(task.armed, context) else {
                return Poll::Ready(());
            };
            task.armed = next;
            let Some(at) = next else {
                return Poll::Pending;
            };
            core::task::ready!(task.timer.poll_until(at, context));
            task.armed = None;
        }
    }
}

impl Drop for TimerTask {
    fn drop(&mut self) {
        self.driver.timer_task_ended();
    }
}
