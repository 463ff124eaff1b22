//! Faults of the nodes, as a client sees them.

use redlock_client::testing::Nodes;
use redlock_client::{AcquireErrorKind, KeepAlive, LostReason, Released, RestartGuard};
use tokio::time::Instant;

use crate::{FLEET_MAX_TTL, MS, SECOND, TTL, refusal};

#[tokio::test(start_paused = true)]
async fn stopped_minority_is_not_missed_and_a_majority_is() {
    let nodes = Nodes::new(3);
    let redlock = nodes.client();
    nodes.stop(2);
    redlock.acquire("res").await.unwrap().release().await;
    nodes.stop(1);
    assert_eq!(refusal(&redlock, "res").await, AcquireErrorKind::TooFewNodes);
}

#[tokio::test(start_paused = true)]
async fn lease_that_cannot_be_extended_ends() {
    let faults: [fn(&Nodes, usize); 2] = [|nodes, at| nodes.stop(at), |nodes, at| nodes.hang(at)];
    for fault in faults {
        let nodes = Nodes::new(3);
        let redlock = nodes.client();
        let keep_alive = KeepAlive::at_most(60 * SECOND);
        let lease = redlock.acquire("res").keep_alive(keep_alive).await.unwrap();
        nodes.advance(SECOND).await;
        [0, 1].into_iter().for_each(|place| fault(&nodes, place));
        assert_eq!(lease.lost().await, LostReason::KeepAliveFailed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_started_node_has_its_keys_and_is_quarantined() {
    let promises = [
        (RestartGuard::Quarantine, Err(AcquireErrorKind::Quarantined)),
        (RestartGuard::Durable, Ok(())),
    ];
    for (promise, expected) in promises {
        let nodes = Nodes::new(1);
        let redlock = nodes.builder().restart_guard(promise).build().unwrap();
        redlock.acquire("left").await.unwrap().leave_until_expiry();
        nodes.stop(0);
        nodes.start(0);
        assert_eq!(nodes.copies("left"), 1);
        nodes.advance(SECOND).await;
        let acquired = redlock.try_acquire("res").await;
        assert_eq!(acquired.map(drop).map_err(|it| it.kind()), expected, "{promise:?}");
        nodes.advance(FLEET_MAX_TTL + SECOND).await;
        assert!(redlock.try_acquire("res").await.is_ok(), "{promise:?}: it is over");
    }
}

#[tokio::test(start_paused = true)]
async fn hanging_node_executes_later_what_it_was_sent() {
    let nodes = Nodes::new(1);
    let redlock = nodes.client();
    let lease = redlock.acquire("res").await.unwrap();
    nodes.hang(0);
    assert!(matches!(lease.release().await, Released::Unconfirmed(_)));
    assert_eq!(nodes.copies("res"), 1);
    nodes.start(0);
    nodes.advance(MS).await;
    assert_eq!(nodes.copies("res"), 0);
}

#[tokio::test(start_paused = true)]
async fn lease_whose_keys_are_forgotten_by_a_majority_is_lost() {
    let nodes = Nodes::new(3);
    let redlock = nodes.client();
    let lease = redlock.acquire("res").await.unwrap();
    nodes.advance(SECOND).await;
    nodes.forget(0);
    nodes.advance(MS).await;
    assert!(lease.is_valid());
    nodes.forget(1);
    nodes.advance(MS).await;
    assert_eq!(lease.check(SECOND), Err(LostReason::KeysGone));
    assert_eq!(nodes.copies("res"), 1);
    assert_eq!(refusal(&redlock, "other").await, AcquireErrorKind::Quarantined);
}

#[tokio::test(start_paused = true)]
async fn stopped_node_can_forget() {
    let nodes = Nodes::new(1);
    nodes.client().acquire("res").await.unwrap().leave_until_expiry();
    nodes.stop(0);
    nodes.forget(0);
    nodes.start(0);
    assert_eq!(nodes.copies("res"), 0);
}

#[tokio::test(start_paused = true)]
async fn delay_of_a_majority_is_that_of_an_acquisition() {
    let nodes = Nodes::new(3);
    let redlock = nodes.client();
    redlock.ready(SECOND).await.unwrap();
    [0, 1].into_iter().for_each(|place| nodes.delay(place, 20 * MS));
    let begun = Instant::now();
    let lease = redlock.acquire("res").await.unwrap();
    assert_eq!(begun.elapsed(), 20 * MS);
    assert_eq!(lease.remaining(), TTL - 122 * MS);
    lease.release().await;
    [0, 1].into_iter().for_each(|place| nodes.delay(place, 200 * MS));
    assert_eq!(refusal(&redlock, "res").await, AcquireErrorKind::TooFewNodes);
}
