//! What the client takes from the world: connections, one clock, timers, tasks and entropy.

mod on_tokio;

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::str::FromStr;
use std::io;

use tokio::io::{AsyncRead, AsyncWrite};

pub use self::on_tokio::TokioEnvironment;
use crate::error::{BuildError, EndpointError};
use crate::protocol::BootInstant;

/// A future on the heap.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A connection's bytes, both ways. Dropping it resets the connection: what was not sent by then
/// is not sent any more.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Stream for T {}

/// The world as the client sees it. The client does nothing that does not go through here.
pub trait Environment: Send + Sync + 'static {
    /// Resolves the name and opens a connection.
    fn connect<'a>(&'a self, to: &'a Endpoint) -> BoxFuture<'a, io::Result<Box<dyn Stream>>>;

    /// The client's clock: it counts time asleep and never goes back.
    fn now(&self) -> BootInstant;

    /// Ready when [`Environment::now`] reads at least `at`: perhaps late, never early.
    fn sleep_until(&self, at: BootInstant) -> BoxFuture<'static, ()>;

    /// Runs `task` in the background. Called only from inside a poll.
    fn spawn(&self, name: &'static str, task: BoxFuture<'static, ()>);

    /// Fills `bytes` from a source that no other client shares.
    ///
    /// # Errors
    ///
    /// If there is no entropy to be had.
    fn fill_random(&self, bytes: &mut [u8]) -> io::Result<()>;
}

/// Where a node listens.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    host: String,
    port: u16,
}

impl Endpoint {
    /// The port of Redis where none is given.
    const DEFAULT_PORT: u16 = 6_379;

    /// The host's name or address, without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl FromStr for Endpoint {
    type Err = BuildError;

    /// Reads `redis://host:port`; the port may be left out.
    fn from_str(url: &str) -> Result<Self, BuildError> {
        let wrong = |why| BuildError::Endpoint { url: redacted(url), why };
        let rest = url.strip_prefix("redis://").ok_or(wrong(EndpointError::Scheme))?;
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        if authority.contains('@') {
            return Err(wrong(EndpointError::Credentials));
        }
        if authority.contains(['/', '?', '#']) {
            return Err(wrong(EndpointError::Path));
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(bracketed) => bracketed.split_once(']').ok_or(wrong(EndpointError::Host))?,
            None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
        };
        let valid_host = |c: char| c.is_ascii_alphanumeric() || "-_.:%".contains(c);
        if host.is_empty() || !host.chars().all(valid_host) {
            return Err(wrong(EndpointError::Host));
        }
        let port = match port.strip_prefix(':') {
            Some(digits) => digits.parse().ok().filter(|&port| port != 0),
            None if port.is_empty() => Some(Self::DEFAULT_PORT),
            None => None,
        };
        let port = port.ok_or(wrong(EndpointError::Port))?;
        Ok(Self { host: host.to_ascii_lowercase(), port })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(formatter, "redis://[{}]:{}", self.host, self.port)
        } else {
            write!(formatter, "redis://{}:{}", self.host, self.port)
        }
    }
}

/// `url` without what stands before an `@`: it may be a password.
fn redacted(url: &str) -> String {
    match url.rsplit_once('@') {
        Some((_, rest)) => format!("…@{rest}"),
        None => String::from(url),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(url: &str) -> EndpointError {
        match url.parse::<Endpoint>() {
            Err(BuildError::Endpoint { why, .. }) => why,
            other => panic!("{url}: {other:?}"),
        }
    }

    #[test]
    fn an_endpoint_reads_what_it_writes() {
        for (url, full) in [
            ("redis://a", "redis://a:6379"),
            ("redis://A.example:7000/", "redis://a.example:7000"),
            ("redis://10.0.0.1:1", "redis://10.0.0.1:1"),
            ("redis://[::1]:6380", "redis://[::1]:6380"),
            ("redis://[fe80::1]", "redis://[fe80::1]:6379"),
        ] {
            let endpoint: Endpoint = url.parse().unwrap();
            assert_eq!(endpoint.to_string(), full);
            assert_eq!(full.parse::<Endpoint>().unwrap(), endpoint);
        }
    }

    #[test]
    fn what_is_no_endpoint_is_refused_by_name() {
        assert_eq!(why("a:6379"), EndpointError::Scheme);
        assert_eq!(why("rediss://a"), EndpointError::Scheme);
        assert_eq!(why("redis://"), EndpointError::Host);
        assert_eq!(why("redis://a b"), EndpointError::Host);
        assert_eq!(why("redis://[::1"), EndpointError::Host);
        assert_eq!(why("redis://a:0"), EndpointError::Port);
        assert_eq!(why("redis://a:"), EndpointError::Port);
        assert_eq!(why("redis://a:65536"), EndpointError::Port);
        assert_eq!(why("redis://a/1"), EndpointError::Path);
    }

    #[test]
    fn an_error_does_not_show_a_password() {
        let error = "redis://user:secret@a:1".parse::<Endpoint>().unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}
