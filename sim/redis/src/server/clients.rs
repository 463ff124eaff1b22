//! The connections of a server, as `CLIENT LIST` shows them.

use std::collections::{BTreeMap, BTreeSet};

use crate::SmallBytes;
use crate::bytes::until_zero;
use crate::profile::{Feature, Profile};
use crate::resp::Protocol;
use crate::tracked::Listener;

/// Connections that have sent at least one command.
#[derive(Clone, Debug, Default)]
pub struct Clients {
    clients: BTreeMap<u64, Client>,
    killed: BTreeSet<u64>,
}

/// Information about one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Client {
    /// Peer address.
    pub(crate) address: String,
    /// Address at which the server accepted the connection.
    pub(crate) local_address: String,
    /// Name set by the client.
    pub(crate) name: SmallBytes,
    /// Name and version of the client's library, as set by the client.
    pub(crate) library: [SmallBytes; 2],
    pub(crate) user: SmallBytes,
    pub(crate) database: u8,
    pub(crate) protocol: Protocol,
    /// Number of commands queued since MULTI; `None` outside a transaction.
    pub(crate) queued: Option<usize>,
    pub(crate) watched: usize,
    /// Name of the last command; `None` before the first and after an unknown one.
    pub(crate) command: Option<&'static str>,
    /// Wall clock at the first and at the last command, in nanoseconds.
    pub(crate) seen_ns: Option<(u64, u64)>,
}

/// The pushes that a connection wants, and whether it waits for one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hears {
    /// How the connection tracks keys, if it does.
    pub(crate) tracking: Option<Listener>,
    /// True if a request of the connection waits.
    pub(crate) is_blocked: bool,
    /// Numbers of channels, patterns and shard channels.
    pub(crate) subscriptions: [usize; 3],
}

impl Hears {
    /// Returns the connection to which invalidations are redirected: 0 for none, −1 without tracking.
    pub(crate) fn redirection(&self) -> i64 {
        let Some(listener) = self.tracking else { return -1 };
        listener.redirect.map_or(0, |id| i64::try_from(id).unwrap_or(i64::MAX))
    }

    /// Returns true if the connection is of the type PUBSUB.
    pub(crate) fn is_subscribed(&self) -> bool {
        self.subscriptions != [0; 3]
    }
}

impl Clients {
    /// Returns the number of connections.
    #[must_use]
    pub fn len(&self) -> usize {
        self.clients.len()
    }

    /// Returns true if there are no connections.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }

    /// Takes the numbers of the connections that `CLIENT KILL` ended and the transport must close.
    pub fn take_killed(&mut self) -> BTreeSet<u64> {
        core::mem::take(&mut self.killed)
    }

    pub(crate) fn of(&mut self, id: u64) -> &mut Client {
        self.clients.entry(id).or_default()
    }

    pub(crate) fn get(&self, id: u64) -> Option<&Client> {
        self.clients.get(&id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &Client)> {
        self.clients.iter().map(|(id, client)| (*id, client))
    }

    pub(crate) fn remove(&mut self, id: u64) {
        self.clients.remove(&id);
        self.killed.remove(&id);
    }

    /// Has the transport close a connection once it has sent its replies.
    pub(super) fn close_later(&mut self, id: u64) {
        self.killed.insert(id);
    }

    pub(crate) fn kill(&mut self, id: u64) {
        self.clients.remove(&id);
        self.killed.insert(id);
    }
}

impl Client {
    /// Returns the line of `CLIENT LIST` for the connection `id` when the wall clock reads
    /// `wall_ns`.
    pub(crate) fn line(
        &self,
        (id, hears): (u64, &Hears),
        wall_ns: u64,
        profile: &Profile,
    ) -> Vec<u8> {
        let (since_ns, seen_ns) = self.seen_ns.unwrap_or((wall_ns, wall_ns));
        let seconds = |from: u64| wall_ns.saturating_sub(from) / 1_000_000_000;
        let (age, idle) = (seconds(since_ns), seconds(seen_ns));
        let version = if self.protocol == Protocol::Resp3 { 3 } else { 2 };
        let multi = self.queued.map_or(-1, |queued| queued as i64);
        let [channels, patterns, shards] = hears.subscriptions;
        let flags = [
            (hears.is_subscribed(), 'P'),
            (self.queued.is_some(), 'x'),
            (hears.is_blocked, 'b'),
            (hears.tracking.is_some(), 't'),
            (hears.tracking.is_some_and(|it| it.is_broken), 'R'),
        ];
        let mut flags: String = flags.iter().filter(|(is, _)| *is).map(|(_, flag)| flag).collect();
        if flags.is_empty() {
            flags.push('N');
        }
        let redirection = hears.redirection();
        let Self { address, local_address, database, .. } = self;
        let command = self.command.unwrap_or("NULL");
        let watch = if profile.has(Feature::ListsWatches) {
            format!(" watch={}", self.watched)
        } else {
            String::new()
        };
        let head = format!("id={id} addr={address} laddr={local_address} fd={} name=", id + 7);
        let middle = format!(
            " age={age} idle={idle} flags={flags} db={database} sub={channels} psub={patterns} \
             ssub={shards} multi={multi}{watch} qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=16384 \
             rbp=16384 obl=0 oll=0 omem=0 tot-mem=22272 events=r cmd={command} user="
        );
        let mut line =
            [head.as_bytes(), until_zero(&self.name), middle.as_bytes(), &self.user].concat();
        line.extend_from_slice(format!(" redir={redirection} resp={version}").as_bytes());
        if profile.has(Feature::ClientInfo) {
            let [name, version] = &self.library;
            line.extend_from_slice(
                &[b" lib-name=", until_zero(name), b" lib-ver=", until_zero(version)].concat(),
            );
        }
        line
    }
}
