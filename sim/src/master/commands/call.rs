//! One command on its way.

use super::text;
use crate::master::keyspace::parse_integer;
use crate::master::refusal::Refusal;
use crate::master::resp::Value;
use crate::master::server::{Server, Session, Touched, Turn};
use crate::master::{KeyCommand, Reply, SmallBytes};

/// A command with everything that it may look at.
#[derive(Debug)]
pub(in crate::master) struct Call<'a> {
    pub(in crate::master) server: &'a mut Server,
    pub(in crate::master) session: &'a mut Session,
    /// The request, its name among it.
    pub(in crate::master) words: &'a [&'a [u8]],
    pub(in crate::master) turn: Turn<'a>,
    /// The command's name, as errors say it.
    pub(in crate::master) name: &'static str,
    /// Nobody may be made to wait: this is part of a transaction or of a script.
    pub(in crate::master) is_inner: bool,
    /// What comes besides the answer.
    pub(in crate::master) ending: Option<Ending>,
}

/// What else comes of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::master) enum Ending {
    /// The connection is closed.
    Close,
    /// There is no answer.
    Silence,
    /// The answer is that of `WAIT`, later.
    Wait { replicas: i64, timeout_ms: i64 },
}

/// What a command answers.
pub(in crate::master) type Outcome = Result<Value, Refusal>;

impl<'a> Call<'a> {
    /// What follows the name.
    pub(super) fn arguments(&self) -> &'a [&'a [u8]] {
        &self.words[1..]
    }

    /// The wall clock of the node, by which expiry is judged.
    pub(super) fn wall_ms(&self) -> u64 {
        self.turn.wall_ns / 1_000_000
    }

    /// Does something to a key of the selected database.
    pub(super) fn on(&mut self, key: &[u8], command: KeyCommand<'_>) -> Reply {
        self.on_in(self.session.database(), key, command)
    }

    /// Does something to a key of any database.
    pub(super) fn on_in(&mut self, database: u8, key: &[u8], command: KeyCommand<'_>) -> Reply {
        let (wall_ms, writer) = (self.wall_ms(), self.turn.writer);
        let executed = self.server.execute_in(database, key, command, wall_ms, writer);
        let reply = executed.reply.clone();
        self.turn.touched.push(Touched { database, key: SmallBytes::new(key), executed });
        reply
    }

    /// The answer to what is done to a key of the selected database.
    pub(super) fn answer(&mut self, key: &[u8], command: KeyCommand<'_>) -> Outcome {
        match self.on(key, command) {
            Reply::Bulk(bytes) => Ok(Value::Bulk(bytes.share())),
            Reply::Error(error) => Err(Refusal::new(error.text())),
            Reply::Integer(number) => Ok(Value::Integer(number)),
            Reply::Introduction(_) | Reply::Nil => Ok(Value::Null),
            Reply::Ok => Ok(Value::ok()),
        }
    }

    /// What a key holds.
    pub(super) fn get(&mut self, key: &[u8]) -> Option<SmallBytes> {
        match self.on(key, KeyCommand::Get) {
            Reply::Bulk(value) => Some(value),
            _ => None,
        }
    }

    /// Whether there is such a key.
    pub(super) fn exists(&mut self, key: &[u8]) -> bool {
        self.on(key, KeyCommand::Exists) == Reply::Integer(1)
    }

    /// When a key that there is expires.
    pub(super) fn expiry(&mut self, key: &[u8]) -> Option<Option<u64>> {
        if !self.exists(key) {
            return None;
        }
        let database = self.server.databases().get(self.session.database())?;
        Some(database.stored(key)?.expires_wall_ms)
    }

    /// The error of a request with too many words, or too few.
    pub(super) fn arity(&self) -> Refusal {
        text::arity(self.name)
    }
}

/// An integer.
pub(super) fn integer(word: &[u8]) -> Result<i64, Refusal> {
    parse_integer(word).ok_or(text::NOT_AN_INTEGER)
}

/// How many there are.
pub(super) fn count(number: usize) -> Value {
    Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

/// Whether an option is `word`, which is in upper case. Redis compares it as a C string.
pub(super) fn is(option: &[u8], word: &str) -> bool {
    text::until_zero(option).eq_ignore_ascii_case(word.as_bytes())
}
