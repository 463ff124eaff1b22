//! Checks that user information and queries of URLs appear in no output.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use redlock_client::environment::Endpoint;
use redlock_client::observe::{Event, Observer};
use redlock_client::{BuildError, Redlock};
use tracing::Level;

use crate::logs::logged_in;
use crate::node::Habit;
use crate::world::{SECOND, TTL, World};

/// Observer that records every event.
#[derive(Default)]
struct Tape(Mutex<String>);

impl Observer for Tape {
    fn event(&self, event: &Event<'_>) {
        self.0.lock().unwrap().push_str(&format!("{event:?}\n"));
    }
}

/// A word that appears nowhere by chance.
fn word() -> impl Strategy<Value = String> {
    "[A-Z]{8}"
}

/// Two words with arbitrary characters between them, which people may forget to escape, and the
/// list of the two words.
fn careless() -> impl Strategy<Value = (String, Vec<String>)> {
    (word(), "[ -~]{0,3}", word())
        .prop_map(|(one, between, other)| (format!("{one}{between}{other}"), vec![one, other]))
}

/// A URL, and the words that must not be shown.
fn url() -> impl Strategy<Value = (String, Vec<String>)> {
    let scheme = prop::sample::select(vec!["redis://", "rediss://", "unix://", "http://"]);
    let host = prop::sample::select(vec!["host", "host:7000", "host:x", "[::1]", "", "a b"]);
    let path = prop::sample::select(vec!["", "/", "/3", "/run/redis.sock"]);
    let user_info = prop::option::of((careless(), careless()));
    (scheme, user_info, host, path, prop::option::of(careless())).prop_map(
        |(scheme, user_info, host, path, query)| {
            let (mut url, mut secrets) = (String::from(scheme), Vec::new());
            if let Some(((user, one), (password, other))) = user_info {
                url.extend([&user, ":", &password, "@"]);
                secrets.extend([one, other].concat());
            }
            url.extend([host, path]);
            if let Some((query, words)) = query {
                url.extend(["?password=", &query]);
                secrets.extend(words);
            }
            (url, secrets)
        },
    )
}

fn shown(value: &(impl Debug + ToString)) -> String {
    format!("{} {value:?}", value.to_string())
}

proptest! {
    #[test]
    fn nothing_secret_of_a_url_is_shown_when_it_is_read((url, secrets) in url()) {
        let read: Result<Endpoint, BuildError> = url.parse();
        let read = read.as_ref().map_or_else(shown, shown);
        let builder = Redlock::builder().nodes([&url, &url]).ttl(TTL).fleet_max_ttl(TTL);
        let built = builder.build().map_or_else(|error| shown(&error), |it| format!("{it:?}"));
        for secret in secrets {
            prop_assert!(!read.contains(&secret), "{url}: {read}");
            prop_assert!(!built.contains(&secret), "{url}: {built}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn nothing_secret_of_a_url_is_shown_by_a_client(user in word(), password in word()) {
        let tape = Arc::new(Tape::default());
        let mut told = String::new();
        let log = logged_in(Level::TRACE, |world| told = troubles(world, &user, &password, &tape));
        prop_assert!(log.contains("NOPERM User …") && told.contains("NOPERM User …"), "{}", told);
        let all = format!("{log}{told}{}", tape.0.lock().unwrap());
        for secret in [&user, &password] {
            prop_assert!(!all.contains(secret), "{all}");
        }
    }
}

/// Returns all the output of a client whose nodes repeat its user and password in every way they
/// can.
fn troubles(world: &World, user: &str, password: &str, tape: &Arc<Tape>) -> String {
    let refusal = format!("-NOPERM User {user} has no permissions, nor has '{password}'\r\n");
    world.node("a", |node| node.habit = Habit::Forbids(refusal.clone().into_bytes()));
    world.node("b", |node| node.habit = Habit::Says(refusal.into_bytes()));
    world.node("c", |node| node.habit = Habit::Refuses);
    let nodes = ["a", "b", "c"].map(|it| format!("redis://{user}:{password}@{it}/3"));
    let observer = Arc::clone(tape) as Arc<dyn Observer>;
    let redlock = world.builder().nodes(nodes).observer(observer).build().unwrap();
    let refused = world.block_on(redlock.acquire("res").wait(SECOND)).unwrap_err();
    let (health, inspection) = (redlock.health(), world.block_on(redlock.inspect()));
    let closed = world.block_on(redlock.close(SECOND));
    [shown(&refused), shown(&health), shown(&inspection), format!("{closed:?} {redlock:?}")]
        .concat()
}
