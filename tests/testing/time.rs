//! The clock: tokio's, and never the system's while it is paused.

use std::time::Duration;

use redlock_client::testing::Nodes;
use redlock_client::{KeepAlive, LostReason};
use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;

use crate::{MS, SECOND, TTL};

#[tokio::test(start_paused = true)]
async fn lease_ends_at_its_deadline_when_time_passes() {
    let nodes = Nodes::new(3);
    let lease = nodes.client().acquire("res").await.unwrap();
    nodes.advance(TTL - SECOND).await;
    assert!(lease.is_valid());
    nodes.advance(SECOND).await;
    assert_eq!(lease.check(Duration::ZERO), Err(LostReason::DeadlinePassed));
}

#[tokio::test(start_paused = true)]
async fn time_passes_by_itself_while_all_wait() {
    let nodes = Nodes::new(3);
    let (lease, begun) = (nodes.client().acquire("res").await.unwrap(), Instant::now());
    assert_eq!(lease.lost().await, LostReason::DeadlinePassed);
    assert!((TTL - 200 * MS..TTL).contains(&begun.elapsed()));
}

#[tokio::test(start_paused = true)]
async fn lease_is_kept_alive_up_to_its_limit() {
    let nodes = Nodes::new(5);
    let redlock = nodes.client();
    let keep_alive = KeepAlive::at_most(60 * SECOND);
    let lease = redlock.acquire("res").keep_alive(keep_alive).await.unwrap();
    nodes.advance(55 * SECOND).await;
    assert!(lease.is_valid());
    assert_eq!(lease.lost().await, LostReason::KeepAliveEnded);
}

#[tokio::test(start_paused = true)]
async fn advance_lets_exactly_that_time_pass() {
    let (nodes, begun) = (Nodes::new(1), Instant::now());
    nodes.advance(1_500 * MS).await;
    assert_eq!(begun.elapsed(), 1_500 * MS);
}

#[tokio::test]
#[should_panic(expected = "time is not frozen")]
async fn advance_refuses_to_wait_in_real_time() {
    Nodes::new(1).advance(Duration::MAX).await;
}

fn paused_runtime() -> Runtime {
    Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

/// Returns the tokens of two leases on new nodes.
fn tokens() -> [String; 2] {
    paused_runtime().block_on(async {
        let redlock = Nodes::new(3).client();
        let one = redlock.acquire("one").await.unwrap();
        let other = redlock.acquire("other").await.unwrap();
        [&one, &other].map(|lease| format!("{:?}", lease.owner().as_bytes()))
    })
}

#[test]
fn runs_are_equal_and_tokens_are_not() {
    let [one, other] = tokens();
    assert_ne!(one, other);
    assert_eq!(tokens(), [one, other]);
}

#[test]
fn clock_stands_still_when_its_runtime_has_ended() {
    // The system's clock is ahead of the paused one in the first case, and behind it in the second.
    for passed in [Duration::ZERO, 1_000 * SECOND] {
        let (runtime, nodes) = (paused_runtime(), Nodes::new(3));
        let lease = runtime.block_on(async {
            let redlock = nodes.client();
            nodes.advance(passed).await;
            redlock.acquire("res").await.unwrap()
        });
        let left = lease.remaining();
        drop(runtime);
        assert_eq!(lease.remaining(), left);
        let later = paused_runtime().block_on(async { lease.remaining() });
        assert!(later <= left, "the clock of another runtime does not set it back");
        drop(lease);
        assert_eq!(nodes.copies("res"), 3, "nobody is left to send the releases");
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_lives_through_the_last_millisecond_of_its_ttl() {
    let nodes = Nodes::new(1);
    let redlock = nodes.builder().ttl(SECOND).build().unwrap();
    redlock.acquire("res").await.unwrap().leave_until_expiry();
    nodes.advance(SECOND).await;
    assert_eq!(nodes.copies("res"), 1);
    nodes.advance(MS).await;
    assert_eq!(nodes.copies("res"), 0);
}
