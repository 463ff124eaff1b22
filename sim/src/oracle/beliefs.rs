//! Who believes to hold the lock, and from when to when.
//!
//! A belief is the instants from the delivery of a grant to the first of {release called, loss
//! delivered, process killed} at which the clock that the grant names reads less than the deadline,
//! whether or not the process is scheduled. On a clock that is set back it can begin again.
//!
//! The deadline is the latest of those delivered: an extension that would end sooner than what the
//! application has been told already ends nothing.

use super::overlaps::Overlaps;
use super::verdict::Blamed;
use crate::history::{AttemptId, ClockKind, ClockSegments, HostIndex};

const FOR_EVER: u64 = u64::MAX;

/// A lease that was delivered and is neither released nor told lost.
#[derive(Clone, Copy, Debug)]
struct Belief {
    id: AttemptId,
    host: HostIndex,
    clock: ClockKind,
    deadline_ns: u64,
    /// Whether it is believed, or was when somebody looked last.
    live: bool,
    /// When the clock will read the deadline, as it runs now.
    until_ns: u64,
    /// Until when it excuses others from being granted.
    excuses_until_ns: u64,
}

/// The beliefs of a run.
#[derive(Clone, Debug)]
pub(super) struct Beliefs {
    open: Vec<Belief>,
    overlaps: Overlaps,
    /// How many of the overlaps are blamed on something.
    blamed: usize,
    /// Until when the beliefs that are over excused others from being granted.
    ended_ns: u64,
    seen: bool,
}

impl Beliefs {
    pub(super) fn new() -> Self {
        let (open, overlaps) = (Vec::with_capacity(16), Overlaps::new());
        Self { open, overlaps, blamed: 0, ended_ns: 0, seen: false }
    }

    pub(super) fn reset(&mut self) {
        self.open.clear();
        self.overlaps.reset();
        (self.blamed, self.ended_ns) = (0, 0);
        self.seen = false;
    }

    /// A grant was delivered.
    pub(super) fn begin(
        &mut self,
        clocks: &ClockSegments,
        id: AttemptId,
        host: HostIndex,
        (clock, deadline_ns): (ClockKind, u64),
        at_ns: u64,
    ) {
        self.seen = true;
        self.expire(at_ns);
        self.open.push(Belief {
            id,
            host,
            clock,
            deadline_ns,
            live: false,
            until_ns: at_ns,
            excuses_until_ns: FOR_EVER,
        });
        self.reconsider(self.open.len() - 1, clocks, at_ns);
    }

    /// The lease of `id` was prolonged, and excuses others until `excuses_until_ns` at the most.
    pub(super) fn prolong(
        &mut self,
        clocks: &ClockSegments,
        id: AttemptId,
        (deadline_ns, excuses_until_ns): (u64, u64),
        at_ns: u64,
    ) {
        self.expire(at_ns);
        let Some(place) = self.open.iter().position(|it| it.id == id) else { return };
        let belief = &mut self.open[place];
        belief.deadline_ns = belief.deadline_ns.max(deadline_ns);
        belief.excuses_until_ns = excuses_until_ns;
        self.reconsider(place, clocks, at_ns);
    }

    /// An overlap of which nobody has said what it is blamed on, and the leases.
    pub(super) fn unblamed(&self) -> Option<(usize, AttemptId, AttemptId)> {
        let (first, second) = self.overlaps.pair(self.blamed)?;
        Some((self.blamed, first, second))
    }

    /// Says what the overlap at `place` is blamed on.
    pub(super) fn blame(&mut self, place: usize, blamed: Blamed) {
        self.overlaps.blame(place, blamed);
        self.blamed = place + 1;
    }

    /// The lease was released, or told lost.
    pub(super) fn end(&mut self, id: AttemptId, at_ns: u64) {
        self.expire(at_ns);
        if let Some(place) = self.open.iter().position(|it| it.id == id) {
            self.remove(place, at_ns);
        }
    }

    /// The process of `host` is dead.
    pub(super) fn end_all_of(&mut self, host: HostIndex, at_ns: u64) {
        self.expire(at_ns);
        while let Some(place) = self.open.iter().position(|it| it.host == host) {
            self.remove(place, at_ns);
        }
    }

    /// A clock runs differently from now on.
    pub(super) fn clock_changed(
        &mut self,
        clocks: &ClockSegments,
        host: HostIndex,
        clock: ClockKind,
        at_ns: u64,
    ) {
        self.expire(at_ns);
        for place in 0..self.open.len() {
            let belief = &self.open[place];
            if belief.host == host && belief.clock == clock {
                self.reconsider(place, clocks, at_ns);
            }
        }
    }

    /// The run is over.
    pub(super) fn finish(&mut self, at_ns: u64) {
        self.expire(at_ns);
        self.overlaps.finish(at_ns);
    }

    /// Whether the lease of `id` is believed at `at_ns`, which is now.
    pub(super) fn is_believed(&self, id: AttemptId, at_ns: u64) -> bool {
        self.open.iter().any(|it| it.id == id && it.live && it.until_ns > at_ns)
    }

    /// Until when the lease of `id` is believed, as its clock runs now; `None` if it is not.
    pub(super) fn until_ns(&self, id: AttemptId) -> Option<u64> {
        self.open.iter().find(|it| it.id == id && it.live).map(|it| it.until_ns)
    }

    /// Since when nobody has believed to hold the lock: 0 if nobody ever has; `at_ns`, which is
    /// now, if somebody does. A lease that was extended for longer than leases may be held counts
    /// until then.
    pub(super) fn nobody_since_ns(&self, at_ns: u64) -> u64 {
        let until = |belief: &Belief| match belief.live {
            true => belief.until_ns.min(at_ns).min(belief.excuses_until_ns),
            false => 0,
        };
        self.open.iter().map(until).fold(self.ended_ns, u64::max)
    }

    /// Whether there was any.
    pub(super) fn seen(&self) -> bool {
        self.seen
    }

    /// Where two of them overlapped.
    pub(super) fn overlaps(&self) -> &Overlaps {
        &self.overlaps
    }

    /// Takes note of what the clocks have ended before or at `at_ns`.
    fn expire(&mut self, at_ns: u64) {
        for belief in &mut self.open {
            if belief.live && belief.until_ns <= at_ns {
                belief.live = false;
                let excused_ns = belief.until_ns.min(belief.excuses_until_ns);
                self.ended_ns = self.ended_ns.max(excused_ns);
                self.overlaps.end(belief.id, belief.until_ns);
            }
        }
    }

    fn remove(&mut self, place: usize, at_ns: u64) {
        let belief = self.open.swap_remove(place);
        if belief.live {
            self.ended_ns = self.ended_ns.max(at_ns.min(belief.excuses_until_ns));
            self.overlaps.end(belief.id, at_ns);
        }
    }

    /// Reads the clock of a belief, and finds out until when it will be one.
    fn reconsider(&mut self, place: usize, clocks: &ClockSegments, at_ns: u64) {
        let belief = self.open[place];
        let segment = clocks.segment(belief.host, belief.clock);
        let live = segment.local_at(at_ns) < belief.deadline_ns;
        let until_ns = match belief.deadline_ns {
            _ if !live => at_ns,
            FOR_EVER => FOR_EVER,
            deadline_ns => segment.true_at(deadline_ns).unwrap_or(FOR_EVER),
        };
        self.open[place] = Belief { live, until_ns, ..belief };
        if belief.live && !live {
            self.ended_ns = self.ended_ns.max(at_ns.min(belief.excuses_until_ns));
            self.overlaps.end(belief.id, at_ns);
        } else if live && !belief.live {
            for other in self.open.iter().filter(|it| it.live && it.id != belief.id) {
                self.overlaps.begin(other.id, belief.id, at_ns, Blamed::NONE);
            }
        }
    }
}
