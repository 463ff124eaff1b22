//! The scenario: the clients' steps, the faults, and the expected verdicts.
//!
//! [`Scenario`] is both the file format and the type that a Rust program builds. A file may
//! describe several cases; each [`Case`] holds the scenario with that case's settings applied,
//! ready to run. [`File::cases`] expands a file into its cases, and every error comes back in
//! [`Problems`] with file, line and column.

mod cases;
mod chance;
mod check;
mod expect;
mod file;
#[cfg(test)]
mod fuzz;
mod model;
mod names;
mod problem;
#[cfg(feature = "schema")]
mod schema;
mod source;
mod span;
mod subjects;
#[cfg(test)]
mod tests;
mod tree;

pub use cases::CASES_MAX;
pub use chance::{Chance, CountRange};
pub use check::{Complaint, SHIFT_MAX, SPAN_MAX, STEPS_MAX, scenario as complaints};
pub use expect::{
    Bounds, Expectation, Expectations, ExpectedBlame, Property, Quantity, Unit, Verdict,
};
pub use file::File;
pub use model::{
    Acquire, ActiveExpiry, At, AttemptPoint, AttemptStep, Case, CaseSpec, Cause, Checks, Client,
    ClockBy, ClockRate, ClockSpec, Cluster, Connections, Delay, Demotion, Descriptor, Disk, Drift,
    Ends, Enter, Extend, Failover, Family, Fault, FaultKind, Flush, Hold, HostNames, Hosts,
    LinkSpec, Lock, Lost, Message, Network, NodeSpec, Nothing, OneHost, OneKey, Partition,
    Persistence, Repeat, Replica, RestartGuard, Restarting, Retry, Rights, Run, Scenario, Server,
    Start, Step, Stopwatch, Store, Swap, Time, WhichAttempt, Write,
};
pub use names::{is_name, nearest, slug};
pub use problem::{Problem, Problems};
#[cfg(feature = "schema")]
pub use schema::schema;
pub use source::{Override, TEXT_MAX};
pub use span::{SeedRange, SignedSpan, SignedSpanRange, Span, SpanRange};
pub use subjects::{OURS, SUBJECTS, SubjectSpec, WORKER, subject, subject_names};

pub use crate::ids::{CLIENTS_MAX, FAULTS_MAX, NODES_MAX, RESOURCES_MAX};
