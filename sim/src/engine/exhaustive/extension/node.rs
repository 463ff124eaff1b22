//! A node: its key, and the commands on its connection.

use super::{Answer, Request};

/// The commands that a node executes, one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    /// Number of commands.
    pub count: u8,
    /// Bit mask of the SETs, the first command lowest; the others extend the key.
    pub sets: u16,
    /// Bit mask of the commands that succeeded; the others met another key, or none.
    pub done: u16,
}

impl Executed {
    fn and(self, message: Message) -> Self {
        let bit = |flag: bool| u16::from(flag) << self.count;
        let done = message.answer == Some(Answer::Done);
        Self {
            count: self.count + 1,
            sets: self.sets | bit(message.request == Request::Set),
            done: self.done | bit(done),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Free,
    /// The holder's key, gone at this tick.
    Ours(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) request: Request,
    /// The answer, once the command is executed.
    pub(super) answer: Option<Answer>,
}

/// Largest number of unanswered commands on one connection: one for each round, and a SET after
/// each.
const MESSAGES_MAX: usize = 9;

#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) key: Key,
    pub(super) queue: [Option<Message>; MESSAGES_MAX],
    /// True if a SET of a cut connection may still be executed.
    pub(super) stray: bool,
    /// `counted`: the latest success counted this node (the grant is a success). `forgot`: the node
    /// has forgotten the key since T1 of that success.
    pub(super) counted: bool,
    pub(super) forgot: bool,
    /// True if the node has forgotten the key since T1 of the round under way.
    pub(super) forgot_in_round: bool,
}

impl Node {
    pub(super) fn new(key: Key) -> Self {
        Self {
            key,
            queue: [None; MESSAGES_MAX],
            stray: false,
            counted: false,
            forgot: false,
            forgot_in_round: false,
        }
    }

    /// Queues a command for the node.
    pub(super) fn receive(&mut self, request: Request) {
        let free = self.queue.iter_mut().find(|it| it.is_none()).expect("rounds are bounded");
        *free = Some(Message { request, answer: None });
    }

    /// Encodes, in 48 bits, the state that makes a difference after `rounds` rounds.
    pub(super) fn encode(&self, now: u8, rounds: u8, extending: bool) -> u64 {
        let key = match self.key {
            Key::Free => 0,
            Key::Ours(until) => 1 + u64::from(until - now),
        };
        let queue = self.queue.iter().flatten().fold(0, |queue, message| {
            let kind = match message.request {
                Request::Set => 0,
                Request::Extend { round } if round == rounds => 1,
                Request::Extend { .. } => 2,
            };
            let answer = message.answer.map_or(0, |answer| 1 + answer as u64);
            (queue << 4) | (1 + kind + 3 * answer)
        });
        let forgot_in_round = extending && self.forgot_in_round;
        let flags = [self.stray, self.counted, self.counted && self.forgot, forgot_in_round];
        let flags = flags.iter().fold(0, |flags, &flag| (flags << 1) | u64::from(flag));
        flags | (key << 4) | (queue << 12)
    }

    /// Returns the place of the next command to execute.
    pub(super) fn next(&self) -> Option<usize> {
        self.queue.iter().position(|it| it.is_some_and(|it| it.answer.is_none()))
    }

    /// Returns all ways in which the node can execute commands now; the first way executes none.
    pub(super) fn ways(&self, until: u8) -> Vec<(Executed, Self)> {
        let mut ways = vec![(Executed::default(), *self)];
        let mut done = 0;
        while let Some(&(executed, node)) = ways.get(done) {
            done += 1;
            for refused in [false, true] {
                let mut next = node;
                if let Some(message) = next.execute(until, refused) {
                    ways.push((executed.and(message), next));
                }
            }
        }
        ways
    }

    /// Executes the next command, if there is one; with `refused`, only a SET that meets another
    /// client's key.
    fn execute(&mut self, until: u8, refused: bool) -> Option<Message> {
        let place = self.next()?;
        let request = self.queue[place]?.request;
        let could_be_refused = request == Request::Set && self.key == Key::Free;
        if refused && !could_be_refused {
            return None;
        }
        let done = match request {
            Request::Set => !refused && self.set(until),
            Request::Extend { .. } => self.extend(until),
        };
        let answer = Some(if done { Answer::Done } else { Answer::Refused });
        self.queue[place] = Some(Message { request, answer });
        self.queue[place]
    }

    pub(super) fn set(&mut self, until: u8) -> bool {
        let free = self.key == Key::Free;
        if free {
            self.key = Key::Ours(until);
        }
        free
    }

    fn extend(&mut self, until: u8) -> bool {
        let ours = matches!(self.key, Key::Ours(_));
        if ours {
            self.key = Key::Ours(until);
        }
        ours
    }
}
