//! Errors of an extension.

use core::fmt;

use redlock_protocol as protocol;

use super::{LostReason, OptionError, TtlError};

/// Reason why a lease was not extended. Its deadline is unchanged; keys may live for longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtendError {
    kind: ExtendErrorKind,
    refused: Option<OptionError>,
}

/// The kinds of [`ExtendError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExtendErrorKind {
    /// The TTL is invalid.
    Invalid,
    /// The lease is over.
    Lost(LostReason),
    /// A majority was not asked within the node timeout, because this client had more to send than
    /// its connections accept.
    Overloaded,
    /// Too few nodes answered, or too few of them still had the key.
    TooFewNodes,
    /// The lease has reached its limit of extensions.
    TooMany,
    /// The answers came too late: at the old deadline or after it. Observers and metrics have this
    /// kind. A call that fails for it returns [`ExtendErrorKind::Lost`], because the lease is over.
    TooSlow,
    /// The new deadline would not be later than the present one.
    WouldShorten,
}

impl ExtendError {
    /// Returns the kind of failure.
    #[must_use]
    pub fn kind(&self) -> ExtendErrorKind {
        self.kind
    }
}

impl From<OptionError> for ExtendError {
    fn from(refused: OptionError) -> Self {
        Self { kind: ExtendErrorKind::Invalid, refused: Some(refused) }
    }
}

impl ExtendError {
    pub(crate) fn plain(kind: ExtendErrorKind) -> Self {
        Self { kind, refused: None }
    }

    pub(crate) fn lost(reason: LostReason) -> Self {
        Self::plain(ExtendErrorKind::Lost(reason))
    }

    pub(crate) fn new(reason: protocol::ExtendError, ttl: core::time::Duration) -> Self {
        use protocol::ExtendError as Reason;
        match reason {
            Reason::TooLong => OptionError::Ttl { ttl, why: TtlError::BeyondFleet }.into(),
            _ => Self::plain(reason.into()),
        }
    }
}

impl From<protocol::ExtendError> for ExtendErrorKind {
    fn from(reason: protocol::ExtendError) -> Self {
        use protocol::ExtendError as Reason;
        match reason {
            Reason::Busy | Reason::Cancelled => Self::Lost(LostReason::Released),
            Reason::Lost(reason) => Self::Lost(reason.into()),
            Reason::Overloaded => Self::Overloaded,
            Reason::TooFewNodes => Self::TooFewNodes,
            Reason::TooLong => Self::Invalid,
            Reason::TooMany => Self::TooMany,
            Reason::TooSlow => Self::TooSlow,
            Reason::WouldShorten => Self::WouldShorten,
        }
    }
}

impl ExtendErrorKind {
    /// Returns the kind as one word, for logs and metrics. The words are stable, like the names
    /// of the variants.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Lost(_) => "lost",
            Self::Overloaded => "overloaded",
            Self::TooFewNodes => "too_few_nodes",
            Self::TooMany => "too_many",
            Self::TooSlow => "too_slow",
            Self::WouldShorten => "would_shorten",
        }
    }
}

impl fmt::Display for ExtendError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(refused) = &self.refused {
            return write!(formatter, "{refused}");
        }
        formatter.write_str(match self.kind {
            ExtendErrorKind::Invalid => "an option of the extension is invalid",
            ExtendErrorKind::Lost(reason) => return write!(formatter, "{reason}"),
            ExtendErrorKind::Overloaded => {
                "this client sends more than its connections accept (run fewer tasks at once, or use a \
                 longer node timeout)"
            }
            ExtendErrorKind::TooFewNodes => {
                "too few nodes confirmed in time that they still had the key (finish before the deadline, \
                 which is unchanged, or extend again; `Redlock::health` has the nodes' errors)"
            }
            ExtendErrorKind::TooMany => "the limit of extensions is reached (`Builder::extensions_max`)",
            ExtendErrorKind::TooSlow => "the nodes answered after the lease had ended",
            ExtendErrorKind::WouldShorten => "the lease would not end later than it does now",
        })
    }
}

impl std::error::Error for ExtendError {}
