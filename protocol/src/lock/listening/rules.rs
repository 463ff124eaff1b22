//! Rules by which a waiting use sleeps, wakes, looks and attempts.

use core::time::Duration;

use super::sights::Sight;
use super::{Awake, IDLE_FIRST, Listening, NODES_AWAY, ONE_NODE, idle_delay};
use crate::command::{NoAnswer, Reply};
use crate::quorum::{NodeIndex, NodeMask};
use crate::retry::share_of;
use crate::time::BootInstant;

impl Listening {
    /// Handles a push of `node`: its key has changed, or may have.
    pub(in crate::lock) fn key_changed(&mut self, node: NodeIndex, now: BootInstant) {
        self.registered.remove(node);
        self.checked.remove(node);
        if self.asked.contains(node) || self.to_look.contains(node) {
            // The reply under way may be older than this change.
            self.overtaken.insert(node);
            return;
        }
        if self.put_off.is_some() {
            // If that look shows a free node, this one is looked at next.
            return self.keep_pace(now);
        }
        if self.awake.is_some() && self.anchor.is_some_and(|anchor| anchor != node) {
            // The use listens to its anchor while it is awake.
            self.sights.set(node, Sight::Unseen);
            return;
        }
        self.anchor = Some(node);
        self.before[node.get()] = self.sights.of(node);
        self.look_into_push(node, now);
        self.keep_pace(now);
    }

    /// Looks at a node that pushed: at once, or later if many pushes came without a change.
    fn look_into_push(&mut self, node: NodeIndex, now: BootInstant) {
        let Some(delay) = idle_delay(self.idle_pushes) else {
            self.sights.set(node, Sight::Unseen);
            self.to_look.insert(node);
            return self.wake(now);
        };
        self.put_off.get_or_insert((node, now.after(delay)));
    }

    /// Handles the outcome of the look at `node`.
    pub(in crate::lock) fn looked(
        &mut self,
        node: NodeIndex,
        outcome: Result<Reply, NoAnswer>,
        now: BootInstant,
    ) {
        self.asked.remove(node);
        let (overtaken, checked) = (self.overtaken.contains(node), self.checked.contains(node));
        self.overtaken.remove(node);
        self.checked.remove(node);
        let (left_ms, registered) = match outcome {
            Ok(Reply::Registered(left_ms)) => (left_ms, true),
            Ok(Reply::Integer(left_ms)) => (left_ms, false),
            _ => {
                self.registered.remove(node);
                self.sights.set(node, Sight::Unseen);
                self.away.insert(node);
                self.reconsider(now);
                return self.keep_pace(now);
            }
        };
        self.looked_at = now;
        let (before, sight) = (self.sights.of(node), sight(left_ms, now));
        let apart = now.since(core::mem::replace(&mut self.seen_at[node.get()], now));
        if checked && self.is_unheard_change((before, sight), apart, now) {
            // The node should have pushed this change.
            self.mute.insert(node);
        }
        let pushed = core::mem::replace(&mut self.before[node.get()], Sight::Unseen);
        if pushed != Sight::Unseen {
            let is_idle = self.is_same(pushed, sight, now);
            self.idle_pushes = if is_idle { self.idle_pushes.saturating_add(1) } else { 0 };
            let is_gone = matches!((pushed, sight), (Sight::Held(_), Sight::Free));
            if is_gone || !is_idle {
                self.hear_news(now);
            }
        }
        self.sights.set(node, sight);
        if registered && !overtaken && !self.mute.contains(node) {
            self.registered.insert(node);
        } else {
            self.registered.remove(node);
        }
        if !registered {
            self.mute.insert(node);
        }
        if overtaken && registered {
            self.before[node.get()] = sight;
            self.look_into_push(node, now);
        }
        self.reconsider(now);
        self.keep_pace(now);
    }

    /// Returns true if the key changed between two looks `apart` from each other, and not by its
    /// expiry. A late reply proves no change: it makes the key's life seem longer, and so does a node
    /// whose clock lags behind this client's.
    fn is_unheard_change(&self, looks: (Sight, Sight), apart: Duration, now: BootInstant) -> bool {
        let tolerance = self.round_trip.saturating_add(IDLE_FIRST);
        if now.since(self.checked_at) > tolerance {
            return false;
        }
        let latest = now.after(tolerance).after(self.drift.between_clocks(apart));
        match looks {
            (Sight::Held(one), Sight::Held(other)) => other.since(one) > latest.since(now),
            (Sight::Held(until), Sight::Free) => until > latest,
            (Sight::Free, Sight::Held(_)) => true,
            _ => false,
        }
    }

    /// Returns true if two looks at a key showed the same life of it, as far as delays allow to tell.
    fn is_same(&self, before: Sight, after: Sight, now: BootInstant) -> bool {
        let tolerance = self.round_trip.saturating_add(IDLE_FIRST);
        match (before, after) {
            (Sight::Held(one), Sight::Held(other)) => {
                one.since(other).max(other.since(one)) <= tolerance
            }
            (Sight::Free, Sight::Free) => true,
            (Sight::Held(until), Sight::Free) => until <= now.after(tolerance),
            _ => false,
        }
    }

    /// Decides between sleep and attempt once all looks are answered.
    fn reconsider(&mut self, now: BootInstant) {
        if !self.asked.is_empty() || !self.to_look.is_empty() {
            return;
        }
        let is_blocked = self.sights.is_blocked(now);
        match self.awake {
            Some(Awake { since, .. }) if is_blocked => {
                self.crowd.taken(now.since(since), self.retry, self.round_trip);
                self.fall_asleep(now);
            }
            None if !is_blocked && !self.sights.free(now).is_empty() => {
                if !self.sights.expired(now).is_empty() {
                    self.hear_news(now);
                }
                let free = self.sights.free(now);
                self.anchor = free.intersection(self.registered).iter().next();
                self.wake(now);
            }
            _ => {}
        }
        if self.awake.is_none() {
            self.seek(now);
        }
    }

    pub(super) fn fall_asleep(&mut self, now: BootInstant) {
        self.awake = None;
        self.more_at = self.is_contended.then(|| now.after(ONE_NODE));
        self.pace_at = None;
    }

    /// Draws the delay before the attempt, unless attempts have grown rare.
    pub(super) fn wake(&mut self, now: BootInstant) {
        if self.awake.is_none() && !self.is_restless() {
            let attempt_at = now.after(self.delay());
            self.awake = Some(Awake { since: now, attempt_at });
        }
    }

    /// Lets the next attempt come soon, whatever the attempts before have met: a key has changed or
    /// ended, a quarantine has ended, or a node is back.
    fn hear_news(&mut self, now: BootInstant) {
        self.restless = 0;
        if let Some(pace_at) = self.pace_at {
            self.pace_at = Some(pace_at.min(now.after(self.delay())));
        }
    }

    /// Listens to one node, preferably to one that refused the attempt.
    pub(super) fn listen_to_one(&mut self) {
        let useless = self.away.union(self.mute).union(self.registered);
        let askable = self.nodes.all().without(useless);
        let preferred = askable.intersection(self.refused);
        let from = if preferred.is_empty() { askable } else { preferred };
        let count = from.len() as u64;
        self.anchor = if count == 0 {
            None
        } else {
            let place = share_of(count, self.draw()) as usize;
            from.iter().nth(place)
        };
        self.to_look = self.anchor.map_or(NodeMask::EMPTY, |anchor| {
            let mut to_look = self.to_look;
            to_look.insert(anchor);
            to_look
        });
    }

    /// Looks at more nodes if the use listens to too few of them to sleep on.
    fn seek(&mut self, now: BootInstant) {
        // A look that was put off comes first, and leads here again.
        if !self.is_contended || self.put_off.is_some() {
            return;
        }
        let heard = self.registered.union(self.asked).union(self.to_look);
        if !self.sights.free(now).is_empty() {
            // The lock may be free but for keys whose end these nodes would not tell.
            let untold = self.sights.held(now).without(heard.union(self.announced(now)));
            self.to_look = self.to_look.union(untold.without(self.away.union(self.mute)));
        }
        if self.more_at.is_some() {
            if heard.is_empty() {
                self.listen_to_one();
            }
            return;
        }
        let (enough, heard) = (self.nodes.tolerated() + 1, heard.union(self.announced(now)));
        let others = self.nodes.all().without(heard.union(self.away).union(self.mute));
        let missing = enough.saturating_sub(heard.len());
        // A node without the key that blocks, as after a restart, does not tell of its end.
        let (likely, rest) = (others.intersection(self.refused), others.without(self.refused));
        likely.iter().chain(rest.iter()).take(missing).for_each(|node| self.to_look.insert(node));
    }

    /// Returns true if no majority can become free without a push.
    fn is_sound(&self, now: BootInstant) -> bool {
        let held = self.sights.held(now).intersection(self.announced(now));
        held.len() > self.nodes.tolerated()
    }

    /// Returns the nodes that push, or whose quarantine ends at a known instant, when they become
    /// free.
    fn announced(&self, now: BootInstant) -> NodeMask {
        self.registered.union(self.quarantined.intersection(self.sights.held(now)))
    }

    /// Schedules an attempt that nothing wakes if too few nodes can wake the sleeping use.
    pub(super) fn keep_pace(&mut self, now: BootInstant) {
        let listens = self.more_at.is_some() && !self.registered.is_empty();
        let is_asking =
            !self.asked.is_empty() || !self.to_look.is_empty() || self.put_off.is_some();
        if self.awake.is_some() || listens || self.is_sound(now) {
            self.pace_at = None;
        } else if self.pace_at.is_none() && !is_asking {
            let mut interval = self.paced(now);
            if self.away.len() > self.nodes.tolerated() {
                // An attempt would ask no node. Nodes that come back get a look.
                interval = interval.max(NODES_AWAY);
            }
            self.pace_at = Some(now.after(interval));
        }
    }

    /// Returns the instant at which the use looks again because nothing has happened for long.
    fn silent_until(&self) -> Option<BootInstant> {
        let is_listening = !self.registered.is_empty() && self.asked.is_empty();
        is_listening.then(|| self.looked_at.after(self.retry.silence))
    }

    /// Returns the instant at which [`Listening::handle_timeout`] has something to do. `now` is the
    /// present.
    pub(in crate::lock) fn poll_timeout(&self, now: BootInstant) -> Option<BootInstant> {
        let put_off = self.put_off.map(|(_, at)| at);
        let is_asking = !self.asked.is_empty();
        let others = match self.awake {
            Some(_) if is_asking => [None; 4],
            Some(Awake { attempt_at, .. }) => [Some(attempt_at), None, None, None],
            None => {
                // An expiry that another event has overtaken is due at once.
                let is_free = !self.sights.is_blocked(now) && !self.sights.free(now).is_empty();
                let is_free = is_free && !self.is_restless();
                let free_at = if is_free { Some(now) } else { self.sights.free_at(now) };
                let free_at = free_at.filter(|_| !is_asking);
                let more_at = self.more_at.filter(|_| !is_asking);
                let pace_at = self.pace_at.filter(|_| !is_asking);
                [free_at, more_at, pace_at, self.silent_until()]
            }
        };
        others.into_iter().chain([put_off]).flatten().min()
    }

    pub(in crate::lock) fn handle_timeout(&mut self, now: BootInstant) {
        if let Some((node, _)) = self.put_off.take_if(|(_, at)| *at <= now) {
            self.sights.set(node, Sight::Unseen);
            self.to_look.insert(node);
            self.wake(now);
        }
        if !self.asked.is_empty() || !self.to_look.is_empty() {
            return;
        }
        if let Some(Awake { since, attempt_at }) = self.awake {
            if attempt_at <= now {
                (self.is_due, self.woke) = (true, Some(since));
            }
            return;
        }
        if self.pace_at.is_some_and(|at| at <= now) {
            self.is_due = true;
            return;
        }
        if self.more_at.take_if(|at| *at <= now).is_some() {
            self.seek(now);
        }
        if self.silent_until().is_some_and(|at| at <= now) {
            (self.looked_at, self.checked_at) = (now, now);
            (self.away, self.late) = (NodeMask::EMPTY, NodeMask::EMPTY);
            self.more_at = None;
            self.to_look = self.registered;
            self.seek(now);
        }
        // Keys that have expired free the lock, whether or not the nodes have noticed.
        self.reconsider(now);
        self.keep_pace(now);
    }

    /// Handles the end of the connection to `node`, and with it of all that the node would push.
    pub(in crate::lock) fn connection_lost(&mut self, node: NodeIndex, now: BootInstant) {
        self.registered.remove(node);
        self.checked.remove(node);
        self.away.insert(node);
        if self.awake.is_none() && self.asked.is_empty() {
            self.seek(now);
        }
        self.keep_pace(now);
    }

    /// Handles the opening of a connection to `node`.
    pub(in crate::lock) fn connection_opened(&mut self, node: NodeIndex, now: BootInstant) {
        self.mute.remove(node);
        self.is_back(node, now);
    }

    /// Handles that `node` owed an answer for too long and has given it. There is no news if it was
    /// asked in spite of that, or was late again since: a node that is always too slow must not be
    /// polled.
    pub(in crate::lock) fn answers_again(&mut self, node: NodeIndex, now: BootInstant) {
        if self.away.contains(node) && !self.late.contains(node) {
            self.late.insert(node);
            self.is_back(node, now);
        }
    }

    /// Handles that `node` takes commands again.
    fn is_back(&mut self, node: NodeIndex, now: BootInstant) {
        self.away.remove(node);
        if self.lacks_nodes {
            // A node comes back too rarely for this to become a poll.
            self.hear_news(now);
        }
        if self.awake.is_none() && (self.is_contended || !self.lacks_nodes) {
            self.seek(now);
            self.keep_pace(now);
        }
    }
}

/// Interprets the reply of `PTTL`, read at `now`. The key lives for the rest of its last
/// millisecond.
fn sight(left_ms: i64, now: BootInstant) -> Sight {
    match u64::try_from(left_ms) {
        Ok(left_ms) => {
            let left_ms = left_ms.saturating_add(1);
            Sight::Held(now.after(Duration::from_millis(left_ms)))
        }
        Err(_) if left_ms == -1 => Sight::Held(BootInstant::NEVER),
        Err(_) => Sight::Free,
    }
}
