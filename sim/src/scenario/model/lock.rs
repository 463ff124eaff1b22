//! The lock as the clients are told it, and what it protects.

use serde::{Deserialize, Serialize};

use crate::scenario::span::{Span, SpanRange};

/// The lock as the clients are told it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Lock {
    /// Its name, the key on every master.
    pub resource: String,
    /// How long a key lives.
    pub ttl: Span,
    /// What a lease gives up for drift.
    pub drift: Drift,
    /// How long a node may take to answer.
    pub node_timeout: Span,
    /// A grant with no more than this left is none.
    pub min_validity: Span,
    /// The wait between attempts.
    pub retry: Retry,
    /// The longest TTL that any client uses. The largest of the file unless it is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fleet_max_ttl: Option<Span>,
    /// How many extensions of one lease may succeed.
    pub extensions_max: u32,
    /// Whether extensions may be asked for by plain owner-checked SETs, where masters have them.
    #[serde(skip_serializing_if = "is_false")]
    pub plain_extensions: bool,
    /// What the clients are *told* of the masters' memory; `cluster.persistence` is what is true.
    pub restart_guard: RestartGuard,
}

impl Default for Lock {
    fn default() -> Self {
        Self {
            resource: String::from("res"),
            ttl: Span::from_ms(10_000),
            drift: Drift::default(),
            node_timeout: Span::from_ms(50),
            min_validity: Span(0),
            retry: Retry::default(),
            fleet_max_ttl: None,
            extensions_max: 100,
            plain_extensions: false,
            restart_guard: RestartGuard::Quarantine,
        }
    }
}

fn is_false(it: &bool) -> bool {
    !it
}

/// What a lease gives up for clocks that run at different rates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Drift {
    /// A share of the TTL, in parts per million.
    pub share_ppm: u32,
    /// And this.
    pub constant: Span,
}

impl Default for Drift {
    fn default() -> Self {
        Self { share_ppm: 10_000, constant: Span::from_ms(2) }
    }
}

/// The wait between two attempts: below a bound that doubles from `first` to `longest`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Retry {
    /// The first bound.
    pub first: Span,
    /// The largest bound.
    pub longest: Span,
}

impl Default for Retry {
    fn default() -> Self {
        Self { first: Span::from_ms(5), longest: Span::from_ms(200) }
    }
}

/// What the operator promises the clients of the masters' memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RestartGuard {
    /// A crashed master stays away for longer than the longest TTL.
    DelayedRestart,
    /// A restart loses nothing.
    Durable,
    /// Nothing.
    #[default]
    Quarantine,
}

/// The protected resource: a host of its own behind the network.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Store {
    /// What it checks.
    pub checks: Checks,
    /// One way to it, drawn for every message.
    pub delay: SpanRange,
}

impl Default for Store {
    fn default() -> Self {
        Self { checks: Checks::Nothing, delay: SpanRange::exactly(Span::from_ms(1)) }
    }
}

/// What the protected resource checks. The fencing modes draw a token from an ideal monotonic
/// source when a lease is delivered: control runs, no claim that Redlock has such a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Checks {
    /// Nothing.
    #[default]
    Nothing,
    /// Fencing tokens, on writes.
    TokenOnWrite,
    /// Fencing tokens, when it is opened or read, and on writes.
    TokenOnOpenAndWrite,
    /// That the owner tag is still the writer's: a holder tags the resource with its random token
    /// when it opens it, and writes only while the tag is there.
    CompareAndSetOwner,
}
