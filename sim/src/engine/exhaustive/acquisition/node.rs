//! A node: its key, and the connections that lead to it.

use std::collections::VecDeque;

use super::encoding::Word;
use super::{Answer, Request, Terms, Token};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) token: Token,
    /// Tick at which the SET was executed.
    pub(super) since: u8,
    /// True if the SET was executed after the client had given its connection up.
    pub(super) is_late: bool,
}

/// End of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Ended {
    Not,
    /// The node has restarted, and the client has not noticed: answers may still arrive.
    ByNode,
    /// The client has given the connection up: requests may still be executed.
    ByClient,
}

/// One client's connection, in order in both directions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Connection {
    pub(super) client: u8,
    pub(super) ended: Ended,
    /// Commands that were not executed, and the ticks at which they were written.
    requests: VecDeque<(Request, u8)>,
    /// Answers that were not delivered.
    pub(super) answers: VecDeque<(Request, Answer)>,
}

/// A command that the node executes just before an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Executed {
    pub(super) client: u8,
    pub(super) request: Request,
    pub(super) answer: Answer,
    /// True if the node's key expires just before.
    pub(super) expired: bool,
    /// Value of the key that it deletes, if there is one.
    pub(super) deleted: Option<Token>,
    /// Tick of the execution.
    pub(super) at: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Node {
    pub(super) incarnation: u8,
    pub(super) key: Option<Key>,
    pub(super) connections: Vec<Connection>,
    /// Tick of the last execution, or of the restart.
    last: u8,
}

impl Node {
    pub(super) fn new(clients: u8) -> Self {
        let connections = (0..clients).map(Connection::new).collect();
        let (incarnation, key, last) = (0, None, 0);
        Self { incarnation, key, connections, last }
    }

    /// Returns the client's present connection, as far as the client knows.
    pub(super) fn connection(&self, client: usize) -> Option<&Connection> {
        self.connections.iter().find(|it| it.is_present(client))
    }

    fn present(&mut self, client: usize) -> &mut Connection {
        let present = self.connections.iter_mut().find(|it| it.is_present(client));
        present.expect("the client is connected")
    }

    /// Takes a command of the client.
    pub(super) fn receive(&mut self, client: usize, request: Request, now: u8) {
        let connection = self.present(client);
        if connection.ended == Ended::Not {
            connection.requests.push_back((request, now));
        }
    }

    /// Delivers the next answer.
    pub(super) fn answer(&mut self, client: usize) -> (Request, Answer) {
        self.present(client).answers.pop_front().expect("there is an answer")
    }

    pub(super) fn connect(&mut self, client: usize) {
        self.connections.push(Connection::new(client as u8));
    }

    /// Ends the client's connection; its requests may still be executed, its answers are lost.
    pub(super) fn close(&mut self, client: usize) {
        let connection = self.present(client);
        connection.answers.clear();
        connection.ended = Ended::ByClient;
        self.forget_ended();
    }

    /// Restarts without keys.
    pub(super) fn restart(&mut self, now: u8) {
        (self.incarnation, self.key, self.last) = (self.incarnation + 1, None, now);
        for connection in &mut self.connections {
            connection.requests.clear();
            if connection.ended == Ended::Not {
                connection.ended = Ended::ByNode;
            }
        }
        self.forget_ended();
    }

    fn forget_ended(&mut self) {
        self.connections.retain(|it| it.ended != Ended::ByClient || !it.requests.is_empty());
    }

    /// Returns all ways in which the node can execute commands by the tick `now`; the first way
    /// executes none. Ways with the same result are one.
    pub(super) fn ways(&self, terms: Terms, now: u8) -> Vec<(Vec<Executed>, Self)> {
        let mut ways = vec![(Vec::new(), self.clone())];
        let mut done = 0;
        while done < ways.len() {
            for place in 0..ways[done].1.connections.len() {
                if ways[done].1.connections[place].requests.is_empty() {
                    continue;
                }
                for expired in [false, true] {
                    let mut node = ways[done].1.clone();
                    let Some(it) = node.execute(place, expired, terms, now) else { continue };
                    if ways.iter().all(|(_, known)| *known != node) {
                        let executed = ways[done].0.iter().copied().chain([it]).collect();
                        ways.push((executed, node));
                    }
                }
            }
            done += 1;
        }
        ways
    }

    /// Executes the next command of a connection, as early as possible after the last one. With
    /// `expired`, only a SET that is not refused because the key before it expires in time.
    fn execute(&mut self, place: usize, expired: bool, terms: Terms, now: u8) -> Option<Executed> {
        let connection = &mut self.connections[place];
        let (client, is_late) = (connection.client, connection.ended == Ended::ByClient);
        let (request, written) = connection.requests.pop_front()?;
        self.last = self.last.max(written);
        if expired {
            let gone_at = self.key?.since + terms.ttl - terms.drift;
            if gone_at > now || !matches!(request, Request::Set(_)) {
                return None;
            }
            (self.key, self.last) = (None, self.last.max(gone_at));
        }
        let deleted = match request {
            Request::Set(_) => None,
            Request::Release(token) => self.key.take_if(|key| key.token == token),
            Request::Delete(_) => self.key.take(),
        };
        let is_done = deleted.is_some() || self.set(request, is_late);
        let answer = if is_done { Answer::Done } else { Answer::Refused };
        let connection = &mut self.connections[place];
        if connection.ended == Ended::Not {
            connection.answers.push_back((request, answer));
        }
        self.forget_ended();
        let (deleted, at) = (deleted.map(|key| key.token), self.last);
        Some(Executed { client, request, answer, expired, deleted, at })
    }

    /// Sets the key if the request is a SET and there is no key; returns true if it did.
    fn set(&mut self, request: Request, is_late: bool) -> bool {
        let Request::Set(token) = request else { return false };
        let is_free = self.key.is_none();
        if is_free {
            self.key = Some(Key { token, since: self.last, is_late });
        }
        is_free
    }

    /// Encodes the state; client `first` comes first. An age beyond `age_max` makes no difference.
    pub(super) fn encode(&self, first: u8, now: u8, age_max: u8, out: &mut Vec<u128>) {
        let mut word = Word::default();
        let name = |token: Token| 2 * (token.client ^ first) + (token.attempt - 1);
        let age = |tick: u8| (now - tick).min(age_max);
        word.push(self.incarnation, 1);
        word.push(age(self.last), 3);
        if let Some(key) = self.key {
            word.push(1 + name(key.token), 3);
            word.push(age(key.since), 3);
            word.push(u8::from(key.is_late), 1);
        }
        out.push(word.value());
        let encode = |it: &Connection| it.encode(first, name, |tick| age(tick.max(self.last)));
        let mut connections: Vec<u128> = self.connections.iter().map(encode).collect();
        connections.sort_unstable();
        out.push(connections.len() as u128);
        out.extend(connections);
    }
}

impl Connection {
    fn new(client: u8) -> Self {
        let (requests, answers) = (VecDeque::new(), VecDeque::new());
        Self { client, ended: Ended::Not, requests, answers }
    }

    fn is_present(&self, client: usize) -> bool {
        usize::from(self.client) == client && self.ended != Ended::ByClient
    }

    fn encode(&self, first: u8, name: impl Fn(Token) -> u8, age: impl Fn(u8) -> u8) -> u128 {
        let mut word = Word::default();
        let mut push = |request: Request, answer: u8| {
            let (kind, token) = match request {
                Request::Set(token) => (0, token),
                Request::Release(token) => (1, token),
                Request::Delete(token) => (2, token),
            };
            word.push(kind, 2);
            word.push(name(token), 2);
            word.push(answer, 3);
        };
        self.answers.iter().for_each(|&(request, answer)| push(request, answer as u8));
        self.requests.iter().for_each(|&(request, written)| push(request, 2 + age(written)));
        word.push(self.answers.len() as u8, 4);
        word.push(self.requests.len() as u8, 4);
        word.push(self.client ^ first, 1);
        word.push(self.ended as u8, 2);
        word.value()
    }
}
