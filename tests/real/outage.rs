//! Servers that are stopped, killed or come back empty while a lease is held.

use std::time::{Duration, Instant};

use redlock_client::{AcquireErrorKind, Redlock, Released, RestartGuard};

use crate::fleet::{Fleet, SOON, TTL, patient};
use crate::server::Server;
use crate::wait::eventually;
use crate::{Test, on_tokio};

pub(crate) const TESTS: &[Test] = &[
    on_tokio!(a_stopped_minority_blocks_no_client),
    on_tokio!(a_killed_minority_blocks_no_client),
    on_tokio!(an_emptied_minority_admits_no_second_client),
    on_tokio!(majority_that_restarts_empty_waits_for_the_leases_end),
    on_tokio!(a_majority_that_stands_still_is_reported_within_the_bound),
    on_tokio!(a_majority_that_was_killed_is_reported_within_the_bound),
    on_tokio!(servers_that_all_stand_still_are_reported_within_the_bound),
    on_tokio!(servers_that_were_all_killed_are_reported_within_the_bound),
    on_tokio!(a_server_that_comes_back_is_used_again),
];

/// Applies `fail` to one and to two of five servers while a lease is held. Checks that the lease
/// stays exclusive and can be released, and that others can be acquired. `repair` undoes `fail`.
async fn survives(fail: fn(&mut Server), repair: fn(&mut Server)) {
    for failures in [1, 2] {
        let mut fleet = Fleet::of(5);
        let (one, other) = (fleet.client(), fleet.client());
        let lease = one.acquire("res").await.unwrap();
        // Open the other client's connections, too.
        fleet.connect(&other).await;
        fleet[..failures].iter_mut().for_each(fail);
        assert_taken(&other).await;
        assert!(lease.check(TTL / 4).is_ok());
        other.acquire("another").await.unwrap().release().await;
        let released = lease.release().await;
        assert!(matches!(released, Released::Unconfirmed(_) | Released::Confirmed));
        let lease = other.acquire("res").await.unwrap();
        assert_taken(&one).await;
        lease.release().await;
        fleet[..failures].iter_mut().for_each(repair);
        fleet.empties(SOON).await;
    }
}

async fn assert_taken(redlock: &Redlock) {
    let kind = redlock.acquire("res").wait(TTL / 50).await.unwrap_err().kind();
    assert_eq!(kind, AcquireErrorKind::Taken);
}

async fn a_stopped_minority_blocks_no_client() {
    survives(|server| server.stop(), |server| server.cont()).await;
}

async fn a_killed_minority_blocks_no_client() {
    survives(Server::kill, Server::restart).await;
}

async fn an_emptied_minority_admits_no_second_client() {
    survives(Server::restart, |_| {}).await;
}

/// The servers forget the lease; nothing promised the client that they would stay away (counterexample
/// K3).
async fn majority_that_restarts_empty_waits_for_the_leases_end() {
    let ttl = Duration::from_secs(2);
    let mut fleet = Fleet::of(5);
    let builder = || {
        let guarded = patient(fleet.urls()).restart_guard(RestartGuard::Quarantine);
        guarded.ttl(ttl).fleet_max_ttl(ttl).node_timeout(ttl / 8)
    };
    let (one, other) = (builder().build().unwrap(), builder().build().unwrap());
    // The servers are new, so they may have forgotten leases.
    let kind = one.try_acquire("res").await.unwrap_err().kind();
    assert_eq!(kind, AcquireErrorKind::Quarantined);
    let lease = one.acquire("res").wait(3 * ttl).await.unwrap();
    let ends = Instant::now() + lease.remaining();
    other.acquire("warm").wait(3 * ttl).await.unwrap().release().await;
    fleet[..3].iter_mut().for_each(Server::restart);
    let next = other.acquire("res").wait(5 * ttl).await.unwrap();
    assert!(Instant::now() >= ends, "two holders");
    drop(lease);
    next.release().await;
}

async fn refuses(fail: fn(&mut Server), failures: usize) {
    let mut fleet = Fleet::of(5);
    let node_timeout = Duration::from_millis(500);
    let build = || fleet.builder().node_timeout(node_timeout).build().unwrap();
    let (warm, cold) = (build(), build());
    fleet.connect(&warm).await;
    fleet[..failures].iter_mut().for_each(fail);
    for redlock in [warm, cold] {
        let began = Instant::now();
        let kind = redlock.try_acquire("res").await.unwrap_err().kind();
        assert_eq!(kind, AcquireErrorKind::TooFewNodes);
        // One attempt waits for at most one node timeout; the rest allows for a busy machine.
        assert!(began.elapsed() < 3 * node_timeout, "{:?}", began.elapsed());
        let wait = Duration::from_secs(1);
        let began = Instant::now();
        let kind = redlock.acquire("res").wait(wait).await.unwrap_err().kind();
        assert_eq!(kind, AcquireErrorKind::TooFewNodes);
        assert!(began.elapsed() < wait + 3 * node_timeout, "{:?}", began.elapsed());
    }
    let survivors = &fleet[failures..];
    eventually("the minority is given back", SOON, || {
        survivors.iter().all(|server| server.keys() == 0)
    })
    .await;
}

async fn a_majority_that_stands_still_is_reported_within_the_bound() {
    refuses(|server| server.stop(), 3).await;
}

async fn a_majority_that_was_killed_is_reported_within_the_bound() {
    refuses(Server::kill, 3).await;
}

async fn servers_that_all_stand_still_are_reported_within_the_bound() {
    refuses(|server| server.stop(), 5).await;
}

async fn servers_that_were_all_killed_are_reported_within_the_bound() {
    refuses(Server::kill, 5).await;
}

async fn a_server_that_comes_back_is_used_again() {
    let mut fleet = Fleet::of(3);
    let redlock = fleet.client();
    redlock.acquire("res").await.unwrap().release().await;
    for server in &mut *fleet {
        server.restart();
    }
    redlock.acquire("res").wait(SOON).await.unwrap().release().await;
    eventually("every server has a connection again", SOON, || {
        fleet.iter().all(|server| !server.connections().is_empty())
    })
    .await;
    let lease = redlock.acquire("res").wait(SOON).await.unwrap();
    fleet.all_hold("res", &lease).await;
    assert_eq!(lease.release().await, Released::Confirmed);
}
