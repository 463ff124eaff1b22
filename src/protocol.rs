//! The Redlock protocol as synchronous state machines.
//!
//! Inputs are replies, timers and clock readings; outputs are commands. Nothing here owns a socket,
//! a clock, randomness or a task, so the same machines run in production and under every simulator.
//! [`NodeSet`] is the entry point; its documentation states the calling order and the clock
//! contract.
//!
//! No code outside this module compares times, counts votes or chooses connections.

#[cfg(any(test, feature = "simulation"))]
mod canonical;
mod command;
mod crowd;
mod digest;
mod holder;
mod lines;
mod link;
mod lock;
mod node_set;
mod quorum;
mod restart;
mod retry;
#[cfg(test)]
mod testing;
mod time;
mod timers;
mod token;
mod validity;

#[cfg(any(test, feature = "simulation"))]
pub use canonical::Canonical;
pub use command::{CommandId, LockId, NoAnswer, Op, Reply, ResourceId};
pub use digest::Digest;
pub use holder::Holder;
pub use link::{GivenUp, LinkConfig};
pub use lock::{
    AttemptError, Ballot, ExtendError, Fresh, Grant, Limit, LockConfig, LostReason, NodeVerdict,
    ReleaseOutcome,
};
pub use node_set::{Command, Event, NodeSet};
pub use quorum::{MAX_NODES, NodeCount, NodeIndex, NodeMask};
pub use restart::{Canary, Introduction, RestartGuard, RunId, Standing};
pub(crate) use restart::{Eligibility, quarantine};
pub use retry::RetryDelay;
pub use time::BootInstant;
pub use token::Token;
pub use validity::Drift;
