//! The clocks of all hosts.

use core::ops::{Index, IndexMut};

use lock_judge::history::{ClockKind, HostId};
use lock_judge::ids::IdVec;

use super::clock::{HostClocks, WALL_AT_START_MS};
use crate::choice::{Choice, Choices, Label};
use crate::plan::{Plan, PlannedServer};
use crate::subject::Now;

/// The clocks of all hosts.
#[derive(Debug, Default)]
pub(crate) struct Clocks(IdVec<HostId, HostClocks>);

impl Clocks {
    /// Resets to the beginning of a run.
    pub(super) fn reset(&mut self, plan: &Plan, choices: &Choices) {
        self.0.clear();
        for (host, &(offset_ns, rate_ppb)) in plan.clocks.iter() {
            // The scenario does not choose the phase of a wall clock within its millisecond; the
            // seed draws it.
            let phase = choices.below(Choice::of(Label::Phase, host.0), 1_000_000);
            self.0.push(HostClocks::new(offset_ns + phase as i64, rate_ppb));
        }
    }

    /// Returns the readings of a host's boot clock and of the clock `lease` at `now_ns`.
    #[inline]
    pub(crate) fn now(&self, host: HostId, lease: ClockKind, now_ns: u64) -> Now {
        let clocks = &self.0[host];
        let boot_ns = clocks.read(ClockKind::Boot, now_ns);
        let lease_ns = match lease {
            ClockKind::Boot => boot_ns,
            other => clocks.read(other, now_ns),
        };
        Now { boot_ns, lease_ns }
    }

    /// Returns the wall clock of a server at `now_ns`, in nanoseconds.
    #[inline]
    pub(super) fn wall_ns(&self, server: &PlannedServer, now_ns: u64) -> u64 {
        match server.ideal {
            true => WALL_AT_START_MS * 1_000_000 + now_ns,
            false => self.0[server.host].read(ClockKind::Wall, now_ns),
        }
    }

    /// Returns the true time at which the wall clock of a server reads `wall_ns`, if nothing
    /// changes before.
    pub(super) fn wall_at(&self, server: &PlannedServer, wall_ns: u64) -> Option<u64> {
        match server.ideal {
            true => Some(wall_ns - WALL_AT_START_MS * 1_000_000),
            false => self.0[server.host].true_at(ClockKind::Wall, wall_ns),
        }
    }
}

impl Index<HostId> for Clocks {
    type Output = HostClocks;

    fn index(&self, host: HostId) -> &HostClocks {
        &self.0[host]
    }
}

impl IndexMut<HostId> for Clocks {
    fn index_mut(&mut self, host: HostId) -> &mut HostClocks {
        &mut self.0[host]
    }
}
