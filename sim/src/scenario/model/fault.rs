//! What goes wrong, and when.

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
pub use self::kinds::{Descriptor, Ends, Family, FaultKind, Time};
use super::at::At;
use crate::scenario::span::Span;

/// Something that goes wrong: exactly one kind, when, and for how long.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Fault {
    /// Its name, for `set` and for reports.
    pub id: String,
    /// When it begins.
    pub at: At,
    /// The true time at which it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Span>,
    /// How long it lasts; for faults that begin at a point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Span>,
    /// Whether it happens at all.
    pub enabled: bool,
    /// What goes wrong.
    #[serde(flatten)]
    pub kind: FaultKind,
}

impl Fault {
    /// Every time in it.
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
