//! Model: two clients acquire and release one lock on three nodes, while connections are lost, a
//! node restarts without its keys, and keys expire early.
//!
//! Every request and every reply may take any time, but they stay in order on one connection. Timers
//! may be late by less than a tick. A lost connection loses the replies not delivered; its requests
//! may still be executed at any time, in order, or never. A node that restarts has no keys, and its
//! connections end; each client notices at any later time. Time passes in ticks; clients have
//! perfect clocks, but a key may expire early, by as much as the drift allows.
//!
//! Four violations are checked ([`Violation`]).

mod client;
mod client_state;
mod encoding;
mod link;
mod node;
mod node_state;
mod policy;
mod print;
mod production;
mod table;
mod violation;
mod wording;
mod world;

pub use client::{Both, Client};
pub use policy::Policy;
pub use print::story;
pub use production::Production;
pub use violation::Violation;
pub use wording::{Compared, Eligible, Measured, ReleasedTo, Votes, Wording};
pub use world::{Acquisition, Act, Bounds, Step, World};

/// Number of nodes: the smallest number whose majority survives the loss of one node.
pub const NODES: usize = 3;

/// Number of clients.
pub const CLIENTS: usize = 2;

/// A majority of three.
const QUORUM: usize = 2;

/// Duration of a lease's keys, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Time to live of a key.
    pub ttl: u8,
    /// Safety margin of the lease. A key may expire this much early.
    pub drift: u8,
}

/// Value of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    /// Number of the client.
    pub client: u8,
    /// Number of the client's attempt, from one.
    pub attempt: u8,
}

/// A command on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// Set the key unless the node has one.
    Set(Token),
    /// Delete the key if it holds the token.
    Release(Token),
    /// Delete the key, whatever it holds. Only a weaker wording sends this.
    Delete(Token),
}

/// A node's answer to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// The command was executed.
    Done,
    /// There is a key already, or none to delete.
    Refused,
}

/// An input to a client. The numbers are nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// The application wants the lock: the next attempt begins.
    Begin,
    /// The application gives the lease up.
    Release,
    /// The due timers fire.
    Timer,
    /// The connection that the client has dialled is open, and the node has introduced itself as
    /// this incarnation.
    Connected(usize, u8),
    /// Answer to the oldest unanswered command.
    Answer(usize, Request, Answer),
    /// The connection is closed; its commands will not be answered.
    Closed(usize),
}

/// An action of a client, or its report to the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The client writes a command to a node.
    Write(usize, Request),
    /// The attempt was granted.
    Granted {
        /// End of the lease, in ticks.
        deadline: u8,
    },
    /// The attempt failed; its keys are released.
    Failed,
    /// The lease is over.
    Lost,
}

#[cfg(test)]
mod tests;
