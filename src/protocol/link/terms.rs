//! What a link is told, and what it tells.

use core::time::Duration;

use crate::protocol::command::{CommandId, NoAnswer, Op, Reply};
use crate::protocol::quorum::NodeIndex;
use crate::protocol::restart::RestartGuard;
use crate::protocol::validity::Drift;

/// A connection is reset when a command has waited this long, whatever the node timeout.
const GIVE_UP_LEAST: Duration = Duration::from_millis(500);

/// The times a link keeps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkConfig {
    /// How long a node may take to answer before it counts as missing.
    pub node_timeout: Duration,
    /// How long a connection may take to open.
    pub connect_timeout: Duration,
    /// What the operator promises of the node.
    pub restart_guard: RestartGuard,
    /// The longest TTL that any client of the node uses.
    pub fleet_max_ttl: Duration,
    /// The drift allowed between the fleet's clocks.
    pub drift: Drift,
    /// How old the last introduction on a connection may be when a SET is written: behind an older
    /// one the node is asked again, and its vote counts when it has answered.
    pub introduction_max_age: Duration,
}

impl LinkConfig {
    /// How long a command may stay unanswered before the connection is given up.
    #[must_use]
    pub fn patience(&self) -> Duration {
        self.node_timeout.saturating_mul(4).max(GIVE_UP_LEAST)
    }
}

/// What a link tells the lock that sent a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) node: NodeIndex,
    pub(crate) id: CommandId,
    pub(crate) outcome: Result<Reply, NoAnswer>,
}

/// What a link asks of its transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkCommand {
    Dial { epoch: u32 },
    Reset { epoch: u32, why: GivenUp },
    Write { epoch: u32, id: CommandId, op: Op },
}

/// Why a connection is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenUp {
    /// No answer came in time, or one to something else than was asked.
    NoAnswer,
    /// The node is a replica, or loads its data.
    NotServing,
}
