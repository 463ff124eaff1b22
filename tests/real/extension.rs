//! Leases that outlive their first TTL, and keys that vanish under them.

use std::time::Duration;

use redlock_client::{AcquireErrorKind, ExtendErrorKind, KeepAlive, LostReason, Redlock, Released};

use crate::fleet::{Fleet, SOON};
use crate::server::Server;
use crate::wait::comes_true;
use crate::{Test, on_tokio};

pub(crate) const TESTS: &[Test] = &[
    on_tokio!(an_extension_moves_the_keys_behind_the_deadline),
    on_tokio!(lease_is_kept_alive_past_its_ttl_with_a_stopped_server),
    on_tokio!(a_lease_is_kept_alive_for_no_longer_than_asked),
    on_tokio!(a_kept_lease_whose_servers_are_killed_says_so),
    on_tokio!(keys_that_vanish_end_the_lease),
    on_tokio!(a_lease_that_is_left_expires_by_itself),
];

const TTL: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(4);

fn client(fleet: &Fleet) -> Redlock {
    fleet.builder().ttl(TTL).fleet_max_ttl(LONG).node_timeout(TTL / 5).build().unwrap()
}

async fn an_extension_moves_the_keys_behind_the_deadline() {
    let fleet = Fleet::of(3);
    let redlock = client(&fleet);
    let lease = redlock.acquire("res").await.unwrap();
    fleet.all_hold("res", &lease).await;
    let before = lease.deadline();
    let after = lease.extend(LONG).await.unwrap();
    assert!(after > before);
    for server in &*fleet {
        crate::wait::eventually("the key lives for longer", SOON, || {
            let left = Duration::from_millis(server.ask("PTTL res"));
            left + Duration::from_millis(1) >= lease.remaining() + LONG / 100
        })
        .await;
    }
    assert_eq!(lease.extend(TTL).await.unwrap_err().kind(), ExtendErrorKind::WouldShorten);
    assert_eq!(lease.release().await, Released::Confirmed);
    assert_eq!(fleet.keys(), [0; 3]);
}

async fn lease_is_kept_alive_past_its_ttl_with_a_stopped_server() {
    let fleet = Fleet::of(5);
    let (redlock, other) = (client(&fleet), client(&fleet));
    let lease = redlock.acquire("res").keep_alive(KeepAlive::at_most(60 * TTL)).await.unwrap();
    let first = lease.deadline();
    crate::wait::eventually("it has been extended once", SOON, || lease.deadline() > first).await;
    fleet[0].stop();
    let lost = comes_true(3 * TTL, || !lease.is_valid()).await;
    assert!(!lost, "{lease:?}");
    assert_eq!(other.try_acquire("res").await.unwrap_err().kind(), AcquireErrorKind::Taken);
    fleet[0].cont();
    assert!(lease.is_valid());
    lease.release().await;
    other.acquire("res").await.unwrap().release().await;
    fleet.empties(SOON).await;
}

async fn a_lease_is_kept_alive_for_no_longer_than_asked() {
    let fleet = Fleet::of(3);
    let redlock = client(&fleet);
    let lease = redlock.acquire("res").keep_alive(KeepAlive::at_most(2 * TTL)).await.unwrap();
    let first = lease.deadline();
    assert_eq!(lease.lost().await, LostReason::KeepAliveEnded);
    assert!(lease.deadline() > first);
    fleet.empties(SOON).await;
}

async fn a_kept_lease_whose_servers_are_killed_says_so() {
    let mut fleet = Fleet::of(5);
    let redlock = client(&fleet);
    let lease = redlock.acquire("res").ttl(LONG).keep_alive(KeepAlive::at_most(60 * TTL));
    let lease = lease.await.unwrap();
    fleet[..3].iter_mut().for_each(Server::kill);
    assert_eq!(lease.lost().await, LostReason::KeepAliveFailed);
}

async fn keys_that_vanish_end_the_lease() {
    let fleet = Fleet::of(5);
    let redlock = client(&fleet);
    let lease = redlock.acquire("res").keep_alive(KeepAlive::at_most(60 * TTL)).await.unwrap();
    fleet.all_hold("res", &lease).await;
    for server in &fleet[..3] {
        server.ask::<()>("DEL res");
    }
    assert_eq!(lease.lost().await, LostReason::KeysGone);
    assert_eq!(lease.check(Duration::ZERO), Err(LostReason::KeysGone));
    lease.release().await;
    fleet.empties(SOON).await;
}

async fn a_lease_that_is_left_expires_by_itself() {
    let fleet = Fleet::of(3);
    let (redlock, other) = (client(&fleet), client(&fleet));
    let lease = redlock.acquire("nightly").await.unwrap();
    fleet.all_hold("nightly", &lease).await;
    lease.leave_until_expiry();
    drop(redlock);
    assert_eq!(other.try_acquire("nightly").await.unwrap_err().kind(), AcquireErrorKind::Taken);
    other.acquire("nightly").wait(SOON).await.unwrap().release().await;
    fleet.empties(SOON).await;
}
