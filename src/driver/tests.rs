use core::time::Duration;
use std::sync::mpsc;
use std::thread;

use super::offline::{Clock, driver_of};
use super::*;

#[test]
#[expect(clippy::disallowed_methods, reason = "two threads wait for one mutex")]
fn a_destructor_that_waits_for_a_turn_that_panics_does_nothing() {
    let driver = Arc::new(driver_of("redis://a", &Arc::new(Clock::default())));
    let (began, begins) = mpsc::channel();
    let panics = {
        let driver = Arc::clone(&driver);
        thread::spawn(move || {
            driver.turn(|_, _| {
                began.send(()).unwrap();
                // Time for the destructor to wait for the machines.
                thread::sleep(Duration::from_millis(100));
                panic!("a machine panics");
            })
        })
    };
    begins.recv().unwrap();
    driver.last_turn(|_, _| unreachable!("the machines are unreliable"));
    assert!(panics.join().is_err());
}
