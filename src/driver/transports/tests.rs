//! Connections without a network.

use core::task::Waker;
use core::time::Duration;
use std::io;
use std::sync::Mutex;

use super::*;
use crate::environment::{BoxFuture, Endpoint, Environment, Stream, Timer};
use crate::observe::Observers;
use redlock_protocol::{Drift, LinkConfig, RestartGuard, Window};

/// A clock that the test moves; no connection opens, and no task runs.
#[derive(Default)]
struct Clock(Mutex<Duration>);

impl Environment for Clock {
    fn connect<'a>(&'a self, _: &'a Endpoint) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
        Box::pin(core::future::pending())
    }

    fn now(&self) -> BootInstant {
        BootInstant::ZERO.after(*self.0.lock().unwrap())
    }

    fn timer(&self) -> Box<dyn Timer> {
        unreachable!("no task runs")
    }

    fn can_spawn(&self) -> io::Result<()> {
        Ok(())
    }

    fn spawn(&self, _: BoxFuture<'static, ()>) {}

    fn spawn_apart(&self, _: BoxFuture<'static, ()>) {}

    fn fill_random(&self, _: &mut [u8]) -> io::Result<()> {
        Ok(())
    }
}

const SECOND: Duration = Duration::from_secs(1);

/// A client of one node with a connect timeout of a second.
fn driver_of(url: &str, clock: &Arc<Clock>) -> Driver {
    let link = LinkConfig {
        node_timeout: SECOND / 20,
        connect_timeout: SECOND,
        restart_guard: RestartGuard::Quarantine,
        fleet_max_ttl: 10 * SECOND,
        drift: Drift::default(),
        introduction_max_age: SECOND,
        window: Window::default(),
    };
    let endpoints = vec![url.parse().unwrap()];
    let observers = Observers::new(Vec::new(), &endpoints);
    let environment = Arc::clone(clock) as Arc<dyn Environment>;
    Driver::new(environment, observers, endpoints, Box::from(*b"canary"), &[link])
}

#[test]
fn a_dial_that_takes_too_long_names_what_may_be_slow() {
    let error_of = |url| {
        let clock = Arc::new(Clock::default());
        let driver = driver_of(url, &clock);
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
