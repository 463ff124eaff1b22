//! A server on the wire: a [`Master`], and what it knows besides its keys.
//!
//! Whoever carries the bytes calls [`Session::execute`] with one request after the other, each with a
//! reading of the node's wall clock; what the keys went through is told to [`Turn::touched`]. The
//! server owns no clock and no socket either.

mod clients;
mod config;
mod control;
mod pushes;
mod refusals;
mod session;
mod statistics;
mod users;

use core::ops::{Deref, DerefMut};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

pub(in crate::master) use clients::Client;
pub use clients::Clients;
pub use config::Config;
pub use control::ScriptControl;
pub(in crate::master) use session::Replies;
pub use session::Session;
pub use statistics::{Calls, Statistics};
pub use users::Users;

use super::profile::Profile;
use super::resp::Value;
use super::script::{self, Sha};
use super::{Executed, Master, SmallBytes};
use crate::history::Writer;
use crate::scenario::Persistence;

/// What a server takes up before it has a key, and with every key, in bytes. An estimate.
const MEMORY_BASE: u64 = 900_000;
const MEMORY_PER_KEY: u64 = 100;

/// A server: what it keeps lives in its master, what its process knows dies with it.
#[derive(Clone, Debug)]
pub struct Server {
    master: Master,
    profile: &'static Profile,
    scripts: BTreeMap<Sha, Bytes>,
    left_by_scripts: script::Left,
    script_control: Arc<ScriptControl>,
    users: Users,
    statistics: Statistics,
    clients: Clients,
    config: Config,
    /// `maxmemory`; 0: as much as there is.
    memory_max: u64,
    /// How many databases there are.
    database_count: u8,
    is_loading: bool,
    /// How many replicas it has.
    replica_count: i64,
    cannot_save: bool,
    cannot_append: bool,
    /// Commands that it does not have although its profile has them.
    pub(in crate::master) lacking: BTreeSet<&'static str>,
    saved_wall_ms: u64,
    process_id: u32,
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
        let config = Config::new(master.disk().storage().persistence);
        Self {
            profile,
            scripts: BTreeMap::new(),
            left_by_scripts: script::Left::default(),
            script_control: Arc::default(),
            users: Users::default(),
            statistics: Statistics::default(),
            clients: Clients::default(),
            database_count: config.number("databases") as u8,
            config,
            memory_max: 0,
            is_loading: false,
            replica_count: 0,
            cannot_save: false,
            cannot_append: false,
            lacking: BTreeSet::new(),
            process_id: 1,
            saved_wall_ms: master.started_wall_ms,
            master,
        }
    }

    /// Forgets what a process knows and a disk does not: its process is new.
    pub fn forget(&mut self) {
        self.scripts.clear();
        self.left_by_scripts = script::Left::default();
        self.clients = Clients::default();
        self.statistics = Statistics::default();
    }

    /// It loads its data, and refuses most commands until then.
    pub fn set_loading(&mut self, is_loading: bool) {
        self.is_loading = is_loading;
    }

    /// It is a replica, and refuses to write.
    pub fn set_replica(&mut self, is_replica: bool) {
        self.master.set_role(is_replica);
    }

    /// Whether it loads its data.
    #[must_use]
    pub fn is_loading(&self) -> bool {
        self.is_loading
    }

    /// Whether it is a replica.
    #[must_use]
    pub fn is_replica(&self) -> bool {
        self.master.is_replica()
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

    /// Its connections.
    #[must_use]
    pub fn clients(&self) -> &Clients {
        &self.clients
    }

    /// Its connections.
    pub fn clients_mut(&mut self) -> &mut Clients {
        &mut self.clients
    }

    /// How it is set.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// How it is set; for what can be said at the start alone. Otherwise see `CONFIG SET`.
    pub fn config_mut(&mut self) -> &mut Config {
        &mut self.config
    }

    /// Sets a parameter, which is known, to a value that is valid.
    pub(in crate::master) fn configure(&mut self, name: &'static str, value: String) {
        match name {
            "maxmemory" => self.memory_max = value.parse().unwrap_or(0),
            "tracking-table-max-keys" => {
                self.master.tracked.set_keys_max(value.parse().unwrap_or(usize::MAX));
            }
            "requirepass" => self.users.set_password(value.as_bytes()),
            _ => {}
        }
        self.config.set(name, value);
    }

    /// How many databases there are.
    #[must_use]
    pub fn database_count(&self) -> u8 {
        self.database_count
    }

    /// How many replicas have everything that was written so far.
    #[must_use]
    pub fn replica_count(&self) -> i64 {
        self.replica_count
    }

    /// So many replicas have everything that was written so far.
    pub fn set_replica_count(&mut self, replica_count: i64) {
        self.replica_count = replica_count;
    }

    /// Snapshots fail from now on, or do not any more: writes are refused (MISCONF) once one has
    /// failed, if there are to be snapshots and `stop-writes-on-bgsave-error` is on.
    pub fn set_unable_to_save(&mut self, cannot_save: bool) {
        self.cannot_save = cannot_save;
    }

    /// What is appended to the log is not written from now on, or is again: until then writes are
    /// refused (MISCONF).
    pub fn set_unable_to_append(&mut self, cannot_append: bool) {
        self.cannot_append = cannot_append;
    }

    pub(in crate::master) fn is_unable_to_save(&self) -> bool {
        self.cannot_save
    }

    pub(in crate::master) fn is_unable_to_append(&self) -> bool {
        self.cannot_append
    }

    /// Takes a snapshot: whether that went well.
    pub(in crate::master) fn save(&mut self, wall_ms: u64) -> bool {
        if self.cannot_save {
            return false;
        }
        if self.master.disk().storage().persistence == Persistence::Rdb {
            self.master.disk_mut().save();
        }
        self.saved_wall_ms = wall_ms;
        true
    }

    /// When the last snapshot was taken by the node's wall clock, in seconds.
    pub(in crate::master) fn saved_wall_s(&self) -> i64 {
        (self.saved_wall_ms / 1_000) as i64
    }

    /// The number of its process (`process_id`), if it has one of its own.
    #[must_use]
    pub fn process_id(&self) -> u32 {
        self.process_id
    }

    /// The number of its process, as `INFO` says it.
    pub fn set_process_id(&mut self, process_id: u32) {
        self.process_id = process_id;
    }

    /// By which others see that a script runs, and end it.
    pub fn set_script_control(&mut self, control: Arc<ScriptControl>) {
        self.script_control = control;
    }

    pub(in crate::master) fn script_control(&self) -> Arc<ScriptControl> {
        Arc::clone(&self.script_control)
    }

    /// The text of the script of this name, if it is known.
    pub(in crate::master) fn script(&self, sha: &Sha) -> Option<Bytes> {
        self.scripts.get(sha).cloned()
    }

    pub(in crate::master) fn learn(&mut self, sha: Sha, text: Bytes) {
        self.scripts.insert(sha, text);
    }

    pub(in crate::master) fn forget_scripts(&mut self) {
        self.scripts.clear();
        self.left_by_scripts.renew();
    }

    pub(in crate::master) fn left_by_scripts(&self) -> script::Left {
        self.left_by_scripts
    }

    pub(in crate::master) fn set_left_by_scripts(&mut self, left: script::Left) {
        self.left_by_scripts = left;
    }

    pub(in crate::master) fn script_count(&self) -> usize {
        self.scripts.len()
    }

    /// What its data takes up, in bytes. An estimate.
    #[must_use]
    pub fn memory_used(&self) -> u64 {
        let databases = (0..self.databases().len()).filter_map(|it| self.databases().get(it));
        MEMORY_BASE + MEMORY_PER_KEY * databases.map(|keys| keys.len() as u64).sum::<u64>()
    }

    pub(in crate::master) fn is_out_of_memory(&self) -> bool {
        self.master.is_full || (self.memory_max > 0 && self.memory_used() > self.memory_max)
    }

    /// Whether it is a replica that says nothing, since it has lost its master: none has ever found
    /// one here.
    pub(in crate::master) fn is_stale(&self) -> bool {
        self.is_replica() && !self.config.is_on("replica-serve-stale-data")
    }

    /// The text of the script that `word` names, in whatever case, if it is known.
    pub(in crate::master) fn script_named(&self, word: &[u8]) -> Option<Bytes> {
        self.script(&script::named(word)?)
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
