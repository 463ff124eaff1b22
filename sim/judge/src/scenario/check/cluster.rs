//! Rules about the masters and the network.

use super::{Check, PPM_MAX, PPM_MIN, SHIFT_MAX};
use crate::ids::{NODES_MAX, REPLICAS_MAX};
use crate::scenario::model::Hosts;
use crate::scenario::names;
use crate::scenario::span::SignedSpan;

impl Check<'_> {
    pub(super) fn cluster(&mut self) {
        let cluster = &self.scenario.cluster;
        if cluster.nodes.is_empty() || cluster.nodes.len() > NODES_MAX {
            let message = format!("{} nodes are not possible", cluster.nodes.len());
            self.wrong("cluster.nodes", &message, &format!("expected 1 to {NODES_MAX}"));
        }
        for (place, node) in cluster.nodes.iter().enumerate() {
            let at = format!("cluster.nodes.{place}");
            self.name(&at, node);
            if cluster.nodes[..place].contains(node) {
                self.wrong(
                    &at,
                    &format!("two nodes have the name `{node}`"),
                    "expected another name",
                );
            }
        }
        self.aliases();
        self.replicas();
        self.disk();
        self.range("cluster.network.delay", cluster.network.delay);
        self.range("store.delay", self.scenario.store.delay);
        for (place, link) in cluster.links.iter().enumerate() {
            let at = format!("cluster.links.{place}");
            let [first, second] = &link.between;
            self.groups(&format!("{at}.between"), [first, second], ["0", "1"]);
            self.range(&format!("{at}.delay"), link.delay);
        }
        if cluster.uptime > SHIFT_MAX {
            let message = format!("{} is too long", cluster.uptime);
            self.wrong("cluster.uptime", &message, "expected at most a year");
        }
        for node in cluster.node.keys() {
            let known = self.names(Hosts::NodesAndReplicas);
            if !known.contains(&node.as_str()) {
                let help = names::suggestion(node, known);
                let message = format!("unknown node `{node}`");
                let at = format!("cluster.node.{node}");
                self.wrong_key(&at, &message, "expected one of `cluster.nodes`").help = help;
            }
        }
        for (host, clock) in &cluster.clocks {
            let at = format!("cluster.clocks.{host}");
            let before = self.found.len();
            self.host(&at, host, Hosts::Machines);
            self.found[before..].iter_mut().for_each(|complaint| complaint.on_key = true);
            self.shift(&format!("{at}.offset"), clock.offset);
            self.rate(&format!("{at}.rate-ppm"), clock.rate_ppm);
        }
    }

    fn aliases(&mut self) {
        let taken = self.names(Hosts::All);
        for (alias, node) in &self.scenario.cluster.aliases {
            let at = format!("cluster.aliases.{alias}");
            self.name(&at, alias);
            if taken.contains(&alias.as_str()) {
                let message = format!("a host has the name `{alias}`");
                self.wrong_key(&at, &message, "expected another name");
            }
            self.host(&at, node, Hosts::Nodes);
        }
    }

    fn replicas(&mut self) {
        let cluster = &self.scenario.cluster;
        if cluster.replicas.len() > REPLICAS_MAX {
            let message = format!("{} replicas are too many", cluster.replicas.len());
            let at = format!("cluster.replica.{REPLICAS_MAX}");
            self.wrong(&at, &message, &format!("expected at most {REPLICAS_MAX}"));
        }
        for (place, replica) in cluster.replicas.iter().enumerate() {
            let at = format!("cluster.replica.{place}");
            let id = format!("{at}.id");
            self.name(&id, &replica.id);
            let earlier = cluster.replicas[..place].iter().any(|other| other.id == replica.id);
            let clients = self.scenario.clients.iter().any(|client| client.id == replica.id);
            if earlier || clients || cluster.nodes.contains(&replica.id) {
                let message = format!("two hosts have the name `{}`", replica.id);
                self.wrong(&id, &message, "expected another name");
            }
            self.host(&format!("{at}.of"), &replica.of, Hosts::Nodes);
            self.range(&format!("{at}.delay"), replica.delay);
        }
    }

    fn disk(&mut self) {
        let disk = self.scenario.cluster.disk;
        self.span("cluster.disk.sync-takes", disk.sync_takes);
        if let Some(at) = disk.sync_at.filter(|at| at.0 >= 1_000_000_000) {
            let message = format!("{at} is not below one second");
            self.wrong("cluster.disk.sync-at", &message, "expected less than 1s");
        }
    }

    pub(super) fn shift(&mut self, place: &str, by: SignedSpan) {
        if by.0.unsigned_abs() > SHIFT_MAX.0 {
            self.wrong(
                place,
                &format!("an offset of {by} is too large"),
                "expected at most a year",
            );
        }
    }

    pub(super) fn rate(&mut self, place: &str, ppm: i32) {
        if ppm < PPM_MIN {
            let message = "the clock runs at less than half of true rate";
            self.wrong(place, message, "expected at least -500000");
        } else if ppm > PPM_MAX {
            let message = "the clock runs at more than twice the true rate";
            self.wrong(place, message, "expected at most 1000000");
        }
    }
}
