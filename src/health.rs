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
    /// Whether its votes count, or did when it was connected last.
    pub standing: Standing,
    /// The longest of the recent round trips.
    pub round_trip: Option<Duration>,
    /// Releases that it is owed from connections that were lost.
    pub releases_owed: usize,
    /// The last error of the node or its connection, in its own words. It may be over: a node that is
    /// connected may have answered since.
    pub last_error: Option<Arc<str>>,
    /// Time since that error.
    pub last_error_age: Option<Duration>,
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
        write!(formatter, "{}: ", self.node)?;
        match (self.connected, self.standing, &self.last_error) {
            (true, Standing::Counts, _) => formatter.write_str("connected, counts")?,
            (true, Standing::NotKnown, _) => formatter.write_str("connected, does not count")?,
            (true, Standing::Quarantined(left), _) => {
                write!(formatter, "connected, quarantined for {left:.1?}")?;
            }
            (false, _, Some(_)) => formatter.write_str("away")?,
            (false, _, None) => formatter.write_str("not connected")?,
        }
        if let Some(round_trip) = self.round_trip.filter(|_| self.connected) {
            write!(formatter, ", {round_trip:.1?} a round trip")?;
        }
        if self.releases_owed > 0 {
            write!(formatter, ", {} releases owed", self.releases_owed)?;
        }
        match (&self.last_error, self.last_error_age) {
            (Some(error), Some(age)) => write!(formatter, ", last error {age:.1?} ago: {error}"),
            _ => Ok(()),
        }
    }
}
