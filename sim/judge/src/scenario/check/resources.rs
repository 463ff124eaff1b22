//! Rules about the resources, and about the clients and faults that name one.

use super::Check;
use crate::ids::{CLIENTS_MAX, RESOURCES_MAX};
use crate::scenario::names::{self, NAME_MAX};

impl Check<'_> {
    pub(super) fn resources(&mut self) {
        let further = &self.scenario.lock.further_resources;
        self.resource_name("lock.resource", &self.scenario.lock.resource);
        for (place, name) in further.iter().enumerate() {
            let at = format!("lock.further-resources.{place}");
            self.resource_name(&at, name);
            if *name == self.scenario.lock.resource || further[..place].contains(name) {
                let message = format!("two resources have the name `{name}`");
                self.wrong(&at, &message, "expected another name");
            }
        }
        if further.len() >= RESOURCES_MAX {
            let message = format!("{} resources are too many", further.len() + 1);
            let expected = format!("expected at most {}", RESOURCES_MAX - 1);
            self.wrong("lock.further-resources", &message, &expected);
        }
        let clients = self.scenario.clients.len();
        // Every resource has a probe, and there is room for the probe of the first.
        if clients <= CLIENTS_MAX && clients + further.len() > CLIENTS_MAX {
            let message = format!("{clients} clients have too many resources");
            let expected = format!("expected at most {}", CLIENTS_MAX - clients);
            self.wrong("lock.further-resources", &message, &expected);
        }
        for (place, client) in self.scenario.clients.iter().enumerate() {
            if let Some(name) = &client.resource {
                self.known_resource(&format!("client.{place}.resource"), name);
            }
        }
        for (place, fault) in self.scenario.faults.iter().enumerate() {
            if let Some(name) = fault.kind.key().and_then(|key| key.resource.as_ref()) {
                let kind = fault.kind.descriptor().name;
                self.known_resource(&format!("fault.{place}.{kind}.resource"), name);
            }
        }
    }

    fn resource_name(&mut self, place: &str, name: &str) {
        if name.is_empty() || name.len() > NAME_MAX {
            let expected = format!("expected 1 to {NAME_MAX} bytes");
            self.wrong(place, "the length of the resource's name is invalid", &expected);
        }
    }

    fn known_resource(&mut self, place: &str, name: &str) {
        let scenario = self.scenario;
        let known = scenario.resource_ids().map(|resource| scenario.resource_name(resource));
        let known: Vec<&str> = known.collect();
        if known.contains(&name) {
            return;
        }
        let help = names::suggestion(name, known);
        let message = format!("unknown resource `{name}`");
        let expected = "expected `lock.resource`, or one of `lock.further-resources`";
        self.wrong(place, &message, expected).help = help;
    }
}
