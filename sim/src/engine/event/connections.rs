//! A process's connections: maps each route to a connection of the network.

use super::process::Process;
use crate::engine::stage::Stage;
use crate::engine::stage::plan::Plan;
use crate::subject::{Profile, Route};
use crate::world::ConnectionState;

impl Process {
    pub(super) fn open_warm_connections(&mut self, plan: &Plan, stage: &mut Stage) {
        let Profile { nodes, lanes, .. } = self.subject.profile();
        for node in 0..nodes as u8 {
            let server = stage.server_of(plan, self.place, node);
            if !stage.is_open_at_start(server) {
                continue;
            }
            for lane in 0..lanes {
                let host = plan.nodes[usize::from(server)].host.0;
                let number = self.open_on(stage, host, lane);
                self.routes.push((Route { node, lane, epoch: 1 }, number));
            }
        }
    }

    pub(super) fn open(&self, stage: &mut Stage, server: u8) -> u16 {
        self.open_on(stage, server, 0)
    }

    /// Opens a connection at once, without a handshake.
    pub(super) fn open_on(&self, stage: &mut Stage, server: u8, lane: u16) -> u16 {
        let number = stage.network.dial(self.host.0, server, lane, 1);
        let connection = stage.network.connection_mut(number);
        connection.state = ConnectionState::Open;
        connection.served = true;
        number
    }

    pub(super) fn connection(&self, route: Route) -> Option<u16> {
        self.routes.iter().find(|(known, _)| *known == route).map(|&(_, number)| number)
    }

    pub(super) fn route(&self, number: u16) -> Option<Route> {
        self.routes.iter().find(|(_, known)| *known == number).map(|&(route, _)| route)
    }

    pub(super) fn forget_route(&mut self, route: Route) -> Option<u16> {
        let place = self.routes.iter().position(|(known, _)| *known == route)?;
        Some(self.routes.swap_remove(place).1)
    }
}
