//! Answer of one node to an operation that failed.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

/// One node's part in an attempt that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeVerdict {
    /// The node was not asked: no connection accepted the command in time.
    #[default]
    NotAsked,
    /// The node was asked, and had not answered when the attempt was settled.
    Pending,
    /// The node set the key.
    Granted,
    /// The node set the key, but its vote does not count: it is in quarantine, or a replica.
    NotCounted,
    /// The node refused: another attempt's key was there.
    Taken,
    /// The node answered with an error.
    Error,
    /// The node did not answer in time.
    Silent,
}

impl From<redlock_protocol::NodeVerdict> for NodeVerdict {
    fn from(verdict: redlock_protocol::NodeVerdict) -> Self {
        use redlock_protocol::NodeVerdict as Verdict;
        match verdict {
            Verdict::NotAsked => Self::NotAsked,
            Verdict::Pending => Self::Pending,
            Verdict::Granted => Self::Granted,
            Verdict::NotCounted => Self::NotCounted,
            Verdict::Taken => Self::Taken,
            Verdict::Error => Self::Error,
            Verdict::Silent => Self::Silent,
        }
    }
}

impl NodeVerdict {
    /// Returns the verdict as one word, for logs and metrics. The words are stable, like the names
    /// of the variants.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotAsked => "not_asked",
            Self::Pending => "pending",
            Self::Granted => "granted",
            Self::NotCounted => "not_counted",
            Self::Taken => "taken",
            Self::Error => "error",
            Self::Silent => "silent",
        }
    }
}

/// Displays the verdict in words, as in "no answer in time".
impl fmt::Display for NodeVerdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NotAsked => "not asked",
            Self::Pending => "no answer before the end",
            Self::Granted => "granted",
            Self::NotCounted => "granted, but its vote does not count",
            Self::Taken => "taken",
            Self::Error => "error",
            Self::Silent => "no answer in time",
        })
    }
}

/// A node's answer to an operation, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeAnswer {
    /// Place of the node in the configured list.
    pub place: usize,
    /// Address of the node, without credentials.
    pub node: String,
    /// The node's answer.
    pub verdict: NodeVerdict,
    /// Time from the start of the attempt to the verdict; zero if there was no attempt or no
    /// answer.
    pub after: Duration,
    /// Last error of the node or its connection, as the server or system worded it.
    pub error: Option<Arc<str>>,
}

impl fmt::Display for NodeAnswer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.node, self.verdict)?;
        if !self.after.is_zero() {
            write!(formatter, " after {:.1?}", self.after)?;
        }
        let is_fault = !matches!(self.verdict, NodeVerdict::Granted | NodeVerdict::Taken);
        match &self.error {
            Some(error) if is_fault => write!(formatter, " ({error})"),
            _ => Ok(()),
        }
    }
}
