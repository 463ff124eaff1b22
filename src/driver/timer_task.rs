//! The task that wakes the machines when something is due: one timer for the whole client.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::sync::Arc;

use super::Driver;
use crate::environment::Timer;
use crate::protocol::BootInstant;

/// Waits for whatever instant the machines name. It runs apart from the application's tasks, so that
/// none of these stands between a lease and its end.
pub(crate) struct TimerTask {
    driver: Arc<Driver>,
    timer: Box<dyn Timer>,
    /// What the timer is set for. It may be earlier than what the machines wait for by now: a look
    /// in vain costs less than setting it again with every command.
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
