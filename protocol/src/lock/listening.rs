//! Waiting without polling: a use whose attempt has failed sleeps until its lock may be free.
//!
//! The use *looks* at a node's key. The reply contains the key's remaining time to live, and from
//! then on the node pushes the key's next change. A push is only a hint: it makes the use look
//! again, and the votes of an attempt decide.
//!
//! - **Asleep**, the use sends nothing. At first it listens to one node, and after a moment to so
//!   many nodes that no majority can become free without a push to the use. It wakes when one of
//!   them pushes a change, or when enough keys have expired. After a long silence it looks again.
//! - **Awake**, it draws a random delay, and listens meanwhile. If a push within the delay shows
//!   that another client has taken the lock, the use sleeps again. Otherwise it attempts.
//! - A node in quarantine is like one whose key expires when the quarantine ends.
//! - If too few nodes push to wake the use, it attempts at intervals that grow with the time it has
//!   waited.

mod canonical;
mod rules;
mod sights;

use core::time::Duration;

use self::sights::{Sight, Sights};
use super::AttemptError;
use crate::crowd::Crowd;
use crate::quorum::{MAX_NODES, NodeCount, NodeIndex, NodeMask};
use crate::retry::{RetryDelay, draw, pace, share};
use crate::time::BootInstant;
use crate::validity::Drift;

/// Time for which a sleeping use listens to a single node. A node that does not push delays the use
/// by no more; one that hangs before it replies, by the node timeout.
const ONE_NODE: Duration = Duration::from_millis(20);

/// Pushes without a change that are looked into at once. After these the looks are spread: by 1 ms,
/// then by twice as much each time.
const IDLE_PUSHES: u32 = 3;
const IDLE_FIRST: Duration = Duration::from_millis(1);
const IDLE_DOUBLINGS: u32 = 7;

/// Returns by how much the look into a push is put off, after `idle_pushes` pushes that came without
/// a change; `None`: not at all.
pub(super) fn idle_delay(idle_pushes: u32) -> Option<Duration> {
    let doublings = idle_pushes.checked_sub(IDLE_PUSHES)?;
    Some(IDLE_FIRST * (1 << doublings.min(IDLE_DOUBLINGS)))
}

/// Shortest interval between attempts while no majority has a connection or answers looks.
const NODES_AWAY: Duration = Duration::from_millis(100);

/// Attempts in a row, without any news (see `hear_news`), after which the use no longer wakes by itself: the
/// intervals between its attempts grow.
const RESTLESS: u32 = 8;

/// A use that noticed that its lock may be free.
#[derive(Clone, Copy, Debug)]
struct Awake {
    /// Instant at which it noticed.
    since: BootInstant,
    /// Instant of the attempt, unless another client takes the lock before.
    attempt_at: BootInstant,
}

/// Failure of an attempt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failure {
    pub(super) reason: AttemptError,
    /// Nodes that refused because a key was there.
    pub(super) refused: NodeMask,
    /// Nodes that did not answer the SET, or answered it with an error.
    pub(super) silent: NodeMask,
    /// Nodes to which no connection was open.
    pub(super) away: NodeMask,
    /// Instants from which the nodes may count, by node, if the attempt failed for nodes in
    /// quarantine.
    pub(super) may_count_from: Option<[BootInstant; MAX_NODES]>,
    pub(super) jitter: u64,
}

/// State of a use that waits for its lock.
#[derive(Clone, Debug)]
pub(crate) struct Listening {
    nodes: NodeCount,
    drift: Drift,
    retry: RetryDelay,
    round_trip: Duration,
    pub(super) crowd: Crowd,
    jitter: u64,
    draws: u32,
    /// Begin of the wait: T1 of the first attempt.
    began: BootInstant,
    sights: Sights,
    /// Instants of the last replies to looks, by node.
    seen_at: [BootInstant; MAX_NODES],
    /// Nodes that refused the last attempt: they have the key that blocks it.
    refused: NodeMask,
    /// Nodes in quarantine when the last attempt failed for such nodes. Each blocks like a key that
    /// expires at its end.
    quarantined: NodeMask,
    /// Nodes that push the next change of their key.
    registered: NodeMask,
    /// Nodes to look at.
    to_look: NodeMask,
    /// Nodes whose reply to a look is outstanding, and the serials of these looks.
    asked: NodeMask,
    serials: [u32; MAX_NODES],
    /// Nodes among these that pushed before they replied.
    overtaken: NodeMask,
    /// Nodes that did not answer their last look, or had no connection when they were last needed.
    away: NodeMask,
    /// Nodes that have been back by a late answer since the last attempt or check of silence.
    late: NodeMask,
    /// Nodes that do not push: they refuse to, or did not when they should have.
    mute: NodeMask,
    /// Node to which the use listens until it listens to more.
    anchor: Option<NodeIndex>,
    awake: Option<Awake>,
    /// Asleep: instant from which one node is not enough; `None` once more were asked.
    more_at: Option<BootInstant>,
    /// Asleep: instant of the next attempt, as too few nodes can wake the use; `None` while enough
    /// can.
    pace_at: Option<BootInstant>,
    /// Instant of the last reply to a look.
    looked_at: BootInstant,
    /// State of each node's key before the push that is being looked into.
    before: [Sight; MAX_NODES],
    /// Nodes whose silence is being checked: they were registered when they were asked.
    checked: NodeMask,
    /// Begin of the last check of silence.
    checked_at: BootInstant,
    /// Number of pushes in a row that came without a change, and the look that they put off.
    idle_pushes: u32,
    put_off: Option<(NodeIndex, BootInstant)>,
    /// Number of attempts since the last news (see `hear_news`).
    restless: u32,
    /// The last attempt met keys of others: looks show when they are gone.
    is_contended: bool,
    /// The last attempt failed for want of nodes: a node that returns is a reason to try again.
    lacks_nodes: bool,
    /// Instant at which the use woke, if the attempt under way followed.
    woke: Option<BootInstant>,
    /// The attempt is due.
    is_due: bool,
}

impl Listening {
    pub(super) fn new(
        nodes: NodeCount,
        drift: Drift,
        retry: RetryDelay,
        crowd: Crowd,
        began: BootInstant,
    ) -> Self {
        Self {
            nodes,
            drift,
            retry,
            round_trip: Duration::ZERO,
            crowd,
            jitter: 0,
            draws: 0,
            began,
            sights: Sights::none(nodes),
            seen_at: [began; MAX_NODES],
            refused: NodeMask::EMPTY,
            quarantined: NodeMask::EMPTY,
            registered: NodeMask::EMPTY,
            to_look: NodeMask::EMPTY,
            asked: NodeMask::EMPTY,
            serials: [0; MAX_NODES],
            overtaken: NodeMask::EMPTY,
            away: NodeMask::EMPTY,
            late: NodeMask::EMPTY,
            mute: NodeMask::EMPTY,
            anchor: None,
            awake: None,
            more_at: None,
            pace_at: None,
            looked_at: began,
            before: [Sight::Unseen; MAX_NODES],
            checked: NodeMask::EMPTY,
            checked_at: began,
            idle_pushes: 0,
            put_off: None,
            restless: 0,
            is_contended: false,
            lacks_nodes: false,
            woke: None,
            is_due: false,
        }
    }

    /// Nodes that do not push.
    pub(crate) fn mute(&self) -> NodeMask {
        self.mute
    }

    pub(crate) fn set_mute(&mut self, mute: NodeMask) {
        self.mute = mute;
    }

    /// Records that `node` pushes.
    pub(super) fn is_heard(&mut self, node: NodeIndex) {
        self.mute.remove(node);
    }

    /// Begins to wait for the next attempt after one has failed.
    pub(super) fn attempt_failed(
        &mut self,
        failure: Failure,
        round_trip: Duration,
        now: BootInstant,
    ) {
        let Failure { reason, refused, silent, away, may_count_from, jitter } = failure;
        self.is_contended = match reason {
            AttemptError::Taken | AttemptError::Split => true,
            AttemptError::Quarantined => !refused.is_empty(),
            _ => false,
        };
        let is_split = reason == AttemptError::Split;
        let collided = self.woke.take().is_some() || is_split;
        self.round_trip = round_trip;
        if self.is_contended {
            self.crowd.met(now);
        }
        if self.is_contended && collided {
            self.crowd.collided(is_split, self.retry, round_trip);
        }
        (self.jitter, self.draws, self.refused) = (jitter, 0, refused);
        // The attempt's own SETs and releases have dropped the registrations.
        self.sights = Sights::none(self.nodes);
        self.quarantined = NodeMask::EMPTY;
        for (node, from) in self.nodes.iter().zip(may_count_from.into_iter().flatten()) {
            if from > now {
                self.sights.set(node, Sight::Held(from));
                self.quarantined.insert(node);
            }
        }
        self.registered = NodeMask::EMPTY;
        (self.to_look, self.asked, self.overtaken) =
            (NodeMask::EMPTY, NodeMask::EMPTY, NodeMask::EMPTY);
        (self.away, self.late, self.checked) = (away, NodeMask::EMPTY, NodeMask::EMPTY);
        (self.anchor, self.awake, self.is_due) = (None, None, false);
        (self.put_off, self.idle_pushes) = (None, 0);
        self.before = [Sight::Unseen; MAX_NODES];
        self.restless = self.restless.saturating_add(1);
        self.lacks_nodes = match reason {
            AttemptError::TooFewNodes => true,
            AttemptError::Quarantined => !silent.is_empty(),
            _ => false,
        };
        self.looked_at = now;
        self.fall_asleep(now);
        if self.is_contended {
            self.listen_to_one();
        }
        if is_split {
            self.wake(now);
        }
        self.keep_pace(now);
    }

    /// Records that the attempt that followed a sleep was granted.
    pub(super) fn granted(&mut self, t1: BootInstant) {
        if self.is_contended {
            self.crowd.met(t1);
        }
        if let Some(woke) = self.woke.take() {
            self.crowd.taken(t1.since(woke), self.retry, self.round_trip);
        }
    }

    /// Returns true once when the attempt is due.
    pub(super) fn take_due(&mut self) -> bool {
        core::mem::take(&mut self.is_due)
    }

    /// Returns the next node to look at; `serial` names the look.
    pub(super) fn poll_look(&mut self, serial: u32) -> Option<NodeIndex> {
        let node = self.to_look.pop()?;
        self.asked.insert(node);
        self.serials[node.get()] = serial;
        if self.registered.contains(node) {
            self.checked.insert(node);
        }
        Some(node)
    }

    /// Returns true if `serial` names the look whose reply `node` owes.
    pub(super) fn is_look(&self, node: NodeIndex, serial: u32) -> bool {
        self.asked.contains(node) && self.serials[node.get()] == serial
    }

    /// Returns the remaining life of each known key at `now`.
    pub(super) fn time_left(&self, now: BootInstant) -> [Option<Duration>; MAX_NODES] {
        core::array::from_fn(|place| match self.sights.of(NodeIndex::new(place)) {
            Sight::Unseen | Sight::Held(BootInstant::NEVER) => None,
            Sight::Free => Some(Duration::ZERO),
            Sight::Held(until) => Some(until.since(now)),
        })
    }

    fn draw(&mut self) -> u64 {
        self.draws += 1;
        draw(self.jitter, self.draws)
    }

    /// Returns true if the attempts have grown rare.
    fn is_restless(&self) -> bool {
        self.restless > RESTLESS
    }

    /// Returns a random delay within the contention window.
    fn delay(&mut self) -> Duration {
        let jitter = self.draw();
        share(self.crowd.window(self.retry, self.round_trip), jitter)
    }

    /// Returns the interval to an attempt that nothing wakes.
    fn paced(&mut self, now: BootInstant) -> Duration {
        let jitter = self.draw();
        pace(now.since(self.began), jitter).max(self.delay())
    }
}

#[cfg(test)]
mod tests;
