//! The Redlock protocol as synchronous state machines.
//!
//! Inputs are replies, timers and clock readings; outputs are commands. The machines have no
//! socket, clock, source of randomness or task, so they run unchanged in production and under every
//! simulator. [`NodeSet`] is the entry point; its documentation states the calling order and the
//! clock contract.
//!
//! No code outside this crate compares times, counts votes or chooses connections. Applications use
//! the crate `redlock-client`, which drives the machines. The interface of this crate is not
//! stable: it changes with the needs of the client and the simulator.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod canonical;
mod command;
mod crowd;
mod digest;
mod holder;
mod lines;
mod link;
mod lock;
mod node_set;
mod passes;
mod quorum;
mod restart;
mod retry;
#[cfg(test)]
mod testing;
mod time;
mod timers;
mod token;
mod validity;

pub use canonical::Canonical;
pub use command::{CommandId, LockId, NoAnswer, Op, Reply, ResourceId};
pub use digest::Digest;
pub use holder::Holder;
pub use link::{Command, GivenUp, LinkConfig, Window};
pub use lock::{
    AttemptError, Ballot, ExtendError, Fresh, Grant, Limit, LockConfig, LostReason, NodeVerdict,
    ReleaseOutcome, Votes,
};
pub use node_set::{Event, NodeSet};
pub use passes::Passes;
pub use quorum::{MAX_NODES, NodeCount, NodeIndex, NodeMask};
pub use restart::{Canary, Eligibility, Introduction, RestartGuard, RunId, Standing, quarantine};
pub use retry::RetryDelay;
pub use time::BootInstant;
pub use token::Token;
pub use validity::Drift;
