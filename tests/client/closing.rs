//! Closing a client, its health, and the content of its errors.

use redlock_client::{
    AcquireErrorKind, ExtendErrorKind, LostReason, NodeVerdict, Redlock, Severity, Standing,
};

use crate::acquiring;
use crate::node::Habit;
use crate::world::{MS, SECOND, World};

#[test]
fn closing_releases_leases_and_refuses_later_acquisitions() {
    let world = World::new();
    let redlock = world.client();
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    let mut waiting = acquiring(&redlock, "res");
    assert!(world.poll(&mut waiting).is_none());
    let closed = world.block_on(redlock.close(SECOND));
    assert!(closed.is_complete(), "{closed:?}");
    assert_eq!(world.holders("res"), 0);
    assert_eq!(lease.check(MS), Err(LostReason::Closed));
    assert_eq!(world.poll(&mut lease.lost()), Some(LostReason::Closed));
    let refused = world.poll(&mut waiting).expect("nothing to wait for").unwrap_err();
    assert_eq!(refused.kind(), AcquireErrorKind::Closed);
    let refused = world.block_on(redlock.acquire("other")).unwrap_err();
    assert_eq!(refused.kind(), AcquireErrorKind::Closed);
    drop(lease);
    world.settle();
    assert_eq!(world.tasks(), 0);
}

#[test]
fn closing_waits_within_its_limit_and_names_remaining_nodes() {
    let world = World::new();
    let redlock = world.client();
    let _lease = world.block_on(redlock.acquire("res")).unwrap();
    world.node("b", |node| node.habit = Habit::Hangs);
    let begun = world.now();
    let closed = world.block_on(redlock.close(300 * MS));
    assert_eq!(world.now() - begun, 300 * MS);
    let left: Vec<_> = closed.left().iter().map(|it| (it.place, it.node.as_str())).collect();
    assert_eq!(left, [(1, "redis://b:6379")]);
}

#[test]
fn health_reports_each_node_without_asking_it() {
    let world = World::new();
    let redlock = world.client();
    assert!(!redlock.health().has_quorum);
    world.node("c", |node| node.uptime_s = 1);
    world.node("d", |node| node.habit = Habit::Refuses);
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    world.settle();
    let health = redlock.health();
    assert!(health.has_quorum && !health.is_closed);
    let connected: Vec<_> = health.nodes.iter().map(|it| it.connected).collect();
    assert_eq!(connected, [true, true, true, false, true]);
    assert_eq!(health.nodes[0].standing, Standing::Counts);
    assert!(matches!(health.nodes[2].standing, Standing::Quarantined(left) if left > 9 * SECOND));
    assert_eq!(health.nodes[3].standing, Standing::NotKnown);
    drop(lease);
}

#[test]
fn health_distinguishes_past_problems_from_present_ones() {
    let world = World::new();
    let redlock = world.builder().nodes(["redis://a", "redis://b", "redis://me:x@c/2"]);
    let redlock = redlock.build().unwrap();
    let lines = || redlock.health().to_string().lines().map(String::from).collect::<Vec<_>>();
    assert_eq!(lines()[0], "no majority of the nodes is connected and can vote");
    assert_eq!(lines()[3], "  redis://c:6379/2: not connected");
    world.node("a", |node| node.habit = Habit::Says(b"-OOM too much\r\n".to_vec()));
    world.node("c", |node| node.habit = Habit::Refuses);
    world.block_on(redlock.try_acquire("res")).unwrap_err();
    world.pass(2 * SECOND);
    assert_eq!(redlock.health().nodes[0].last_error_age, Some(2 * SECOND));
    assert_eq!(lines()[0], "a majority of the nodes is connected and can vote");
    assert_eq!(
        lines()[1..],
        [
            "  redis://a:6379: connected, can vote, last error 2.0s ago: OOM too much",
            "  redis://b:6379: connected, can vote",
            "  redis://c:6379/2: away, last error 2.0s ago: connection refused",
        ]
    );
}

#[test]
fn inspection_first_says_that_no_lock_is_available_until_when() {
    let world = World::new();
    let first = |redlock: &Redlock| {
        let inspection = world.block_on(redlock.inspect());
        inspection.findings.first().map(|it| (it.severity, it.text.clone()))
    };
    let redlock = world.client();
    assert_eq!(first(&redlock), None, "nothing to object to");
    ["a", "b", "c"].iter().for_each(|it| world.node(it, |node| node.uptime_s = 1));
    let text = "no lock can be acquired: 2 of 5 nodes can vote, and a lock takes 3. A majority can vote in \
        9.1s if nothing else happens.";
    assert_eq!(first(&redlock), Some((Severity::Error, String::from(text))));
    world.block_on(redlock.try_acquire("res")).unwrap_err();
    world.pass(4 * SECOND);
    let text = text.replace("9.1s", "5.1s");
    assert_eq!(first(&redlock), Some((Severity::Error, text)), "the client has met them");
    world.pass(7 * SECOND);
    assert_eq!(first(&redlock), None);
    let hang =
        |habit: Habit| ["a", "b", "c"].map(|it| world.node(it, |node| node.habit = habit.clone()));
    hang(Habit::Hangs);
    let begun = world.now();
    let (_, text) = first(&redlock).unwrap();
    assert!(
        text.contains("2 of 5 nodes can vote, and a lock takes 3. This does not end by itself")
    );
    assert_eq!(world.now() - begun, 900 * MS, "the bound in the documentation");
    hang(Habit::Says(b"-NOPERM User has no key, nor permissions to run 'set'\r\n".to_vec()));
    let text = world.block_on(redlock.inspect()).to_string();
    assert!(
        text.contains("no lock can be acquired") && text.contains("redis://a:6379 refused SET"),
        "{text}"
    );
}

#[test]
fn an_error_shows_the_answer_of_each_node() {
    let world = World::new();
    world.node("a", |node| node.set("res", "somebody"));
    world.node("c", |node| node.habit = Habit::Says(b"-OOM too much\r\n".to_vec()));
    world.node("d", |node| node.habit = Habit::Refuses);
    let redlock = world.client();
    let error = world.block_on(redlock.try_acquire("res")).unwrap_err();
    assert_eq!(error.kind(), AcquireErrorKind::TooFewNodes);
    let verdicts: Vec<_> = error.nodes().iter().map(|it| it.verdict).collect();
    use NodeVerdict::{Error, NotAsked, Taken};
    assert_eq!([verdicts[0], verdicts[2], verdicts[3]], [Taken, Error, NotAsked]);
    let said = "too few nodes answered without an error: redis://a:6379 taken";
    assert!(error.to_string().starts_with(said), "{error}");
}

#[test]
fn an_error_in_place_of_the_holder_is_shown() {
    let world = World::new();
    let all = ["a", "b", "c", "d", "e"];
    for place in all {
        world.node(place, |node| {
            node.version = Some("7.0.15");
            node.habit = Habit::Says(b"-WRONGTYPE a list\r\n".to_vec());
        });
    }
    let redlock = world.client();
    let error = world.block_on(redlock.try_acquire("res")).unwrap_err();
    assert_eq!(error.kind(), AcquireErrorKind::TooFewNodes);
    let said = ":6379 taken, by a holder that it does not show (WRONGTYPE a list)";
    assert!(error.to_string().contains(said), "{error}");
    for place in all {
        world.node(place, |node| {
            node.habit = Habit::Answers;
            node.set("res", "somebody");
        });
    }
    let error = world.block_on(redlock.try_acquire("res")).unwrap_err();
    assert!(!error.to_string().contains("WRONGTYPE"), "{error}");
}

#[test]
fn quarantine_reports_its_end_and_a_long_wait_outlasts_it() {
    let world = World::new();
    world.each_node(|node| node.uptime_s = 1);
    let redlock = world.client();
    let error = world.block_on(redlock.try_acquire("res")).unwrap_err();
    assert_eq!(error.kind(), AcquireErrorKind::Quarantined);
    let left = error.retry_after().expect("it is known");
    assert!(left > 9 * SECOND && left < 10 * SECOND, "{left:?}");
    let error = world.block_on(redlock.acquire("res").wait(2 * SECOND)).unwrap_err();
    assert_eq!(error.kind(), AcquireErrorKind::Quarantined);
    let asked = world.node("a", |node| node.executed.len());
    assert!(world.block_on(redlock.acquire("res").wait(12 * SECOND)).is_ok());
    let asked = world.node("a", |node| node.executed.len()) - asked;
    assert!(asked <= 6, "{asked} commands: it asks once to block others, and once when it counts");
}

#[test]
fn a_closed_client_extends_nothing() {
    let world = World::new();
    let redlock = world.client();
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    world.pass(SECOND);
    assert!(world.block_on(redlock.close(SECOND)).is_complete());
    let error = world.block_on(lease.extend(10 * SECOND)).unwrap_err();
    assert_eq!(error.kind(), ExtendErrorKind::Lost(LostReason::Closed));
}

#[test]
fn closing_goes_on_when_the_runtime_that_served_it_has_ended() {
    let world = World::new();
    let redlock = world.client();
    let _lease = world.block_on(redlock.acquire("res")).unwrap();
    world.each_node(|node| node.habit = Habit::Hangs);
    let mut closing = Box::pin(redlock.close(5 * SECOND));
    assert!(world.poll(&mut closing).is_none());
    world.each_node(|node| node.habit = Habit::default());
    world.drop_tasks();
    // The connections of the ended runtime are gone: the releases owed on them are sent on new
    // connections.
    let closed = world.block_on(closing);
    assert!(closed.is_complete(), "{closed:?}");
    assert_eq!(world.holders("res"), 0);
}
