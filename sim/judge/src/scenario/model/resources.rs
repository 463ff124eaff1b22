//! The resources of a scenario, their clients and their probes.

use super::Scenario;
use crate::ids::{ClientId, Id, ResourceId};

impl Scenario {
    /// Returns the resources: that of `lock.resource`, then those of `lock.further-resources`.
    #[must_use]
    pub fn resource_ids(
        &self,
    ) -> impl DoubleEndedIterator<Item = ResourceId> + ExactSizeIterator + use<> {
        ResourceId::first(1 + self.lock.further_resources.len())
    }

    /// Returns the name of `resource`: its key on every node.
    ///
    /// # Panics
    ///
    /// If the scenario has no such resource.
    #[must_use]
    pub fn resource_name(&self, resource: ResourceId) -> &str {
        match resource.index().checked_sub(1) {
            None => &self.lock.resource,
            Some(further) => &self.lock.further_resources[further],
        }
    }

    /// Returns the resource called `name`; the first one if no name is given or it is unknown.
    #[must_use]
    pub fn resource_named(&self, name: Option<&str>) -> ResourceId {
        let is_meant = |resource: &ResourceId| name == Some(self.resource_name(*resource));
        self.resource_ids().find(is_meant).unwrap_or_default()
    }

    /// Returns the resource that `client` locks, or that it probes. Clients that the scenario cannot
    /// have lock the first.
    #[must_use]
    pub fn resource_of(&self, client: ClientId) -> ResourceId {
        match self.client(client) {
            Some(client) => self.resource_named(client.resource.as_deref()),
            None => self.resource_probed_by(client).unwrap_or_default(),
        }
    }

    /// Returns the name of the resource that `client` locks, if the scenario has several.
    #[must_use]
    pub fn resource_among_several(&self, client: ClientId) -> Option<&str> {
        let has_several = self.resource_ids().len() > 1;
        has_several.then(|| self.resource_name(self.resource_of(client)))
    }

    /// Returns the probe of the first resource: the client after the scenario's own. The probes of
    /// the other resources follow it, and are further tasks of its process.
    #[must_use]
    pub fn probe(&self) -> ClientId {
        ClientId::at(self.clients.len())
    }

    /// Returns the probe of `resource`.
    #[must_use]
    pub fn probe_of(&self, resource: ResourceId) -> ClientId {
        ClientId::at(self.clients.len() + resource.index())
    }

    /// Returns true if `client` is a probe.
    #[must_use]
    pub fn is_probe(&self, client: ClientId) -> bool {
        self.resource_probed_by(client).is_some()
    }

    /// Returns the number of clients, with the probes.
    #[must_use]
    pub fn client_count(&self) -> usize {
        self.clients.len() + self.resource_ids().len()
    }

    fn resource_probed_by(&self, client: ClientId) -> Option<ResourceId> {
        self.resource_ids().find(|resource| self.probe_of(*resource) == client)
    }
}
