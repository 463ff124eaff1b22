//! Errors of the configuration and of options.

use core::time::Duration;

use crate::protocol::MAX_NODES;

/// Reason why a client cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the variant's message names its fields")]
pub enum BuildError {
    #[error("node {place} (`{endpoint}`) is configured twice: its vote would count twice")]
    DuplicateNode { place: usize, endpoint: String },
    #[error("the node `{url}`: {why}")]
    Endpoint { url: String, why: EndpointError },
    #[error("there is a guard for node {place}, and only {nodes} nodes")]
    GuardWithoutNode { place: usize, nodes: usize },
    #[error("no `{0}` was given, and it has no default")]
    Missing(&'static str),
    #[error("no node was given")]
    NoNodes,
    #[error(transparent)]
    Option(#[from] OptionError),
    #[cfg(feature = "tls")]
    #[error("TLS cannot be had: {0}")]
    Tls(#[from] crate::tls::TlsError),
    #[error("{0} nodes were given, at most {MAX_NODES} are supported")]
    TooManyNodes(usize),
}

/// Reason why an option of a client, an acquisition or an extension cannot be met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the variant's message names its fields")]
pub enum OptionError {
    #[error("a canary key of {bytes} bytes; one to {most} are allowed")]
    CanaryKey { bytes: usize, most: usize },
    #[error("a connect timeout of {connect_timeout:?} is not between 1 ms and a minute")]
    ConnectTimeout { connect_timeout: Duration },
    #[error("an empty resource name")]
    EmptyResource,
    #[error("a keep-alive of at most {at_most:?} does not outlive the TTL of {ttl:?}")]
    KeepAlive { at_most: Duration, ttl: Duration },
    #[error(
        "a min_validity of {min_validity:?}: a lease is worth at most {worth_at_most:?}, its TTL of \
         {ttl:?} less drift"
    )]
    MinValidity { min_validity: Duration, worth_at_most: Duration, ttl: Duration },
    #[error("zero attempts")]
    NoAttempts,
    #[error(
        "a node timeout of {node_timeout:?} is not between zero and a quarter of the TTL {ttl:?}"
    )]
    NodeTimeout { node_timeout: Duration, ttl: Duration },
    #[error("the resource has the name of the canary (`Builder::canary_key`)")]
    ResourceIsCanary,
    #[error("a resource name of {bytes} bytes; at most {most} are allowed")]
    ResourceTooLong { bytes: usize, most: usize },
    #[error("a TTL of {ttl:?}: {why}")]
    Ttl { ttl: Duration, why: TtlError },
}

/// Fault in a node's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// The database is not a number.
    #[error("expected the number of a database")]
    Database,
    /// A `%` is not followed by two hexadecimal digits.
    #[error("expected two hexadecimal digits after each `%`")]
    Escape,
    /// The address has a fragment.
    #[error("a `#` has no meaning here: written `%23`, it may be part of a password or a path")]
    Fragment,
    /// The host is missing or has characters that are not allowed in a host.
    #[error("expected a host name, an IPv4 address, or an IPv6 address in brackets")]
    Host,
    /// The scheme is `rediss://`, and the crate was built without the feature `tls`.
    #[error("`rediss://` needs the feature `tls` of redlock-client")]
    NoTls,
    /// The query has an unknown option.
    #[error("the only option is `db`, and only of `unix://`")]
    Option,
    /// The absolute path is missing.
    #[error("expected an absolute path, as in `unix:///run/redis.sock`")]
    Path,
    /// The port is not a number from 1 to 65535.
    #[error("expected a port from 1 to 65535")]
    Port,
    /// The scheme is unknown.
    #[error("expected `redis://host:port`, `rediss://host:port` or `unix:///path`")]
    Scheme,
}

/// Fault in a time to live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TtlError {
    /// Such a lease would outlive other clients' quarantine of a restarted node.
    #[error("longer than fleet_max_ttl, by which the whole fleet waits after a restart")]
    BeyondFleet,
    /// Longer than ten years. The bound avoids overflows in the client and the server.
    #[error("longer than ten years")]
    Absurd,
    /// Not a whole number of milliseconds, the unit of Redis.
    #[error("not a whole number of milliseconds")]
    SubMillisecond,
    /// The lease would be over when it begins.
    #[error("no longer than what leases give up for drift, 1 % and 2 ms")]
    WithinDrift,
    /// Zero: the key would never exist.
    #[error("zero")]
    Zero,
}
