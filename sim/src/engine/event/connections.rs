//! A process's connections: maps each route to a connection of the network.

use super::process::Process;
use crate::engine::stage::Stage;
use crate::engine::stage::plan::Plan;
use crate::history::{HostId, Id, NodeId};
use crate::ids::ConnectionId;
use crate::subject::{Profile, Route};
use crate::world::ConnectionState;

impl Process {
    pub(super) fn open_warm_connections(&mut self, plan: &Plan, stage: &mut Stage) {
        let Profile { nodes, lanes, .. } = self.subject.profile();
        for node in NodeId::first(nodes) {
            let server = stage.server_of(self.client, node);
            if !stage.is_open_at_start(server) {
                continue;
            }
            for lane in 0..lanes {
                let number = self.open(stage, plan.servers[server].host, lane);
                self.routes.push((Route { node, lane, epoch: 1 }, number));
            }
        }
    }

    /// Opens a connection at once, without a handshake.
    pub(super) fn open(&self, stage: &mut Stage, to: HostId, lane: u16) -> ConnectionId {
        let number = stage.network.dial(self.host, to, lane, 1);
        let connection = stage.network.connection_mut(number);
        connection.state = ConnectionState::Open;
        connection.served = true;
        number
    }

    pub(super) fn connection(&self, route: Route) -> Option<ConnectionId> {
        self.routes.iter().find(|(known, _)| *known == route).map(|&(_, number)| number)
    }

    pub(super) fn route(&self, number: ConnectionId) -> Option<Route> {
        self.routes.iter().find(|(_, known)| *known == number).map(|&(route, _)| route)
    }

    pub(super) fn forget_route(&mut self, route: Route) -> Option<ConnectionId> {
        let place = self.routes.iter().position(|(known, _)| *known == route)?;
        Some(self.routes.swap_remove(place).1)
    }
}
