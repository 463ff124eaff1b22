//! Beliefs: the intervals in which clients believe that they hold the lock.
//!
//! The belief of a lease begins with the delivery of the grant. It ends with the first of these
//! events: release called, loss delivered, process killed. In between, it consists of the instants
//! at which the clock named by the grant reads less than the deadline, even while the process is
//! not scheduled. If that clock is set back, the belief can begin again.
//!
//! The deadline is the latest of those delivered: an extension with an earlier deadline than the
//! one that the application already knows changes nothing.

use super::overlaps::Overlaps;
use super::verdict::Blamed;
use crate::history::{AttemptId, ClockKind, ClockSegments, HostId};

const FOR_EVER: u64 = u64::MAX;

/// A lease that was delivered and is neither released nor reported lost.
#[derive(Clone, Copy, Debug)]
struct Belief {
    id: AttemptId,
    host: HostId,
    clock: ClockKind,
    deadline_ns: u64,
    /// Time of the delivery.
    since_ns: u64,
    /// True if the lease is believed, as of the last update.
    live: bool,
    /// Time at which the clock will read the deadline, at its current rate.
    until_ns: u64,
    /// Time until which the belief excuses that other clients are not granted the lock.
    excuses_until_ns: u64,
}

/// Interval in which a lease is believed, unless an event ends it earlier.
#[derive(Clone, Copy, Debug)]
pub(super) struct Believed {
    /// The lease.
    pub id: AttemptId,
    /// Time of the delivery.
    pub since_ns: u64,
    /// Time at which the clock will read the deadline, at its current rate.
    pub until_ns: u64,
}

/// Beliefs of a run.
#[derive(Clone, Debug)]
pub(super) struct Beliefs {
    open: Vec<Belief>,
    overlaps: Overlaps,
    /// Number of overlaps whose blame is determined.
    blamed: usize,
    /// Time until which the beliefs that are over excused that other clients were not granted the
    /// lock.
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

    /// Begins a belief: a grant was delivered.
    pub(super) fn begin(
        &mut self,
        clocks: &ClockSegments,
        id: AttemptId,
        host: HostId,
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
            since_ns: at_ns,
            live: false,
            until_ns: at_ns,
            excuses_until_ns: FOR_EVER,
        });
        self.reconsider(self.open.len() - 1, clocks, at_ns);
    }

    /// Moves the deadline of the belief of `id`, which excuses others until `excuses_until_ns` at
    /// the most.
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

    /// Returns the index and the leases of the first overlap whose blame is not determined yet.
    pub(super) fn unblamed(&self) -> Option<(usize, AttemptId, AttemptId)> {
        let (first, second) = self.overlaps.pair(self.blamed)?;
        Some((self.blamed, first, second))
    }

    /// Sets the blame of the overlap at index `place`.
    pub(super) fn blame(&mut self, place: usize, blamed: Blamed) {
        self.overlaps.blame(place, blamed);
        self.blamed = place + 1;
    }

    /// Ends the belief of `id`: the lease was released or reported lost.
    pub(super) fn end(&mut self, id: AttemptId, at_ns: u64) {
        self.expire(at_ns);
        if let Some(place) = self.open.iter().position(|it| it.id == id) {
            self.remove(place, at_ns);
        }
    }

    /// Ends all beliefs of `host`, whose client process died.
    pub(super) fn end_all_of(&mut self, host: HostId, at_ns: u64) {
        self.expire(at_ns);
        while let Some(place) = self.open.iter().position(|it| it.host == host) {
            self.remove(place, at_ns);
        }
    }

    /// Updates the beliefs that depend on a clock whose segment has changed.
    pub(super) fn clock_changed(
        &mut self,
        clocks: &ClockSegments,
        host: HostId,
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

    /// Ends all overlaps at the end of the run.
    pub(super) fn finish(&mut self, at_ns: u64) {
        self.expire(at_ns);
        self.overlaps.finish(at_ns);
    }

    /// Returns true if the lease of `id` is believed at `at_ns`, the current time.
    pub(super) fn is_believed(&self, id: AttemptId, at_ns: u64) -> bool {
        self.open.iter().any(|it| it.id == id && it.live && it.until_ns > at_ns)
    }

    /// Returns the time until which the lease of `id` is believed, at the clock's current rate;
    /// `None` if it is not believed.
    pub(super) fn until_ns(&self, id: AttemptId) -> Option<u64> {
        self.open.iter().find(|it| it.id == id && it.live).map(|it| it.until_ns)
    }

    /// Returns the deadline of the lease of `id` on its clock; `None` if it was not delivered or has
    /// ended.
    pub(super) fn deadline_ns(&self, id: AttemptId) -> Option<u64> {
        self.open.iter().find(|it| it.id == id).map(|it| it.deadline_ns)
    }

    /// Returns the leases that are believed at `at_ns`, the current time.
    pub(super) fn believed(&self, at_ns: u64) -> impl Iterator<Item = Believed> + '_ {
        let live = self.open.iter().filter(move |it| it.live && it.until_ns > at_ns);
        live.map(|it| Believed { id: it.id, since_ns: it.since_ns, until_ns: it.until_ns })
    }

    /// Returns since when no client has believed that it holds the lock: 0 if none ever has;
    /// `at_ns`, the current time, if one does. A lease that is extended counts only until its
    /// excuse ends.
    pub(super) fn nobody_since_ns(&self, at_ns: u64) -> u64 {
        let until = |belief: &Belief| match belief.live {
            true => belief.until_ns.min(at_ns).min(belief.excuses_until_ns),
            false => 0,
        };
        self.open.iter().map(until).fold(self.ended_ns, u64::max)
    }

    /// Returns true if any grant was delivered.
    pub(super) fn seen(&self) -> bool {
        self.seen
    }

    /// Returns the overlaps of beliefs.
    pub(super) fn overlaps(&self) -> &Overlaps {
        &self.overlaps
    }

    /// Ends the beliefs whose clocks have reached their deadlines by `at_ns`.
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

    /// Reads the clock of a belief and updates its state and its end.
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
