//! Actions of a use before an attempt.

use core::time::Duration;

use super::listening::{Failure, Listening};
use super::{AttemptError, Limit, Lock, LockConfig, LockOutcome, Phase, Vote};
use crate::command::{CommandId, NoAnswer, Op, Reply, Send};
use crate::crowd::Crowd;
use crate::quorum::{MAX_NODES, NodeIndex, NodeMask};
use crate::retry::share;
use crate::time::BootInstant;

impl Lock {
    /// Queues this use behind another use of the same client.
    pub(crate) fn queue(&mut self) {
        assert_eq!(self.phase, Phase::Due, "only what has not begun can wait");
        self.phase = Phase::Queued;
    }

    /// Makes this use the head of its queue: the first attempt is due, unless its time limit has
    /// passed. `why` is the previous head's [`Lock::why_behind`].
    pub(crate) fn become_head(&mut self, why: AttemptError, now: BootInstant) {
        assert_eq!(self.phase, Phase::Queued, "only what waits can come to the head");
        self.why_behind = why;
        self.phase = if self.config.limit.is_over(now) { Phase::Ended } else { Phase::Due };
    }

    /// Queues the attempt that is due behind attempts on other locks.
    pub(crate) fn await_admission(&mut self) {
        self.queue();
        if self.failures == 0 {
            self.why_behind = AttemptError::Overloaded;
        }
    }

    /// Makes the attempt due that waited for its turn, unless the use has ended or its time limit has
    /// passed. Returns true if it is due.
    pub(crate) fn admit(&mut self, now: BootInstant) -> bool {
        let is_due = self.phase == Phase::Queued && !self.config.limit.is_over(now);
        if is_due {
            self.phase = Phase::Due;
        }
        is_due
    }

    /// Puts the first attempt off until `until`, or until the time limit if that is earlier.
    pub(crate) fn put_off(&mut self, until: BootInstant) {
        assert_eq!(self.phase, Phase::Due, "only a first attempt is put off");
        let until = self.config.limit.end().map_or(until, |end| until.min(end));
        self.phase = Phase::Waiting { until };
    }

    /// Makes the first attempt due if it was waiting for connections; returns true if it was.
    pub(crate) fn connections_ready(&mut self) -> bool {
        let waits = self.failures == 0 && matches!(self.phase, Phase::Waiting { .. });
        if waits {
            self.phase = Phase::Due;
        }
        waits
    }

    /// Ends the attempt. Everything that it may have set is released, on *every* node that may have
    /// it (specification, step 5; counterexamples N1, L3), and the use waits for the next attempt if
    /// there is to be one. `may_count_from` are the instants from which the nodes may count, if the
    /// attempt failed for nodes in quarantine; `mute` are the nodes that do not push.
    pub(crate) fn fail(
        &mut self,
        reason: AttemptError,
        round_trip: Duration,
        may_count_from: Option<[BootInstant; MAX_NODES]>,
        mute: NodeMask,
        now: BootInstant,
    ) {
        self.release_everywhere();
        self.failures += 1;
        self.why_behind = reason;
        let delay = self.delay(round_trip);
        let quorum_from = may_count_from.and_then(|it| self.config.nodes.quorum_from(it));
        let until = quorum_from.map_or(now, |from| from.max(now)).after(delay);
        let again = match self.config.limit {
            Limit::Attempts(most) => self.failures < most,
            Limit::Until(end)
                if may_count_from.is_some_and(|it| self.needs_time_alone(it, now)) =>
            {
                self.wait();
                until < end
            }
            Limit::Until(end) => {
                if now < end {
                    self.listen(reason, round_trip, may_count_from, mute, now);
                } else {
                    self.phase = Phase::Ended;
                }
                return;
            }
            Limit::WhileSplit(most) => reason == AttemptError::Split && self.failures < most,
        };
        self.phase = if again { Phase::Waiting { until } } else { Phase::Ended };
    }

    /// Returns the random delay before the next attempt.
    fn delay(&self, round_trip: Duration) -> Duration {
        let (retry, jitter) = (self.config.retry, self.fresh.jitter);
        match self.config.limit {
            Limit::Until(_) => share(self.crowd().window(retry, round_trip), jitter),
            Limit::Attempts(_) | Limit::WhileSplit(_) => {
                retry.after(self.failures, round_trip, jitter)
            }
        }
    }

    /// Returns true if an attempt after a known instant succeeds if every node then answers as it did
    /// now, or if no attempt before that instant can succeed.
    fn needs_time_alone(&self, may_count_from: [BootInstant; MAX_NODES], now: BootInstant) -> bool {
        let nodes = self.config.nodes;
        let count = self.granted().iter().filter(|it| may_count_from[it.get()] <= now).count();
        let is_later = |from| from > now || count >= nodes.quorum();
        nodes.quorum_from(may_count_from).is_some_and(is_later)
    }

    /// Returns what the use knows of its lock. The wait begins with the attempt that has just failed,
    /// unless it has begun before.
    fn wait(&mut self) -> &mut Listening {
        let LockConfig { nodes, drift, retry, .. } = self.config;
        let (crowd, began) = (self.crowd, self.t1);
        let listening = || Box::new(Listening::new(nodes, drift, retry, crowd, began));
        self.listening.get_or_insert_with(listening)
    }

    fn listen(
        &mut self,
        reason: AttemptError,
        round_trip: Duration,
        may_count_from: Option<[BootInstant; MAX_NODES]>,
        mute: NodeMask,
        now: BootInstant,
    ) {
        let (refused, jitter) = (self.voting(Vote::Refused), self.fresh.jitter);
        let silent = self.config.nodes.all().without(self.granted()).without(refused);
        let away = self.voting(Vote::NotSent).without(self.crowded);
        let failure = Failure { reason, refused, silent, away, may_count_from, jitter };
        let listening = self.wait();
        listening.set_mute(mute);
        listening.attempt_failed(failure, round_trip, now);
        self.phase = Phase::Listening;
    }

    /// Makes the next attempt due if the use has just decided so; returns true then.
    pub(crate) fn take_due(&mut self) -> bool {
        let is_due = self.heeds().is_some_and(Listening::take_due);
        if is_due {
            self.phase = Phase::Due;
        }
        is_due
    }

    /// Handles a push of `node`, if the use listens for changes or its lease is watched: its key has
    /// changed, or may have. Returns false if there is neither a command nor another timeout.
    pub(crate) fn key_changed(&mut self, node: NodeIndex, now: BootInstant) -> bool {
        self.doubt_absence(node);
        if let Some(listening) = self.heeds() {
            listening.key_changed(node, now);
            true
        } else if let Some(watching) = self.watches() {
            watching.key_changed(node, now)
        } else {
            false
        }
    }

    /// Records that `node` pushes: it has just done so.
    pub(crate) fn is_heard(&mut self, node: NodeIndex) {
        if let Some(listening) = self.heeds() {
            listening.is_heard(node);
        } else if let Some(watching) = self.watches() {
            watching.is_heard(node);
        }
    }

    /// Handles that nobody executes an unanswered SET to `node` any more: the process to which it was
    /// written has ended. The key may be there.
    pub(crate) fn set_is_void(&mut self, node: NodeIndex) {
        let vote = &mut self.votes[node.get()];
        if *vote == Vote::Unknown && matches!(self.phase, Phase::Held { .. }) {
            *vote = Vote::Unconfirmed;
        }
    }

    /// Handles the opening of a connection to `node`. Returns true if this brings the next round of
    /// keep-alive forward; the rounds of `ahead` other leases come first.
    pub(crate) fn connection_opened(
        &mut self,
        node: NodeIndex,
        ahead: u32,
        now: BootInstant,
    ) -> bool {
        let looks = self.look_for_key_soon(node, ahead, now);
        if let Some(listening) = self.heeds() {
            listening.connection_opened(node, now);
        } else if let Some(watching) = self.watches() {
            watching.connection_opened(node, now);
        }
        looks
    }

    /// Handles that `node` takes commands again.
    pub(crate) fn answers_again(&mut self, node: NodeIndex, now: BootInstant) {
        if let Some(listening) = self.heeds() {
            listening.answers_again(node, now);
        }
    }

    /// Handles the end of the connection to `node`.
    pub(crate) fn connection_lost(&mut self, node: NodeIndex, now: BootInstant) {
        self.doubt_absence(node);
        if let Some(listening) = self.heeds() {
            listening.connection_lost(node, now);
        } else if let Some(watching) = self.watches() {
            watching.connection_lost(node);
        }
    }

    /// Returns what the use knows of its lock, while it listens for changes.
    fn heeds(&mut self) -> Option<&mut Listening> {
        self.listening.as_deref_mut().filter(|_| self.phase == Phase::Listening)
    }

    /// Returns the contention for the lock, as this use has seen it.
    pub(crate) fn crowd(&self) -> Crowd {
        self.listening.as_ref().map_or(self.crowd, |it| it.crowd)
    }

    pub(crate) fn set_crowd(&mut self, crowd: Crowd) {
        self.crowd = crowd;
    }

    /// Records that this client gives up the lease.
    pub(crate) fn given_up(&mut self, now: BootInstant) {
        self.crowd.given_up(now);
    }

    /// Returns the delay of the first attempt if it lets others go first, and may wait.
    pub(crate) fn courtesy(
        &mut self,
        now: BootInstant,
        round_trip: Duration,
        jitter: u64,
    ) -> Option<Duration> {
        let end = self.config.limit.end()?;
        let delay = self.crowd.courtesy(now, self.config.retry, round_trip, jitter)?;
        Some(delay).filter(|&delay| now.after(delay) < end)
    }

    /// Returns the nodes that do not push, as far as this use knows while it listens.
    pub(crate) fn mute(&self) -> Option<NodeMask> {
        let listening = self.listening.as_ref().filter(|_| self.phase == Phase::Listening);
        listening.map(|it| it.mute())
    }

    /// Stops listening: an attempt was granted.
    pub(super) fn stop_listening(&mut self) {
        if let Some(mut listening) = self.listening.take() {
            listening.granted(self.t1);
            self.crowd = listening.crowd;
        }
    }

    /// Returns the next look at a node.
    pub(super) fn poll_look(&mut self) -> Option<Send> {
        let serial = self.next_serial;
        let node = self.heeds()?.poll_look(serial)?;
        self.next_serial += 1;
        let op = Op::Look { resource: self.resource, token: self.fresh.token };
        let id = self.command(serial);
        Some(Send { node, id, op, after: None, write_before: None, key_ttl: self.key_ttl })
    }

    /// Returns true if `id` is the unanswered look at the key of `node`.
    pub(super) fn is_look(&self, node: NodeIndex, id: CommandId) -> bool {
        let listening = self.listening.as_ref().filter(|_| self.phase == Phase::Listening);
        listening.is_some_and(|it| it.is_look(node, id.serial))
    }

    /// Handles the outcome of the look at `node`; nothing happens to the use at once.
    pub(super) fn handle_look(
        &mut self,
        node: NodeIndex,
        outcome: Result<Reply, NoAnswer>,
        now: BootInstant,
    ) -> Option<LockOutcome> {
        if let Some(listening) = self.heeds() {
            listening.looked(node, outcome, now);
        }
        None
    }

    /// Handles a timeout while the use listens: the end of the wait, or what the rules of listening
    /// want.
    pub(super) fn handle_listening_timeout(&mut self, now: BootInstant) -> Option<LockOutcome> {
        if self.config.limit.is_over(now) {
            return self.give_up_waiting(now);
        }
        if let Some(listening) = self.heeds() {
            listening.handle_timeout(now);
        }
        None
    }

    /// Returns the instant at which the use acts again while it listens.
    pub(super) fn poll_listening_timeout(&self, now: BootInstant) -> Option<BootInstant> {
        let own = self.listening.as_ref().and_then(|it| it.poll_timeout(now));
        own.into_iter().chain(self.config.limit.end()).min()
    }

    /// Ends the wait without a lease. If the lock is taken, and the looks have not shown for how
    /// long, the nodes are asked.
    fn give_up_waiting(&mut self, now: BootInstant) -> Option<LockOutcome> {
        self.phase = Phase::Ended;
        let listening = self.listening.take()?;
        self.crowd = listening.crowd;
        let is_taken = self.why_behind == AttemptError::Taken;
        if is_taken && self.ask_for_other_times_left(listening.time_left(now)) {
            return None;
        }
        Some(LockOutcome::GaveUp)
    }
}
