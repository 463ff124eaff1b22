//! The faults, and when they happen.

mod details;
mod hosts;
mod kinds;
mod parse;
mod words;

use serde::Serialize;

pub use self::details::{
    ClockBy, ClockRate, Delay, Demotion, Failover, Flush, Lost, Message, OneHost, Partition,
    Restarting, Stopwatch, Swap,
};
pub use self::hosts::{HostNames, Hosts};
pub use self::kinds::{Cause, Descriptor, Ends, Family, FaultKind, Time};
use super::at::At;
use crate::scenario::span::Span;

/// A fault: exactly one kind, its start, and optionally its end.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Fault {
    /// Name of the fault, for `set` and for reports.
    pub id: String,
    /// Start of the fault.
    pub at: At,
    /// End of the fault, in true time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Span>,
    /// Duration of the fault. Only for faults that start at a step of an attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Span>,
    /// False if the fault is switched off.
    pub enabled: bool,
    /// The kind of fault and its details.
    #[serde(flatten)]
    pub kind: FaultKind,
}

impl Fault {
    /// Iterates over every time value in the fault.
    pub fn times(&mut self) -> impl Iterator<Item = Time<'_>> {
        let at = match &mut self.at {
            At::Time(at) => Some(Time::Instant(at)),
            At::Point(_) => None,
        };
        let until = self.until.as_mut().map(Time::Instant);
        let lasts = self.lasts.as_mut().map(Time::Length);
        [at, until, lasts].into_iter().flatten().chain(self.kind.times())
    }
}
