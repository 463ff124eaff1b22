//! Errors of the configuration and of options.

use core::time::Duration;

use redlock_protocol::MAX_NODES;

use crate::config::variable_of;

/// Reason why a client cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the variant's message names its fields")]
pub enum BuildError {
    /// Credentials both in the URL of a node and from a provider.
    #[error(
        "node {place} (`{endpoint}`), counted from 0, has credentials in its URL, and there is a provider of \
         credentials: use only one of the two"
    )]
    CredentialsTwice { place: usize, endpoint: String },
    /// Two URLs of the same server, at two places of the list.
    #[error(
        "nodes {first} and {second}, counted from 0, are the same server (`{endpoint}`): its vote would count \
         twice; name each server once"
    )]
    DuplicateNode { first: usize, second: usize, endpoint: String },
    /// A URL that is not valid; shown without credentials.
    #[error("the node `{url}`: {why}")]
    Endpoint { url: String, why: EndpointError },
    /// A restart guard for a place without a node.
    #[error("a restart guard for node {place}, counted from 0, but there are only {nodes} nodes")]
    GuardWithoutNode { place: usize, nodes: usize },
    /// A required setting was not given: its name, as in a file.
    #[error("`{0}` is required ({source}){meaning}", source = source_of(.0), meaning = meaning_of(.0))]
    Missing(&'static str),
    /// The list of nodes is empty.
    #[error("no node was given: pass at least one URL to `Builder::nodes`, or set `REDLOCK_NODES`")]
    NoNodes,
    /// The value of a setting cannot be met.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// The certificates for TLS cannot be used.
    #[cfg(feature = "tls")]
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] crate::tls::TlsError),
    /// More nodes than are supported: the number given.
    #[error("{0} nodes were given, at most {MAX_NODES} are supported")]
    TooManyNodes(usize),
}

/// Reason why an option of a client, an acquisition or an extension cannot be met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the variant's message names its fields")]
pub enum OptionError {
    /// A canary key that is empty or too long.
    #[error("a canary key of {bytes} bytes; one to {most} are allowed")]
    CanaryKey { bytes: usize, most: usize },
    /// A canary with the name of the key that `Redlock::inspect` sets and deletes.
    #[error(
        "the canary has the name of the key that `inspect` sets and deletes: choose another name for it"
    )]
    CanaryIsProbe,
    /// A connect timeout out of bounds.
    #[error("a connect timeout of {connect_timeout:?}: must be 1 ms to 1 minute")]
    ConnectTimeout { connect_timeout: Duration },
    /// An allowance for drift below the default.
    #[error(
        "an allowance for drift of {share_ppm} parts per million and {constant:?}: it can be widened only, \
         from 10000 (1 %) and 2 ms"
    )]
    Drift { share_ppm: u32, constant: Duration },
    /// One lock named twice in an acquisition of several.
    #[error(
        "resources {first} and {second}, counted from 0, have the same name; name each lock once"
    )]
    DuplicateResource { first: usize, second: usize },
    /// A lock without a name.
    #[error("the resource name is empty")]
    EmptyResource,
    /// A `fleet_max_ttl` that no TTL can have.
    #[error("a fleet_max_ttl of {fleet_max_ttl:?}: {why}")]
    FleetMaxTtl { fleet_max_ttl: Duration, why: TtlError },
    /// A keep-alive limit that ends before the lease needs an extension.
    #[error("a keep-alive limit of {at_most:?}: must be longer than the TTL of {ttl:?}")]
    KeepAlive { at_most: Duration, ttl: Duration },
    /// A least validity that no lease of this TTL can have.
    #[error(
        "a min_validity of {min_validity:?}: must be less than {worth_at_most:?}, the TTL of {ttl:?} \
         less drift"
    )]
    MinValidity { min_validity: Duration, worth_at_most: Duration, ttl: Duration },
    /// A limit of zero attempts.
    #[error("zero attempts: at least one is needed")]
    NoAttempts,
    /// An acquisition of several locks that names none.
    #[error("zero resources: at least one is needed")]
    NoResources,
    /// A node timeout that is zero, or too long for the TTL.
    #[error(
        "a node timeout of {node_timeout:?}: must be above zero and below a quarter of the TTL of {ttl:?}"
    )]
    NodeTimeout { node_timeout: Duration, ttl: Duration },
    /// A semaphore without a permit, or with too many.
    #[error("a semaphore of {permits} permits; 1 to {most} are allowed")]
    Permits { permits: usize, most: usize },
    /// A lock with the name of the key that identifies the nodes.
    #[error(
        "the resource has the name of the canary: choose another name for it, or for the canary \
         (`Builder::canary_key`)"
    )]
    ResourceIsCanary,
    /// A lock with the name of the key that `Redlock::inspect` sets and deletes.
    #[error(
        "the resource has the name of the key that `inspect` sets and deletes: choose another name for it"
    )]
    ResourceIsProbe,
    /// A name of a lock that is too long.
    #[error("a resource name of {bytes} bytes; at most {most} are allowed")]
    ResourceTooLong { bytes: usize, most: usize },
    /// An acquisition of more locks than are supported.
    #[error("more than {most} resources at once; lock one that stands for them")]
    TooManyResources { most: usize },
    /// A TTL that is not valid, or that is beyond `fleet_max_ttl`.
    #[error("a TTL of {ttl:?}: {why}")]
    Ttl { ttl: Duration, why: TtlError },
}

/// Returns the method and the variable of a required setting.
fn source_of(setting: &str) -> String {
    let method = format!("`Builder::{setting}`");
    match variable_of(setting) {
        Some(variable) => format!("{method}, or `{variable}`"),
        None => method,
    }
}

/// Returns the meaning of a required setting, to follow its name.
fn meaning_of(setting: &str) -> &'static str {
    match setting {
        "fleet_max_ttl" => ": the longest TTL that any client of these nodes uses, in any service",
        _ => "",
    }
}

/// Fault in a node's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// The path has an `@`, or the user or the password has a `/`.
    #[error("in a user, a password or a path, `@` is written `%40` and `/` of a password `%2F`")]
    AtSign,
    /// Both the query and the part before the host have credentials.
    #[error("the user and the password are named twice: before the path and in the query")]
    CredentialsTwice,
    /// The database is not a number.
    #[error("expected the number of a database")]
    Database,
    /// A `%` is not followed by two hexadecimal digits.
    #[error("expected two hexadecimal digits after each `%`")]
    Escape,
    /// The address has a fragment.
    #[error("a `#` has no meaning here: written `%23`, it may be part of a password or a path")]
    Fragment,
    /// The scheme is one of Sentinel or Cluster.
    #[error(
        "Sentinel and Cluster are not supported: list independent masters, each as `redis://…`"
    )]
    Group,
    /// The host is missing or has characters that are not allowed in a host.
    #[error("expected a host name, an IPv4 address, or an IPv6 address in brackets")]
    Host,
    /// The fragment is `#insecure`, which in other clients turns verification off.
    #[error(
        "`#insecure` would turn verification off, and this client always verifies; to trust a \
         certificate of your own, use `Builder::tls`"
    )]
    Insecure,
    /// The scheme is `rediss://` or `valkeys://`, and the crate was built without the feature `tls`.
    #[error("`rediss://` and `valkeys://` need the feature `tls` of redlock-client")]
    NoTls,
    /// The query has an unknown option, or the same option twice.
    #[error(
        "unknown option, or one named twice; there are `protocol=resp3`, and `db`, `user` and `pass` of \
         `unix://` (elsewhere they are written as in `redis://user:pass@host/db`)"
    )]
    Option,
    /// The absolute path is missing.
    #[error("expected an absolute path, as in `unix:///run/redis.sock`")]
    Path,
    /// An option of the query has a `+`, which is a space in some dialects.
    #[error("in an option, a space is written `%20` and a plus `%2B`")]
    Plus,
    /// The port is not a number from 1 to 65535.
    #[error("expected a port from 1 to 65535")]
    Port,
    /// The option `protocol` names another version than 3.
    #[error("the client speaks RESP3 with servers that do, else RESP2: leave `protocol` out")]
    Protocol,
    /// The scheme is unknown.
    #[error("expected `redis://host:port`, `rediss://host:port` or `unix:///path`")]
    Scheme,
    /// The URL begins or ends with a space, a tab or a line break.
    #[error("remove the spaces and line breaks before and after the URL")]
    Space,
}

/// Fault in a time to live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TtlError {
    /// Longer than `fleet_max_ttl`: such a lease could outlive the quarantine of a restarted node.
    #[error("longer than fleet_max_ttl, the longest TTL of any client of these nodes")]
    BeyondFleet,
    /// Longer than ten years. The bound avoids overflows in the client and the server.
    #[error("longer than ten years")]
    Absurd,
    /// Not a whole number of milliseconds, the unit of Redis.
    #[error("not a whole number of milliseconds")]
    SubMillisecond,
    /// The lease would be over when it begins.
    #[error("not longer than the allowance for drift, which is at least 1 % and 2 ms")]
    WithinDrift,
    /// Zero, which servers refuse.
    #[error("must be above zero")]
    Zero,
}
