//! What a server tells of its connections.

use std::collections::{BTreeMap, BTreeSet};

use crate::master::SmallBytes;
use crate::master::resp::Protocol;

/// The connections of a server that have said something.
#[derive(Clone, Debug, Default)]
pub struct Clients {
    clients: BTreeMap<u64, Client>,
    killed: BTreeSet<u64>,
}

/// What is told of one.
#[derive(Clone, Debug, Default)]
pub(in crate::master) struct Client {
    /// From where it comes.
    pub(in crate::master) address: String,
    /// What it calls itself.
    pub(in crate::master) name: SmallBytes,
    /// What it calls the library that it uses, and its version.
    pub(in crate::master) library: [SmallBytes; 2],
    pub(in crate::master) user: SmallBytes,
    pub(in crate::master) database: u8,
    pub(in crate::master) protocol: Protocol,
    /// How many commands stand between MULTI and EXEC; `None`: there is no MULTI.
    pub(in crate::master) queued: Option<usize>,
    pub(in crate::master) watched: usize,
    /// The last command.
    pub(in crate::master) command: &'static str,
    /// The wall clock at its first and last command.
    pub(in crate::master) seen_ns: Option<(u64, u64)>,
}

impl Clients {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.clients.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }

    /// The numbers of those that must be closed, since somebody said `CLIENT KILL`.
    pub fn take_killed(&mut self) -> BTreeSet<u64> {
        core::mem::take(&mut self.killed)
    }

    pub(in crate::master) fn of(&mut self, id: u64) -> &mut Client {
        self.clients.entry(id).or_default()
    }

    pub(in crate::master) fn get(&self, id: u64) -> Option<&Client> {
        self.clients.get(&id)
    }

    pub(in crate::master) fn iter(&self) -> impl Iterator<Item = (u64, &Client)> {
        self.clients.iter().map(|(id, client)| (*id, client))
    }

    pub(in crate::master) fn remove(&mut self, id: u64) {
        self.clients.remove(&id);
        self.killed.remove(&id);
    }

    pub(in crate::master) fn kill(&mut self, id: u64) {
        self.clients.remove(&id);
        self.killed.insert(id);
    }
}

impl Client {
    /// The line of `CLIENT LIST` for the connection `id`, which tracks keys if it `listens`, when
    /// the wall clock reads `wall_ns`.
    pub(in crate::master) fn line(
        &self,
        (id, listens): (u64, bool),
        wall_ns: u64,
        says_library: bool,
    ) -> Vec<u8> {
        let (since_ns, seen_ns) = self.seen_ns.unwrap_or((wall_ns, wall_ns));
        let seconds = |from: u64| wall_ns.saturating_sub(from) / 1_000_000_000;
        let (age, idle) = (seconds(since_ns), seconds(seen_ns));
        let version = if self.protocol == Protocol::Resp3 { 3 } else { 2 };
        let multi = self.queued.map_or(-1, |queued| queued as i64);
        let flags = match (self.queued.is_some(), listens) {
            (true, true) => "xt",
            (true, false) => "x",
            (false, true) => "t",
            (false, false) => "N",
        };
        let redirection = if listens { 0 } else { -1 };
        let Self { address, database, watched, command, .. } = self;
        let head = format!("id={id} addr={address} laddr=127.0.0.1:6379 fd={} name=", id + 7);
        let middle = format!(
            " age={age} idle={idle} flags={flags} db={database} sub=0 psub=0 ssub=0 multi={multi} \
             watch={watched} qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=16384 rbp=16384 obl=0 \
             oll=0 omem=0 tot-mem=22272 events=r cmd={command} user="
        );
        let mut line = [head.as_bytes(), &self.name, middle.as_bytes(), &self.user].concat();
        line.extend_from_slice(format!(" redir={redirection} resp={version}").as_bytes());
        if says_library {
            let [name, version] = &self.library;
            line.extend_from_slice(&[b" lib-name=", &**name, b" lib-ver=", &**version].concat());
        }
        line
    }
}
