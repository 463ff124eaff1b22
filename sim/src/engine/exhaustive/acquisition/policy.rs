//! The short form of the acquisition rule, under any wording.
//!
//! Under the wording as built it equals `redlock_protocol`, for three nodes and in ticks.
//! [`Both`](super::Both) compares the two.

use super::encoding::Word;
use super::link::{Link, Pending, State};
use super::wording::{Compared, Measured, ReleasedTo, Votes, Wording};
use super::{Action, Answer, Client, Input, NODES, QUORUM, Request, Terms, Token};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The next attempt may begin at this tick, if one is left.
    Idle(u8),
    Trying,
    Held,
    /// The lease is over, and not released.
    Lost,
}

/// A node's part in the current attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Vote {
    /// The node cannot have the key.
    NotSent,
    Pending,
    Refused,
    Counted,
    /// Granted by a node in quarantine.
    Ineligible,
    /// Not answered; the node may have the key.
    Unknown,
    /// Not answered, and the process that may have set the key has ended.
    Void,
}

/// A client of the lock.
#[derive(Clone, Debug)]
pub struct Policy {
    wording: Wording,
    terms: Terms,
    client: u8,
    /// Number of the last attempt.
    attempt: u8,
    attempts_max: u8,
    phase: Phase,
    votes: [Vote; NODES],
    /// Number of acknowledgements; only [`Votes::EveryAnswer`] reads it.
    acknowledged: u8,
    /// Tick from which the validity is measured.
    t1: u8,
    links: [Link; NODES],
}

impl Policy {
    /// Returns the client with the number `client`. No node has restarted for long.
    #[must_use]
    pub fn new(client: u8, attempts_max: u8, wording: Wording, terms: Terms) -> Self {
        Self {
            wording,
            terms,
            client,
            attempt: 0,
            attempts_max,
            phase: Phase::Idle(0),
            votes: [Vote::NotSent; NODES],
            acknowledged: 0,
            t1: 0,
            links: [Link::NEW; NODES],
        }
    }
}

impl Client for Policy {
    fn can(&self, input: Input, now: u8) -> bool {
        match input {
            Input::Begin => {
                matches!(self.phase, Phase::Idle(from) if from <= now)
                    && self.attempt < self.attempts_max
            }
            Input::Release => matches!(self.phase, Phase::Held | Phase::Lost),
            Input::Timer => {
                self.links.iter().any(|link| link.is_due(now))
                    || self.phase == Phase::Held && self.deadline() <= now
            }
            Input::Connected(node, _) => self.links[node].state == State::Dialing,
            Input::Answer(node, ..) => self.links[node].state == State::Up,
            Input::Closed(node) => self.links[node].state == State::Up,
        }
    }

    fn handle(&mut self, input: Input, now: u8) -> Vec<Action> {
        let mut actions = Vec::new();
        match input {
            Input::Begin => self.begin(now, &mut actions),
            Input::Release => {
                self.release(now);
                self.phase = Phase::Idle(now);
            }
            Input::Timer => self.timer(now, &mut actions),
            Input::Connected(node, incarnation) => {
                let is_other =
                    self.links[node].connected(incarnation, self.wording, self.terms, now);
                let has_lease = matches!(self.phase, Phase::Held | Phase::Lost);
                if is_other && has_lease && self.votes[node] == Vote::Unknown {
                    self.votes[node] = Vote::Void;
                }
            }
            Input::Answer(node, _, answer) => {
                let answered = self.links[node].answered(now);
                self.hear(node, answered, answer, now, &mut actions);
            }
            Input::Closed(node) => {
                let until = now + self.terms.ttl;
                let lost = self.links[node].closed(self.wording, until, now);
                lost.into_iter().for_each(|it| self.unanswered(node, it, now, &mut actions));
            }
        }
        for (node, link) in self.links.iter_mut().enumerate() {
            actions.extend(link.write(now).into_iter().map(|it| Action::Write(node, it)));
        }
        actions
    }

    fn believes(&self, now: u8) -> bool {
        self.phase == Phase::Held && now < self.deadline()
    }

    fn current(&self) -> Option<Token> {
        (!matches!(self.phase, Phase::Idle(_))).then(|| self.token())
    }

    fn tries(&self) -> Option<Token> {
        (self.phase == Phase::Trying).then(|| self.token())
    }

    fn counts(&self, node: usize) -> bool {
        self.current().is_some() && self.votes[node] == Vote::Counted
    }

    fn is_done(&self) -> bool {
        matches!(self.phase, Phase::Idle(_)) && self.attempt == self.attempts_max
    }

    fn owes(&self, node: usize, token: Token) -> bool {
        self.links[node].owes(token)
    }

    fn encode(&self, now: u8) -> u128 {
        let mut word = Word::default();
        let (phase, ahead) = match self.phase {
            Phase::Idle(from) => (0, from.saturating_sub(now)),
            Phase::Trying => (1, 0),
            Phase::Held => (2, self.deadline().saturating_sub(now)),
            Phase::Lost => (3, 0),
        };
        let is_trying = self.phase == Phase::Trying;
        let counts_answers = is_trying && self.wording.votes == Votes::EveryAnswer;
        word.push(phase, 2);
        word.push(ahead, 4);
        word.push(self.attempt, 2);
        word.push(self.attempts_max, 2);
        word.push(if is_trying { now - self.t1 } else { 0 }, 4);
        word.push(if counts_answers { self.acknowledged } else { 0 }, 3);
        word.value()
    }

    fn encode_node(&self, node: usize, now: u8) -> u128 {
        let mut word = Word::default();
        let is_over = matches!(self.phase, Phase::Idle(_));
        word.push(if is_over { 0 } else { self.votes[node] as u8 }, 3);
        self.links[node].encode(now, &mut word);
        word.value()
    }

    fn fingerprint(&self, _: [usize; NODES], _: u8) -> u128 {
        0
    }
}

impl Policy {
    /// Returns the number of releases owed to `node`.
    pub(super) fn debts(&self, node: usize) -> usize {
        self.links[node].debts()
    }

    fn deadline(&self) -> u8 {
        let drift = if self.wording.drift { self.terms.drift } else { 0 };
        self.t1 + self.terms.ttl - drift
    }

    fn token(&self) -> Token {
        let attempt = if self.wording.fresh_token { self.attempt } else { 1 };
        Token { client: self.client, attempt }
    }

    fn begin(&mut self, now: u8, actions: &mut Vec<Action>) {
        self.attempt += 1;
        (self.phase, self.t1, self.acknowledged) = (Phase::Trying, now, 0);
        self.votes = [Vote::Pending; NODES];
        let (token, attempt) = (self.token(), self.attempt);
        let taken = self.links.each_mut().map(|link| link.set(token, attempt, now));
        for node in (0..NODES).filter(|&node| !taken[node]) {
            self.votes[node] = Vote::NotSent;
        }
        if taken.contains(&false) {
            self.settle(now, actions);
        }
    }

    /// Handles the answer to a command.
    fn hear(
        &mut self,
        node: usize,
        answered: Pending,
        answer: Answer,
        now: u8,
        actions: &mut Vec<Action>,
    ) {
        let is_awaited = match self.votes[node] {
            Vote::Pending => !answered.overdue,
            // A late answer ends the doubt, but counts for no attempt.
            Vote::Unknown => matches!(self.phase, Phase::Held | Phase::Lost),
            _ => false,
        };
        let counts = is_awaited && answered.attempt == self.attempt
            || self.wording.votes != Votes::OfThisAttempt && answer == Answer::Done;
        if answered.is_release() || !counts || matches!(self.phase, Phase::Idle(_)) {
            return;
        }
        let measured = self.wording.measured;
        let is_first = !self.votes.iter().any(|vote| matches!(vote, Vote::Counted | Vote::Refused));
        if self.phase == Phase::Trying && measured == Measured::FromFirstAnswer && is_first {
            self.t1 = now;
        }
        let is_eligible = self.links[node].votes_from <= self.t1;
        self.votes[node] = match answer {
            Answer::Done if is_eligible => Vote::Counted,
            Answer::Done => Vote::Ineligible,
            Answer::Refused => Vote::Refused,
        };
        self.acknowledged += u8::from(self.votes[node] == Vote::Counted);
        self.settle(now, actions);
    }

    /// Handles a command that will not be answered, or not in time.
    fn unanswered(&mut self, node: usize, it: Pending, now: u8, actions: &mut Vec<Action>) {
        let is_current = it.attempt == self.attempt && self.votes[node] == Vote::Pending;
        if it.is_release() || !is_current || matches!(self.phase, Phase::Idle(_)) {
            return;
        }
        self.votes[node] = if it.may_be_executed() { Vote::Unknown } else { Vote::NotSent };
        self.settle(now, actions);
    }

    fn timer(&mut self, now: u8, actions: &mut Vec<Action>) {
        for node in 0..NODES {
            let late = self.links[node].timer(now);
            late.into_iter().for_each(|it| self.unanswered(node, it, now, actions));
        }
        if self.phase == Phase::Held && self.deadline() <= now {
            self.phase = Phase::Lost;
            actions.push(Action::Lost);
        }
    }

    /// Grants the lease, or lets the attempt fail, as soon as either is certain.
    fn settle(&mut self, now: u8, actions: &mut Vec<Action>) {
        let count = |vote| self.votes.iter().filter(|&&it| it == vote).count();
        let (counted, pending) = (count(Vote::Counted), count(Vote::Pending));
        let granted = counted + count(Vote::Ineligible);
        let votes = match self.wording.votes {
            Votes::EveryAnswer => usize::from(self.acknowledged),
            _ => counted,
        };
        if self.phase != Phase::Trying {
            return;
        }
        if votes >= self.wording.quorum {
            if self.wording.measured == Measured::FromGrant {
                self.t1 = now;
            }
            if self.wording.in_time && now >= self.deadline() {
                return self.fail(now, now, actions);
            }
            self.phase = Phase::Held;
            actions.push(Action::Granted { deadline: self.deadline() });
        } else if counted + pending >= QUORUM {
            // Votes may still make the quorum.
        } else if granted >= QUORUM {
            self.fail(now, now.max(self.quorum_votes_from()), actions);
        } else if pending == 0 || granted + pending < QUORUM {
            self.fail(now, now, actions);
        }
    }

    /// Lets the attempt fail; the next one may begin at the tick `next`.
    fn fail(&mut self, now: u8, next: u8, actions: &mut Vec<Action>) {
        self.release(now);
        self.phase = Phase::Idle(next);
        actions.push(Action::Failed);
    }

    /// Returns the tick from which a majority may vote; a node that is not connected may vote as
    /// soon as it is.
    fn quorum_votes_from(&self) -> u8 {
        let mut from = [0; NODES];
        for (from, link) in from.iter_mut().zip(&self.links) {
            *from = if link.state == State::Up { link.votes_from } else { 0 };
        }
        from.sort_unstable();
        from[QUORUM - 1]
    }

    /// Releases the key on every node that may have it.
    fn release(&mut self, now: u8) {
        let (token, until) = (self.token(), now + self.terms.ttl);
        let release = match self.wording.compared {
            Compared::Token => Request::Release(token),
            Compared::Nothing => Request::Delete(token),
        };
        for node in 0..NODES {
            let vote = self.votes[node];
            let has_acknowledged = matches!(vote, Vote::Counted | Vote::Ineligible);
            let is_released = match self.wording.released_to {
                ReleasedTo::All => vote != Vote::NotSent,
                ReleasedTo::Voters => has_acknowledged,
            };
            if is_released {
                let unanswered = matches!(vote, Vote::Pending | Vote::Unknown);
                self.links[node].release(release, self.attempt, unanswered, until, now);
            }
        }
    }
}
