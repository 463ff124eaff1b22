//! The servers of one lock service.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use redlock_client::{Builder, Lease, Redlock, Released, RestartGuard};

use crate::server::Server;
use crate::wait::{comes_true, eventually};

/// TTL of every lease, unless a test chooses another: longer than any outage in a test, so that an
/// expired key is never mistaken for a released one.
pub(crate) const TTL: Duration = Duration::from_secs(10);

/// Time limit for everything that does not wait for a TTL, even on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(5);

/// Independent servers, without persistence.
pub(crate) struct Fleet(Vec<Server>);

impl Fleet {
    pub(crate) fn of(size: usize) -> Self {
        Self::with(size, &[])
    }

    /// Starts servers with additional options.
    pub(crate) fn with(size: usize, options: &[&str]) -> Self {
        Self((0..size).map(|_| Server::start(options)).collect())
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        self.0.iter().map(Server::url).collect()
    }

    /// Configuration of a client that lets new servers vote and waits for slow ones, because the
    /// test machine may be busy.
    pub(crate) fn builder(&self) -> Builder {
        patient(self.urls())
    }

    pub(crate) fn client(&self) -> Redlock {
        self.builder().build().expect("a configuration without faults")
    }

    /// Number of keys on each server.
    pub(crate) fn keys(&self) -> Vec<usize> {
        self.0.iter().map(Server::keys).collect()
    }

    /// Makes `redlock` connect to every server.
    pub(crate) async fn connect(&self, redlock: &Redlock) {
        // A lease begins when a majority is connected: the others may come later.
        redlock.acquire("connect").await.expect("a fleet in order").release().await;
        let connected = || redlock.health().nodes.iter().all(|node| node.connected);
        eventually("every server is connected", SOON, connected).await;
        let lease = redlock.acquire("connect").await.expect("a fleet in order");
        self.all_hold("connect", &lease).await;
        assert_eq!(lease.release().await, Released::Confirmed);
    }

    /// Waits until every server holds the key `name` of `lease`. A lease begins when a majority
    /// holds it.
    pub(crate) async fn all_hold(&self, name: &str, lease: &Lease) {
        for server in &self.0 {
            eventually("the server has the key", SOON, || {
                let value: Option<Vec<u8>> = server.ask(&format!("GET {name}"));
                value.is_some_and(|value| value == lease.owner().as_bytes())
            })
            .await;
        }
    }

    /// Waits until no server has a key. `within` is below the TTL if releases must have removed the
    /// keys.
    pub(crate) async fn empties(&self, within: Duration) {
        for server in &self.0 {
            let empty = comes_true(within, || server.keys() == 0).await;
            assert!(empty, "left on {}: {:?}", server.url(), server.names());
        }
    }
}

/// Configuration of a client that tolerates new servers and a busy machine.
pub(crate) fn patient(urls: Vec<String>) -> Builder {
    Redlock::builder()
        .nodes(urls)
        .ttl(TTL)
        .fleet_max_ttl(TTL)
        .node_timeout(Duration::from_secs(1))
        .restart_guard(RestartGuard::DelayedRestart)
}

impl Deref for Fleet {
    type Target = [Server];

    fn deref(&self) -> &[Server] {
        &self.0
    }
}

impl DerefMut for Fleet {
    fn deref_mut(&mut self) -> &mut [Server] {
        &mut self.0
    }
}
