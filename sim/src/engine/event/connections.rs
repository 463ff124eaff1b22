//! A process's connections: maps each route to a connection of the network.

use lock_judge::history::{Id, NodeId, NodeIds};
use lock_judge::ids::ConnectionId;
use redlock_protocol::{NodeIndex, NodeMask};

use super::process::Process;
use crate::subject::{Profile, Route};
use crate::world::World;

impl Process {
    pub(super) fn open_warm_connections(&mut self, world: &mut World) {
        let Profile { nodes, lanes, .. } = self.subject.profile();
        for node in NodeId::first(nodes) {
            let server = world.cluster.known(self.client, self.member(node));
            if !world.is_open_at_start(server) {
                continue;
            }
            for lane in 0..lanes {
                let number = world.open(self.host, world.plan.servers[server].host, lane);
                self.routes.push((Route { node, lane, epoch: 1 }, number));
            }
        }
    }

    /// Returns the node of the cluster at a place in the client's own list, which is how the subject
    /// knows it.
    #[inline]
    pub(super) fn member(&self, place: NodeId) -> NodeId {
        self.members[place]
    }

    /// Returns the nodes of the cluster at places in the client's own list.
    pub(super) fn members_at(&self, places: NodeMask) -> NodeIds {
        let members = self.members.iter();
        let chosen = members.filter(|(place, _)| places.contains(NodeIndex::new(place.index())));
        chosen.map(|(_, &node)| node).collect()
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
