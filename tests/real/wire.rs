//! Connections that are slow, hold bytes back, are cut anywhere, or are half open.

use std::sync::Arc;
use std::time::Duration;

use redlock_client::{AcquireErrorKind, Redlock, Released};
use tokio::task::JoinSet;

use crate::fleet::{Fleet, SOON, TTL, patient};
use crate::proxy::{Fault, Proxy, Way};
use crate::wait::eventually;
use crate::{Test, on_tokio};

pub(crate) const TESTS: &[Test] = &[
    on_tokio!(a_slow_network_shortens_the_lease),
    on_tokio!(an_answer_that_is_held_back_leaves_nothing),
    on_tokio!(a_command_that_is_held_back_for_too_long_leaves_nothing),
    on_tokio!(a_connection_may_be_cut_at_any_byte_of_what_is_asked),
    on_tokio!(a_connection_may_be_cut_at_any_byte_of_what_is_answered),
    on_tokio!(a_half_open_connection_is_found_and_replaced),
];

const MS: Duration = Duration::from_millis(1);

async fn proxies(fleet: &Fleet) -> Vec<Proxy> {
    let mut proxies = Vec::new();
    for server in &**fleet {
        proxies.push(Proxy::to(server.port()).await);
    }
    proxies
}

fn through(proxies: &[Proxy], node_timeout: Duration) -> Redlock {
    let builder = patient(proxies.iter().map(Proxy::url).collect());
    builder.node_timeout(node_timeout).build().unwrap()
}

async fn a_slow_network_shortens_the_lease() {
    let fleet = Fleet::of(3);
    let proxies = proxies(&fleet).await;
    let redlock = through(&proxies, 2_000 * MS);
    fleet.connect(&redlock).await;
    for proxy in &proxies {
        let delay = Fault::Delays(100 * MS);
        proxy.suffer([(Way::ToServer, delay), (Way::ToClient, delay)]);
    }
    let lease = redlock.acquire("res").await.unwrap();
    // The lease counts from before the commands were sent.
    assert!(lease.remaining() <= TTL - 102 * MS - 200 * MS, "{:?}", lease.remaining());
    assert_eq!(lease.release().await, Released::Confirmed);
}

async fn an_answer_that_is_held_back_leaves_nothing() {
    let fleet = Fleet::of(3);
    let proxies = proxies(&fleet).await;
    let redlock = through(&proxies, 200 * MS);
    fleet.connect(&redlock).await;
    for proxy in &proxies {
        proxy.suffer([(Way::ToClient, Fault::HoldsAfter(0))]);
    }
    let sets: Vec<usize> = fleet.iter().map(|it| it.calls("set")).collect();
    let refused = redlock.try_acquire("res").await.unwrap_err();
    assert_eq!(refused.kind(), AcquireErrorKind::TooFewNodes);
    // The servers have executed the SETs, and the releases after them.
    fleet.empties(SOON).await;
    for ((proxy, server), sets) in proxies.iter().zip(&*fleet).zip(sets) {
        assert_eq!(server.calls("set"), sets + 1);
        proxy.suffer([]);
    }
    redlock.acquire("res").wait(SOON).await.unwrap().release().await;
    fleet.empties(SOON).await;
}

async fn a_command_that_is_held_back_for_too_long_leaves_nothing() {
    let fleet = Fleet::of(3);
    let proxies = proxies(&fleet).await;
    let redlock = through(&proxies, 200 * MS);
    fleet.connect(&redlock).await;
    for proxy in &proxies {
        proxy.suffer([(Way::ToServer, Fault::HoldsAfter(0))]);
    }
    let refused = redlock.try_acquire("res").await.unwrap_err();
    assert_eq!(refused.kind(), AcquireErrorKind::TooFewNodes);
    for proxy in &proxies {
        proxy.suffer([]);
    }
    redlock.acquire("another").wait(SOON).await.unwrap().release().await;
    fleet.empties(SOON).await;
}

async fn a_connection_may_be_cut_at_any_byte_of_what_is_asked() {
    cut_everywhere(Way::ToServer, |_, _| true).await;
}

async fn a_connection_may_be_cut_at_any_byte_of_what_is_answered() {
    // The reply to INFO is long, and one place in its middle is as good as another.
    cut_everywhere(Way::ToClient, |at, bytes| at < 16 || at + 64 > bytes || at % 61 == 0).await;
}

/// Cuts the connection once at each byte of a cycle that `chosen` selects. Checks that the client
/// goes on with another connection, and that no key is left.
async fn cut_everywhere(way: Way, chosen: fn(usize, usize) -> bool) {
    let fleet = Arc::new(Fleet::of(1));
    // The first cycle teaches the server the scripts, and is longer.
    cycle(&Proxy::to(fleet[0].port()).await, "first").await;
    let proxy = Proxy::to(fleet[0].port()).await;
    cycle(&proxy, "res").await;
    let bytes = proxy.passed(way);
    let mut cuts = JoinSet::new();
    for at in (0..=bytes).filter(|&at| chosen(at, bytes)) {
        let fleet = Arc::clone(&fleet);
        cuts.spawn(async move {
            let proxy = Proxy::to(fleet[0].port()).await;
            proxy.suffer([(way, Fault::CutsAfter(at))]);
            let name = format!("res/{at}");
            cycle(&proxy, &name).await;
            // The client is gone, but the releases it owes are still sent.
            let left = || -> usize { fleet[0].ask(&format!("EXISTS {name}")) };
            eventually(&name, SOON, || left() == 0).await;
            // Numbers in the reply to INFO grow with time, so the last bytes may never be reached.
            assert!(proxy.is_over() || at + 16 > bytes, "never cut at {at} of {bytes}");
        });
        // Limit the number at a time: each cut needs a few connections.
        if cuts.len() >= 16 {
            cuts.join_next().await.expect("there are some").unwrap();
        }
    }
    while let Some(cut) = cuts.join_next().await {
        cut.unwrap();
    }
    fleet.empties(SOON).await;
}

async fn cycle(proxy: &Proxy, name: &str) {
    let redlock = through(std::slice::from_ref(proxy), 500 * MS);
    let lease = redlock.acquire(name).wait(SOON).await;
    let lease = lease.unwrap_or_else(|error| panic!("{name}: {error}"));
    lease.release().await;
}

async fn a_half_open_connection_is_found_and_replaced() {
    let fleet = Fleet::of(3);
    let proxies = proxies(&fleet).await;
    let redlock = through(&proxies, 100 * MS);
    fleet.connect(&redlock).await;
    proxies.iter().for_each(Proxy::freeze);
    let refused = redlock.try_acquire("res").await.unwrap_err();
    assert_eq!(refused.kind(), AcquireErrorKind::TooFewNodes);
    let accepted = || proxies.iter().map(Proxy::accepted).collect::<Vec<_>>();
    // A majority suffices for the lease, so the last server may be missing for a while longer.
    redlock.acquire("res").wait(SOON).await.unwrap().release().await;
    eventually("each connection was replaced", SOON, || accepted() == [2; 3]).await;
    fleet.connect(&redlock).await;
    assert_eq!(accepted(), [2; 3]);
    eventually("the servers are empty", SOON, || fleet.keys() == [0; 3]).await;
}
