//! The feature `testing`: nodes in memory for the tests of others. No test here waits.

mod closing;
mod crowds;
mod faults;
mod losing;
mod many;
mod time;

use std::time::Duration;

use redlock_client::testing::Nodes;
use redlock_client::{AcquireErrorKind, Redlock, RestartGuard};
use tokio::time::Instant;

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const MS: Duration = Duration::from_millis(1);
/// TTL and longest TTL of the clients.
pub(crate) const TTL: Duration = Duration::from_secs(10);
pub(crate) const FLEET_MAX_TTL: Duration = Duration::from_secs(30);

/// Returns the kind of failure of an attempt to acquire `resource`.
pub(crate) async fn refusal(redlock: &Redlock, resource: &str) -> AcquireErrorKind {
    redlock.try_acquire(resource).await.expect_err("the lock is not acquired").kind()
}

#[tokio::test(start_paused = true)]
async fn new_nodes_grant_a_lock_at_once() {
    for count in [1, 3, 5, 9] {
        let (nodes, begun) = (Nodes::new(count), Instant::now());
        let lease = nodes.client().try_acquire("res").await.unwrap();
        assert_eq!(begun.elapsed(), Duration::ZERO, "{count} nodes");
        assert!(nodes.copies("res") > count / 2, "{count} nodes");
        lease.release().await;
        assert_eq!(nodes.copies("res"), 0, "{count} nodes");
    }
}

#[tokio::test(start_paused = true)]
async fn longest_quarantine_is_over_on_new_nodes() {
    let ten_years = 10 * 365 * 86_400 * SECOND;
    let redlock = Nodes::new(3).builder().fleet_max_ttl(ten_years).build().unwrap();
    assert!(redlock.try_acquire("res").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn clients_of_the_same_nodes_exclude_each_other() {
    let nodes = Nodes::new(3);
    let (one, other) = (nodes.client(), nodes.clone().client());
    let lease = one.acquire("res").await.unwrap();
    assert_eq!(refusal(&other, "res").await, AcquireErrorKind::Taken);
    let holding = async {
        nodes.advance(SECOND).await;
        lease.release().await;
    };
    let begun = Instant::now();
    let (second, ()) = tokio::join!(other.acquire("res"), holding);
    assert!(second.is_ok());
    assert!((SECOND..2 * SECOND).contains(&begun.elapsed()), "woken, not expired");
}

#[tokio::test(start_paused = true)]
async fn key_that_is_left_expires() {
    let nodes = Nodes::new(3);
    nodes.client().acquire("res").await.unwrap().leave_until_expiry();
    nodes.advance(TTL - SECOND).await;
    assert_eq!(nodes.copies("res"), 3);
    nodes.advance(2 * SECOND).await;
    assert_eq!(nodes.copies("res"), 0);
}

#[tokio::test(start_paused = true)]
async fn redirected_builder_keeps_its_settings() {
    let nodes = Nodes::new(1);
    let application = Redlock::builder()
        .nodes(["redis://lock-1.internal", "redis://lock-2.internal"])
        .ttl(2 * SECOND)
        .fleet_max_ttl(5 * SECOND)
        .restart_guard(RestartGuard::Durable)
        .background_thread();
    let redlock = nodes.redirect(application).build().unwrap();
    let lease = redlock.acquire("res").await.unwrap();
    assert!(lease.remaining() < 2 * SECOND);
    assert_eq!(redlock.health().nodes.len(), 1);
    lease.release().await;
    nodes.stop(0);
    nodes.start(0);
    nodes.advance(SECOND).await;
    assert!(redlock.acquire("res").await.is_ok(), "the promise stays, too");
}

#[tokio::test(start_paused = true)]
async fn inspection_finds_nothing_to_mend_on_three_nodes() {
    let inspection = Nodes::new(3).client().inspect().await;
    assert!(inspection.to_string().contains("redis 7.0.15"), "{inspection}");
}

#[test]
#[should_panic(expected = "no node at place 3: the last one is at 2")]
fn place_without_a_node_is_refused() {
    Nodes::new(3).stop(3);
}

#[test]
#[should_panic(expected = "10 nodes: a client has 1 to 9 nodes")]
fn number_of_nodes_without_a_client_is_refused() {
    let _ = Nodes::new(10);
}
