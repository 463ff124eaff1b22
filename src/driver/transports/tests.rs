//! Connections without a network.

use core::task::Waker;

use super::*;
use crate::driver::offline::{Clock, SECOND, driver_of};

#[test]
fn a_dial_that_takes_too_long_names_what_may_be_slow() {
    let error_of = |url| {
        let clock = Arc::new(Clock::default());
        let driver = Arc::new(driver_of(url, &clock));
        driver.turn(|state, now| state.machine.connect(now));
        *clock.0.lock().unwrap() += SECOND;
        driver.turn(|state, now| state.machine.handle_timeout(now));
        driver.health().nodes[0].last_error.clone().expect("the dial has failed")
    };
    assert_eq!(&*error_of("redis://a"), NO_CONNECTION);
    #[cfg(feature = "tls")]
    assert!(error_of("rediss://a").contains("the URL demands TLS"));
}

#[test]
fn the_late_end_of_an_old_connection_leaves_the_new_one() {
    let clock = Arc::new(Clock::default());
    let driver = driver_of("redis://a", &clock);
    let node = NodeIndex::new(0);
    let context = Context::from_waker(Waker::noop());
    driver.turn(|state, now| state.machine.connect(now));
    let old = driver.orders(node, None, None, &context).epoch.expect("dialled");
    driver.closed(node, old, Arc::from("refused"));
    *clock.0.lock().unwrap() += SECOND;
    driver.turn(|state, now| state.machine.handle_timeout(now));
    let new = driver.orders(node, None, None, &context).epoch.expect("dialled again");
    driver.connected(node, new, false);
    driver.closed(node, old, Arc::from("late"));
    assert_eq!(driver.orders(node, None, None, &context).epoch, Some(new));
}
