//! Rules about faults of servers.

use super::super::Check;
use crate::scenario::model::{
    At, Demotion, Fault, FaultKind, Flush, HostNames, Hosts, Persistence, Restarting, Stopwatch,
    Swap,
};
use crate::scenario::names;
use crate::scenario::span::{Span, SpanRange};

/// Number of databases of a server, as in Redis by default.
const DATABASES: u8 = 16;

impl Check<'_> {
    pub(super) fn attaching(&mut self, at: &str, names: &HostNames) {
        if let Some(node) = names.0.iter().find(|name| self.scenario.cluster.nodes.contains(name)) {
            let message = format!("`{node}` is not a replica");
            self.wrong(at, &message, "expected a replica");
        }
    }

    pub(super) fn flush(&mut self, at: &str, it: &Flush) {
        if let Some(database) = it.database {
            self.database(&format!("{at}.database"), database);
        }
    }

    pub(super) fn swap(&mut self, at: &str, it: &Swap) {
        let [one, other] = it.databases;
        self.database(&format!("{at}.databases.0"), one);
        self.database(&format!("{at}.databases.1"), other);
        if one == other {
            let message = format!("database {one} cannot be swapped with itself");
            self.wrong(&format!("{at}.databases.1"), &message, "expected another number");
        }
    }

    fn database(&mut self, at: &str, database: u8) {
        if database >= DATABASES {
            let message = format!("there is no database {database}");
            self.wrong(at, &message, &format!("expected less than {DATABASES}"));
        }
    }

    /// Checks that a server receives the keys of its own replica, or keeps its own.
    pub(super) fn demotion(&mut self, at: &str, it: &Demotion) {
        let Some(leader) = &it.of else { return };
        let replicas = self.scenario.cluster.replicas.iter();
        let own = replicas.filter(|replica| it.host.0 == [replica.of.as_str()]);
        let candidates: Vec<&str> = own.map(|replica| replica.id.as_str()).collect();
        if !candidates.contains(&leader.as_str()) {
            let help = names::suggestion(leader, candidates);
            let message = format!("`{leader}` is not a replica of `{}`", it.host);
            self.wrong(&format!("{at}.of"), &message, "expected a replica of this node").help =
                help;
        }
        if it.keeps_keys {
            let message = "`of` replaces the keys of the server, and excludes `keeps-keys`";
            self.wrong_key(&format!("{at}.keeps-keys"), message, "only without `of`");
        }
    }

    pub(super) fn restarting(&mut self, at: &str, fault: &Fault, it: &Restarting) {
        if let Some(after) = it.restart_after {
            self.range(&format!("{at}.restart-after"), after);
        }
        if it.measured_on != Stopwatch::True && it.restart_after.is_none() {
            let message = "there is no delay to measure";
            self.wrong_key(&format!("{at}.measured-on"), message, "only with `restart-after`");
        }
        if it.torn && !matches!(fault.kind, FaultKind::Power(_)) {
            let message = "only a power cut tears a write: the kernel survives this fault";
            self.wrong_key(&format!("{at}.torn"), message, "only with `power`");
        }
        if it.behind_a_proxy && it.restart_after.is_none() {
            let message = "there is no restart for a proxy to hide";
            self.wrong_key(&format!("{at}.behind-a-proxy"), message, "only with `restart-after`");
        }
        if it.replaced && it.restart_after.is_none() {
            let message = "no server takes the place of the dead one";
            self.wrong_key(&format!("{at}.replaced"), message, "only with `restart-after`");
        }
        if it.replaced && it.backup_of.is_some() {
            let message = "another machine has no backup of this disk";
            self.wrong_key(&format!("{at}.replaced"), message, "only without `backup-of`");
        }
        let clients = self.names(Hosts::Clients);
        if it.behind_a_proxy
            && let Some(client) = it.host.0.iter().find(|name| clients.contains(&name.as_str()))
        {
            let message = format!("`{client}` is a client, not a server");
            let expected = "only for a node or a replica";
            self.wrong_key(&format!("{at}.behind-a-proxy"), &message, expected);
        }
        if let Some(backup) = it.backup_of {
            self.backup(&format!("{at}.backup-of"), fault, it, backup);
        }
    }

    /// Checks that the backup is made before the fault, and from a host with a disk.
    fn backup(&mut self, at: &str, fault: &Fault, it: &Restarting, backup: Span) {
        self.span(at, backup);
        match fault.at {
            At::Time(SpanRange { min: begin, .. }) if backup > begin => {
                let message = "the backup is from after the fault";
                self.wrong(at, message, &format!("expected at most {begin}"));
            }
            At::Time(_) => {}
            At::Point(_) => {
                let message = "`backup-of` is for faults that begin at a time";
                self.wrong_key(at, message, "expected `at`, a time");
            }
        }
        let clients = self.names(Hosts::Clients);
        if let Some(client) = it.host.0.iter().find(|name| clients.contains(&name.as_str())) {
            let message = format!("`{client}` has no disk");
            self.wrong_key(at, &message, "only for a node or a replica");
        }
    }

    /// Checks that a restart of each of these nodes loads its last snapshot.
    pub(super) fn loads_snapshots(&mut self, at: &str, names: &HostNames) {
        let cluster = &self.scenario.cluster;
        let other = names.0.iter().find(|name| {
            let own = cluster.node.get(*name).and_then(|node| node.persistence);
            own.unwrap_or(cluster.persistence) != Persistence::Rdb
        });
        if let Some(name) = other {
            let message = format!("`{name}` does not load snapshots");
            self.wrong(at, &message, "expected a node whose persistence is `rdb`");
        }
    }
}
