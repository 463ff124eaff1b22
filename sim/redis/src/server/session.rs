//! A connection's state on the server.

use bytes::Bytes;

use super::Server;
use crate::SmallBytes;
use crate::resp::{Protocol, Value};

/// The server's state for one connection.
#[derive(Clone, Debug, Default)]
pub struct Session {
    pub(crate) id: u64,
    address: String,
    local_address: String,
    protocol: Protocol,
    database: u8,
    /// User of the connection; `None` until the server has asked for authentication.
    user: Option<User>,
    transaction: Option<Transaction>,
    watched: Vec<WatchedKey>,
    /// True if the connection is subscribed to anything.
    is_subscribed: bool,
    /// The watches end as soon as the session next has access to the server.
    pub(crate) unwatches: bool,
    pub(crate) replies: Replies,
    /// The client sent QUIT with replies off. Real servers then ignore further requests and leave
    /// the connection open.
    pub(crate) is_deaf: bool,
}

/// User of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
enum User {
    /// Not authenticated yet.
    Unknown,
    Known(SmallBytes),
}

/// The commands between MULTI and EXEC.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transaction {
    pub(crate) queued: Vec<Vec<Bytes>>,
    /// Flags that at least one queued command has.
    has: u16,
    /// Flags that at least one queued command lacks.
    lacks: u16,
    /// Total length of the queued words, in bytes.
    bytes: usize,
    /// A command was refused instead of queued.
    pub(crate) is_refused: bool,
}

#[derive(Clone, Debug)]
struct WatchedKey {
    database: u8,
    key: SmallBytes,
    /// Number of the key's last change when the watch began.
    changed: u64,
    /// True if the key was expired but not yet deleted when the watch began.
    was_expired: bool,
}

/// Reply mode of a connection (`CLIENT REPLY`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Replies {
    /// All replies are sent.
    #[default]
    On,
    /// No replies are sent.
    Off,
    /// The reply to the next command is not sent.
    SkipNext,
}

impl Session {
    /// Returns a new connection; real servers number connections from 1.
    #[must_use]
    pub fn new(id: u64) -> Self {
        Self { id, ..Self::default() }
    }

    /// Sets the peer address that `CLIENT LIST` shows.
    #[must_use]
    pub fn from(self, address: impl Into<String>) -> Self {
        Self { address: address.into(), ..self }
    }

    /// Sets the address at which the server accepted the connection, as `CLIENT LIST` shows it.
    #[must_use]
    pub fn at(self, local_address: impl Into<String>) -> Self {
        Self { local_address: local_address.into(), ..self }
    }

    /// Returns the version of the protocol on the connection.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Returns the number of the connection.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns the number of the selected database.
    #[must_use]
    pub fn database(&self) -> u8 {
        self.database
    }

    /// Returns true if the connection still has to authenticate and the server has asked for it.
    #[must_use]
    pub fn is_unauthenticated(&self) -> bool {
        self.user == Some(User::Unknown)
    }

    /// Refuses `request` with `busy` because a script is running. Returns the reply, or `None` if
    /// the connection wants no replies. Like any other refusal this fails a transaction in
    /// progress; a refused EXEC ends the transaction.
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

    /// Closes the connection: the server forgets its state.
    pub fn close(mut self, server: &mut Server) {
        self.unwatch(server);
        server.master.close(self.id);
        server.clients.remove(self.id);
    }

    /// Returns the session under which a script's commands run: the same database and user.
    pub(crate) fn for_script(&self) -> Self {
        let Self { id, database, ref user, .. } = *self;
        Self { id, database, user: user.clone(), ..Self::default() }
    }

    /// Returns the name of the user.
    pub(crate) fn user_name(&self) -> &[u8] {
        match &self.user {
            Some(User::Known(name)) => name,
            Some(User::Unknown) | None => b"default",
        }
    }

    /// Determines the user, once: on a server that requires no password every connection is the
    /// default user's.
    pub(crate) fn be_asked(&mut self, server: &Server) {
        if self.user.is_none() {
            self.user = Some(if server.users().is_open() {
                User::Known(SmallBytes::new(b"default"))
            } else {
                User::Unknown
            });
        }
    }

    /// Adds the connection to `CLIENT LIST` at its first command.
    pub(crate) fn be_seen(&self, server: &mut Server, wall_ns: u64) {
        let client = server.clients.of(self.id);
        if client.seen_ns.is_none() {
            client.seen_ns = Some((wall_ns, wall_ns));
            client.address.clone_from(&self.address);
            client.local_address.clone_from(&self.local_address);
            client.user = SmallBytes::new(self.user_name());
        }
    }

    /// Shows the state of the connection in `CLIENT LIST`, with the name of its last command.
    pub(crate) fn be_known(
        &self,
        server: &mut Server,
        command: Option<&'static str>,
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

    pub(crate) fn become_user(&mut self, name: SmallBytes) {
        self.user = Some(User::Known(name));
    }

    pub(crate) fn select(&mut self, database: u8) {
        self.database = database;
    }

    pub(crate) fn speak(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    pub(crate) fn set_name(&mut self, server: &mut Server, name: &[u8]) {
        server.clients.of(self.id).name = SmallBytes::new(name);
    }

    pub(crate) fn set_replies(&mut self, replies: Replies) {
        // After `OFF`, `SKIP` has no effect.
        if (self.replies, replies) != (Replies::Off, Replies::SkipNext) {
            self.replies = replies;
        }
    }

    /// Returns to the initial state (`RESET`).
    pub(crate) fn reset(&mut self, server: &mut Server) {
        self.unwatch(server);
        server.master.tracked.stop(self.id);
        server.master.subscribed.close(self.id);
        server.clients.of(self.id).name = SmallBytes::default();
        let addresses = [&mut self.address, &mut self.local_address].map(core::mem::take);
        let [address, local_address] = addresses;
        *self = Self::new(self.id).from(address).at(local_address);
        self.be_asked(server);
    }

    pub(crate) fn set_subscribed(&mut self, is_subscribed: bool) {
        self.is_subscribed = is_subscribed;
    }

    /// Returns true if the connection may do nothing but receive messages: it is subscribed, and
    /// in its version of the protocol messages look like replies.
    pub(crate) fn is_subscriber(&self) -> bool {
        self.is_subscribed && self.protocol == Protocol::Resp2
    }

    /// Begins a transaction; returns false if there already was one.
    pub(crate) fn begin_transaction(&mut self) -> bool {
        let fresh = self.transaction.is_none();
        self.transaction.get_or_insert_default();
        fresh
    }

    pub(crate) fn end_transaction(&mut self) -> Option<Transaction> {
        self.transaction.take()
    }

    /// Returns true between MULTI and EXEC.
    #[must_use]
    pub fn is_in_transaction(&self) -> bool {
        self.transaction.is_some()
    }

    /// Records that a command was refused, so that EXEC will be refused, too.
    pub(crate) fn refuse_transaction(&mut self) {
        if let Some(transaction) = &mut self.transaction {
            transaction.is_refused = true;
        }
    }

    /// Returns true if EXEC will be refused.
    pub(crate) fn is_refused(&self) -> bool {
        self.transaction.as_ref().is_some_and(|transaction| transaction.is_refused)
    }

    /// Queues a command with these flags; returns the total length of all queued words in bytes.
    pub(crate) fn queue(&mut self, flags: u16, words: &[&[u8]]) -> usize {
        let transaction = self.transaction.get_or_insert_default();
        transaction.has |= flags;
        transaction.lacks |= !flags;
        transaction.bytes += words.iter().map(|word| word.len()).sum::<usize>();
        let words = words.iter().map(|word| Bytes::copy_from_slice(word)).collect();
        transaction.queued.push(words);
        transaction.bytes
    }

    /// Returns true if a command with this flag is queued.
    pub(crate) fn has_queued(&self, flag: u16) -> bool {
        self.transaction.as_ref().is_some_and(|transaction| transaction.has & flag != 0)
    }

    /// Returns true if a command without this flag is queued.
    pub(crate) fn has_queued_without(&self, flag: u16) -> bool {
        self.transaction.as_ref().is_some_and(|transaction| transaction.lacks & flag != 0)
    }

    pub(crate) fn watch(&mut self, server: &mut Server, key: &[u8], wall_ms: u64) {
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

    pub(crate) fn unwatch(&mut self, server: &mut Server) {
        for watched in self.watched.drain(..) {
            server.master.watched.end(watched.database, &watched.key);
        }
    }

    /// Returns true if a watched key has changed or has expired. The deletion of a key that was
    /// already expired when the watch began is not a change.
    pub(crate) fn has_conflict(&self, server: &Server, wall_ms: u64) -> bool {
        self.watched.iter().any(|watched| {
            let database = server.databases().get(watched.database);
            let stored = database.and_then(|keys| keys.stored(&watched.key));
            let is_expired = stored.is_some_and(|entry| entry.is_expired(wall_ms));
            watched.has_changed(server) || (is_expired && !watched.begins_expired(server))
        })
    }

    /// Returns true if a watched key has changed, so that EXEC will execute nothing.
    pub(crate) fn is_in_vain(&self, server: &Server) -> bool {
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
