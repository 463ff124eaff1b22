//! The clients under test, behind one trait: ours and the peer. (The bound is in `raw`.)

use core::future::Future;
use core::time::Duration;

use redlock_client::{Lease, Redlock, Released, RestartGuard};
use rslock::{Lock, LockManager};

/// Time to live of the keys.
pub(crate) const TTL: Duration = Duration::from_secs(10);

/// A client that acquires and releases a lock.
pub(crate) trait Client: Send + Sync + 'static {
    const NAME: &str;
    type Held: Send;

    /// Acquires the lock on `key` for the task numbered `task`.
    fn acquire(&self, task: usize, key: &str) -> impl Future<Output = Self::Held> + Send;

    /// Releases the lock; completes when every node has replied.
    fn release(&self, held: Self::Held) -> impl Future<Output = ()> + Send;
}

/// Our client. All tasks share one.
pub(crate) struct Ours(pub(crate) Redlock);

impl Ours {
    /// Connects with the peer's node timeout, so that a stall of this machine does not count as a
    /// fault.
    pub(crate) async fn connect(urls: Vec<String>) -> Self {
        Self::with_node_timeout(urls, Duration::from_millis(500)).await
    }

    pub(crate) async fn with_node_timeout(urls: Vec<String>, node_timeout: Duration) -> Self {
        let redlock = Redlock::builder()
            .nodes(urls)
            .ttl(TTL)
            .fleet_max_ttl(TTL)
            .node_timeout(node_timeout)
            // This program has just started the servers, so they hold no locks that could be
            // forgotten.
            .restart_guard(RestartGuard::DelayedRestart)
            .build()
            .expect("a valid configuration");
        let ours = Self(redlock);
        ours.release(ours.acquire(0, "first").await).await;
        ours
    }
}

impl Client for Ours {
    const NAME: &str = "ours";
    type Held = Lease;

    async fn acquire(&self, _task: usize, key: &str) -> Lease {
        self.0.acquire(key).wait(6 * TTL).await.expect("the servers are up")
    }

    async fn release(&self, lease: Lease) {
        let released = lease.release().await;
        assert_eq!(released, Released::Confirmed, "every node answers and had the key");
    }
}

/// The peer. Its best arrangement is one manager for all tasks: it has one multiplexed connection
/// for each node, on which the commands of many tasks are written together.
pub(crate) struct Peer(LockManager);

impl Peer {
    pub(crate) async fn connect(urls: Vec<String>) -> Self {
        Self::with_retry_delay(urls, Duration::from_millis(200)).await
    }

    /// Connects with random waits below `delay` between two attempts.
    pub(crate) async fn with_retry_delay(urls: Vec<String>, delay: Duration) -> Self {
        let mut manager = LockManager::new(urls);
        manager.set_retry(u32::MAX, delay);
        let peer = Self(manager);
        peer.release(peer.acquire(0, "first").await).await;
        peer
    }
}

impl Client for Peer {
    const NAME: &str = "rslock";
    type Held = Lock;

    async fn acquire(&self, _task: usize, key: &str) -> Lock {
        self.0.lock(key, TTL).await.expect("the servers are up")
    }

    async fn release(&self, lock: Lock) {
        lock.release().await;
    }
}
