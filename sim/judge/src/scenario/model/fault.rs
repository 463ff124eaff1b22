//! The faults, and when they happen.

mod details;
mod hosts;
mod kinds;
mod parse;
mod patterns;
mod words;

use serde::Serialize;

pub use self::details::{
    ClockBy, ClockRate, Delay, Demotion, Failover, Flush, Lost, Message, OneHost, OneKey,
    Partition, Restarting, Stopwatch, Swap,
};
pub use self::hosts::{HostNames, Hosts};
pub use self::kinds::{Cause, Descriptor, Ends, Family, FaultKind, Time};
use super::at::At;
use crate::scenario::chance::{Chance, CountRange};
use crate::scenario::span::{Span, SpanRange};

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
    /// Duration of the fault, instead of its end; drawn from a range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lasts: Option<SpanRange>,
    /// Time from one start of the fault to its next; drawn from a range. Only with `times`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<SpanRange>,
    /// Number of times that the fault starts, if not once; drawn from a range. Only with `every`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<CountRange>,
    /// Probability with which it happens, drawn anew each time.
    #[serde(skip_serializing_if = "Chance::is_certain")]
    pub chance: Chance,
    /// False if the fault is switched off.
    pub enabled: bool,
    /// The kind of fault and its details.
    #[serde(flatten)]
    pub kind: FaultKind,
}

impl Fault {
    /// Iterates over every time value in the fault.
    pub fn time_values(&mut self) -> impl Iterator<Item = Time<'_>> {
        let at = match &mut self.at {
            At::Time(at) => Some(Time::Instants(at)),
            At::Point(_) => None,
        };
        let until = self.until.as_mut().map(Time::Instant);
        let lasts = self.lasts.as_mut().map(Time::Length);
        let every = self.every.as_mut().map(Time::Length);
        [at, until, lasts, every].into_iter().flatten().chain(self.kind.time_values())
    }

    /// Returns the largest number of times that the fault can start.
    #[must_use]
    pub fn times_max(&self) -> u32 {
        self.times.map_or(1, |times| times.max)
    }

    /// Returns the latest instant at which the fault can start; `None` if it starts at a step of an
    /// attempt.
    #[must_use]
    pub fn last_start(&self) -> Option<Span> {
        let At::Time(at) = self.at else { return None };
        let every_ns = self.every.map_or(0, |every| every.max.0);
        let more = u64::from(self.times_max().saturating_sub(1));
        Some(Span(at.max.0.saturating_add(every_ns.saturating_mul(more))))
    }
}
