//! Pushes of servers whose clients do not speak bytes: that a lock's key has changed, and that
//! all keys are gone. Servers that speak bytes push by themselves.

use lock_judge::history::NodeId;
use lock_judge::ids::{ConnectionId, ResourceId, ServerId};

use super::World;
use super::network::ConnectionState;
use super::packet::Packet;
use crate::subject::{CommandKind, ReplyValue, Request};

impl World {
    /// Notifies every listening client that the server's keys are gone. All registrations end.
    pub(super) fn tell_listeners(&mut self, server: ServerId) {
        if self.wire.is_some() {
            return;
        }
        self.cluster.tracking.forget_readers(server);
        let host = self.plan.servers[server].host;
        for number in self.network.numbers() {
            if self.network.connection(number).server == host && self.hears(number) {
                self.emit(number, server, Packet::Forgot);
            }
        }
    }

    /// Notifies every connection that is registered for the key of `resource` that it has changed,
    /// except the connection that changed it. All registrations for this key end.
    #[inline]
    pub(super) fn tell_readers(
        &mut self,
        server: ServerId,
        resource: ResourceId,
        by: Option<ConnectionId>,
    ) {
        if self.cluster.tracking.has_readers() {
            self.tell_readers_of(server, resource, by);
        }
    }

    fn tell_readers_of(
        &mut self,
        server: ServerId,
        resource: ResourceId,
        by: Option<ConnectionId>,
    ) {
        for number in self.cluster.tracking.take_readers(server, resource) {
            if by != Some(number) && self.hears(number) {
                self.emit(number, server, Packet::Changed(resource));
            }
        }
    }

    /// Makes the master of `node` push a change of the key of `resource` that is none.
    pub(super) fn push_spuriously(&mut self, node: NodeId, resource: ResourceId) {
        let server = self.cluster.master(node);
        if self.can_change_keys(node) {
            self.cluster[server].redis.change_elsewhere(self.plan.key(resource));
            self.tell_readers(server, resource, None);
            self.end_turn(server);
        }
    }

    /// Registers the connection of a look or a read; returns the reply to it.
    pub(super) fn register_look(
        &mut self,
        server: ServerId,
        connection: ConnectionId,
        request: &Request,
        value: ReplyValue,
    ) -> ReplyValue {
        match value {
            ReplyValue::Integer(number)
                if matches!(request.kind, CommandKind::Look | CommandKind::Read)
                    && self.hears(connection) =>
            {
                self.cluster.tracking.register(server, connection, request.resource);
                ReplyValue::Registered(number)
            }
            value => value,
        }
    }

    /// Returns true if the server pushes to the connection.
    fn hears(&self, number: ConnectionId) -> bool {
        let connection = self.network.connection(number);
        let is_open = connection.served && connection.state != ConnectionState::Closed;
        let client = self.plan.scenario.client_on(connection.client);
        let hears = client.is_some_and(|client| self.plan.hears_pushes(client));
        is_open && hears && !self.cluster.tracking.is_deaf(number)
    }
}
