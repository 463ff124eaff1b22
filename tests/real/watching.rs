//! Leases whose keys vanish, and the servers' reports of that.

use std::time::Duration;

use redlock_client::{Lease, LostReason, Redlock};

use crate::fleet::{Fleet, SOON, patient};
use crate::server::Server;
use crate::wait::eventually;
use crate::{Test, on_tokio};

pub(crate) const TESTS: &[Test] = &[
    on_tokio!(an_operator_who_deletes_keys_ends_the_lease),
    on_tokio!(an_operator_who_empties_servers_ends_the_lease),
    on_tokio!(keys_that_are_evicted_end_the_lease),
    on_tokio!(servers_that_restart_empty_end_the_lease),
    on_tokio!(servers_that_are_demoted_end_the_lease),
    on_tokio!(a_key_of_another_owner_is_a_lost_key),
    on_tokio!(an_extended_lease_goes_on_hearing),
    on_tokio!(a_minority_and_silence_end_no_lease),
    on_tokio!(a_table_for_a_single_key_costs_no_storm),
];

/// Waits until every server has been asked to push the changes of a key.
async fn is_watched(fleet: &Fleet) {
    for server in fleet.iter() {
        eventually("the lease is watched", SOON, || server.calls("client|caching") > 0).await;
    }
}

/// A lease of a connected client, with its key on every server. It is watched.
async fn watched(fleet: &Fleet) -> (Redlock, Lease) {
    let redlock = fleet.client();
    fleet.connect(&redlock).await;
    let lease = redlock.acquire("res").await.unwrap();
    fleet.all_hold("res", &lease).await;
    is_watched(fleet).await;
    let all = || lease.votes().confirmed == fleet.len();
    eventually("all servers confirm", SOON, all).await;
    (redlock, lease)
}

/// Checks that the lease is lost long before its deadline.
async fn is_lost(lease: &Lease) {
    let lost = tokio::time::timeout(SOON, lease.lost()).await;
    assert_eq!(lost.ok(), Some(LostReason::KeysGone));
}

/// Does `act` to two servers of three, and checks that the second time ends the lease.
async fn ends_the_lease(mut fleet: Fleet, mut act: impl FnMut(&mut Server)) {
    let (_redlock, lease) = watched(&fleet).await;
    act(&mut fleet[0]);
    let one_less = || lease.votes().possible == 2;
    eventually("the first loss is known", SOON, one_less).await;
    assert!(lease.check_confirmed(Duration::ZERO).is_ok(), "a majority is left");
    act(&mut fleet[1]);
    is_lost(&lease).await;
}

async fn an_operator_who_deletes_keys_ends_the_lease() {
    ends_the_lease(Fleet::of(3), |server| server.ask::<()>("DEL res")).await;
}

async fn an_operator_who_empties_servers_ends_the_lease() {
    ends_the_lease(Fleet::of(3), |server| server.ask::<()>("FLUSHALL")).await;
}

async fn keys_that_are_evicted_end_the_lease() {
    ends_the_lease(Fleet::with(3, &["--maxmemory-policy", "allkeys-lru"]), |server| {
        server.ask::<()>("CONFIG SET maxmemory 1");
    })
    .await;
}

async fn servers_that_restart_empty_end_the_lease() {
    ends_the_lease(Fleet::of(3), Server::restart).await;
}

async fn servers_that_are_demoted_end_the_lease() {
    let master = Server::start(&["--repl-diskless-sync-delay", "0"]);
    let line = format!("REPLICAOF 127.0.0.1 {}", master.port());
    ends_the_lease(Fleet::of(3), |server| server.ask::<()>(&line)).await;
}

async fn a_key_of_another_owner_is_a_lost_key() {
    ends_the_lease(Fleet::of(3), |server| server.ask::<()>("SET res rival PX 60000")).await;
}

async fn an_extended_lease_goes_on_hearing() {
    let fleet = Fleet::of(3);
    let (_redlock, lease) = watched(&fleet).await;
    lease.extend(Duration::from_secs(10)).await.unwrap();
    let all = || lease.votes().confirmed == 3;
    eventually("all servers confirm", SOON, all).await;
    fleet[..2].iter().for_each(|server| server.ask::<()>("DEL res"));
    is_lost(&lease).await;
}

async fn a_minority_and_silence_end_no_lease() {
    let mut fleet = Fleet::of(3);
    let (_redlock, lease) = watched(&fleet).await;
    fleet[0].ask::<()>("DEL res");
    let one_less = || lease.votes().possible == 2;
    eventually("the loss is known", SOON, one_less).await;
    fleet[1].kill();
    let in_doubt = || lease.check_confirmed(Duration::ZERO).is_err();
    eventually("too few servers confirm", SOON, in_doubt).await;
    let votes = lease.votes();
    assert_eq!((votes.confirmed, votes.possible), (1, 2));
    assert!(lease.is_valid());
}

/// Each read for one lease drops the registration of the other, which is told that its key has
/// changed.
async fn a_table_for_a_single_key_costs_no_storm() {
    let server = Server::start(&["--tracking-table-max-keys", "1"]);
    let redlock = patient(vec![server.url()]).build().unwrap();
    let leases = [redlock.acquire("a").await.unwrap(), redlock.acquire("b").await.unwrap()];
    tokio::time::sleep(Duration::from_secs(3)).await;
    let reads = server.calls("get");
    assert!((2..200).contains(&reads), "{reads} reads in three seconds");
    assert!(leases.iter().all(Lease::is_valid));
}
