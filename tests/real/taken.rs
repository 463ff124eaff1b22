//! Errors of clients that do not get the lock.

use std::sync::Arc;
use std::time::Duration;

use redlock_client::{AcquireError, AcquireErrorKind, Lease, Redlock};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::fleet::{Fleet, SOON};
use crate::{Test, on_tokio};

pub(crate) const TESTS: &[Test] = &[
    on_tokio!(somebody_wins_where_three_ask_at_once).alone(),
    on_tokio!(without_a_majority_no_holder_is_reported).alone(),
    on_tokio!(a_holder_of_another_library_is_a_holder),
];

const ROUNDS: usize = 300;
/// Number of rounds in which at least one client must win.
const WON_LEAST: usize = 297;

/// Lets all `clients` ask for `name` at the same time, and returns their results.
async fn ask_at_once(clients: &[Redlock], name: &str) -> Vec<Result<Lease, AcquireError>> {
    let barrier = Arc::new(Barrier::new(clients.len()));
    let mut asking = JoinSet::new();
    for redlock in clients {
        let (redlock, barrier, name) = (redlock.clone(), Arc::clone(&barrier), name.to_string());
        asking.spawn(async move {
            barrier.wait().await;
            redlock.try_acquire(name).await
        });
    }
    asking.join_all().await
}

fn is_taken(told: &Result<Lease, AcquireError>) -> bool {
    told.as_ref().is_err_and(|error| error.kind() == AcquireErrorKind::Taken)
}

async fn somebody_wins_where_three_ask_at_once() {
    let fleet = Fleet::of(5);
    let clients = [fleet.client(), fleet.client(), fleet.client()];
    for redlock in &clients {
        fleet.connect(redlock).await;
    }
    let (mut won, mut splits) = (0, 0);
    for round in 0..ROUNDS {
        let told = ask_at_once(&clients, &format!("job/{round}")).await;
        let has_winner = told.iter().any(Result::is_ok);
        assert!(has_winner || !told.iter().any(is_taken), "taken by nobody: {told:?}");
        won += usize::from(has_winner);
        splits += usize::from(!has_winner);
        for lease in told.into_iter().flatten() {
            lease.release().await;
        }
    }
    println!("somebody won in {won} of {ROUNDS} rounds; {splits} ended in a split vote");
    assert!(won >= WON_LEAST, "somebody won in {won} of {ROUNDS} rounds");
    fleet.empties(SOON).await;
}

async fn without_a_majority_no_holder_is_reported() {
    let mut fleet = Fleet::of(5);
    let client = || fleet.builder().node_timeout(Duration::from_millis(50)).build().unwrap();
    let clients = [client(), client()];
    for redlock in &clients {
        fleet.connect(redlock).await;
    }
    fleet[0].kill();
    fleet[1].kill();
    fleet[2].stop();
    for round in 0..50 {
        let told = ask_at_once(&clients, &format!("job/{round}")).await;
        assert!(told.iter().all(Result::is_err), "{told:?}");
        assert!(!told.iter().any(is_taken), "{told:?}");
    }
    fleet[2].cont();
}

async fn a_holder_of_another_library_is_a_holder() {
    let fleet = Fleet::of(3);
    let redlock = fleet.client();
    for server in fleet.iter() {
        server.ask::<()>("SET res 550e8400-e29b-41d4-a716-446655440000 PX 60000");
    }
    let error = redlock.try_acquire("res").await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (AcquireErrorKind::Taken, 1), "{error}");
    let left = error.retry_after().expect("every node told");
    assert!(left > Duration::from_secs(50) && left <= Duration::from_secs(60), "{error}");
    for (place, server) in fleet.iter().enumerate() {
        server.ask::<()>(&format!("SET res worker-{place} PX 60000"));
    }
    let error = redlock.try_acquire("res").await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (AcquireErrorKind::Split, 5), "{error}");
    for server in fleet.iter() {
        server.ask::<()>("DEL res");
        server.ask::<()>("LPUSH res a-list");
    }
    let error = redlock.try_acquire("res").await.unwrap_err();
    assert_eq!(error.kind(), AcquireErrorKind::TooFewNodes, "its holder is not shown: {error}");
    for server in fleet.iter() {
        server.ask::<()>("DEL res");
    }
}
