//! A server on the wire: a [`Master`], and what it knows besides its keys.
//!
//! Whoever carries the bytes calls [`Session::execute`] with one request after the other, each with a
//! reading of the node's wall clock; what the keys went through is told to [`Turn::touched`]. The
//! server owns no clock and no socket either.

mod session;
mod statistics;
mod users;

use core::ops::{Deref, DerefMut};
use std::collections::BTreeMap;

use bytes::Bytes;

pub(in crate::master) use session::Replies;
pub use session::Session;
pub use statistics::{Calls, Statistics};
pub use users::Users;

use super::commands::Refusal;
use super::profile::Profile;
use super::resp::Value;
use super::script::Sha;
use super::{Executed, Master, SmallBytes};
use crate::history::Writer;

/// How many databases there are (`databases`).
const DATABASES: u8 = 16;

/// A server: what it keeps lives in its master, what its process knows dies with it.
#[derive(Clone, Debug)]
pub struct Server {
    master: Master,
    profile: &'static Profile,
    scripts: BTreeMap<Sha, Bytes>,
    users: Users,
    statistics: Statistics,
    clients: BTreeMap<u64, Client>,
    is_loading: bool,
    is_replica: bool,
}

/// What the server tells of a connection.
#[derive(Clone, Debug, Default)]
pub(in crate::master) struct Client {
    /// What it calls itself.
    pub(in crate::master) name: SmallBytes,
}

/// One request on its way: when, and whose.
#[derive(Debug)]
pub struct Turn<'a> {
    /// The node's wall clock: expiry is judged by its whole milliseconds throughout.
    pub wall_ns: u64,
    /// Whose request it is.
    pub writer: Writer,
    /// What became of keys is appended here, in order.
    pub touched: &'a mut Vec<Touched>,
}

/// What a request did to a key, in one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    /// The number of the database.
    pub database: u8,
    /// The key.
    pub key: SmallBytes,
    /// What was done.
    pub executed: Executed,
}

/// What comes of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// This is the answer.
    Reply(Value),
    /// This is the answer, and then the server closes the connection.
    LastReply(Value),
    /// There is none.
    Silence,
    /// `WAIT`: the answer is how many replicas have what the connection wrote, when it is
    /// `replicas`, or after `timeout_ms` (0: never). Requests behind it wait.
    Wait {
        /// How many are wanted.
        replicas: i64,
        /// How long at most.
        timeout_ms: i64,
    },
}

impl Server {
    /// A server around `master`.
    #[must_use]
    pub fn new(master: Master, profile: &'static Profile) -> Self {
        Self {
            master,
            profile,
            scripts: BTreeMap::new(),
            users: Users::default(),
            statistics: Statistics::default(),
            clients: BTreeMap::new(),
            is_loading: false,
            is_replica: false,
        }
    }

    /// Forgets what a process knows and a disk does not: its process is new.
    pub fn forget(&mut self) {
        self.scripts.clear();
        self.clients.clear();
        self.statistics = Statistics::default();
    }

    /// It loads its data, and refuses most commands until then.
    pub fn set_loading(&mut self, is_loading: bool) {
        self.is_loading = is_loading;
    }

    /// It is a replica, and refuses to write.
    pub fn set_replica(&mut self, is_replica: bool) {
        self.is_replica = is_replica;
    }

    /// Whether it loads its data.
    #[must_use]
    pub fn is_loading(&self) -> bool {
        self.is_loading
    }

    /// Whether it is a replica.
    #[must_use]
    pub fn is_replica(&self) -> bool {
        self.is_replica
    }

    /// Who may speak to it.
    #[must_use]
    pub fn users(&self) -> &Users {
        &self.users
    }

    /// Who may speak to it.
    pub fn users_mut(&mut self) -> &mut Users {
        &mut self.users
    }

    /// What it counts.
    #[must_use]
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    pub(in crate::master) fn statistics_mut(&mut self) -> &mut Statistics {
        &mut self.statistics
    }

    pub(in crate::master) fn client(&mut self, id: u64) -> &mut Client {
        self.clients.entry(id).or_default()
    }

    /// How many databases there are.
    #[must_use]
    pub fn database_count(&self) -> u8 {
        DATABASES
    }

    pub(in crate::master) fn is_out_of_memory(&self) -> bool {
        self.master.is_full
    }

    /// # Errors
    ///
    /// If what is written now could not be kept.
    pub(in crate::master) fn check_disk(&self) -> Result<(), Refusal> {
        Ok(())
    }

    /// Which server it takes itself for.
    #[must_use]
    pub fn profile(&self) -> &'static Profile {
        self.profile
    }
}

impl Deref for Server {
    type Target = Master;

    fn deref(&self) -> &Master {
        &self.master
    }
}

impl DerefMut for Server {
    fn deref_mut(&mut self) -> &mut Master {
        &mut self.master
    }
}
