//! A node: its key, and the commands on its connection.

use super::{Answer, Request};

/// Commands that a node executes, one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    /// How many.
    pub count: u8,
    /// Which of them (bits, the first lowest) are SETs; the others prolong the key.
    pub sets: u16,
    /// Which of them it did; to the others the key stood in the way, or was not there.
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
    /// The holder's, gone at this tick.
    Ours(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) request: Request,
    /// Once it is executed.
    pub(super) answer: Option<Answer>,
}

/// The most commands without an answer on one connection: one a round, and a SET behind each.
const MESSAGES_MAX: usize = 9;

#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) key: Key,
    pub(super) queue: [Option<Message>; MESSAGES_MAX],
    /// A SET of a connection that was cut may be executed yet.
    pub(super) stray: bool,
    /// The latest success counted it (the grant is one), and it has forgotten the key since T1.
    pub(super) counted: bool,
    pub(super) forgot: bool,
    /// It has forgotten the key since T1 of the round that is under way.
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

    /// A command is on its way to it.
    pub(super) fn receive(&mut self, request: Request) {
        let free = self.queue.iter_mut().find(|it| it.is_none()).expect("rounds are bounded");
        *free = Some(Message { request, answer: None });
    }

    /// All of it that makes a difference after so many rounds, in 48 bits.
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

    /// The place of the next command that it has to execute.
    pub(super) fn next(&self) -> Option<usize> {
        self.queue.iter().position(|it| it.is_some_and(|it| it.answer.is_none()))
    }

    /// All the ways in which it can execute commands now, none of them first.
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

    /// Executes the next command, if there is one; with `refused` a SET that meets another key.
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
