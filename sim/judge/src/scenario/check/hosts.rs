//! Rules about the hosts that a scenario names.

use super::Check;
use crate::scenario::model::Hosts;
use crate::scenario::names;

impl<'s> Check<'s> {
    /// Returns the names of the scenario's hosts in the group `hosts`.
    pub(super) fn names(&self, hosts: Hosts) -> Vec<&'s str> {
        self.scenario.names_of(hosts)
    }

    pub(super) fn host(&mut self, place: &str, name: &str, hosts: Hosts) {
        let allowed = self.names(hosts);
        if allowed.contains(&name) {
            return;
        }
        let task = self.scenario.clients.iter().find(|client| client.id == name);
        if let Some(process) = task.and_then(|client| client.task_of.as_ref()) {
            let message = format!("`{name}` is a task of `{process}`, without a host of its own");
            self.wrong(place, &message, &format!("expected {}", hosts.words())).help =
                Some(format!("name `{process}`"));
            return;
        }
        let known = self.names(Hosts::All).contains(&name);
        let message = if known {
            format!("`{name}` is not allowed here")
        } else {
            format!("unknown host `{name}`")
        };
        let help = names::suggestion(name, allowed);
        self.wrong(place, &message, &format!("expected {}", hosts.words())).help = help;
    }

    /// Checks two disjoint groups of hosts.
    pub(super) fn groups(&mut self, place: &str, groups: [&[String]; 2], keys: [&str; 2]) {
        for (group, key) in groups.into_iter().zip(keys) {
            let place = format!("{place}.{key}");
            if group.is_empty() {
                self.wrong(&place, "the group is empty", "expected names of hosts");
            }
            for (at, name) in group.iter().enumerate() {
                self.host(&format!("{place}.{at}"), name, Hosts::All);
            }
        }
        let both = groups[1].iter().position(|name| groups[0].contains(name));
        if let Some(at) = both {
            let message = format!("`{}` is in both groups", groups[1][at]);
            self.wrong(&format!("{place}.{}.{at}", keys[1]), &message, "expected another host");
        }
    }
}
