use core::task::{Context, Waker};
use core::time::Duration;
use std::sync::mpsc;
use std::thread;

use super::*;
use crate::driver::offline::{Clock, SECOND, driver_of, lock_config};
use crate::error::LostReason;

/// As in a child, where the thread that had locked the mutex at the fork does not exist.
#[test]
#[expect(clippy::disallowed_methods, reason = "the calls may wait for ever")]
fn a_child_waits_for_no_mutex_that_its_parent_had_locked() {
    let clock = Arc::new(Clock::default());
    clock.1.store(7, Ordering::Relaxed);
    let driver = Arc::new(driver_of("redis://a", &clock));
    driver.belong_here();
    let context = Context::from_waker(Waker::noop());
    let config = |now: BootInstant| lock_config(now.after(SECOND));
    let lock = driver.open_use(b"res", config, &context).unwrap();
    let (child, (report, reports)) = (Arc::clone(&driver), mpsc::channel());
    driver.turn(|_, _| {
        clock.1.store(8, Ordering::Relaxed);
        thread::spawn(move || {
            let context = Context::from_waker(Waker::noop());
            assert_eq!(child.check(lock, Duration::ZERO), Err(LostReason::Closed));
            assert!(child.poll_lost(lock, &mut None, &context).is_ready());
            assert!(child.poll_acquired(lock, &context).is_ready());
            assert!(child.poll_extended(lock, SECOND, &mut None, &context).is_ready());
            assert!(child.poll_release(lock, &context).is_ready());
            assert!(child.connect().is_err());
            child.abandon(lock);
            child.leave(lock);
            child.shut();
            child.close();
            report.send(child.health().is_closed).unwrap();
        });
        assert_eq!(reports.recv_timeout(10 * SECOND), Ok(true));
    });
}
