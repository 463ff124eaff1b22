//! The parameters that the clients have for the lock, and the resource that it protects.

use core::num::NonZeroU16;

use serde::{Deserialize, Serialize};

use super::is_false;
use crate::scenario::span::{Span, SpanRange};

/// The lock's parameters, as the clients are configured with them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Lock {
    /// Name of the lock: the key on every master.
    pub resource: String,
    /// Names of further locks on the same masters, with the same parameters. A client names the one
    /// that it uses in `resource`. Only for `redlock`, on the engine `event`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub further_resources: Vec<String>,
    /// TTL of a key.
    pub ttl: Span,
    /// Part of its TTL that a lease gives up for clock drift.
    pub drift: Drift,
    /// Maximum time that a client waits for a node's reply.
    pub node_timeout: Span,
    /// Minimum remaining validity: an attempt with no more time left than this is not granted.
    pub min_validity: Span,
    /// The wait between attempts.
    pub retry: Retry,
    /// Longest TTL that any client uses; the largest TTL in the file if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fleet_max_ttl: Option<Span>,
    /// Maximum number of successful extensions of one lease.
    pub extensions_max: u32,
    /// True if clients may extend with plain owner-checked SETs, on masters that support them.
    #[serde(skip_serializing_if = "is_false")]
    pub plain_extensions: bool,
    /// Most commands that wait or are unanswered on one connection of a client; a sixteenth of them,
    /// and at least four, may be written. 8 192 if not given. For the subject `redlock`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<NonZeroU16>,
    /// Promise about the masters' memory that the clients are *configured* with;
    /// `cluster.persistence` is the truth.
    pub restart_guard: RestartGuard,
}

impl Default for Lock {
    fn default() -> Self {
        Self {
            resource: String::from("res"),
            further_resources: Vec::new(),
            ttl: Span::from_ms(10_000),
            drift: Drift::default(),
            node_timeout: Span::from_ms(50),
            min_validity: Span(0),
            retry: Retry::default(),
            fleet_max_ttl: None,
            extensions_max: 100,
            plain_extensions: false,
            window: None,
            restart_guard: RestartGuard::Quarantine,
        }
    }
}

/// Part of its TTL that a lease gives up because clocks run at different rates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Drift {
    /// A share of the TTL, in parts per million.
    pub share_ppm: u32,
    /// A constant, added to the share.
    pub constant: Span,
}

impl Drift {
    /// Returns the part of `ttl` that a lease gives up, at most `u64::MAX` ns. The share is rounded
    /// up to a nanosecond, as clients round it: a client promises no less than its share.
    #[must_use]
    pub fn of(self, ttl: Span) -> Span {
        let share_ns = (u128::from(ttl.0) * u128::from(self.share_ppm)).div_ceil(1_000_000);
        let share_ns = u64::try_from(share_ns).unwrap_or(u64::MAX);
        Span(share_ns.saturating_add(self.constant.0))
    }
}

impl Default for Drift {
    fn default() -> Self {
        Self { share_ppm: 10_000, constant: Span::from_ms(2) }
    }
}

/// The wait between two attempts, drawn below a bound that doubles from `first` to `longest`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// The operator's promise to the clients about the masters' memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RestartGuard {
    /// A crashed master stays down for longer than the longest TTL.
    DelayedRestart,
    /// A restart loses nothing.
    Durable,
    /// No promise: the clients quarantine a restarted master.
    #[default]
    Quarantine,
}

/// The protected resource: a host of its own behind the network.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Store {
    /// Checks that the resource makes.
    pub checks: Checks,
    /// One-way delay to the resource, drawn for every message.
    pub delay: SpanRange,
}

impl Default for Store {
    fn default() -> Self {
        Self { checks: Checks::Nothing, delay: SpanRange::exactly(Span::from_ms(1)) }
    }
}

/// Checks that the protected resource makes. The fencing modes draw a token from an ideal monotonic
/// source when a grant is decided. They are control runs, not a claim that Redlock has such a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Checks {
    /// Nothing.
    #[default]
    Nothing,
    /// Fencing tokens, on writes.
    TokenOnWrite,
    /// Fencing tokens, when the resource is opened or read, and on writes.
    TokenOnOpenAndWrite,
    /// The owner tag: a holder tags the resource with its random token when it opens the resource,
    /// and a write succeeds only while that tag is still there.
    CompareAndSetOwner,
    /// The version: a write succeeds only while the version that its holder read last is the present
    /// one.
    CompareAndSetVersion,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drift_is_never_less_than_the_share() {
        let drift = Drift { share_ppm: 10_000, constant: Span(3) };
        assert_eq!(drift.of(Span(0)), Span(3));
        assert_eq!(drift.of(Span(100)), Span(1 + 3));
        assert_eq!(drift.of(Span(101)), Span(2 + 3));
    }

    #[test]
    fn drift_does_not_wrap() {
        let drift = Drift { share_ppm: u32::MAX, constant: Span(1) };
        assert_eq!(drift.of(Span(u64::MAX)), Span(u64::MAX));
    }
}
