//! The client against real `redis-server` processes.
//!
//! Every test starts its own servers. Without `redis-server` on PATH the tests are ignored, and say
//! so; with `REDLOCK_REQUIRE_REDIS=1` that is a failure. With `CI=true` the long tests take their
//! full time.
//!
//! `REDLOCK_REDIS_SERVER` names another program to use instead of `redis-server`. With
//! `REDLOCK_REDIS_SERVER="$PWD/target/debug/redlock-sim master"` the same tests run against
//! simulated masters; the tests in [`BEYOND_MASTERS`] are then ignored.

#![expect(clippy::disallowed_methods, reason = "the real world is what is tested here")]
#![expect(clippy::disallowed_types, reason = "the real world is what is tested here")]

mod access;
mod cancellation;
mod comparing;
mod contention;
mod cycle;
mod dropping;
mod examples;
mod extension;
mod fleet;
mod hanging;
mod inspection;
mod interlock;
mod many;
mod memory;
mod outage;
mod proxy;
mod refusals;
mod scheduling;
mod server;
mod soak;
mod switch;
mod taken;
#[cfg(feature = "tls")]
mod tls;
mod wait;
mod waiting;
mod watching;
mod wire;
mod wreck;

use std::future::Future;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use tokio::runtime::Builder;

/// A test of this target.
#[derive(Clone, Copy)]
struct Test {
    name: &'static str,
    run: fn(),
    /// True if no other test may run at the same time, because the test loads the machine or
    /// measures its load.
    alone: bool,
}

impl Test {
    const fn alone(self) -> Self {
        Self { alone: true, ..self }
    }

    fn run(self) {
        static MACHINE: RwLock<()> = RwLock::new(());
        if self.alone {
            let _alone = MACHINE.write().unwrap_or_else(PoisonError::into_inner);
            (self.run)();
        } else {
            let _together = MACHINE.read().unwrap_or_else(PoisonError::into_inner);
            (self.run)();
        }
    }
}

/// Number of tests that run at the same time. Most of them wait most of the time.
const TOGETHER: usize = 4;

/// Time after which a test counts as hanging.
const LIMIT: Duration = Duration::from_secs(150);

/// Builds a [`Test`] from a test function and the code that runs it.
macro_rules! test {
    ($test:ident, $run:expr) => {
        crate::Test {
            name: concat!(module_path!(), "::", stringify!($test)),
            run: $run,
            alone: false,
        }
    };
}

/// An `async` test, on its own runtime.
macro_rules! on_tokio {
    ($test:ident) => {
        crate::test!($test, || crate::run(crate::many_threads(), $test()))
    };
}

/// An `async` test, on a runtime of one thread that polls its sockets after every poll of a task.
macro_rules! on_one_thread {
    ($test:ident) => {
        crate::test!($test, || crate::run(crate::one_thread(), $test()))
    };
}

/// A test that has its own runtimes, or none.
macro_rules! on_threads {
    ($test:ident) => {
        crate::test!($test, $test)
    };
}
use {on_one_thread, on_threads, on_tokio, test};

const TESTS: &[&[Test]] = &[
    access::TESTS,
    cancellation::TESTS,
    comparing::TESTS,
    contention::TESTS,
    cycle::TESTS,
    dropping::TESTS,
    examples::TESTS,
    extension::TESTS,
    hanging::TESTS,
    interlock::TESTS,
    inspection::TESTS,
    many::TESTS,
    memory::TESTS,
    outage::TESTS,
    refusals::TESTS,
    scheduling::TESTS,
    soak::TESTS,
    taken::TESTS,
    #[cfg(feature = "tls")]
    tls::TESTS,
    waiting::TESTS,
    watching::TESTS,
    wire::TESTS,
];

const MISSING: &str = "no `redis-server` on PATH";

/// Tests that need something a simulated master lacks, with the reason.
const BEYOND_MASTERS: &[(&str, &str)] = &[
    ("inspection::masters_with_replicas_are_found", "a simulated master follows no other"),
    ("inspection::settings_that_make_keys_vanish_are_found", "a simulated master follows no other"),
    ("memory::a_demoted_and_promoted_server_admits_no_second_client", "it follows no other"),
    ("memory::a_client_that_starts_after_a_failover_is_not_let_in", "it follows no other"),
    ("memory::durable_servers_are_upgraded_without_a_quarantine", "it stores nothing on disk"),
    ("memory::events_without_a_loss_cost_nothing", "it follows no other"),
    ("refusals::a_server_that_becomes_a_replica_votes_no_more", "it follows no other"),
    ("taken::a_holder_of_another_library_is_a_holder", "it has no lists"),
    ("watching::keys_that_are_evicted_end_the_lease", "it evicts nothing"),
    ("watching::servers_that_are_demoted_end_the_lease", "it follows no other"),
];

/// Returns why `test` does not apply to servers of this version; `None` if it does.
fn beyond(test: &str, version: &str) -> Option<&'static str> {
    match server::deletes_if_equal(version) {
        None if test.starts_with("comparing::") => {
            return Some("it compares by script alone: Redis before 8.4, Valkey before 9.0");
        }
        Some(_) if test == "refusals::scripts_may_be_flushed_at_any_time" => {
            return Some("it compares by itself: it is sent no scripts");
        }
        _ => {}
    }
    let asks = |(name, _): &&(&str, &str)| test == *name && server::is_simulated();
    BEYOND_MASTERS.iter().find(asks).map(|(_, why)| *why)
}

fn main() {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(TOGETHER);
    let version: Option<&str> = server::version().map(|version| &*version.leak());
    let required = std::env::var_os("REDLOCK_REQUIRE_REDIS").is_some_and(|value| value == "1");
    let trials = TESTS.concat().into_iter().map(|test| {
        let name = test.name.trim_start_matches("real::");
        Trial::ignorable_test(name, move || match version {
            None if required => Err(Failed::from(MISSING)),
            None => Ok(Completion::ignored_with(MISSING)),
            Some(version) => Ok(match beyond(name, version) {
                Some(why) => Completion::ignored_with(why),
                None => {
                    test.run();
                    Completion::Completed
                }
            }),
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit();
}

fn many_threads() -> Builder {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(2);
    builder
}

fn one_thread() -> Builder {
    let mut builder = Builder::new_current_thread();
    builder.event_interval(1);
    builder
}

fn run(mut runtime: Builder, test: impl Future<Output = ()>) {
    let runtime = runtime.enable_all().build().expect("a runtime");
    runtime.block_on(async {
        tokio::time::timeout(LIMIT, test).await.expect("the test hangs");
    });
}

/// Returns true if the long tests take their full time.
fn is_thorough() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true")
}
