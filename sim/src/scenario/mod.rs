//! The scenario: who does what, what goes wrong, and what is expected of it.
//!
//! [`Scenario`] is both the file format and what a Rust program builds. A file may describe several
//! cases; each [`Case`] holds the scenario as it is played, with the case's settings applied.

mod expect;
mod model;
mod span;

pub use expect::{Expectation, Property, Verdict};
pub use model::{
    Acquire, At, CLIENTS_MAX, Case, CaseSpec, Checks, Client, ClockBy, ClockRate, ClockSpec,
    Cluster, Connections, Delay, Drift, Enter, Fault, FaultKind, Hold, HostAt, LinkSpec, Lock,
    Lost, Message, Network, NodeSpec, Nothing, OneHost, Partition, Persistence, Point,
    RestartGuard, Restarting, Retry, Run, Scenario, Start, Step, Store, Write,
};
pub use span::{SignedSpan, Span, SpanRange};
