//! The command against real `redis-server` processes, or simulated masters: see `tests/real` of the
//! client. Without `redis-server` on PATH the tests are ignored.

#![expect(clippy::disallowed_methods, reason = "the real world is what is tested here")]
#![expect(clippy::disallowed_types, reason = "the real world is what is tested here")]

mod ending;
mod fleet;
mod holder;
mod outcome;
#[path = "../../tests/real/server.rs"]
#[expect(dead_code, reason = "shared with the client's tests, which use all of it")]
mod server;
mod terminal;
#[cfg(feature = "tls")]
mod tls;
#[path = "../../tests/real/wait.rs"]
#[expect(dead_code, reason = "shared with the client's tests, which use all of it")]
mod wait;

use libtest_mimic::{Arguments, Completion, Failed, Trial};

/// Name and code of a test.
type Test = (&'static str, fn());

const TESTS: &[&[Test]] = &[
    ending::TESTS,
    holder::TESTS,
    outcome::TESTS,
    terminal::TESTS,
    #[cfg(feature = "tls")]
    tls::TESTS,
];

/// Number of tests that run at the same time. Most of them wait most of the time.
const TOGETHER: usize = 4;

const MISSING: &str = "no `redis-server` on PATH";

fn main() {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(TOGETHER);
    let is_there = server::version().is_some();
    let is_required = std::env::var_os("REDLOCK_REQUIRE_REDIS").is_some_and(|value| value == "1");
    let trials = TESTS.concat().into_iter().map(|(name, test)| {
        Trial::ignorable_test(name, move || match (is_there, is_required) {
            (false, true) => Err(Failed::from(MISSING)),
            (false, false) => Ok(Completion::ignored_with(MISSING)),
            (true, _) => {
                test();
                Ok(Completion::Completed)
            }
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit();
}
