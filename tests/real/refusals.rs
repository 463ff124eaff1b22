//! Servers that reply with errors, temporarily or permanently.

use std::time::Duration;

use redlock_client::{AcquireErrorKind, Released};

use crate::fleet::{Fleet, SOON, TTL};
use crate::server::Server;
use crate::wait::eventually;
use crate::{Test, on_tokio};

pub(crate) const TESTS: &[Test] = &[
    on_tokio!(scripts_may_be_flushed_at_any_time),
    on_tokio!(servers_that_cannot_save_take_no_keys_and_are_no_votes),
    on_tokio!(servers_without_memory_take_no_keys_and_are_no_votes),
    on_tokio!(a_refusing_minority_blocks_no_client),
    on_tokio!(a_server_without_memory_still_deletes),
    on_tokio!(a_server_that_becomes_a_replica_votes_no_more),
];

async fn scripts_may_be_flushed_at_any_time() {
    let fleet = Fleet::of(3);
    let redlock = fleet.client();
    fleet.connect(&redlock).await;
    for _ in 0..3 {
        let lease = redlock.acquire("res").await.unwrap();
        fleet.all_hold("res", &lease).await;
        for server in &*fleet {
            server.ask::<()>("SCRIPT FLUSH");
        }
        assert_eq!(lease.release().await, Released::Confirmed);
        assert_eq!(fleet.keys(), [0; 3]);
    }
    // The client first calls a script by its hash, and sends the text only to servers that do not
    // know it.
    assert!(fleet[0].calls("evalsha") >= 3);
    assert!(fleet[0].calls("eval") >= 1);
}

/// A snapshot schedule that never comes due. Without a schedule, Redis ignores a failed snapshot.
const SNAPSHOTS: &[&str] = &["--save", "3600 1000000"];

/// Makes the server's last snapshot fail, with writes refused in that case (MISCONF).
async fn fail_to_save(server: &Server) {
    // Put a directory in the place of the file; permissions would not stop a server that runs as
    // root.
    std::fs::create_dir_all(server.directory().join("dump.rdb/in-the-way")).unwrap();
    server.ask::<()>("CONFIG SET stop-writes-on-bgsave-error yes");
    server.ask::<()>("BGSAVE");
    eventually("the snapshot fails", SOON, || {
        server.ask::<String>("INFO persistence").contains("rdb_last_bgsave_status:err")
    })
    .await;
    let error = server.try_ask::<String>("SET probe 1").unwrap_err();
    assert_eq!(error.code(), Some("MISCONF"), "{error}");
}

fn run_out_of_memory(server: &Server) {
    server.ask::<()>("CONFIG SET maxmemory-policy noeviction");
    server.ask::<()>("CONFIG SET maxmemory 1");
    let error = server.try_ask::<String>("SET probe 1").unwrap_err();
    assert_eq!(error.code(), Some("OOM"), "{error}");
}

fn recover(server: &Server) {
    server.ask::<()>("CONFIG SET stop-writes-on-bgsave-error no");
    server.ask::<()>("CONFIG SET maxmemory 0");
}

async fn servers_that_cannot_save_take_no_keys_and_are_no_votes() {
    let fleet = Fleet::with(3, SNAPSHOTS);
    for server in &fleet[..2] {
        fail_to_save(server).await;
    }
    refused_until_they_recover(&fleet).await;
}

async fn servers_without_memory_take_no_keys_and_are_no_votes() {
    let fleet = Fleet::of(3);
    fleet[..2].iter().for_each(run_out_of_memory);
    refused_until_they_recover(&fleet).await;
}

async fn refused_until_they_recover(fleet: &Fleet) {
    let redlock = fleet.client();
    for _ in 0..2 {
        let refused = redlock.acquire("res").wait(Duration::from_millis(200)).await;
        // The servers replied, but nobody has the lock.
        assert_eq!(refused.unwrap_err().kind(), AcquireErrorKind::TooFewNodes);
    }
    fleet.iter().for_each(recover);
    let lease = redlock.try_acquire("res").await.unwrap();
    fleet.all_hold("res", &lease).await;
    assert_eq!(lease.release().await, Released::Confirmed);
    assert_eq!(fleet.keys(), [0; 3]);
}

async fn a_refusing_minority_blocks_no_client() {
    let fleet = Fleet::with(5, SNAPSHOTS);
    fail_to_save(&fleet[0]).await;
    run_out_of_memory(&fleet[1]);
    let (one, other) = (fleet.client(), fleet.client());
    for _ in 0..10 {
        let lease = one.try_acquire("res").await.unwrap();
        assert_eq!(other.try_acquire("res").await.unwrap_err().kind(), AcquireErrorKind::Taken);
        lease.release().await;
        fleet.empties(SOON).await;
    }
}

async fn a_server_without_memory_still_deletes() {
    let fleet = Fleet::of(3);
    let redlock = fleet.client();
    let lease = redlock.acquire("res").await.unwrap();
    fleet.all_hold("res", &lease).await;
    fleet.iter().for_each(run_out_of_memory);
    assert_eq!(lease.release().await, Released::Confirmed);
    assert_eq!(fleet.keys(), [0; 3]);
}

/// A replica's keys are its master's from then on (counterexample K2).
async fn a_server_that_becomes_a_replica_votes_no_more() {
    let fleet = Fleet::of(3);
    let master = Server::start(&["--repl-diskless-sync-delay", "0"]);
    let redlock = fleet.client();
    let lease = redlock.acquire("res").await.unwrap();
    fleet.all_hold("res", &lease).await;
    // Two of three: the third one alone is no majority.
    for server in &fleet[..2] {
        server.ask::<()>(&format!("REPLICAOF 127.0.0.1 {}", master.port()));
        eventually("the replica has forgotten the lease", SOON, || server.keys() == 0).await;
    }
    let other = fleet.client();
    for redlock in [&redlock, &other] {
        let refused = redlock.acquire("another").wait(Duration::from_millis(200)).await;
        let kind = refused.unwrap_err().kind();
        assert!(
            matches!(kind, AcquireErrorKind::TooFewNodes | AcquireErrorKind::Quarantined),
            "{kind:?}"
        );
    }
    assert_eq!(master.keys(), 0);
    drop(lease);
    for server in &fleet[..2] {
        server.ask::<()>("REPLICAOF NO ONE");
    }
    // By then every lease that the servers have forgotten is over.
    redlock.acquire("another").wait(TTL + SOON).await.unwrap().release().await;
}
