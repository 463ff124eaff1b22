//! Our client and rslock exclude each other: same key, same form of value, same release.

use std::time::Duration;

use redlock_client::{AcquireErrorKind, Released};
use rslock::{LockError, LockManager};

use crate::fleet::{Fleet, SOON, TTL};
use crate::wait::eventually;
use crate::{Test, on_tokio};

pub(crate) const TESTS: &[Test] = &[
    on_tokio!(a_lock_of_rslock_excludes_this_client),
    on_tokio!(a_lock_of_this_client_excludes_rslock),
    on_tokio!(each_releases_only_its_own),
];

fn their_client(fleet: &Fleet) -> LockManager {
    let mut manager = LockManager::new(fleet.urls());
    manager.set_retry(1, Duration::ZERO);
    manager
}

async fn a_lock_of_rslock_excludes_this_client() {
    let fleet = Fleet::of(5);
    let (theirs, ours) = (their_client(&fleet), fleet.client());
    fleet.connect(&ours).await;
    let lock = theirs.lock(b"res", TTL).await.unwrap();
    assert_eq!(ours.try_acquire("res").await.unwrap_err().kind(), AcquireErrorKind::Taken);
    for server in &*fleet {
        assert_eq!(server.ask::<Vec<u8>>("GET res"), lock.val, "our release has left it alone");
    }
    theirs.unlock(&lock).await;
    let lease = ours.try_acquire("res").await.unwrap();
    assert_eq!(lease.release().await, Released::Confirmed);
}

async fn a_lock_of_this_client_excludes_rslock() {
    let fleet = Fleet::of(5);
    let (theirs, ours) = (their_client(&fleet), fleet.client());
    let lease = ours.acquire("res").await.unwrap();
    fleet.all_hold("res", &lease).await;
    let refused = theirs.lock(b"res", TTL).await.unwrap_err();
    assert!(matches!(refused, LockError::Unavailable), "{refused}");
    fleet.all_hold("res", &lease).await;
    assert_eq!(lease.release().await, Released::Confirmed);
    let lock = theirs.lock(b"res", TTL).await.unwrap();
    theirs.unlock(&lock).await;
    assert_eq!(fleet.keys(), [0; 5]);
}

async fn each_releases_only_its_own() {
    let fleet = Fleet::of(5);
    let ttl = Duration::from_secs(1);
    let theirs = their_client(&fleet);
    let ours = fleet.builder().node_timeout(ttl / 5).build().unwrap();

    // Our lease has expired, and their lock holds the keys.
    let lease = ours.acquire("res").ttl(ttl).await.unwrap();
    fleet.all_hold("res", &lease).await;
    lease.lost().await;
    fleet.empties(SOON).await;
    let lock = theirs.lock(b"res", TTL).await.unwrap();
    assert_eq!(lease.release().await, Released::AlreadyExpired);
    for server in &*fleet {
        assert_eq!(server.ask::<Vec<u8>>("GET res"), lock.val);
    }
    theirs.unlock(&lock).await;

    // Their lock has expired, and our lease holds the keys.
    let lock = theirs.lock(b"res", ttl).await.unwrap();
    eventually("their lock expires", SOON, || fleet.keys() == [0; 5]).await;
    let lease = ours.acquire("res").await.unwrap();
    fleet.all_hold("res", &lease).await;
    theirs.unlock(&lock).await;
    fleet.all_hold("res", &lease).await;
    assert_eq!(lease.release().await, Released::Confirmed);
}
