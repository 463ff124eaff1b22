//! One connection, as the server sees it.

use bytes::Bytes;

use super::Server;
use crate::master::SmallBytes;
use crate::master::resp::{Protocol, Value};

/// What the server knows of a connection.
#[derive(Clone, Debug, Default)]
pub struct Session {
    pub(in crate::master) id: u64,
    address: String,
    protocol: Protocol,
    database: u8,
    /// Who speaks; nobody has asked yet if there is none.
    user: Option<User>,
    transaction: Option<Transaction>,
    watched: Vec<WatchedKey>,
    /// Nothing is watched any more, as soon as the server can be told so.
    pub(in crate::master) unwatches: bool,
    pub(in crate::master) replies: Replies,
    /// It has said QUIT and wanted no answer: servers hear nothing more, and leave it open.
    pub(in crate::master) is_deaf: bool,
}

/// Who speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
enum User {
    /// Who has still to say so.
    Unknown,
    Known(SmallBytes),
}

/// What stands between MULTI and EXEC.
#[derive(Clone, Debug, Default)]
pub(in crate::master) struct Transaction {
    pub(in crate::master) queued: Vec<Vec<Bytes>>,
    /// The flags that one of the commands has, and those that one of them lacks.
    has: u16,
    lacks: u16,
    /// How long their words are.
    bytes: usize,
    /// One of the commands was not even queued.
    pub(in crate::master) is_refused: bool,
}

#[derive(Clone, Debug)]
struct WatchedKey {
    database: u8,
    key: SmallBytes,
    /// The number of the key's last change then.
    changed: u64,
    /// The time of the key was over then, and nobody had noticed.
    was_expired: bool,
}

/// Whether the connection wants answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::master) enum Replies {
    /// It does.
    #[default]
    On,
    /// It does not.
    Off,
    /// It does not want that of the next command.
    SkipNext,
}

impl Session {
    /// A fresh connection; servers number them from 1.
    #[must_use]
    pub fn new(id: u64) -> Self {
        Self { id, ..Self::default() }
    }

    /// Where it comes from, as `CLIENT LIST` says it.
    #[must_use]
    pub fn from(self, address: impl Into<String>) -> Self {
        Self { address: address.into(), ..self }
    }

    /// The version of the protocol that it speaks.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Its number.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The number of the database that it has selected.
    #[must_use]
    pub fn database(&self) -> u8 {
        self.database
    }

    /// Whether it has still to say who it is, as far as it was asked.
    #[must_use]
    pub fn is_unauthenticated(&self) -> bool {
        self.user == Some(User::Unknown)
    }

    /// A script keeps the server from executing `request`, as `busy` says: what is answered, if
    /// the connection wants answers. A transaction is spoilt as by any other refusal, and ends if it is
    /// EXEC that is refused.
    pub fn put_off(&mut self, request: &[Bytes], busy: &'static str) -> Option<Value> {
        let ends = request.first().is_some_and(|name| name.eq_ignore_ascii_case(b"EXEC"));
        let value = if ends {
            self.transaction = None;
            self.unwatches = true;
            Value::error(format!("EXECABORT Transaction discarded because of: {busy}"))
        } else {
            self.refuse_transaction();
            Value::error(busy)
        };
        match self.replies {
            Replies::On => Some(value),
            Replies::Off => None,
            Replies::SkipNext => {
                self.replies = Replies::On;
                None
            }
        }
    }

    /// The connection is gone: the server forgets what it knew of it.
    pub fn close(mut self, server: &mut Server) {
        self.unwatch(server);
        server.master.tracked.close(self.id);
        server.clients.remove(self.id);
    }

    /// What a script is given in the place of a connection: the same database and user.
    pub(in crate::master) fn for_script(&self) -> Self {
        let Self { id, database, ref user, .. } = *self;
        Self { id, database, user: user.clone(), ..Self::default() }
    }

    /// Who speaks.
    pub(in crate::master) fn user_name(&self) -> &[u8] {
        match &self.user {
            Some(User::Known(name)) => name,
            Some(User::Unknown) | None => b"default",
        }
    }

    /// Asks who speaks, once: everybody is the default user of a server that wants no password.
    pub(in crate::master) fn be_asked(&mut self, server: &Server) {
        if self.user.is_none() {
            self.user = Some(if server.users().is_open() {
                User::Known(SmallBytes::new(b"default"))
            } else {
                User::Unknown
            });
        }
    }

    /// `CLIENT LIST` knows of it from its first command on.
    pub(in crate::master) fn be_seen(&self, server: &mut Server, wall_ns: u64) {
        let client = server.clients.of(self.id);
        if client.seen_ns.is_none() {
            client.seen_ns = Some((wall_ns, wall_ns));
            client.address.clone_from(&self.address);
            client.user = SmallBytes::new(self.user_name());
        }
    }

    pub(in crate::master) fn be_known(
        &self,
        server: &mut Server,
        command: &'static str,
        wall_ns: u64,
    ) {
        let client = server.clients.of(self.id);
        client.seen_ns = client.seen_ns.map(|(first, _)| (first, wall_ns));
        client.command = command;
        client.database = self.database;
        client.protocol = self.protocol;
        client.queued = self.transaction.as_ref().map(|transaction| transaction.queued.len());
        client.watched = self.watched.len();
        if *client.user != *self.user_name() {
            client.user = SmallBytes::new(self.user_name());
        }
    }

    pub(in crate::master) fn become_user(&mut self, name: SmallBytes) {
        self.user = Some(User::Known(name));
    }

    pub(in crate::master) fn select(&mut self, database: u8) {
        self.database = database;
    }

    pub(in crate::master) fn speak(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    pub(in crate::master) fn set_name(&mut self, server: &mut Server, name: &[u8]) {
        server.clients.of(self.id).name = SmallBytes::new(name);
    }

    pub(in crate::master) fn set_replies(&mut self, replies: Replies) {
        // Who wants no answers at all wants none after the next command either.
        if (self.replies, replies) != (Replies::Off, Replies::SkipNext) {
            self.replies = replies;
        }
    }

    /// As good as new (`RESET`).
    pub(in crate::master) fn reset(&mut self, server: &mut Server) {
        self.unwatch(server);
        server.master.tracked.stop(self.id);
        server.clients.of(self.id).name = SmallBytes::default();
        *self = Self::new(self.id).from(core::mem::take(&mut self.address));
        self.be_asked(server);
    }

    /// Whether there was none.
    pub(in crate::master) fn begin_transaction(&mut self) -> bool {
        let fresh = self.transaction.is_none();
        self.transaction.get_or_insert_default();
        fresh
    }

    pub(in crate::master) fn end_transaction(&mut self) -> Option<Transaction> {
        self.transaction.take()
    }

    /// Whether it stands between MULTI and EXEC.
    #[must_use]
    pub fn is_in_transaction(&self) -> bool {
        self.transaction.is_some()
    }

    /// A command was refused: EXEC will be.
    pub(in crate::master) fn refuse_transaction(&mut self) {
        if let Some(transaction) = &mut self.transaction {
            transaction.is_refused = true;
        }
    }

    /// Whether EXEC is going to be refused.
    pub(in crate::master) fn is_refused(&self) -> bool {
        self.transaction.as_ref().is_some_and(|transaction| transaction.is_refused)
    }

    /// Takes up a command, which has these flags; how many bytes the words of all of them have.
    pub(in crate::master) fn queue(&mut self, flags: u16, words: &[&[u8]]) -> usize {
        let transaction = self.transaction.get_or_insert_default();
        transaction.has |= flags;
        transaction.lacks |= !flags;
        transaction.bytes += words.iter().map(|word| word.len()).sum::<usize>();
        let words = words.iter().map(|word| Bytes::copy_from_slice(word)).collect();
        transaction.queued.push(words);
        transaction.bytes
    }

    /// Whether a command with this flag is queued.
    pub(in crate::master) fn has_queued(&self, flag: u16) -> bool {
        self.transaction.as_ref().is_some_and(|transaction| transaction.has & flag != 0)
    }

    /// Whether a command without this flag is queued.
    pub(in crate::master) fn has_queued_without(&self, flag: u16) -> bool {
        self.transaction.as_ref().is_some_and(|transaction| transaction.lacks & flag != 0)
    }

    pub(in crate::master) fn watch(&mut self, server: &mut Server, key: &[u8], wall_ms: u64) {
        let database = self.database;
        if self.watched.iter().any(|it| it.database == database && *it.key == *key) {
            return;
        }
        let stored = server.databases().get(database).and_then(|keys| keys.stored(key));
        let was_expired = stored.is_some_and(|entry| entry.is_expired(wall_ms));
        let changed = server.master.watched.begin(database, key);
        let key = SmallBytes::new(key);
        self.watched.push(WatchedKey { database, key, changed, was_expired });
    }

    pub(in crate::master) fn unwatch(&mut self, server: &mut Server) {
        for watched in self.watched.drain(..) {
            server.master.watched.end(watched.database, &watched.key);
        }
    }

    /// Whether a watched key has changed, or its time is over. That a key is gone whose time was over
    /// from the beginning is no change.
    pub(in crate::master) fn has_conflict(&self, server: &Server, wall_ms: u64) -> bool {
        self.watched.iter().any(|watched| {
            let database = server.databases().get(watched.database);
            let stored = database.and_then(|keys| keys.stored(&watched.key));
            let is_expired = stored.is_some_and(|entry| entry.is_expired(wall_ms));
            watched.has_changed(server) || (is_expired && !watched.begins_expired(server))
        })
    }

    /// Whether a watched key has changed, so that EXEC will execute nothing.
    pub(in crate::master) fn is_in_vain(&self, server: &Server) -> bool {
        self.watched.iter().any(|watched| watched.has_changed(server))
    }
}

impl WatchedKey {
    fn begins_expired(&self, server: &Server) -> bool {
        let changes = &server.master.watched;
        self.was_expired || changes.came_expired(self.database, &self.key, self.changed)
    }

    fn has_changed(&self, server: &Server) -> bool {
        let changes = &server.master.watched;
        match self.begins_expired(server) {
            true => changes.was_filled(self.database, &self.key, self.changed),
            false => changes.changed(self.database, &self.key) != Some(self.changed),
        }
    }
}
