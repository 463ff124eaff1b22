//! The simulated world below the protocols: choices, clocks, the event queue, the network.
//!
//! This module knows nothing about locks.

mod choice;
mod clock;
mod network;
mod queue;

pub use choice::{Choice, Choices, Label};
pub use clock::{BOOT_AT_START_NS, HostClocks, WALL_AT_START_MS};
pub use network::{Arrival, Connection, ConnectionState, Direction, Network, Pipe};
pub use queue::Queue;
