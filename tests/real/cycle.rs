//! A lease from its acquisition to its release.

use std::time::Duration;

use redlock_client::{AcquireErrorKind, LostReason, Released};

use crate::fleet::{Fleet, SOON, TTL};
use crate::wait::eventually;
use crate::{Test, on_tokio};

pub(crate) const TESTS: &[Test] = &[
    on_tokio!(a_lease_is_on_every_server_and_gone_after_the_release),
    on_tokio!(a_dropped_lease_and_a_dropped_client_leave_nothing),
    on_tokio!(two_clients_exclude_each_other),
    on_tokio!(a_waiter_gets_the_lock_when_it_is_released),
    on_tokio!(a_lease_ends_by_itself_and_its_keys_after_it),
    on_tokio!(a_name_may_have_any_bytes_but_not_none),
];

async fn a_lease_is_on_every_server_and_gone_after_the_release() {
    let fleet = Fleet::of(5);
    let redlock = fleet.client();
    let lease = redlock.acquire("res").await.unwrap();
    assert!(lease.remaining() <= TTL - Duration::from_millis(102), "1 % and 2 ms of drift");
    fleet.all_hold("res", &lease).await;
    assert_eq!(lease.release().await, Released::Confirmed);
    assert_eq!(fleet.keys(), [0; 5]);
}

async fn a_dropped_lease_and_a_dropped_client_leave_nothing() {
    let fleet = Fleet::of(5);
    let redlock = fleet.client();
    let lease = redlock.acquire("res").await.unwrap();
    drop(redlock);
    assert!(lease.is_valid(), "the lease keeps what it needs of the client");
    drop(lease);
    fleet.empties(SOON).await;
    for server in &*fleet {
        eventually("the connection is closed", SOON, || server.connections().is_empty()).await;
    }
}

async fn two_clients_exclude_each_other() {
    let fleet = Fleet::of(5);
    let (one, other) = (fleet.client(), fleet.client());
    let lease = one.acquire("res").await.unwrap();
    let refused = other.try_acquire("res").await.unwrap_err();
    assert_eq!(refused.kind(), AcquireErrorKind::Taken);
    let unrelated = other.try_acquire("another").await.unwrap();
    assert_eq!(lease.release().await, Released::Confirmed);
    let next = other.try_acquire("res").await.unwrap();
    assert_eq!(one.try_acquire("res").await.unwrap_err().kind(), AcquireErrorKind::Taken);
    next.release().await;
    unrelated.release().await;
    fleet.empties(SOON).await;
}

async fn a_waiter_gets_the_lock_when_it_is_released() {
    let fleet = Fleet::of(3);
    let (one, other) = (fleet.client(), fleet.client());
    let lease = one.acquire("res").await.unwrap();
    // A majority has granted the lease, but the last server could still take the other client's key
    // first.
    fleet.all_hold("res", &lease).await;
    let waiting = tokio::spawn(async move { other.acquire("res").wait(TTL / 2).await });
    let holder = lease.owner().as_bytes().to_vec();
    for server in &*fleet {
        eventually("the other one has tried", SOON, || server.calls("set") > 1).await;
        assert_eq!(server.ask::<Vec<u8>>("GET res"), holder);
    }
    lease.release().await;
    let lease = waiting.await.unwrap().unwrap();
    assert_ne!(lease.owner().as_bytes()[..], holder);
    lease.release().await;
    fleet.empties(SOON).await;
}

async fn a_lease_ends_by_itself_and_its_keys_after_it() {
    let fleet = Fleet::of(3);
    let ttl = Duration::from_secs(2);
    let redlock = fleet.builder().node_timeout(ttl / 8).build().unwrap();
    let lease = redlock.acquire("res").ttl(ttl).await.unwrap();
    fleet.all_hold("res", &lease).await;
    for server in &*fleet {
        let left = Duration::from_millis(server.ask("PTTL res"));
        // PTTL was sent before `remaining` was read. If the key has less time left than the lease
        // plus the drift of 1 % and 2 ms, the key expires too early. The server rounds to
        // milliseconds.
        let needed = lease.remaining() + ttl / 100 + Duration::from_millis(2);
        assert!(left + Duration::from_millis(1) >= needed, "{left:?} < {needed:?}");
    }
    assert_eq!(lease.lost().await, LostReason::DeadlinePassed);
    assert_eq!(lease.check(Duration::ZERO), Err(LostReason::DeadlinePassed));
    assert_eq!(lease.remaining(), Duration::ZERO);
    fleet.empties(ttl).await;
    assert_eq!(lease.release().await, Released::AlreadyExpired);
}

async fn a_name_may_have_any_bytes_but_not_none() {
    let fleet = Fleet::of(3);
    let redlock = fleet.client();
    let every_byte: Vec<u8> = (0..=255).collect();
    let longest = vec![b'x'; redlock_client::RESOURCE_BYTES_MAX];
    let refused = redlock.acquire("").await.unwrap_err();
    assert_eq!(refused.kind(), AcquireErrorKind::Invalid);
    for name in [&b"*1\r\n$4\r\nQUIT\r\n"[..], &every_byte, &longest] {
        let lease = redlock.acquire(name).await.unwrap();
        eventually("the first server has the key", SOON, || {
            fleet[0].ask::<Vec<Vec<u8>>>("KEYS *").iter().any(|it| it == name)
        })
        .await;
        assert_eq!(lease.release().await, Released::Confirmed);
    }
    assert_eq!(fleet.keys(), [0; 3]);
}
