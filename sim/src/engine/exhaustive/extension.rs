//! A lease of three nodes is extended while nodes forget, messages dawdle and another client waits.
//!
//! The holder was granted the lock at tick 0 by two nodes; its SET to the third is on its way.
//! Every command and every answer takes as long as it likes, in order on one connection; the
//! process may be stopped, so that its timers are late; a connection may be cut, and then a SET
//! that was on it may be executed at any time, or never. Another client sets its key wherever there
//! is none and takes it away when it likes; it is granted the lock when it has a majority. A node
//! may forget the holder's key at any moment, so many times in all. Clocks are perfect and drift is
//! zero; time passes in ticks, and a key that is set at tick t is gone at tick t + TTL.
//!
//! Three things must not happen ([`violations`]). Forgetting alone can break any lease of two
//! nodes of three: what is asked of the rule is that it makes nothing worse.

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

/// Three nodes: the fewest with a majority that survives the loss of one.
pub const NODES: usize = 3;

/// A command on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Prolong the key if it is there, for the round of this number.
    Extend {
        /// Rounds are counted from one.
        round: u8,
    },
    /// Set the key if there is none.
    Set,
}

/// What a node said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It did what it was asked.
    Done,
    /// The key is not there, or somebody else's.
    Refused,
}

/// What a holder hears from a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// The answer to its oldest command without one.
    Answer(Request, Answer),
    /// The connection is gone; its commands will not be answered.
    Closed {
        /// The latest round's command was among them.
        round_outstanding: bool,
    },
}

/// What a holder does, and what it tells its application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// It writes a command to a node.
    Write(usize, Request),
    /// The round succeeded.
    Extended {
        /// The nodes that were counted.
        counted: [bool; NODES],
        /// When the lease is over now.
        deadline: u8,
    },
    /// The round failed.
    Failed,
    /// The lease is over for good.
    Lost,
}

#[cfg(test)]
mod tests;
