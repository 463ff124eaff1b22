//! The servers' table of connections that listen, if clients do not speak bytes. A server that
//! speaks bytes keeps this table itself.

use lock_judge::ids::{ConnectionId, ResourceId, ServerId};

/// Connections to which the servers push, or do not.
#[derive(Debug, Default)]
pub(in crate::world) struct Tracking {
    /// Connections that listen, but that their server has forgotten.
    deaf: Vec<ConnectionId>,
    readers: Vec<Reader>,
}

/// A registration: the server pushes the next change of the resource's key to the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reader {
    server: ServerId,
    connection: ConnectionId,
    resource: ResourceId,
}

impl Tracking {
    /// Resets to the beginning of a run.
    pub(super) fn reset(&mut self) {
        self.deaf.clear();
        self.readers.clear();
    }

    /// Notes that the server has forgotten that a client listens on the connection.
    pub(in crate::world) fn deafen(&mut self, connection: ConnectionId) {
        self.deaf.push(connection);
    }

    pub(in crate::world) fn is_deaf(&self, connection: ConnectionId) -> bool {
        self.deaf.contains(&connection)
    }

    /// Registers the connection for a push at the next change of the key of `resource`.
    pub(in crate::world) fn register(
        &mut self,
        server: ServerId,
        connection: ConnectionId,
        resource: ResourceId,
    ) {
        let reader = Reader { server, connection, resource };
        if !self.readers.contains(&reader) {
            self.readers.push(reader);
        }
    }

    /// Returns true if a connection is registered at any server.
    pub(in crate::world) fn has_readers(&self) -> bool {
        !self.readers.is_empty()
    }

    /// Removes the registrations at the server for the key of `resource`, and returns their
    /// connections.
    pub(in crate::world) fn take_readers(
        &mut self,
        server: ServerId,
        resource: ResourceId,
    ) -> Vec<ConnectionId> {
        let is_meant = |it: &Reader| it.server == server && it.resource == resource;
        let taken = self.readers.iter().filter(|it| is_meant(it));
        let taken = taken.map(|it| it.connection).collect();
        self.readers.retain(|it| !is_meant(it));
        taken
    }

    /// Removes all registrations at the server.
    pub(in crate::world) fn forget_readers(&mut self, server: ServerId) {
        self.readers.retain(|it| it.server != server);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registration_is_for_one_key() {
        let (server, connection) = (ServerId(0), ConnectionId(4));
        let [one, other] = [ResourceId(0), ResourceId(1)];
        let mut tracking = Tracking::default();
        tracking.register(server, connection, one);
        tracking.register(server, connection, other);
        assert_eq!(tracking.take_readers(server, one), [connection]);
        assert_eq!(tracking.take_readers(server, one), []);
        tracking.register(ServerId(1), connection, one);
        tracking.forget_readers(server);
        assert_eq!(tracking.take_readers(server, other), []);
        assert_eq!(tracking.take_readers(ServerId(1), one), [connection]);
    }
}
