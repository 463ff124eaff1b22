//! The short form of the rule, for one client's connection to one node.
//!
//! A command waits for at most one tick (the node timeout). A release whose connection was lost is
//! owed: it is sent on the next connection, and once more a tick after its answer, because the SET
//! may be executed late.

use super::encoding::Word;
use super::wording::{Eligible, Wording};
use super::{Request, Terms, Token};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Up,
    /// Dialled; commands wait.
    Dialing,
    /// Dialled again at this tick or later.
    Down(u8),
}

/// A command that waits to be written or answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) request: Request,
    /// Number of the attempt that sent it; zero for an owed release.
    pub(super) attempt: u8,
    since: u8,
    written: Option<u8>,
    /// The node timeout has passed: the answer will have no effect on the attempt.
    pub(super) overdue: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Owed,
    Sent,
    AgainAt(u8),
    SentAgain,
}

/// A release owed to the node, until its key has expired.
#[derive(Clone, Copy, Debug)]
struct Debt {
    request: Request,
    until: u8,
    stage: Stage,
}

#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) state: State,
    pending: Vec<Pending>,
    debts: Vec<Debt>,
    /// Incarnation of the last introduction.
    known: u8,
    /// Tick from which the node votes.
    pub(super) votes_from: u8,
}

impl Link {
    pub(super) const NEW: Self =
        Self { state: State::Up, pending: Vec::new(), debts: Vec::new(), known: 0, votes_from: 0 };

    /// Takes a SET; returns false if the connection is down, or the node owes an answer for too
    /// long.
    pub(super) fn set(&mut self, token: Token, attempt: u8, now: u8) -> bool {
        let is_stuck = self.pending.first().is_some_and(|oldest| {
            oldest.overdue && oldest.written.is_none_or(|written| written < now)
        });
        let takes = !is_stuck && !matches!(self.state, State::Down(_));
        if takes {
            self.push(Request::Set(token), attempt, now);
        }
        takes
    }

    /// Takes the release that follows the SET of `attempt`. An unwritten SET is dropped instead. The
    /// release is owed if the connection of an unanswered SET is lost, or if there is none.
    pub(super) fn release(
        &mut self,
        release: Request,
        attempt: u8,
        unanswered: bool,
        until: u8,
        now: u8,
    ) {
        let is_set = |it: &Pending| matches!(it.request, Request::Set(_)) && it.attempt == attempt;
        let set = self.pending.iter().rposition(is_set).filter(|_| unanswered);
        match set {
            Some(place) if self.pending[place].written.is_none() => {
                self.pending.remove(place);
            }
            None if unanswered || matches!(self.state, State::Down(_)) => {
                self.owe(release, until);
                self.send_debts(now);
            }
            _ => self.push(release, attempt, now),
        }
    }

    /// Handles the opening of the connection. Returns true if it leads to another process than the
    /// one before.
    pub(super) fn connected(
        &mut self,
        incarnation: u8,
        wording: Wording,
        terms: Terms,
        now: u8,
    ) -> bool {
        let is_other = incarnation != self.known;
        self.votes_from = match wording.eligible {
            Eligible::AfterQuarantine if is_other => now + terms.ttl + terms.drift,
            Eligible::AtNextConnection if is_other => now + terms.ttl + terms.drift,
            Eligible::AfterOneTick if is_other => now + 1,
            Eligible::AfterQuarantine | Eligible::AfterOneTick => self.votes_from,
            Eligible::AtOnce | Eligible::AtNextConnection => 0,
        };
        (self.known, self.state) = (incarnation, State::Up);
        self.send_debts(now);
        is_other
    }

    /// Handles the loss of the connection; returns the unanswered commands of attempts.
    pub(super) fn closed(&mut self, wording: Wording, until: u8, now: u8) -> Vec<Pending> {
        let lost = core::mem::take(&mut self.pending);
        if !wording.owed {
            self.debts.clear();
        }
        for release in lost.iter().filter(|it| it.attempt > 0 && it.is_release()) {
            if wording.owed {
                self.owe(release.request, until);
            }
        }
        self.debts.iter_mut().for_each(|debt| debt.stage = Stage::Owed);
        self.state = State::Down(now + 1);
        lost.into_iter().filter(|it| it.attempt > 0 && !it.overdue).collect()
    }

    /// Takes the command to which the next answer belongs.
    pub(super) fn answered(&mut self, now: u8) -> Pending {
        let answered = self.pending.remove(0);
        let is_debt = |debt: &Debt| debt.request == answered.request;
        let place = self.debts.iter().position(is_debt).filter(|_| answered.attempt == 0);
        match place.map(|place| (place, self.debts[place].stage)) {
            Some((place, Stage::Sent)) => self.debts[place].stage = Stage::AgainAt(now + 1),
            Some((place, Stage::SentAgain)) => {
                self.debts.remove(place);
            }
            _ => {}
        }
        self.send_debts(now);
        answered
    }

    /// Fires the due timers; returns the commands of attempts that have waited too long.
    pub(super) fn timer(&mut self, now: u8) -> Vec<Pending> {
        self.debts.retain(|debt| debt.until > now);
        if matches!(self.state, State::Down(until) if until <= now) {
            self.state = State::Dialing;
        }
        let mut late = Vec::new();
        for it in self.pending.iter_mut().filter(|it| it.is_late(now)) {
            it.overdue = true;
            late.push(*it);
        }
        self.pending.retain(|it| !it.overdue || it.written.is_some() || it.is_release());
        self.send_debts(now);
        late.retain(|it| it.attempt > 0);
        late
    }

    /// Returns true if [`Link::timer`] has something to do.
    pub(super) fn is_due(&self, now: u8) -> bool {
        let is_debt_due = |debt: &Debt| {
            debt.until <= now || matches!(debt.stage, Stage::AgainAt(again) if again <= now)
        };
        matches!(self.state, State::Down(until) if until <= now)
            || self.pending.iter().any(|it| it.is_late(now))
            || self.debts.iter().any(is_debt_due)
    }

    /// Returns the commands that can be written now.
    pub(super) fn write(&mut self, now: u8) -> Vec<Request> {
        let is_up = self.state == State::Up;
        let unwritten = self.pending.iter_mut().filter(|it| is_up && it.written.is_none());
        unwritten
            .map(|it| {
                it.written = Some(now);
                it.request
            })
            .collect()
    }

    pub(super) fn debts(&self) -> usize {
        self.debts.len()
    }

    /// Returns true if a release of `token` waits, is on its way, or is owed.
    pub(super) fn owes(&self, token: Token) -> bool {
        let is_it =
            |request| matches!(request, Request::Release(of) | Request::Delete(of) if of == token);
        self.pending.iter().any(|it| is_it(it.request))
            || self.debts.iter().any(|debt| is_it(debt.request))
    }

    pub(super) fn encode(&self, now: u8, word: &mut Word) {
        let state = match self.state {
            State::Up => 0,
            State::Dialing => 1,
            State::Down(until) => 2 + u8::from(until <= now),
        };
        word.push(state, 2);
        word.push(self.known, 1);
        word.push(self.votes_from.saturating_sub(now), 4);
        word.push(self.pending.len() as u8, 4);
        for it in &self.pending {
            word.push(u8::from(it.is_release()), 1);
            word.push(token_of(it.request).attempt, 2);
            word.push(it.attempt, 2);
            let age = 1 + u8::from(it.since < now);
            word.push(if it.overdue { 0 } else { age }, 2);
            word.push(it.written.map_or(2, |written| u8::from(written < now)), 2);
        }
        word.push(self.debts.len() as u8, 2);
        for debt in &self.debts {
            word.push(token_of(debt.request).attempt, 2);
            word.push(debt.until.saturating_sub(now), 3);
            let stage = match debt.stage {
                Stage::Owed => 0,
                Stage::Sent => 1,
                Stage::SentAgain => 2,
                Stage::AgainAt(again) => 3 + u8::from(again <= now),
            };
            word.push(stage, 3);
        }
    }

    fn push(&mut self, request: Request, attempt: u8, now: u8) {
        let (written, overdue) = (None, false);
        self.pending.push(Pending { request, attempt, since: now, written, overdue });
    }

    fn owe(&mut self, request: Request, until: u8) {
        if !self.debts.iter().any(|debt| debt.request == request) {
            self.debts.push(Debt { request, until, stage: Stage::Owed });
        }
    }

    fn send_debts(&mut self, now: u8) {
        if self.state != State::Up {
            return;
        }
        for place in 0..self.debts.len() {
            let debt = &mut self.debts[place];
            debt.stage = match debt.stage {
                Stage::Owed => Stage::Sent,
                Stage::AgainAt(again) if again <= now => Stage::SentAgain,
                _ => continue,
            };
            let request = debt.request;
            self.push(request, 0, now);
        }
    }
}

impl Pending {
    pub(super) fn is_release(&self) -> bool {
        !matches!(self.request, Request::Set(_))
    }

    /// Returns true if the node may execute the command, now or later.
    pub(super) fn may_be_executed(&self) -> bool {
        self.written.is_some()
    }

    fn is_late(&self, now: u8) -> bool {
        !self.overdue && self.since < now
    }
}

fn token_of(request: Request) -> Token {
    match request {
        Request::Set(token) | Request::Release(token) | Request::Delete(token) => token,
    }
}
