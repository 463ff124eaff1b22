//! How the nodes are, as far as a client knows without asking.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

pub use crate::protocol::Standing;

/// A snapshot of what a client knows of its nodes. Taking it costs no network and never waits.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// The nodes, as they are configured.
    pub nodes: Vec<NodeHealth>,
    /// Whether a majority is connected and counts: an acquisition can succeed. A client that has
    /// not been used yet is connected to nobody.
    pub has_quorum: bool,
    /// Whether the client was closed.
    pub is_closed: bool,
}

/// What a client knows of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeHealth {
    /// Its place in the configured list.
    pub place: usize,
    /// Its address, without credentials.
    pub node: String,
    /// Whether commands to it can be written.
    pub connected: bool,
    /// Whether its votes count.
    pub standing: Standing,
    /// The longest of the recent round trips.
    pub round_trip: Option<Duration>,
    /// Releases that it is owed from connections that were lost.
    pub releases_owed: usize,
    /// The last error of the node or its connection, in its own words.
    pub last_error: Option<Arc<str>>,
}

impl fmt::Display for Health {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match (self.is_closed, self.has_quorum) {
            (true, _) => "closed",
            (false, true) => "a majority is connected and counts",
            (false, false) => "no majority is connected and counts",
        };
        writeln!(formatter, "{verdict}")?;
        self.nodes.iter().try_for_each(|node| writeln!(formatter, "  {node}"))
    }
}

impl fmt::Display for NodeHealth {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let connected = if self.connected { "connected" } else { "not connected" };
        write!(formatter, "{}: {connected}, ", self.node)?;
        match self.standing {
            Standing::Counts => formatter.write_str("counts")?,
            Standing::NotKnown => formatter.write_str("does not count")?,
            Standing::Quarantined(left) => write!(formatter, "quarantined for {left:.1?}")?,
        }
        if let Some(round_trip) = self.round_trip {
            write!(formatter, ", {round_trip:.1?} a round trip")?;
        }
        if self.releases_owed > 0 {
            write!(formatter, ", {} releases owed", self.releases_owed)?;
        }
        match &self.last_error {
            Some(error) => write!(formatter, ", last error: {error}"),
            None => Ok(()),
        }
    }
}
