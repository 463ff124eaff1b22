//! A server on the wire: a [`Master`] and the state of its process besides the keys.
//!
//! A transport calls [`Session::execute`] once per request, with a reading of the node's wall
//! clock. Effects on keys are appended to [`Turn::touched`]. The server owns no clock and no
//! socket.

mod blocking;
mod clients;
mod config;
mod control;
mod pushes;
mod random;
mod refusals;
mod session;
mod settings;
mod statistics;
mod unknown;
mod users;

use core::ops::{Deref, DerefMut};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

pub use clients::Clients;
pub(crate) use clients::{Client, Hears};
pub use config::Config;
pub use control::ScriptControl;
use random::Random;
pub(crate) use session::Replies;
pub use session::Session;
use settings::AtStart;
pub use statistics::{Calls, Statistics};
pub use unknown::UnknownCommand;
pub use users::Users;

use crate::profile::Profile;
use crate::resp::Value;
use crate::script::{self, Sha};
use crate::{Content, Executed, Master, Persistence, SmallBytes, Writer};

/// Estimated memory of an empty server, in bytes.
const MEMORY_BASE: u64 = 900_000;
/// Estimated memory of a key, in bytes.
const MEMORY_PER_KEY: u64 = 100;

/// A server. Its stored data lives in its master; the state of its process dies with the process.
#[derive(Clone, Debug)]
pub struct Server {
    master: Master,
    profile: &'static Profile,
    scripts: BTreeMap<Sha, Bytes>,
    left_by_scripts: script::CarriedState,
    script_control: Arc<ScriptControl>,
    users: Users,
    statistics: Statistics,
    unknown: BTreeMap<UnknownCommand, u64>,
    clients: Clients,
    config: Config,
    /// `None` if no command has changed the configuration or the users since the start.
    at_start: Option<Box<AtStart>>,
    /// `maxmemory`, in bytes; 0 means no limit.
    memory_max: u64,
    /// Number of databases.
    database_count: u8,
    is_loading: bool,
    /// Number of replicas.
    replica_count: i64,
    cannot_save: bool,
    /// Commands removed from this server although its profile has them.
    pub(crate) lacking: BTreeSet<&'static str>,
    saved_wall_ms: u64,
    process_id: u32,
    random: Random,
}

/// Context of one request: the time and the writer.
#[derive(Debug)]
pub struct Turn<'a> {
    /// The node's wall clock, in nanoseconds. Expiry is judged by its whole milliseconds.
    pub wall_ns: u64,
    /// Writer to whom the request's effects are attributed.
    pub writer: Writer,
    /// Effects on keys are appended here, in order.
    pub touched: &'a mut Vec<Touched>,
}

/// The effect of one step of a request on one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    /// Number of the database.
    pub database: u8,
    /// The key.
    pub key: SmallBytes,
    /// Outcome of the step.
    pub executed: Executed,
    /// The key's value after a step that changed it; `None` after any other step.
    pub stored: Option<Content>,
}

/// The server's response to a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// A reply.
    Reply(Value),
    /// A reply, after which the server closes the connection.
    LastReply(Value),
    /// No reply yet: the request waits for an element of a list. The reply comes among
    /// [`Server::take_pushes`], as the only value there that is not a [`Value::Push`]. After the
    /// timeout, the transport ends the wait by [`Session::time_out`]. Later requests of the connection
    /// wait for the reply.
    Block {
        /// Longest time to wait, in milliseconds; 0 means no limit.
        timeout_ms: u64,
    },
    /// No reply.
    Silence,
    /// `WAIT`: the reply is the number of replicas that have the connection's writes. It is due
    /// when that number reaches `replicas`, or after `timeout_ms` (0: never). Later requests of the
    /// connection wait for it.
    Wait {
        /// Number of replicas to wait for.
        replicas: i64,
        /// Longest time to wait, in milliseconds; 0 means no limit.
        timeout_ms: i64,
    },
}

impl Server {
    /// Returns a server around `master`.
    #[must_use]
    pub fn new(master: Master, profile: &'static Profile) -> Self {
        let config = Config::new(master.disk().storage().persistence);
        Self {
            profile,
            scripts: BTreeMap::new(),
            left_by_scripts: script::CarriedState::default(),
            script_control: Arc::default(),
            users: Users::default(),
            statistics: Statistics::default(),
            unknown: BTreeMap::new(),
            clients: Clients::default(),
            database_count: config.number("databases") as u8,
            config,
            at_start: None,
            memory_max: 0,
            is_loading: false,
            replica_count: 0,
            cannot_save: false,
            lacking: BTreeSet::new(),
            process_id: 1,
            saved_wall_ms: master.started_wall_ms,
            random: Random::default(),
            master,
        }
    }

    /// Forgets the state that dies with the process: a new process starts. It has the configuration
    /// and the users that the old one had before any `CONFIG SET` and `ACL`.
    pub fn forget(&mut self) {
        self.reread_settings();
        self.scripts.clear();
        self.left_by_scripts = script::CarriedState::default();
        self.clients = Clients::default();
        self.statistics = Statistics::default();
    }

    /// Sets whether the server is loading its data and refuses most commands.
    pub fn set_loading(&mut self, is_loading: bool) {
        self.is_loading = is_loading;
    }

    /// Sets whether the server is a replica, which refuses writes.
    pub fn set_replica(&mut self, is_replica: bool) {
        if is_replica && !self.is_replica() {
            self.unblock_all();
        }
        self.master.set_role(is_replica);
    }

    /// Returns true while the server loads its data.
    #[must_use]
    pub fn is_loading(&self) -> bool {
        self.is_loading
    }

    /// Returns true if the server is a replica.
    #[must_use]
    pub fn is_replica(&self) -> bool {
        self.master.is_replica()
    }

    /// Returns the users of the server.
    #[must_use]
    pub fn users(&self) -> &Users {
        &self.users
    }

    /// Returns the users of the server for changes at start.
    pub fn users_mut(&mut self) -> &mut Users {
        &mut self.users
    }

    /// Returns the command statistics.
    #[must_use]
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    pub(crate) fn statistics_mut(&mut self) -> &mut Statistics {
        &mut self.statistics
    }

    /// Returns the connections.
    #[must_use]
    pub fn clients(&self) -> &Clients {
        &self.clients
    }

    /// Returns the connections for changes.
    pub fn clients_mut(&mut self) -> &mut Clients {
        &mut self.clients
    }

    /// Returns the configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the configuration for changes at start. Later changes go through `CONFIG SET`.
    pub fn config_mut(&mut self) -> &mut Config {
        &mut self.config
    }

    /// Returns the number of databases.
    #[must_use]
    pub fn database_count(&self) -> u8 {
        self.database_count
    }

    /// Returns the number of replicas that have every write so far.
    #[must_use]
    pub fn replica_count(&self) -> i64 {
        self.replica_count
    }

    /// Sets the number of replicas that have every write so far.
    pub fn set_replica_count(&mut self, replica_count: i64) {
        self.replica_count = replica_count;
    }

    /// Sets whether snapshots fail. While they do, writes are refused (MISCONF) if snapshots are
    /// configured and `stop-writes-on-bgsave-error` is on.
    pub fn set_unable_to_save(&mut self, cannot_save: bool) {
        self.cannot_save = cannot_save;
    }

    pub(crate) fn is_unable_to_save(&self) -> bool {
        self.cannot_save
    }

    /// Takes a snapshot; returns false if it failed.
    pub(crate) fn save(&mut self, wall_ms: u64) -> bool {
        if self.cannot_save {
            return false;
        }
        if self.master.disk().storage().persistence == Persistence::Rdb {
            self.master.disk_mut().save();
        }
        self.saved_wall_ms = wall_ms;
        true
    }

    /// Returns the time of the last snapshot on the node's wall clock, in seconds.
    pub(crate) fn saved_wall_s(&self) -> i64 {
        (self.saved_wall_ms / 1_000) as i64
    }

    /// Returns the number of the server's process (`process_id`), if it has a process of its own.
    #[must_use]
    pub fn process_id(&self) -> u32 {
        self.process_id
    }

    /// Sets the process number that `INFO` reports.
    pub fn set_process_id(&mut self, process_id: u32) {
        self.process_id = process_id;
    }

    /// Seeds the numbers that commands draw (`RANDOMKEY`). Without a seed of its own each server draws
    /// the same.
    pub fn set_seed(&mut self, seed: u64) {
        self.random = Random::new(seed);
    }

    pub(crate) fn random_mut(&mut self) -> &mut Random {
        &mut self.random
    }

    /// Sets the control through which another thread observes and ends a running script.
    pub fn set_script_control(&mut self, control: Arc<ScriptControl>) {
        self.script_control = control;
    }

    pub(crate) fn script_control(&self) -> Arc<ScriptControl> {
        Arc::clone(&self.script_control)
    }

    /// Returns the text of the script with this hash, if it is known.
    pub(crate) fn script(&self, sha: &Sha) -> Option<Bytes> {
        self.scripts.get(sha).cloned()
    }

    pub(crate) fn learn(&mut self, sha: Sha, text: Bytes) {
        self.scripts.insert(sha, text);
    }

    pub(crate) fn forget_scripts(&mut self) {
        self.scripts.clear();
        self.left_by_scripts.renew();
    }

    pub(crate) fn left_by_scripts(&self) -> script::CarriedState {
        self.left_by_scripts
    }

    pub(crate) fn set_left_by_scripts(&mut self, left: script::CarriedState) {
        self.left_by_scripts = left;
    }

    pub(crate) fn script_count(&self) -> usize {
        self.scripts.len()
    }

    /// Returns the estimated memory of the data, in bytes.
    #[must_use]
    pub fn memory_used(&self) -> u64 {
        let databases = (0..self.databases().len()).filter_map(|it| self.databases().get(it));
        MEMORY_BASE + MEMORY_PER_KEY * databases.map(|keys| keys.len() as u64).sum::<u64>()
    }

    pub(crate) fn is_out_of_memory(&self) -> bool {
        self.master.is_full || (self.memory_max > 0 && self.memory_used() > self.memory_max)
    }

    /// Returns true if the server is a replica that refuses to serve data because it has lost its
    /// master. In this model a replica never counts as linked to its master.
    pub(crate) fn is_stale(&self) -> bool {
        self.is_replica() && !self.config.is_on("replica-serve-stale-data")
    }

    /// Returns the text of the script whose hash is `word`, in any case, if it is known.
    pub(crate) fn script_named(&self, word: &[u8]) -> Option<Bytes> {
        self.script(&script::named(word)?)
    }

    /// Returns the profile of the server.
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
