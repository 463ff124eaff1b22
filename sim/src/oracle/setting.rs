//! The numbers of a scenario that judging needs.

use crate::history::HostIndex;
use crate::scenario::Scenario;

/// The most nodes of a scenario.
pub(super) const NODES_MAX: usize = 9;

/// The most clients of a scenario, the probe counted.
pub(super) const CLIENTS_MAX: usize = crate::scenario::CLIENTS_MAX + 1;

/// What the judge knows before anything has happened.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    /// How many nodes there are.
    pub nodes: usize,
    /// How many clients there are without the probe; also the probe's place.
    pub probe: usize,
}

impl Setting {
    /// The numbers of `scenario`.
    ///
    /// # Panics
    ///
    /// If it has more nodes or clients than a valid scenario may have.
    pub(super) fn new(scenario: &Scenario) -> Self {
        let (nodes, probe) = (scenario.cluster.nodes.len(), scenario.clients.len());
        assert!(nodes <= NODES_MAX, "{nodes} nodes");
        assert!(probe < CLIENTS_MAX, "{probe} clients");
        Self { nodes, probe }
    }

    /// The host of the client at `place`.
    pub(super) fn client_host(&self, place: u8) -> HostIndex {
        HostIndex(self.nodes as u8 + place)
    }

    /// The client whose host it is.
    pub(super) fn client_of(&self, host: HostIndex) -> Option<u8> {
        let place = host.get().checked_sub(self.nodes)?;
        (place <= self.probe).then_some(place as u8)
    }

    /// Whether the attempts of `client` are judged: those of the probe only measure.
    pub(super) fn is_judged(&self, client: u8) -> bool {
        usize::from(client) < self.probe
    }
}
