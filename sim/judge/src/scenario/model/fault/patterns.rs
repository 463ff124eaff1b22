//! Patterns among the hosts of a fault: `*` stands for any characters of a name. Under `host` a
//! pattern means servers, or clients if it matches no server.

use super::{FaultKind, Hosts};
use crate::scenario::model::Scenario;

impl Scenario {
    /// Returns the names of the hosts in the group `hosts`.
    pub(in crate::scenario) fn names_of(&self, hosts: Hosts) -> Vec<&str> {
        let nodes = self.cluster.nodes.iter().map(String::as_str);
        // A further task has no host of its own.
        let clients = self.clients.iter().filter(|client| client.task_of.is_none());
        let clients = clients.map(|client| client.id.as_str());
        let replicas = self.cluster.replicas.iter().map(|replica| replica.id.as_str());
        match hosts {
            Hosts::Clients => clients.collect(),
            Hosts::ClientsAndNodes => clients.chain(nodes).collect(),
            Hosts::Nodes => nodes.collect(),
            Hosts::NodesAndReplicas => nodes.chain(replicas).collect(),
            Hosts::Machines => clients.chain(nodes).chain(replicas).collect(),
            Hosts::All => clients.chain(nodes).chain(replicas).chain(["store"]).collect(),
        }
    }

    /// Replaces the patterns in faults by the names that they match. A pattern that matches none
    /// remains, and is no known host.
    pub(in crate::scenario) fn expand_patterns(&mut self) {
        let owned = |names: Vec<&str>| names.into_iter().map(String::from).collect::<Vec<_>>();
        let servers = owned(self.names_of(Hosts::NodesAndReplicas));
        let clients = owned(self.names_of(Hosts::Clients));
        let machines = owned(self.names_of(Hosts::Machines));
        let nodes = owned(self.names_of(Hosts::Nodes));
        for fault in &mut self.faults {
            let (first, second) = match fault.kind.descriptor().hosts {
                Hosts::Nodes => (&nodes, &nodes),
                Hosts::ClientsAndNodes => (&nodes, &clients),
                Hosts::NodesAndReplicas => (&servers, &servers),
                Hosts::Clients | Hosts::Machines | Hosts::All => (&servers, &clients),
            };
            match &mut fault.kind {
                FaultKind::Delay(it) => expand_groups([&mut it.from, &mut it.to], &machines),
                FaultKind::Partition(it) => expand_groups(it.between.each_mut(), &machines),
                kind => {
                    let Some(list) = kind.host_list() else { continue };
                    expand(list, (is_pattern, first), &[]);
                    expand(list, (is_pattern, second), &[]);
                }
            }
        }
    }
}

/// Expands the patterns of two groups. No pattern matches a host of the other group, and `*` alone
/// matches the hosts that are left.
fn expand_groups([from, to]: [&mut Vec<String>; 2], names: &[String]) {
    for is_meant in [is_particular, is_pattern] {
        expand(from, (is_meant, names), to);
        expand(to, (is_meant, names), from);
    }
}

/// Replaces each pattern in `list` that `is_meant` by the names that it matches, if there are any.
fn expand(
    list: &mut Vec<String>,
    (is_meant, names): (fn(&str) -> bool, &[String]),
    except: &[String],
) {
    if !list.iter().any(|it| is_meant(it)) {
        return;
    }
    let mut expanded: Vec<String> = Vec::new();
    for name in core::mem::take(list) {
        let meant = names.iter().filter(|it| is_meant(&name) && matches(&name, it));
        let meant: Vec<&String> = meant.filter(|it| !except.contains(it)).collect();
        if meant.is_empty() {
            expanded.push(name);
            continue;
        }
        let new: Vec<&String> = meant.into_iter().filter(|it| !expanded.contains(it)).collect();
        expanded.extend(new.into_iter().cloned());
    }
    *list = expanded;
}

fn is_pattern(name: &str) -> bool {
    name.contains('*')
}

fn is_particular(name: &str) -> bool {
    is_pattern(name) && name != "*"
}

fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = name.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let last = parts.next_back().unwrap_or_default();
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(fault: &str) -> Scenario {
        let text = format!(
            "schema = 1\nname = \"p\"\ntitle = \"t\"\n[[client]]\nid = \"c1\"\n\
             [[client]]\nid = \"c2\"\n[[fault]]\nid = \"f\"\nat = \"1s\"\n{fault}"
        );
        let mut scenario: Scenario = toml::from_str(&text).unwrap();
        scenario.expand_patterns();
        scenario
    }

    #[test]
    fn a_star_matches_any_characters() {
        for (pattern, name, is_match) in [
            ("*", "A", true),
            ("c*", "c12", true),
            ("c*", "ac", false),
            ("w*-*2", "worker-a-2", true),
            ("w*-*2", "worker2", false),
            ("ab*ba", "aba", false),
        ] {
            assert_eq!(matches(pattern, name), is_match, "{pattern} {name}");
        }
    }

    #[test]
    fn a_pattern_means_servers_or_else_clients() {
        for (pattern, names) in [("*", &["A", "B", "C", "D", "E"][..]), ("c*", &["c1", "c2"])] {
            let scenario = hosts(&format!("clock-jump = {{ host = \"{pattern}\", by = \"1s\" }}"));
            assert_eq!(scenario.faults[0].kind.hosts(), names);
        }
        let scenario = hosts("evict = { host = [\"A\", \"c*\"] }");
        assert_eq!(scenario.faults[0].kind.hosts(), ["A", "c*"], "no server is called so");
    }

    #[test]
    fn two_groups_share_no_host() {
        let scenario = hosts("delay = { from = [\"*\"], to = [\"c*\", \"A\"], by = \"1s\" }");
        let FaultKind::Delay(it) = &scenario.faults[0].kind else { unreachable!() };
        assert_eq!(it.from, ["B", "C", "D", "E"]);
        assert_eq!(it.to, ["c1", "c2", "A"]);
        let scenario = hosts("partition = { between = [[\"c*\"], [\"*\"]] }");
        let FaultKind::Partition(it) = &scenario.faults[0].kind else { unreachable!() };
        assert_eq!(it.between[1], ["A", "B", "C", "D", "E"]);
    }
}
