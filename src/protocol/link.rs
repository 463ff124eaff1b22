//! One client's connection to one node, shared by all of the client's locks.

#[cfg(any(test, feature = "simulation"))]
mod canonical;
mod debt;
mod introductions;

use core::time::Duration;
use std::collections::VecDeque;

use self::debt::Debts;
use self::introductions::Introductions;
use super::command::{CommandId, NoAnswer, Op, Reply, ResourceId, Send};
use super::quorum::NodeIndex;
use super::restart::{Eligibility, RestartGuard};
use super::time::BootInstant;
use super::validity::Drift;

/// Commands that one connection may have written and not answered. The others wait, no longer than
/// the node timeout, until there is room.
const IN_FLIGHT_MAX: usize = 512;

/// Commands that may wait or be unanswered on one connection.
///
/// New SETs stop at half of it, so that there is room for the releases of leases; a release that finds
/// none is owed.
pub(crate) const PENDING_MAX: usize = 8_192;

/// The times a link keeps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkConfig {
    /// How long a node may take to answer before it counts as missing.
    pub node_timeout: Duration,
    /// How long a connection may take to open.
    pub connect_timeout: Duration,
    /// What the operator promises of the node.
    pub restart_guard: RestartGuard,
    /// The longest TTL that any client of the node uses.
    pub fleet_max_ttl: Duration,
    /// The drift allowed between the fleet's clocks.
    pub drift: Drift,
    /// How old the last introduction on a connection may be when a SET is written: behind an older
    /// one the node is asked again, and its vote counts when it has answered.
    pub introduction_max_age: Duration,
}

impl LinkConfig {
    /// How long a command may stay unanswered before the connection is given up.
    #[must_use]
    pub fn patience(&self) -> Duration {
        self.node_timeout.saturating_mul(4).max(GIVE_UP_LEAST)
    }
}

/// Waits between two dials: the first, and the longest that doubling reaches.
const REDIAL_FIRST: Duration = Duration::from_millis(10);
const REDIAL_LONGEST: Duration = Duration::from_secs(1);

/// A connection is reset when a command has waited this long, whatever the node timeout.
const GIVE_UP_LEAST: Duration = Duration::from_millis(500);

/// What a link tells the lock that sent a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) node: NodeIndex,
    pub(crate) id: CommandId,
    pub(crate) outcome: Result<Reply, NoAnswer>,
}

/// What a link asks of its transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkCommand {
    Dial { epoch: u32 },
    Reset { epoch: u32, why: GivenUp },
    Write { epoch: u32, id: CommandId, op: Op },
}

/// Why a connection is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenUp {
    /// No answer came in time, or one to something else than was asked.
    NoAnswer,
    /// The node is a replica, or loads its data.
    NotServing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not needed so far.
    Idle,
    /// To be dialled as soon as the driver polls.
    DialWanted,
    Dialing {
        since: BootInstant,
    },
    /// Connected; only the introduction may be written.
    Introducing,
    Open,
    /// The connection is gone; dial again at `until`.
    Backoff {
        until: BootInstant,
    },
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    id: CommandId,
    op: Op,
    /// How long its key lives at most.
    key_ttl: Duration,
    /// It must have been written before this instant.
    write_before: Option<BootInstant>,
    /// When the link took it: the node timeout runs from here.
    since: BootInstant,
    /// When it was handed to the transport: the link's patience runs from here.
    written_at: Option<BootInstant>,
    /// The node timeout has passed. The lock that sent it has been told that there is no answer,
    /// and the answer will be dropped.
    overdue: bool,
    /// Its vote counts only when the introduction right behind it has been answered.
    confirmed_behind: bool,
}

impl Pending {
    fn of_lock(send: Send, now: BootInstant) -> Self {
        let Send { id, op, write_before, key_ttl, .. } = send;
        let (written_at, overdue, confirmed_behind) = (None, false, false);
        Self { id, op, key_ttl, write_before, since: now, written_at, overdue, confirmed_behind }
    }

    fn of_link(id: CommandId, op: Op, key_ttl: Duration, now: BootInstant) -> Self {
        let (write_before, written_at) = (None, None);
        let (overdue, confirmed_behind) = (false, false);
        Self { id, op, key_ttl, write_before, since: now, written_at, overdue, confirmed_behind }
    }

    /// Whether it has become too late to write it.
    fn is_stale(&self, now: BootInstant) -> bool {
        self.write_before.is_some_and(|end| end <= now)
    }
}

/// The FIFO of unanswered commands of one connection, and what outlives connections: the node's
/// eligibility and the releases it is owed.
///
/// Replies match commands by order alone, so a connection whose order is in doubt is reset and
/// never used again (catalogue N5). The first `written` entries of the pipeline have been handed
/// out by [`Link::poll_command`] and count as written for good.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    node: NodeIndex,
    config: LinkConfig,
    state: State,
    epoch: u32,
    writable: bool,
    reset_wanted: Option<GivenUp>,
    pipeline: VecDeque<Pending>,
    written: usize,
    redial_after: Duration,
    /// Spreads the dials of clients that lost a node at the same time; zero before the first attempt.
    jitter: u64,
    next_serial: u32,
    debts: Debts,
    eligibility: Eligibility,
    /// When the node last refused to introduce itself on this connection, if it has not done so since.
    refused_at: Option<BootInstant>,
    introductions: Introductions,
    round_trip: Duration,
}

impl Link {
    pub(crate) fn new(node: NodeIndex, config: LinkConfig) -> Self {
        Self {
            node,
            config,
            state: State::Idle,
            epoch: 0,
            writable: false,
            reset_wanted: None,
            pipeline: VecDeque::with_capacity(8),
            written: 0,
            redial_after: REDIAL_FIRST,
            jitter: 0,
            next_serial: 0,
            debts: Debts::default(),
            eligibility: Eligibility::new(config.restart_guard, config.fleet_max_ttl, config.drift),
            refused_at: None,
            introductions: Introductions::default(),
            round_trip: Duration::ZERO,
        }
    }

    /// Becomes what `idle` is, keeping what is allocated.
    pub(crate) fn reset_to(&mut self, idle: &Self) {
        let mut pipeline = core::mem::take(&mut self.pipeline);
        let mut debts = core::mem::take(&mut self.debts);
        pipeline.clear();
        debts.clear();
        *self = Self { pipeline, debts, ..idle.clone() };
    }

    /// Since when the node's votes count; `None` while they do not.
    pub(crate) fn eligible_from(&self) -> Option<BootInstant> {
        self.eligibility.from().filter(|_| !self.introductions.is_suspended())
    }

    /// From which instant on the node's votes may turn out to count; `None`: never, as far as is
    /// known. A node without a connection, or one that has refused to introduce itself, is asked again.
    pub(crate) fn may_count_from(&self) -> Option<BootInstant> {
        match (self.is_open(), self.eligible_from(), self.asked_again_at()) {
            (false, ..) => Some(BootInstant::ZERO),
            (true, Some(from), Some(again)) => Some(from.min(again)),
            (true, from, again) => from.or(again),
        }
    }

    /// When a node that has refused to introduce itself is asked once more, with the next SET: it
    /// may have been busy.
    fn asked_again_at(&self) -> Option<BootInstant> {
        self.refused_at.map(|at| at.after(self.config.patience()))
    }

    /// The longest TTL that any client of the node uses: how long its quarantine lasts.
    pub(crate) fn fleet_max_ttl(&self) -> Duration {
        self.config.fleet_max_ttl
    }

    pub(crate) fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// Whether the first connection that there will have been is still to be opened.
    pub(crate) fn opens_first(&self) -> bool {
        let opens = !matches!(self.state, State::Open | State::Backoff { .. });
        self.epoch <= 1 && opens
    }

    /// How long a connection may take to open.
    pub(crate) fn connect_timeout(&self) -> Duration {
        self.config.connect_timeout
    }

    /// The longest of the recent round trips.
    pub(crate) fn round_trip(&self) -> Duration {
        self.round_trip
    }

    pub(crate) fn owes(&self) -> usize {
        self.debts.len()
    }

    /// Whether nothing is waiting, unanswered or owed.
    pub(crate) fn is_idle(&self) -> bool {
        self.pipeline.is_empty() && self.debts.len() == 0
    }

    /// Names the resource of every command that is waiting, unanswered or owed.
    pub(crate) fn for_each_resource(&self, mark: &mut impl FnMut(ResourceId)) {
        self.pipeline.iter().filter_map(|pending| pending.op.resource()).for_each(&mut *mark);
        self.debts.iter().for_each(|debt| mark(debt.resource));
    }

    /// Takes in what is random of an attempt.
    pub(crate) fn stir(&mut self, jitter: u64) {
        self.jitter = jitter;
    }

    /// Opens the connection if nobody has asked for it yet.
    pub(crate) fn connect(&mut self) {
        if self.state == State::Idle {
            self.state = State::DialWanted;
        }
    }

    /// Takes a command of a lock, or says that it does not. Whether anything has changed but that.
    pub(crate) fn send(
        &mut self,
        send: Send,
        now: BootInstant,
        notes: &mut VecDeque<Note>,
    ) -> bool {
        self.connect();
        let node = self.node;
        let Send { id, op, key_ttl, .. } = send;
        let pending = Pending::of_lock(send, now);
        match op {
            Op::Extend { .. } | Op::Introduce | Op::Set { .. } | Op::TimeLeft { .. } => {
                if let Some(why) = self.refuses_new_work(now) {
                    notes.push_back(Note { node, id, outcome: Err(why) });
                    return false;
                }
                self.ask_again(now);
                self.pipeline.push_back(pending);
                if matches!(op, Op::Set { .. }) {
                    self.confirm_behind(now);
                }
            }
            Op::Release { resource, token } => match self.place_of(send.after) {
                // Neither was written: together they amount to nothing.
                Some(place) if place >= self.written => {
                    self.drop_unwritten(place, NoAnswer::NotSent, notes);
                    notes.push_back(Note { node, id, outcome: Err(NoAnswer::NotSent) });
                }
                place
                    if !self.has_room()
                        || place.is_none() && (send.after.is_some() || self.is_down()) =>
                {
                    notes.push_back(Note { node, id, outcome: Err(NoAnswer::Unknown) });
                    self.debts.owe(resource, token, now.after(key_ttl));
                    self.pay(now);
                }
                _ => self.pipeline.push_back(pending),
            },
        }
        true
    }

    /// The connection dialled as `epoch` is open.
    pub(crate) fn handle_connected(&mut self, epoch: u32, now: BootInstant) {
        if epoch != self.epoch || !matches!(self.state, State::Dialing { .. }) {
            return;
        }
        self.state = State::Introducing;
        self.writable = true;
        let id = self.own_id();
        self.introductions.ask(now);
        self.pipeline.push_front(Pending::of_link(id, Op::Introduce, Duration::ZERO, now));
    }

    /// The node says on the connection `epoch` that its keys are gone: all, or those of one database.
    pub(crate) fn handle_forgot(&mut self, epoch: u32, now: BootInstant) {
        if epoch != self.epoch || !matches!(self.state, State::Introducing | State::Open) {
            return;
        }
        if self.introductions.suspend() {
            let id = self.ask(now);
            self.introductions.suspend_until(id);
        }
    }

    /// The transport of `epoch` takes bytes again, or takes none for now.
    pub(crate) fn handle_writable(&mut self, epoch: u32, writable: bool) {
        if epoch == self.epoch {
            self.writable = writable;
        }
    }

    /// The transport of `epoch` is gone: refused, closed or reset by the other side.
    pub(crate) fn handle_closed(
        &mut self,
        epoch: u32,
        now: BootInstant,
        notes: &mut VecDeque<Note>,
    ) {
        if epoch == self.epoch && self.has_transport() {
            self.drop_connection(now, notes);
        }
    }

    /// The next reply on the connection `epoch`.
    pub(crate) fn handle_reply(
        &mut self,
        epoch: u32,
        reply: Reply,
        now: BootInstant,
        notes: &mut VecDeque<Note>,
    ) {
        if epoch != self.epoch || !self.has_transport() {
            return;
        }
        let answered = match self.pipeline.front() {
            Some(front) if self.written > 0 && matches(front.op, reply) => *front,
            _ => return self.reset(GivenUp::NoAnswer, now, notes),
        };
        self.pipeline.pop_front();
        self.written -= 1;
        let written_at = answered.written_at.expect("only what was written is answered");
        self.round_trip = now.since(written_at).max(self.round_trip * 7 / 8);
        let serves = match reply {
            Reply::NotServing => false,
            Reply::Introduction(introduction) => introduction.is_master,
            _ => true,
        };
        if answered.op != Op::Introduce && serves {
            // A node that does no more than say who it is has not come back.
            self.redial_after = REDIAL_FIRST;
        }
        match (answered.op, reply) {
            (Op::Introduce, Reply::NotServing) => {}
            (Op::Introduce, Reply::Introduction(introduction)) => {
                self.eligibility.introduced(introduction, now);
                self.refused_at = None;
                self.opened();
            }
            (Op::Introduce, _) => {
                // On one connection it is one process: it is quarantined from its first refusal on.
                if self.refused_at.replace(now).is_none() {
                    self.eligibility.refused(now);
                }
                self.opened();
            }
            (Op::Release { resource, token }, Reply::Error | Reply::NotServing) => {
                // It may be obeyed later: the node loads its data, or its disk is full for now.
                let again_at = now.after(self.config.patience());
                let is_debt = answered.id.lock.is_none();
                let until = if is_debt { answered.since } else { now }.after(answered.key_ttl);
                self.debts.refused(resource, token, until, again_at);
            }
            (Op::Release { token, .. }, _) if answered.id.lock.is_none() => {
                self.debts.answered(token, now.after(self.config.node_timeout));
            }
            _ => {}
        }
        if answered.op == Op::Introduce {
            if self.introductions.answered(answered.id) {
                let id = self.ask(now);
                self.introductions.suspend_until(id);
            }
            self.tell_withheld(notes);
        } else if answered.id.lock.is_some() && !answered.overdue {
            let is_vote = reply == Reply::Ok;
            if is_vote && (answered.confirmed_behind || self.introductions.is_suspended()) {
                self.introductions.withhold(answered.id, answered.since);
            } else {
                notes.push_back(Note { node: self.node, id: answered.id, outcome: Ok(reply) });
            }
        }
        if serves {
            self.pay(now);
        } else {
            // The address may lead to another server by now.
            self.eligibility.stopped_serving();
            self.reset(GivenUp::NotServing, now, notes);
        }
    }

    /// Some instant that [`Link::poll_timeout`] named has come.
    pub(crate) fn handle_timeout(&mut self, now: BootInstant, notes: &mut VecDeque<Note>) {
        self.debts.forget_until(now);
        match self.state {
            State::Backoff { until } if until <= now => self.state = State::DialWanted,
            State::Dialing { since } if since.after(self.config.connect_timeout) <= now => {
                return self.reset(GivenUp::NoAnswer, now, notes);
            }
            _ => {}
        }
        if self.gives_up_at().is_some_and(|at| at <= now) {
            return self.reset(GivenUp::NoAnswer, now, notes);
        }
        self.expire(now, notes);
        self.expire_withheld(now, notes);
        self.pay(now);
    }

    /// What the transport is to do next. What it is too late to write is dropped.
    pub(crate) fn poll_command(
        &mut self,
        now: BootInstant,
        notes: &mut VecDeque<Note>,
    ) -> Option<LinkCommand> {
        if let Some(why) = self.reset_wanted.take() {
            return Some(LinkCommand::Reset { epoch: self.epoch, why });
        }
        if self.state == State::DialWanted {
            self.epoch += 1;
            self.state = State::Dialing { since: now };
            return Some(LinkCommand::Dial { epoch: self.epoch });
        }
        let may_write = match self.state {
            State::Introducing => self.written == 0,
            State::Open => true,
            _ => false,
        };
        if !may_write || !self.writable || self.written >= IN_FLIGHT_MAX {
            return None;
        }
        while self.pipeline.get(self.written).is_some_and(|next| next.is_stale(now)) {
            self.drop_unwritten(self.written, NoAnswer::NotSent, notes);
        }
        let next = self.pipeline.get_mut(self.written)?;
        next.written_at = Some(now);
        self.written += 1;
        Some(LinkCommand::Write { epoch: self.epoch, id: next.id, op: next.op })
    }

    /// The earliest instant at which [`Link::handle_timeout`] has something to do.
    pub(crate) fn poll_timeout(&self) -> Option<BootInstant> {
        let idle = self.pipeline.is_empty() && self.debts.len() == 0;
        if idle && matches!(self.state, State::Open | State::Idle) {
            return None;
        }
        let connection = match self.state {
            State::Backoff { until } => Some(until),
            State::Dialing { since } => Some(since.after(self.config.connect_timeout)),
            _ => None,
        };
        // In the order of their taking, except that the connection's first introduction comes first.
        // Those that are overdue were taken before all others: a node that hangs leaves hundreds.
        let opens =
            matches!(self.state, State::Introducing).then(|| self.pipeline.front()).flatten();
        let opens = opens.map(|it| it.id);
        let is_past = |it: &Pending| it.overdue || Some(it.id) == opens;
        let first_live = self.pipeline.get(self.pipeline.partition_point(is_past));
        let overdue = [self.pipeline.front().filter(|it| !it.overdue), first_live];
        let overdue = overdue.into_iter().flatten().map(|it| it.since).min();
        let overdue = overdue.map(|since| since.after(self.config.node_timeout));
        let unwritten = self.pipeline.range(self.written..);
        let stale = unwritten.filter_map(|it| it.write_before).min();
        // Without room nothing is paid when it is due, but with the answers that make room.
        let debts = self.debts.next_timeout().filter(|_| self.has_room());
        let withheld = self.introductions.oldest_withheld();
        let withheld = withheld.map(|since| since.after(self.config.node_timeout));
        let timeouts = [self.gives_up_at(), overdue, stale, debts, withheld];
        timeouts.into_iter().fold(connection, |first, other| match (first, other) {
            (Some(first), Some(other)) => Some(first.min(other)),
            (first, other) => first.or(other),
        })
    }

    /// A node that owes an answer beyond the node timeout gets no new SET and no extension until it
    /// answers or is reset: more of them would only queue up behind what it is stuck on.
    fn refuses_new_work(&self, now: BootInstant) -> Option<NoAnswer> {
        if self.is_down() || self.is_stuck(now) {
            return Some(NoAnswer::NotSent);
        }
        let full = self.pipeline.len() >= PENDING_MAX / 2;
        let why = if self.is_open() { NoAnswer::Crowded } else { NoAnswer::NotSent };
        full.then_some(why)
    }

    /// Whether the node owes an answer beyond the node timeout. One that was asked late, for other
    /// commands were ahead, is given its time.
    fn is_stuck(&self, now: BootInstant) -> bool {
        let is_late = |at: BootInstant| at.after(self.config.node_timeout) <= now;
        let oldest = self.pipeline.front();
        oldest.is_some_and(|oldest| oldest.overdue && oldest.written_at.is_none_or(is_late))
    }

    /// Whether there is room for another release.
    fn has_room(&self) -> bool {
        self.pipeline.len() < PENDING_MAX
    }

    /// When the oldest command without an answer has been written for too long.
    fn gives_up_at(&self) -> Option<BootInstant> {
        Some(self.pipeline.front()?.written_at?.after(self.config.patience()))
    }

    fn has_transport(&self) -> bool {
        matches!(self.state, State::Dialing { .. } | State::Introducing | State::Open)
    }

    fn is_down(&self) -> bool {
        matches!(self.state, State::Backoff { .. })
    }

    fn place_of(&self, id: Option<CommandId>) -> Option<usize> {
        let id = id?;
        self.pipeline.iter().rposition(|pending| pending.id == id)
    }

    fn own_id(&mut self) -> CommandId {
        self.next_serial += 1;
        CommandId { lock: None, serial: self.next_serial }
    }

    fn opened(&mut self) {
        self.state = State::Open;
    }

    /// Asks a node that has refused to introduce itself once more. Only in front of everything else:
    /// there the introduction always is.
    fn ask_again(&mut self, now: BootInstant) {
        let is_due = self.asked_again_at().is_some_and(|at| at <= now);
        if is_due && self.state == State::Open && self.pipeline.is_empty() {
            self.ask(now);
        }
    }

    /// Asks the node who it is, behind everything else.
    fn ask(&mut self, now: BootInstant) -> CommandId {
        let id = self.own_id();
        self.introductions.ask(now);
        self.pipeline.push_back(Pending::of_link(id, Op::Introduce, Duration::ZERO, now));
        id
    }

    /// Behind a SET: asks who answers if that is not known from a moment ago. A proxy may have
    /// kept the connection while another process took the place of the one behind it.
    fn confirm_behind(&mut self, now: BootInstant) {
        let max_age = self.config.introduction_max_age;
        let is_known = match self.state {
            State::Introducing | State::Open => self.introductions.is_known_since(max_age, now),
            // The connection begins with an introduction; what follows is a moment behind it.
            _ => !max_age.is_zero(),
        };
        if is_known {
            return;
        }
        let set = self.pipeline.back_mut().expect("the SET was just taken");
        set.confirmed_behind = true;
        self.ask(now);
    }

    /// The votes that an introduction was to confirm, if none is awaited any more: what they are worth
    /// is for who asked to say.
    fn tell_withheld(&mut self, notes: &mut VecDeque<Note>) {
        let node = self.node;
        let votes = self.introductions.confirmed();
        notes.extend(votes.map(|id| Note { node, id, outcome: Ok(Reply::Ok) }));
    }

    /// The votes that were not confirmed within the node timeout: what the node did is not known.
    fn expire_withheld(&mut self, now: BootInstant, notes: &mut VecDeque<Note>) {
        let (node, timeout) = (self.node, self.config.node_timeout);
        while let Some(id) = self.introductions.give_up(|since| since.after(timeout) <= now) {
            notes.push_back(Note { node, id, outcome: Err(NoAnswer::Unknown) });
        }
    }

    /// Puts the releases that are owed and due into the pipeline.
    fn pay(&mut self, now: BootInstant) {
        if self.state != State::Open {
            return;
        }
        while self.has_room() {
            let Some(debt) = self.debts.take_due(now) else {
                break;
            };
            let id = self.own_id();
            let op = Op::Release { resource: debt.resource, token: debt.token };
            let key_ttl = debt.until.since(now);
            self.pipeline.push_back(Pending::of_link(id, op, key_ttl, now));
        }
    }

    /// Tells the senders of commands that have waited for the node timeout, and of those that it has
    /// become too late to write. A SET or an extension that was not written leaves the pipeline; what
    /// was written stays, because its reply will come first.
    fn expire(&mut self, now: BootInstant, notes: &mut VecDeque<Note>) {
        let (node, mut place) = (self.node, 0);
        while let Some(pending) = self.pipeline.get_mut(place) {
            let unwritten = place >= self.written;
            let due = pending.since.after(self.config.node_timeout) <= now
                || unwritten && pending.is_stale(now);
            if !due || pending.overdue {
                place += 1;
                continue;
            }
            let id = pending.id;
            if unwritten && matches!(pending.op, Op::Extend { .. } | Op::Set { .. }) {
                let crowded = self.is_open() && self.writable && !self.is_stuck(now);
                let why = if crowded { NoAnswer::Crowded } else { NoAnswer::NotSent };
                self.drop_unwritten(place, why, notes);
            } else {
                pending.overdue = true;
                place += 1;
                if id.lock.is_some() {
                    notes.push_back(Note { node, id, outcome: Err(NoAnswer::Unknown) });
                }
            }
        }
    }

    fn drop_unwritten(&mut self, place: usize, why: NoAnswer, notes: &mut VecDeque<Note>) {
        assert!(place >= self.written, "what was written stays until it is answered");
        let dropped = self.pipeline.remove(place).expect("the caller found it there");
        notes.push_back(Note { node: self.node, id: dropped.id, outcome: Err(why) });
    }

    /// Gives the connection up and says so to the transport.
    fn reset(&mut self, why: GivenUp, now: BootInstant, notes: &mut VecDeque<Note>) {
        self.reset_wanted = Some(why);
        self.drop_connection(now, notes);
    }

    fn drop_connection(&mut self, now: BootInstant, notes: &mut VecDeque<Note>) {
        let written = core::mem::take(&mut self.written);
        for place in 0..self.pipeline.len() {
            let pending = self.pipeline[place];
            if let Op::Release { resource, token } = pending.op
                && pending.id.lock.is_some()
            {
                self.debts.owe(resource, token, now.after(pending.key_ttl));
            }
            if pending.id.lock.is_some() && !pending.overdue {
                let sent = place < written || matches!(pending.op, Op::Release { .. });
                let why = if sent { NoAnswer::Unknown } else { NoAnswer::NotSent };
                notes.push_back(Note { node: self.node, id: pending.id, outcome: Err(why) });
            }
        }
        self.pipeline.clear();
        while let Some(id) = self.introductions.give_up(|_| true) {
            notes.push_back(Note { node: self.node, id, outcome: Err(NoAnswer::Unknown) });
        }
        self.introductions = Introductions::default();
        self.debts.connection_lost();
        (self.writable, self.refused_at) = (false, None);
        let sooner = spread(self.redial_after / 4, self.jitter, self.epoch);
        self.state = State::Backoff { until: now.after(self.redial_after - sooner) };
        self.redial_after = (self.redial_after * 2).min(REDIAL_LONGEST);
    }
}

/// A share of `most`, another one for each connection.
fn spread(most: Duration, jitter: u64, epoch: u32) -> Duration {
    // An odd factor for each epoch: one draw serves all dials until the next attempt.
    let mixed = jitter.wrapping_mul(2 * u64::from(epoch) + 1);
    let share = (most.as_nanos() * u128::from(mixed)) >> 64;
    Duration::from_nanos(u64::try_from(share).unwrap_or(u64::MAX))
}

/// Whether `reply` can be the answer to `op`.
fn matches(op: Op, reply: Reply) -> bool {
    match op {
        Op::Introduce => {
            matches!(reply, Reply::Introduction(_) | Reply::NotServing | Reply::Error)
        }
        Op::Extend { .. } | Op::Release { .. } | Op::TimeLeft { .. } => {
            matches!(reply, Reply::Integer(_) | Reply::NotServing | Reply::Error)
        }
        Op::Set { .. } => !matches!(reply, Reply::Integer(_) | Reply::Introduction(_)),
    }
}

#[cfg(test)]
mod tests;
