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
        let said = match self.verdict {
            NodeVerdict::NotAsked => "not asked",
            NodeVerdict::Pending => "no answer before the end",
            NodeVerdict::Granted => "granted",
            NodeVerdict::NotCounted => "granted, but its vote does not count",
            NodeVerdict::Taken => "taken",
            NodeVerdict::Error => "error",
            NodeVerdict::Silent => "no answer in time",
        };
        write!(formatter, "{} {said}", self.node)?;
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
