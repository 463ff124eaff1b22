//! Configuration of a link, its reports to locks, and its commands to the transport.

use core::time::Duration;

use super::window::Window;
use crate::command::{CommandId, NoAnswer, Op, Reply};
use crate::quorum::NodeIndex;
use crate::restart::RestartGuard;
use crate::validity::Drift;

/// Least time that a command may stay unanswered before its connection is reset, whatever the node
/// timeout.
const GIVE_UP_LEAST: Duration = Duration::from_millis(500);

/// Timeouts and assumptions of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkConfig {
    /// Time after which a node that has not answered counts as missing.
    pub node_timeout: Duration,
    /// Time that a connection may take to open.
    pub connect_timeout: Duration,
    /// The operator's promise about the node's data set.
    pub restart_guard: RestartGuard,
    /// Longest TTL that any client of the node uses.
    pub fleet_max_ttl: Duration,
    /// Allowance for drift between the fleet's clocks.
    pub drift: Drift,
    /// Greatest age of the last introduction on a connection when a SET is queued. If it is older,
    /// a new one is requested behind the SET, and the vote counts only after the node has answered
    /// it.
    pub introduction_max_age: Duration,
    /// Limits of the commands on one connection.
    pub window: Window,
}

impl LinkConfig {
    /// Returns how long a written command may stay unanswered before the connection is given up.
    #[must_use]
    pub fn patience(&self) -> Duration {
        self.node_timeout.saturating_mul(4).max(GIVE_UP_LEAST)
    }
}

/// Outcome of a command, reported to the lock that sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CommandOutcome {
    pub(crate) node: NodeIndex,
    pub(crate) id: CommandId,
    pub(crate) outcome: Result<Reply, NoAnswer>,
}

/// A command to a node's transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Open a connection, and report the result under this epoch.
    Dial {
        /// The node.
        node: NodeIndex,
        /// Names the connection.
        epoch: u32,
    },
    /// Drop the connection at once, including unsent bytes. Report nothing about it from then on.
    Reset {
        /// The node.
        node: NodeIndex,
        /// Names the connection.
        epoch: u32,
        /// Reason why the connection is given up.
        why: GivenUp,
    },
    /// Write the command. From now on it counts as written for good.
    Write {
        /// The node.
        node: NodeIndex,
        /// Names the connection.
        epoch: u32,
        /// Names the command.
        id: CommandId,
        /// The command to write.
        op: Op,
    },
}

/// Reason why a connection is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenUp {
    /// An answer did not fit its command.
    Mismatch,
    /// No connection opened, or no answer came, in time.
    NoAnswer,
    /// The node is a replica, or is loading its data.
    NotServing,
}
