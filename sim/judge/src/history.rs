//! The record of a run, and the only contract between engines and the oracle.
//!
//! A history is a sequence of [`Event`]s in the order of true time. It holds integers only; names
//! are in the scenario, which the first line of a stored history repeats.

mod clock;
mod event;
pub mod file;
mod hash;

pub use clock::{ClockSegments, Segment};
pub use event::{
    Answer, BasedOn, Event, EventKind, KeyEnd, LostReason, OpKind, Refusal, Rejection, Settlement,
};
pub use hash::HistoryHash;

pub use crate::ids::{
    AttemptId, ClientId, ClientIds, ClockKind, CommandId, FaultId, FaultIds, FencingToken, HostId,
    HostIds, Id, NodeId, NodeIds, RoundId, WriteId, Writer,
};

/// Version of the event format.
pub const SCHEMA: u32 = 1;
