//! Configuration of a client.

mod build;

use core::future::Future;
use core::time::Duration;
use std::error::Error;
use std::sync::Arc;

use crate::client::Redlock;
use crate::credentials::{Credentials, NodeName, Provider};
use crate::environment::{Environment, TokioEnvironment};
use crate::observe::Observer;
use crate::restart_guard::RestartGuard;
#[cfg(feature = "tls")]
use crate::tls::TlsConfig;
use redlock_protocol::{Drift, RetryDelay, Window};

/// Configures a [`Redlock`].
///
/// | setting | default |
/// | --- | --- |
/// | nodes, ttl | required |
/// | fleet_max_ttl: the longest TTL of any client of the nodes | required |
/// | wait | ttl + 1 s |
/// | node_timeout | the smaller of 50 ms and ttl / 10 |
/// | connect_timeout | 500 ms |
/// | drift | 1 % and 2 ms |
/// | min_validity | ttl / 4 |
/// | extensions_max | 1 000 |
/// | retry_delay | first delays below 5 ms, at most 200 ms; silence of at most 5 s |
/// | restart_guard | [`RestartGuard::Quarantine`] |
#[derive(Clone)]
#[must_use = "a builder does nothing until it builds"]
pub struct Builder {
    nodes: Vec<String>,
    ttl: Option<Duration>,
    fleet_max_ttl: Option<Duration>,
    wait: Option<Duration>,
    node_timeout: Option<Duration>,
    connect_timeout: Duration,
    min_validity: Option<Duration>,
    restart_guard: RestartGuard,
    guards: Vec<(usize, RestartGuard)>,
    extensions_max: u32,
    canary_key: Vec<u8>,
    introduction_max_age: Duration,
    drift: Drift,
    /// Allowance that the user asked for instead.
    widened: Option<Drift>,
    retry: RetryDelay,
    window: Window,
    credentials: Option<Arc<Provider>>,
    #[cfg(feature = "tls")]
    tls: TlsConfig,
    /// `None` for the default: a [`TokioEnvironment`].
    environment: Option<Arc<dyn Environment>>,
    observers: Vec<Arc<dyn Observer>>,
}

impl Redlock {
    /// Configures a client.
    pub fn builder() -> Builder {
        Builder::new()
    }
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            nodes: Vec::new(),
            ttl: None,
            fleet_max_ttl: None,
            wait: None,
            node_timeout: None,
            connect_timeout: Duration::from_millis(500),
            min_validity: None,
            restart_guard: RestartGuard::default(),
            guards: Vec::new(),
            extensions_max: DEFAULT_EXTENSIONS_MAX,
            canary_key: DEFAULT_CANARY_KEY.to_vec(),
            introduction_max_age: INTRODUCTION_MAX_AGE,
            drift: Drift::default(),
            widened: None,
            retry: RetryDelay::default(),
            window: Window::default(),
            credentials: None,
            #[cfg(feature = "tls")]
            tls: TlsConfig::new(),
            environment: None,
            observers: Vec::new(),
        }
    }

    /// Sets the nodes, each by a URL.
    ///
    /// | URL | connection |
    /// | --- | --- |
    /// | `redis://[user[:password]@]host[:port][/database]` | TCP; also `valkey://` |
    /// | `rediss://…` | TLS (feature `tls`); also `valkeys://` |
    /// | `unix://[user[:password]@]/path[?db=database]` | Unix socket; also `redis+unix://` and `valkey+unix://`, with the options `user` and `pass`, too |
    ///
    /// In a user, a password or a path, every character other than letters, digits, `-`, `_`, `.`
    /// and `~` is written as `%` and two hexadecimal digits. All addresses of a host are tried. This
    /// is the dialect of redis-rs, except that `#insecure` and `?protocol=resp2` are rejected:
    /// certificates are always verified, and the client speaks RESP3 with servers that do
    /// (`?protocol=resp3` changes nothing).
    ///
    /// The nodes must be independent masters, at most nine; their number should be odd. Every client
    /// must be given the same nodes.
    pub fn nodes<S: Into<String>>(mut self, nodes: impl IntoIterator<Item = S>) -> Self {
        self.nodes = nodes.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the time to live of a key, in whole milliseconds. The lock of a crashed holder is free
    /// after that time.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Sets the longest TTL that *any* client of these nodes uses, in any service. Required, and the
    /// same number in every service.
    ///
    /// A node that may have forgotten leases cannot vote until a quarantine, this time plus drift,
    /// has passed. Too small a value lets it vote while a longer lease of another service is still
    /// alive; too large a value only prolongs the quarantine. Covers every `ttl`,
    /// [`Acquire::ttl`](crate::Acquire::ttl) and [`Lease::extend`](crate::Lease::extend), but not
    /// keep-alive limits: each extension asks for the TTL at most. `docs/fleet-max-ttl.md` says how
    /// to choose it.
    pub fn fleet_max_ttl(mut self, ttl: Duration) -> Self {
        self.fleet_max_ttl = Some(ttl);
        self
    }

    /// Sets the default time after which an acquisition begins no further attempt.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// Sets the time that a node has to answer before it counts as missing. Less than a quarter of
    /// the TTL.
    pub fn node_timeout(mut self, timeout: Duration) -> Self {
        self.node_timeout = Some(timeout);
        self
    }

    /// Sets the time that a connection may take to open.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets the minimum validity: a lease with no more than this left is not delivered. It must be
    /// less than the longest possible validity, which is the TTL minus the allowance for drift (1 % and
    /// 2 ms by default).
    pub fn min_validity(mut self, validity: Duration) -> Self {
        self.min_validity = Some(validity);
        self
    }

    /// Widens the allowance for drift between the clocks of clients and nodes, for fleets with poor
    /// clocks: a share of each TTL, in parts per million, and a constant. The default, 10 000 (1 %)
    /// and 2 ms, is the least: neither can be narrowed. Give every client of the nodes the same
    /// allowance.
    ///
    /// A lease ends that much before its TTL is over, and a quarantine lasts that much longer than
    /// `fleet_max_ttl`. The allowance is for the difference of two clocks: 20 000 covers a client
    /// that is 1 % slow and a node that is 1 % fast.
    pub fn drift(mut self, share_ppm: u32, constant: Duration) -> Self {
        self.widened = Some(Drift { share_ppm, constant });
        self
    }

    /// Sets your promise about the data of all nodes. The default promises nothing; the others
    /// are safe only if the promise is true (counterexamples K3, D2).
    pub fn restart_guard(mut self, guard: RestartGuard) -> Self {
        self.restart_guard = guard;
        self
    }

    /// Sets your promise about the data of the node at `place` in the list; overrides
    /// [`Builder::restart_guard`] for that node.
    pub fn restart_guard_of(mut self, place: usize, guard: RestartGuard) -> Self {
        self.guards.push((place, guard));
        self
    }

    /// Sets the random delays before attempts, and how long a waiting acquisition sends nothing.
    ///
    /// ```
    /// # use core::time::Duration;
    /// use redlock_client::{Redlock, RetryDelay};
    ///
    /// let silence = Duration::from_secs(30);
    /// let builder = Redlock::builder().retry_delay(RetryDelay { silence, ..RetryDelay::default() });
    /// ```
    ///
    /// A `silence` of less than 100 ms counts as 100 ms.
    pub fn retry_delay(mut self, retry: RetryDelay) -> Self {
        let silence = retry.silence.max(SILENCE_MIN);
        self.retry = RetryDelay { silence, ..retry };
        self
    }

    /// Sets how often the holder of a lease may extend it. Keep-alive extensions do not count:
    /// keep-alive has a limit of its own.
    pub fn extensions_max(mut self, most: u32) -> Self {
        self.extensions_max = most;
        self
    }

    /// Sets the name of the canary, the key that identifies a node's data set:
    /// `redlock-client:canary` by default.
    ///
    /// Each node has one canary, without a time to live. A client that meets a node for the first
    /// time does not count its votes until the canary is as old as a quarantine (`fleet_max_ttl`
    /// plus drift), unless it was given a promise about the node. If the canary is deleted, clients
    /// that know the node quarantine it when it next identifies itself, whatever the promise. So if
    /// the canaries of a majority are deleted, these clients cannot lock for that long; nothing worse
    /// happens. A client with a new name and no promise waits only until the canaries of that name
    /// are old enough. `redlock inspect --canary-key NAME` writes them in advance. No lock can have
    /// this name, and the canary cannot have the name `redlock-client:inspect`, of the key that
    /// [`Redlock::inspect`] sets.
    pub fn canary_key(mut self, name: impl AsRef<[u8]>) -> Self {
        self.canary_key = name.as_ref().to_vec();
        self
    }

    /// Verifies the node's identity with every vote: every SET is followed by a request for the
    /// identity, in the same write, and the vote counts only after the answer to it.
    ///
    /// By default the request is sent only if the last one is more than a second old. A proxy can
    /// keep a connection open while the server behind it is replaced. Behind such a proxy, a server
    /// that lost its keys can vote within that second.
    pub fn verify_every_vote(mut self) -> Self {
        self.introduction_max_age = Duration::ZERO;
        self
    }

    /// Sets a provider of credentials, for passwords that expire: tokens of a cloud's IAM or Entra ID,
    /// secrets of Vault. It is asked at each new connection to a node, after the connection is open;
    /// the URLs must then have none.
    ///
    /// ```
    /// use redlock_client::{Credentials, NodeName, Redlock};
    ///
    /// let builder = Redlock::builder()
    ///     .nodes(["rediss://a.example", "rediss://b.example", "rediss://c.example"])
    ///     .credentials(async |node: NodeName| {
    ///         let token = token_for(&node.node).await?;
    ///         Ok::<_, std::io::Error>(Credentials::new("invoices", token))
    ///     });
    /// # async fn token_for(_: &str) -> std::io::Result<String> { Ok(String::new()) }
    /// ```
    ///
    /// A connection has the connect timeout for everything, the provider's answer included: keep the
    /// token, and renew it before it expires. An error of the provider is the reason of the failed
    /// connection, in the node's answers, in [`Health`](crate::Health) and in the log, with the texts
    /// of its causes; so is a panic of it. The client dials again as after every failure. An open connection keeps the
    /// credentials that it began with. If the server closes it when they expire, the next one has new
    /// ones. Neither user nor password is ever shown.
    pub fn credentials<F, A, E>(mut self, provider: F) -> Self
    where
        F: Fn(NodeName) -> A + Send + Sync + 'static,
        A: Future<Output = Result<Credentials, E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        self.credentials = Some(Arc::new(move |node| {
            let asked = provider(node);
            Box::pin(async move { asked.await.map_err(Into::into) })
        }));
        self
    }

    /// Sets the TLS configuration of the nodes with a `rediss://` URL. By default, the system's
    /// trust store is used.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: TlsConfig) -> Self {
        self.tls = tls;
        self
    }

    /// Runs the whole client on a thread of its own, apart from the application's scheduler.
    ///
    /// By default the connections live in the runtime that uses the client first. While that
    /// runtime is blocked, nothing is sent: leases are neither extended nor released, and end at
    /// their deadlines. With a thread of its own, the client does not need a runtime of the caller.
    /// Each acquisition then costs two thread switches.
    pub fn background_thread(mut self) -> Self {
        self.environment = Some(Arc::new(TokioEnvironment::in_background()));
        self
    }

    /// Returns true if an environment was chosen.
    pub(crate) fn has_environment(&self) -> bool {
        self.environment.is_some()
    }

    /// Sets the environment: clock, random bytes, network and tasks. For simulators; outside
    /// semver, as everything in [`environment`](crate::environment).
    pub fn environment(mut self, environment: Arc<dyn Environment>) -> Self {
        self.environment = Some(environment);
        self
    }

    /// Adds an observer. Every observer receives all events of the client. May be called several
    /// times.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observers.push(observer);
        self
    }

    /// Sets the drift allowance of leases, the delay between attempts, and the most commands on a
    /// connection. For simulators; outside semver. A smaller allowance than the default breaks the
    /// guarantees.
    pub fn tuning(mut self, drift: Drift, retry: RetryDelay, window: Window) -> Self {
        self.drift = drift;
        self.retry = retry;
        self.window = window;
        self
    }
}

const SILENCE_MIN: Duration = Duration::from_millis(100);
pub(crate) const DEFAULT_CANARY_KEY: &[u8] = b"redlock-client:canary";
/// Time for which an introduction is valid, unless every vote is verified.
const INTRODUCTION_MAX_AGE: Duration = Duration::from_secs(1);
/// Default for [`Builder::extensions_max`].
const DEFAULT_EXTENSIONS_MAX: u32 = 1_000;

#[cfg(test)]
mod tests;
