//! Execution context of one command.

use super::notices::is_noticed_first;
use super::{REPLIES_FIRST, find, text};
use crate::integer::parse_integer;
use crate::refusal::Refusal;
use crate::resp::Value;
use crate::server::{Replies, Server, Session, Touched, Turn};
use crate::{Change, Content, KeyCommand, Reply, SmallBytes};

/// A command with everything that it may access.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) server: &'a mut Server,
    pub(crate) session: &'a mut Session,
    /// Words of the request, including the command's name.
    pub(crate) words: &'a [&'a [u8]],
    pub(crate) turn: Turn<'a>,
    /// Name of the command in error texts.
    pub(crate) name: &'static str,
    /// True within a transaction or a script, where no command may wait.
    pub(crate) is_inner: bool,
    /// Effect besides the reply, if any.
    pub(crate) ending: Option<Ending>,
}

/// Effect of a command besides its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The request waits for an element; its reply comes later.
    Block { timeout_ms: u64 },
    /// The connection is closed.
    Close,
    /// No reply is sent.
    Silence,
    /// The reply is that of `WAIT` and comes later.
    Wait { replicas: i64, timeout_ms: i64 },
}

/// Result of a command.
pub(crate) type Outcome = Result<Value, Refusal>;

impl<'a> Call<'a> {
    /// Returns the words after the name.
    pub(super) fn arguments(&self) -> &'a [&'a [u8]] {
        &self.words[1..]
    }

    /// Returns the node's wall clock, by which expiry is judged, in milliseconds.
    pub(super) fn wall_ms(&self) -> u64 {
        self.turn.wall_ns / 1_000_000
    }

    /// Executes `command` on a key of the selected database and records its effects.
    pub(super) fn on(&mut self, key: &[u8], command: KeyCommand<'_>) -> Reply {
        self.on_in(self.session.database(), key, command)
    }

    /// Executes `command` on a key of any database and records its effects.
    pub(super) fn on_in(&mut self, database: u8, key: &[u8], command: KeyCommand<'_>) -> Reply {
        let (wall_ms, writer) = (self.wall_ms(), self.turn.writer);
        let has_events = self.server.has_events();
        if has_events {
            self.notice_expiry(database, key);
        }
        let earlier = self.server.pushes.len();
        let executed = self.server.execute_in(database, key, command, wall_ms, writer);
        if has_events {
            let invalidations = earlier..self.server.pushes.len();
            self.notice(database, key, command, executed.effect.change);
            if is_noticed_first(self.name, command) {
                self.server.pushes.move_last(invalidations);
            }
        }
        let reply = executed.reply.clone();
        let entry = || self.server.databases().get(database)?.stored(key);
        let is_set = executed.effect.change == Change::Set;
        let stored = if is_set { entry().map(|it| it.value.clone()) } else { None };
        let key = SmallBytes::new(key);
        self.turn.touched.push(Touched { database, key, executed, stored });
        reply
    }

    /// Executes `command` on a key of the selected database and converts the reply.
    pub(super) fn answer(&mut self, key: &[u8], command: KeyCommand<'_>) -> Outcome {
        match self.on(key, command) {
            Reply::Bulk(bytes) => Ok(Value::Bulk(bytes.share())),
            Reply::Error(error) => Err(Refusal::new(error.text())),
            Reply::Integer(number) => Ok(Value::Integer(number)),
            Reply::Introduction(_) | Reply::Nil => Ok(Value::Null),
            Reply::Ok => Ok(Value::ok()),
        }
    }

    /// Returns the value of a string.
    ///
    /// # Errors
    ///
    /// If the key holds a value of another type.
    pub(super) fn get(&mut self, key: &[u8]) -> Result<Option<SmallBytes>, Refusal> {
        match self.on(key, KeyCommand::Get) {
            Reply::Bulk(value) => Ok(Some(value)),
            Reply::Error(error) => Err(Refusal::new(error.text())),
            _ => Ok(None),
        }
    }

    /// Returns the value of a key of any type.
    pub(super) fn content(&mut self, key: &[u8]) -> Option<Content> {
        if !self.exists(key) {
            return None;
        }
        let database = self.server.databases().get(self.session.database())?;
        Some(database.stored(key)?.value.clone())
    }

    /// Returns true if the key exists.
    pub(super) fn exists(&mut self, key: &[u8]) -> bool {
        self.on(key, KeyCommand::Exists) == Reply::Integer(1)
    }

    /// Returns the expiry of a key; the outer `None` means that there is no such key.
    pub(super) fn expiry(&mut self, key: &[u8]) -> Option<Option<u64>> {
        if !self.exists(key) {
            return None;
        }
        let database = self.server.databases().get(self.session.database())?;
        Some(database.stored(key)?.expires_wall_ms)
    }

    /// Closes a connection: another one at once, this one behind its reply.
    pub(super) fn kill(&mut self, id: u64) {
        if id == self.session.id() {
            self.ending = Some(Ending::Close);
        } else {
            self.server.clients_mut().kill(id);
            self.server.close(id);
        }
    }

    /// Returns the command's reply with the publications that the connection has sent to itself, as
    /// far as they come together with the reply.
    pub(super) fn with_own_messages(&mut self, value: Value) -> Value {
        self.server.address_pushes();
        if self.session.replies == Replies::Off {
            return value;
        }
        let mut own = self.server.take_own_messages(self.session.id());
        if own.is_empty() {
            return value;
        }
        match find(self.name.as_bytes()) {
            Some(spec) if spec.has(REPLIES_FIRST) => own.insert(0, value),
            _ => own.push(value),
        }
        Value::Sequence(own)
    }

    /// Returns the error for a wrong number of arguments.
    pub(super) fn arity(&self) -> Refusal {
        text::arity(self.name)
    }
}

/// Parses an integer.
pub(super) fn integer(word: &[u8]) -> Result<i64, Refusal> {
    parse_integer(word).ok_or(text::NOT_AN_INTEGER)
}

/// Returns a number of items as a reply.
pub(super) fn count(number: usize) -> Value {
    Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

/// Returns true if `option` equals `word`, which is in upper case; case does not matter. Redis
/// compares options as C strings.
pub(super) fn is(option: &[u8], word: &str) -> bool {
    text::until_zero(option).eq_ignore_ascii_case(word.as_bytes())
}
