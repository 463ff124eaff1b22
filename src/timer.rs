//! The task that wakes the machines when something is due: one timer for the whole client.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::sync::Arc;

use crate::driver::Driver;
use crate::environment::BoxFuture;
use crate::protocol::BootInstant;

/// Waits for whatever instant the machines name.
pub(crate) struct TimerTask {
    driver: Arc<Driver>,
    sleep: Option<(BootInstant, BoxFuture<'static, ()>)>,
}

impl TimerTask {
    pub(crate) fn new(driver: Arc<Driver>) -> Self {
        Self { driver, sleep: None }
    }
}

impl Future for TimerTask {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let task = self.get_mut();
        loop {
            let Some(next) = task.driver.tick(context) else {
                return Poll::Ready(());
            };
            if task.sleep.as_ref().map(|(at, _)| *at) != next {
                let environment = task.driver.environment();
                task.sleep = next.map(|at| (at, environment.sleep_until(at)));
            }
            let Some((_, sleep)) = &mut task.sleep else {
                return Poll::Pending;
            };
            core::task::ready!(sleep.as_mut().poll(context));
            task.sleep = None;
        }
    }
}

impl Drop for TimerTask {
    fn drop(&mut self) {
        self.driver.timer_task_ended();
    }
}
