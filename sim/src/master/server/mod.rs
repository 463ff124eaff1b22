//! A server on the wire: a [`Master`], and what it knows besides its keys.
//!
//! Whoever carries the bytes calls [`Session::execute`] with one request after the other, each with a
//! reading of the node's wall clock; what the keys went through is told to [`Turn::touched`]. The
//! server owns no clock and no socket either.

mod session;

use core::ops::{Deref, DerefMut};
use std::collections::BTreeMap;

use bytes::Bytes;

pub use session::Session;

use super::profile::Profile;
use super::resp::Value;
use super::script::Sha;
use super::{Executed, Master, SmallBytes};
use crate::history::Writer;

/// A server: what it keeps lives in its master, what its process knows dies with it.
#[derive(Clone, Debug)]
pub struct Server {
    master: Master,
    profile: &'static Profile,
    scripts: BTreeMap<Sha, Bytes>,
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
        Self { master, profile, scripts: BTreeMap::new() }
    }

    /// Forgets what a process knows and a disk does not: its process is new.
    pub fn forget(&mut self) {
        self.scripts.clear();
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
