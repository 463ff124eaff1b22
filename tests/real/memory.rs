//! A node is identified by its data set: a node that may have lost keys does not vote, and every
//! other node does.

use std::time::{Duration, Instant};

use redlock_client::{AcquireErrorKind, Builder, Lease, Redlock, RestartGuard};

use crate::fleet::{Fleet, SOON, patient};
use crate::server::Server;
use crate::switch::Switch;
use crate::wait::eventually;
use crate::{Test, on_tokio};

pub(crate) const TESTS: &[Test] = &[
    on_tokio!(a_demoted_and_promoted_server_admits_no_second_client),
    on_tokio!(a_client_that_starts_after_a_failover_is_not_let_in),
    on_tokio!(a_restart_behind_a_proxy_admits_no_second_client),
    on_tokio!(restart_behind_a_proxy_is_noticed_if_votes_are_verified),
    on_tokio!(an_emptied_server_admits_no_connected_client),
    on_tokio!(an_emptied_server_admits_no_client_that_reconnects),
    on_tokio!(an_emptied_server_admits_no_new_client),
    on_tokio!(demoted_server_is_left_for_the_new_one_at_its_address),
    on_tokio!(events_without_a_loss_cost_nothing),
    on_tokio!(durable_servers_are_upgraded_without_a_quarantine),
    on_tokio!(a_user_who_may_not_use_the_canary_locks_as_before),
    on_tokio!(a_canary_has_the_name_that_it_is_given),
];

/// Long enough for the checks that a test makes while a lease lives.
const TTL: Duration = Duration::from_secs(4);

/// A client of `urls` that lets nodes vote at first contact.
fn trusting(urls: Vec<String>) -> Builder {
    patient(urls).ttl(TTL).fleet_max_ttl(TTL).node_timeout(TTL / 8)
}

/// A client with the quarantine: nothing is promised about the nodes' memory.
fn wary(urls: Vec<String>) -> Builder {
    trusting(urls).restart_guard(RestartGuard::Quarantine)
}

/// A lease, and the instant of its deadline. The lease may be lost before: it hears that its keys are
/// gone.
struct Held {
    _lease: Lease,
    ends: Instant,
}

impl Held {
    fn new(lease: Lease) -> Self {
        let ends = Instant::now() + lease.remaining();
        Self { _lease: lease, ends }
    }
}

/// Checks that nobody else gets the lock until the deadline of `held`, and that `other` gets it
/// afterwards.
async fn has_it_alone(held: Held, other: &Redlock) {
    let kind = other.try_acquire("res").await.unwrap_err().kind();
    assert!(Instant::now() < held.ends, "the test was too slow");
    // TooFewNodes: the connection may just be reopening.
    let is_refused = matches!(kind, AcquireErrorKind::Quarantined | AcquireErrorKind::TooFewNodes);
    assert!(is_refused, "{kind:?}");
    let next = other.acquire("res").wait(3 * TTL).await.unwrap();
    assert!(Instant::now() >= held.ends, "two holders");
    next.release().await;
}

/// Returns a lease on the server, and another client that is connected to it.
async fn held(server: &Server) -> (Held, Redlock) {
    let build = || trusting(vec![server.url()]).build().unwrap();
    let (one, other) = (build(), build());
    other.acquire("warm").await.unwrap().release().await;
    (Held::new(one.acquire("res").await.unwrap()), other)
}

async fn a_demoted_and_promoted_server_admits_no_second_client() {
    let server = Server::start(&[]);
    let master = Server::start(&["--repl-diskless-sync-delay", "0"]);
    let (lease, other) = held(&server).await;
    server.ask::<()>(&format!("REPLICAOF 127.0.0.1 {}", master.port()));
    eventually("the replica has forgotten the lease", SOON, || server.keys() == 0).await;
    server.ask::<()>("REPLICAOF NO ONE");
    has_it_alone(lease, &other).await;
}

/// The replica has run for longer than any lease lives, and lacks the last lease (counterexample D12).
async fn a_client_that_starts_after_a_failover_is_not_let_in() {
    let master = Server::start(&["--repl-diskless-sync-delay", "0"]);
    let replica = Server::start(&[]);
    let one = trusting(vec![master.url()]).build().unwrap();
    one.acquire("warm").await.unwrap().release().await;
    replica.ask::<()>(&format!("REPLICAOF 127.0.0.1 {}", master.port()));
    eventually("the replica has the canary", SOON, || !replica.names().is_empty()).await;
    let old = Duration::from_secs(3) + TTL;
    eventually("the replica is old", old + SOON, || uptime(&replica) >= old).await;
    replica.ask::<()>("REPLICAOF NO ONE");
    let lease = Held::new(one.acquire("res").await.unwrap());
    let other = wary(vec![replica.url()]).build().unwrap();
    has_it_alone(lease, &other).await;
}

fn uptime(server: &Server) -> Duration {
    let info: String = server.ask("INFO server");
    let seconds = info.lines().find_map(|line| line.strip_prefix("uptime_in_seconds:"));
    Duration::from_secs(seconds.and_then(|it| it.parse().ok()).unwrap_or(0))
}

async fn a_restart_behind_a_proxy_admits_no_second_client() {
    restarts_behind_a_proxy(|builder| builder, Duration::from_millis(1_100)).await;
}

async fn restart_behind_a_proxy_is_noticed_if_votes_are_verified() {
    restarts_behind_a_proxy(Builder::verify_every_vote, Duration::ZERO).await;
}

/// Restarts a server behind a proxy after the other client has not used its connection for `idle`.
async fn restarts_behind_a_proxy(with: fn(Builder) -> Builder, idle: Duration) {
    let mut server = Server::start(&[]);
    let proxy = Switch::to(server.port()).await;
    let build = || with(wary(vec![proxy.url()])).build().unwrap();
    let (one, other) = (build(), build());
    let lease = Held::new(one.acquire("res").wait(3 * TTL).await.unwrap());
    other.acquire("warm").wait(3 * TTL).await.unwrap().release().await;
    tokio::time::sleep(idle).await;
    let before = proxy.opened();
    server.restart();
    // The connections of both clients have a server behind them again.
    eventually("the proxy is back", SOON, || proxy.opened() >= before + 2).await;
    has_it_alone(lease, &other).await;
}

async fn an_emptied_server_admits_no_connected_client() {
    let server = Server::start(&[]);
    let (lease, other) = held(&server).await;
    server.ask::<()>("FLUSHALL");
    has_it_alone(lease, &other).await;
}

async fn an_emptied_server_admits_no_client_that_reconnects() {
    let server = Server::start(&[]);
    let (lease, other) = held(&server).await;
    server.ask::<()>("CLIENT KILL TYPE normal SKIPME yes");
    server.ask::<()>("FLUSHALL");
    has_it_alone(lease, &other).await;
}

async fn an_emptied_server_admits_no_new_client() {
    let server = Server::start(&[]);
    let old = TTL + Duration::from_secs(3);
    eventually("the server is old", old + SOON, || uptime(&server) >= old).await;
    let (lease, _) = held(&server).await;
    server.ask::<()>("FLUSHALL");
    let other = wary(vec![server.url()]).build().unwrap();
    has_it_alone(lease, &other).await;
}

async fn demoted_server_is_left_for_the_new_one_at_its_address() {
    let (old, new) = (Server::start(&[]), Server::start(&[]));
    let address = Switch::to(old.port()).await;
    let redlock = trusting(vec![address.url()]).build().unwrap();
    redlock.acquire("warm").await.unwrap().release().await;
    old.ask::<()>(&format!("REPLICAOF 127.0.0.1 {}", new.port()));
    let sets = old.calls("set");
    redlock.acquire("res").wait(2 * TTL / 4).await.unwrap_err();
    assert!(!redlock.health().has_quorum, "{}", redlock.health());
    let tried = old.calls("set") - sets;
    assert!(tried <= 10, "{tried} attempts at a replica");
    address.lead_to(new.port());
    redlock.acquire("res").wait(4 * TTL).await.unwrap().release().await;
    assert!(new.calls("set") > 0);
}

async fn events_without_a_loss_cost_nothing() {
    let fleet = Fleet::with(1, &["--repl-diskless-sync-delay", "0"]);
    let server = &fleet[0];
    let redlock = trusting(fleet.urls()).build().unwrap();
    let works = async || {
        let lease = redlock.acquire("res").wait(TTL / 2).await.unwrap();
        lease.release().await;
    };
    works().await;
    // Another database is emptied. The server's push does not tell which database it was.
    let client = redis::Client::open(format!("{}/3", server.url())).unwrap();
    let mut other = client.get_connection().unwrap();
    redis::cmd("FLUSHDB").exec(&mut other).unwrap();
    works().await;
    // The first replica attaches, so a new replication history begins.
    let history = |it: &Server| {
        let info: String = it.ask("INFO replication");
        info.lines().find(|line| line.starts_with("master_replid:")).map(str::to_owned)
    };
    let before = history(server);
    let replica = Server::start(&[]);
    replica.ask::<()>(&format!("REPLICAOF 127.0.0.1 {}", server.port()));
    eventually("a history begins", SOON, || history(server) != before).await;
    server.ask::<()>("CLIENT KILL TYPE normal SKIPME yes");
    works().await;
}

async fn durable_servers_are_upgraded_without_a_quarantine() {
    let options = ["--appendonly", "yes", "--appendfsync", "always"];
    let mut fleet = Fleet::with(5, &options);
    let build = |urls| trusting(urls).restart_guard(RestartGuard::Durable).build().unwrap();
    let one = build(fleet.urls());
    let lease = one.acquire("res").await.unwrap();
    for place in 0..5 {
        fleet[place].restart();
        one.acquire("other").wait(TTL / 2).await.unwrap().release().await;
    }
    assert!(one.health().nodes.iter().all(|it| !it.to_string().contains("quarantine")));
    let new = build(fleet.urls());
    new.try_acquire("other").await.unwrap().release().await;
    drop(lease);
}

async fn a_user_who_may_not_use_the_canary_locks_as_before() {
    let server = Server::start(&[]);
    let rights = "+set +get +del +pttl +pexpire +info +evalsha +eval +script|load +hello +client";
    server.ask::<()>(&format!("ACL SETUSER locker on >secret ~lock:* {rights}"));
    let url = server.url().replace("redis://", "redis://locker:secret@");
    let redlock = trusting(vec![url]).build().unwrap();
    redlock.acquire("lock:res").await.unwrap().release().await;
    assert_eq!(server.names(), [""; 0]);
    assert!(redlock.inspect().await.to_string().contains("canary"));
}

async fn a_canary_has_the_name_that_it_is_given() {
    let server = Server::start(&[]);
    let redlock = trusting(vec![server.url()]).canary_key("mine:canary").build().unwrap();
    redlock.acquire("res").await.unwrap().release().await;
    assert_eq!(server.names(), ["mine:canary"]);
}
