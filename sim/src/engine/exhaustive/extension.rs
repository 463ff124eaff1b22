//! Model: the holder of a lease on three nodes extends it while nodes forget, messages are slow,
//! and another client waits.
//!
//! The holder was granted the lock at tick 0 by two nodes; its SET to the third is on its way.
//! Every command and every answer may take any time, but they stay in order on one connection. The
//! process may be stopped, so that its timers are late. A connection may be cut; a SET on a cut
//! connection may be executed at any time, or never. Another client sets its key on any node
//! without a key and removes it at any time; it is granted the lock when it has a majority. A node
//! may forget the holder's key at any moment, up to a total number of times. Clocks are perfect and
//! drift is zero. Time passes in ticks; a key that is set at tick t is gone at tick t + TTL.
//!
//! Three violations are checked ([`violations`]). Forgetting alone can break any lease on two nodes
//! of three; the rule must only make nothing worse.

mod holder;
mod node;
mod policy;
mod print;
mod production;
mod wording;
mod world;

pub use holder::{Both, Holder};
pub use node::Executed;
pub use policy::Policy;
pub use print::story;
pub use production::Production;
pub use wording::{Repair, Wording, Young};
pub use world::{Act, Bounds, Extension, Step, World, violations};

/// Number of nodes: the smallest number whose majority survives the loss of one node.
pub const NODES: usize = 3;

/// A command on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Extend the key if it exists, for the given round.
    Extend {
        /// Number of the round, from one.
        round: u8,
    },
    /// Set the key unless the node has one.
    Set,
}

/// A node's answer to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The command was executed.
    Done,
    /// The key is missing, or belongs to another client.
    Refused,
}

/// An input to the holder from a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HolderInput {
    /// Answer to the oldest unanswered command.
    Answer(Request, Answer),
    /// The connection is closed; its commands will not be answered.
    Closed {
        /// True if the latest round's command was among the unanswered ones.
        round_outstanding: bool,
    },
}

/// An action of the holder, or its report to the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HolderAction {
    /// The holder writes a command to a node.
    Write(usize, Request),
    /// The round succeeded.
    Extended {
        /// Nodes whose answers counted.
        counted: [bool; NODES],
        /// New deadline of the lease.
        deadline: u8,
    },
    /// The round failed.
    Failed,
    /// The lease is lost for good.
    Lost,
}

#[cfg(test)]
mod tests;
