//! The simulated world below the protocols: choices, clocks, the queue of events, the network.
//!
//! Nothing here knows what a lock is.

mod choice;
mod clock;
mod network;
mod queue;

pub use choice::{Choice, Choices, Label};
pub use clock::{BOOT_AT_START_NS, HostClocks, WALL_AT_START_MS};
pub use network::{Arrival, Connection, ConnectionState, Direction, Network, Pipe};
pub use queue::Queue;
