//! A client's knowledge of its nodes, without queries.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

/// A snapshot of a client's knowledge of its nodes. It is made without sending anything or waiting.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// The nodes, in the configured order.
    pub nodes: Vec<NodeHealth>,
    /// True if a majority of the nodes is connected and their votes count, so that an acquisition
    /// can succeed. False for a client that has not been used yet: it has no connections.
    pub has_quorum: bool,
    /// True if the client was closed.
    pub is_closed: bool,
}

/// A client's knowledge of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeHealth {
    /// Place of the node in the configured list.
    pub place: usize,
    /// Address of the node, without credentials.
    pub node: String,
    /// True if commands to the node can be written.
    pub connected: bool,
    /// Standing of the node's votes now; without a connection, when it was last connected.
    pub standing: Standing,
    /// Longest of the recent round trips.
    pub round_trip: Option<Duration>,
    /// Number of releases that the node is owed: their connection was lost or had no room for them,
    /// or the node answered with an error.
    pub releases_owed: usize,
    /// Last error of the node or its connection, as the server or system worded it. The problem may
    /// be over: a connected node may have answered since.
    pub last_error: Option<Arc<str>>,
    /// Time since that error.
    pub last_error_age: Option<Duration>,
}

/// Standing of a node: whether its votes count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standing {
    /// Votes count.
    Counts,
    /// Votes do not count: the node has not introduced itself, must do so again, is a replica, or is
    /// loading its data.
    NotKnown,
    /// Votes will count after this long: the node may have forgotten leases.
    Quarantined(Duration),
}

impl From<redlock_protocol::Standing> for Standing {
    fn from(standing: redlock_protocol::Standing) -> Self {
        use redlock_protocol::Standing as Known;
        match standing {
            Known::Counts => Self::Counts,
            Known::NotKnown => Self::NotKnown,
            Known::Quarantined(left) => Self::Quarantined(left),
        }
    }
}

/// Displays the standing in words, as in "quarantined for 12.3s".
impl fmt::Display for Standing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Counts => formatter.write_str("can vote"),
            Self::NotKnown => formatter.write_str("cannot vote yet"),
            Self::Quarantined(left) => write!(formatter, "quarantined for {left:.1?}"),
        }
    }
}

impl fmt::Display for Health {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match (self.is_closed, self.has_quorum) {
            (true, _) => "closed",
            (false, true) => "a majority of the nodes is connected and can vote",
            (false, false) => "no majority of the nodes is connected and can vote",
        };
        writeln!(formatter, "{verdict}")?;
        self.nodes.iter().try_for_each(|node| writeln!(formatter, "  {node}"))
    }
}

impl fmt::Display for NodeHealth {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: ", self.node)?;
        match (self.connected, &self.last_error) {
            (true, _) => write!(formatter, "connected, {}", self.standing)?,
            (false, Some(_)) => formatter.write_str("away")?,
            (false, None) => formatter.write_str("not connected")?,
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
