//! The short form of the extension rule, under any wording.
//!
//! Under the wording as built it equals `redlock_protocol`, for three nodes and in ticks.
//! [`Both`](super::Both) compares the two.

use super::wording::{Repair, Wording, Young};
use super::{Answer, Holder, HolderAction, HolderInput, NODES, Request};

/// A majority of three.
const QUORUM: usize = 2;

/// The holder's knowledge of a node's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Trusted,
    /// Younger than the grant.
    Young,
    /// Younger than the grant, and already known when the round began.
    Ripening,
    Missing,
    /// A SET may be on its way.
    Unsettled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Round {
    None,
    UnderWay,
    Failed,
    Succeeded,
}

/// A node's answer in the latest round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RoundAnswer {
    Nothing,
    NoAnswer,
    There,
    /// The key was missing, and was not sent to the node again.
    Missing,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    standing: Standing,
    said: RoundAnswer,
    /// True if the pending SET is a repair.
    repairing: bool,
    /// Tick at which the connection was cut, if it was. A timer reopens the connection a tick
    /// later.
    down_since: Option<u8>,
}

impl Node {
    fn is_up(&self) -> bool {
        self.down_since.is_none()
    }

    fn is_due(&self, now: u8) -> bool {
        self.down_since.is_some_and(|since| since < now)
    }
}

/// The holder of the lease.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    wording: Wording,
    ttl: u8,
    nodes: [Node; NODES],
    round: Round,
    rounds: u8,
    t1: u8,
    deadline: u8,
    lost: bool,
}

impl Policy {
    /// Returns a holder granted at tick 0 by nodes 0 and 1; the SET to node 2 is on its way.
    #[must_use]
    pub fn new(wording: Wording, ttl: u8) -> Self {
        let node = |standing| Node {
            standing,
            said: RoundAnswer::Nothing,
            repairing: false,
            down_since: None,
        };
        let [trusted, unsettled] = [Standing::Trusted, Standing::Unsettled].map(node);
        let nodes = [trusted, trusted, unsettled];
        Self {
            wording,
            ttl,
            nodes,
            round: Round::None,
            rounds: 0,
            t1: 0,
            deadline: ttl,
            lost: false,
        }
    }
}

impl Holder for Policy {
    fn deadline(&self) -> u8 {
        self.deadline
    }

    fn is_lost(&self) -> bool {
        self.lost
    }

    fn is_extending(&self) -> bool {
        self.round == Round::UnderWay
    }

    fn extend(&mut self, now: u8, told: &mut Vec<HolderAction>) -> bool {
        let refused = self.lost || self.is_extending() || now >= self.deadline;
        if refused || now + self.ttl <= self.deadline {
            return false;
        }
        (self.round, self.t1) = (Round::UnderWay, now);
        self.rounds += 1;
        for node in &mut self.nodes {
            node.said = if node.is_up() { RoundAnswer::Nothing } else { RoundAnswer::NoAnswer };
            if node.standing == Standing::Young {
                node.standing = Standing::Ripening;
            }
        }
        for place in 0..NODES {
            if self.nodes[place].is_up() {
                told.push(HolderAction::Write(place, Request::Extend { round: self.rounds }));
            }
        }
        self.settle(now, told);
        true
    }

    fn hear(&mut self, place: usize, heard: HolderInput, now: u8, told: &mut Vec<HolderAction>) {
        match heard {
            HolderInput::Answer(Request::Set, answer) => self.hear_set(place, answer, told),
            HolderInput::Answer(Request::Extend { round }, answer) if round == self.rounds => {
                self.hear_extend(place, answer, now, told);
            }
            HolderInput::Answer(Request::Extend { .. }, _) => {}
            HolderInput::Closed { round_outstanding } => {
                self.nodes[place].down_since = Some(now);
                if round_outstanding && !self.lost {
                    self.nodes[place].said = RoundAnswer::NoAnswer;
                    self.settle(now, told);
                }
            }
        }
    }

    fn fire(&mut self, now: u8, told: &mut Vec<HolderAction>) {
        for node in self.nodes.iter_mut().filter(|node| node.is_due(now)) {
            node.down_since = None;
        }
        if !self.lost && now >= self.deadline && !self.wording.late_answers {
            self.lose(told);
        }
    }

    fn is_due(&self, now: u8) -> bool {
        let over = !self.lost && now >= self.deadline && !self.wording.late_answers;
        over || self.nodes.iter().any(|node| node.is_due(now))
    }

    fn encode_node(&self, place: usize, now: u8) -> u64 {
        let node = self.nodes[place];
        let link = u64::from(!node.is_up()) + u64::from(node.is_due(now));
        let said = node.said as u64;
        node.standing as u64 | said << 3 | u64::from(node.repairing) << 5 | link << 6
    }

    fn encode(&self, now: u8) -> u64 {
        let ahead = |tick: u8| u64::from(tick.saturating_sub(now));
        let (ends, began) = match self.round {
            Round::UnderWay => (ahead(self.t1 + self.ttl), u64::from(now - self.t1)),
            _ => (0, 0),
        };
        let lease = ahead(self.deadline) | u64::from(self.lost) << 8 | (self.round as u64) << 9;
        let from_return = u64::from(self.wording.from_return);
        lease | ends << 16 | (began * from_return) << 24 | u64::from(self.rounds) << 32
    }

    fn fingerprint(&self, _: [usize; NODES], _: u8) -> u128 {
        0
    }
}

impl Policy {
    fn hear_set(&mut self, place: usize, answer: Answer, told: &mut Vec<HolderAction>) {
        let young = self.wording.young;
        let node = &mut self.nodes[place];
        if node.standing != Standing::Unsettled {
            return;
        }
        let at_once = match young {
            Young::SetAgainAtOnce => node.repairing,
            Young::LateAtOnce => !node.repairing,
            _ => false,
        };
        node.standing = match answer {
            Answer::Done if at_once => Standing::Trusted,
            Answer::Done => Standing::Young,
            Answer::Refused => Standing::Missing,
        };
        if answer == Answer::Done && node.said == RoundAnswer::Missing {
            node.said = RoundAnswer::NoAnswer;
        }
        self.look_for_loss(told);
    }

    fn hear_extend(&mut self, place: usize, answer: Answer, now: u8, told: &mut Vec<HolderAction>) {
        if self.lost {
            return;
        }
        let node = &mut self.nodes[place];
        (node.said, node.standing) = match (answer, node.standing) {
            (Answer::Done, Standing::Unsettled | Standing::Missing) => {
                (RoundAnswer::There, Standing::Young)
            }
            (Answer::Done, standing) => (RoundAnswer::There, standing),
            (Answer::Refused, Standing::Unsettled) if !self.wording.set_twice => {
                (RoundAnswer::Missing, Standing::Unsettled)
            }
            (Answer::Refused, _) => (RoundAnswer::Missing, Standing::Missing),
        };
        if !self.look_for_loss(told) {
            self.settle(now, told);
        }
    }

    fn look_for_loss(&mut self, told: &mut Vec<HolderAction>) -> bool {
        let lacks =
            |node: &Node| node.standing == Standing::Missing || node.said == RoundAnswer::Missing;
        let lacking = self.nodes.iter().filter(|&node| lacks(node)).count();
        let gone = !self.lost && lacking > NODES - QUORUM;
        if gone {
            self.lose(told);
        }
        gone
    }

    fn lose(&mut self, told: &mut Vec<HolderAction>) {
        if self.is_extending() {
            self.fail(told);
        }
        self.lost = true;
        told.push(HolderAction::Lost);
    }

    fn fail(&mut self, told: &mut Vec<HolderAction>) {
        self.round = Round::Failed;
        told.push(HolderAction::Failed);
    }

    fn settle(&mut self, now: u8, told: &mut Vec<HolderAction>) {
        if self.wording.repair == Repair::AtOnce || self.round == Round::Succeeded {
            self.repair(now, told);
        }
        if self.round != Round::UnderWay {
            return;
        }
        let end = if self.wording.late_answers { self.t1 + self.ttl } else { self.deadline };
        if now >= end && !self.wording.from_return {
            return self.fail(told);
        }
        let trusted = |said: RoundAnswer| {
            let there = |node: &&Node| node.said == said && node.standing == Standing::Trusted;
            self.nodes.iter().filter(there).count()
        };
        let (counted, possible) = (trusted(RoundAnswer::There), trusted(RoundAnswer::Nothing));
        if counted >= QUORUM {
            self.succeed(now, told);
        } else if counted + possible < QUORUM {
            self.fail(told);
        }
    }

    fn succeed(&mut self, now: u8, told: &mut Vec<HolderAction>) {
        let mut counted = [false; NODES];
        for (node, counted) in self.nodes.iter_mut().zip(&mut counted) {
            *counted = node.said == RoundAnswer::There && node.standing == Standing::Trusted;
            let ripe = match self.wording.young {
                Young::SetAgainAfterAnyRound if node.repairing => {
                    matches!(node.standing, Standing::Young | Standing::Ripening)
                }
                _ => node.standing == Standing::Ripening,
            };
            if ripe {
                node.standing = Standing::Trusted;
            }
        }
        self.round = Round::Succeeded;
        self.deadline = self.ttl + if self.wording.from_return { now } else { self.t1 };
        told.push(HolderAction::Extended { counted, deadline: self.deadline });
        self.repair(now, told);
    }

    fn repair(&mut self, now: u8, told: &mut Vec<HolderAction>) {
        if now >= self.deadline {
            return;
        }
        for (place, node) in self.nodes.iter_mut().enumerate() {
            if node.standing != Standing::Missing || node.said != RoundAnswer::Missing {
                continue;
            }
            node.said = RoundAnswer::NoAnswer;
            if node.is_up() {
                (node.standing, node.repairing) = (Standing::Unsettled, true);
                told.push(HolderAction::Write(place, Request::Set));
            }
        }
    }
}
