//! A little lock over several independent Redis servers.
//!
//! It asks all of them at once, and has the lock if a majority has taken its key while enough of the
//! key's time to live is left.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::time::{Instant, sleep, timeout};

/// Deletes the key if it still has our value.
const RELEASE: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then \
                       return redis.call('DEL', KEYS[1]) else return 0 end";

/// Opens connections: `TcpStream::connect` in production, something else in tests.
pub trait Connect {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Unpin;

    /// Opens a connection to `node`.
    fn connect(&self, node: SocketAddr) -> impl Future<Output = io::Result<Self::Stream>>;
}

/// A lock on one resource.
pub struct LittleLock<C> {
    /// Opens the connections.
    pub connect: C,
    /// The servers.
    pub nodes: Vec<SocketAddr>,
    /// Name of the key.
    pub resource: String,
    /// Time to live of the keys.
    pub ttl: Duration,
}

/// The lock, until its deadline.
#[derive(Debug)]
pub struct Lease {
    /// Value of the keys.
    pub token: String,
    deadline: Instant,
}

impl Lease {
    /// Returns the time until the lease is over.
    pub fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

impl<C: Connect> LittleLock<C> {
    /// Tries once to take the lock; `token` must be new and random. Deletes what it has set if it
    /// fails.
    pub async fn try_lock(&self, token: String) -> Option<Lease> {
        let ttl_ms = self.ttl.as_millis().to_string();
        let before = Instant::now();
        let mut votes = 0;
        for node in &self.nodes {
            let set = ["SET", &self.resource, &token, "NX", "PX", &ttl_ms];
            votes += usize::from(self.ask(*node, &set).await.is_ok_and(|reply| reply == "+OK"));
        }
        let after = Instant::now();
        let begun = if cfg!(feature = "first-version") { after } else { before };
        // The servers' clocks may be a little faster than ours.
        let deadline = begun + self.ttl - self.ttl / 100 - Duration::from_millis(2);
        let lease = Lease { token, deadline };
        if votes * 2 > self.nodes.len() && lease.remaining() > Duration::ZERO {
            return Some(lease);
        }
        self.unlock(lease).await;
        None
    }

    /// Tries again until it has the lock; `token` returns a new random value each time.
    pub async fn lock(&self, mut token: impl FnMut() -> String) -> Lease {
        loop {
            let next = token();
            // Clients that collide do not try again together.
            let wait_ms = 50 + next.bytes().map(u64::from).sum::<u64>() % 100;
            if let Some(lease) = self.try_lock(next).await {
                return lease;
            }
            sleep(Duration::from_millis(wait_ms)).await;
        }
    }

    /// Releases the lock.
    pub async fn unlock(&self, lease: Lease) {
        for node in &self.nodes {
            // The key of a server that does not answer ends by itself.
            let _ = self.ask(*node, &["EVAL", RELEASE, "1", &self.resource, &lease.token]).await;
        }
    }

    /// Sends a request, and returns the first line of the reply.
    async fn ask(&self, node: SocketAddr, words: &[&str]) -> io::Result<String> {
        let exchange = async {
            let mut stream = BufReader::new(self.connect.connect(node).await?);
            let arguments = words.iter().map(|it| format!("${}\r\n{it}\r\n", it.len()));
            let request = format!("*{}\r\n{}", words.len(), arguments.collect::<String>());
            stream.get_mut().write_all(request.as_bytes()).await?;
            let mut line = String::new();
            stream.read_line(&mut line).await?;
            Ok(line.trim_end().to_owned())
        };
        timeout(self.ttl / 4, exchange).await?
    }
}
