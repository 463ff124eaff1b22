//! What one node had to say where something failed.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use crate::protocol::NodeVerdict;

/// What one node said, or did not say.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeAnswer {
    /// Its place in the configured list.
    pub place: usize,
    /// Its address, without credentials.
    pub node: String,
    /// What it said.
    pub verdict: NodeVerdict,
    /// How long after the beginning that was known.
    pub after: Duration,
    /// The last error of the node or its connection, in its own words.
    pub error: Option<Arc<str>>,
}

impl fmt::Display for NodeAnswer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = match self.verdict {
            NodeVerdict::NotAsked => "not asked",
            NodeVerdict::Pending => "no answer yet",
            NodeVerdict::Granted => "granted",
            NodeVerdict::NotCounted => "granted, not counted",
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
