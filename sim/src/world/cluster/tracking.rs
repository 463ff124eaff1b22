//! The servers' table of connections that listen, if clients do not speak bytes. A server that
//! speaks bytes keeps this table itself.

use lock_judge::ids::{ConnectionId, ServerId};

/// Connections to which the servers push, or do not.
#[derive(Debug, Default)]
pub(in crate::world) struct Tracking {
    /// Connections that listen, but that their server has forgotten.
    deaf: Vec<ConnectionId>,
    /// Registrations: connections to which a server pushes the next change of the lock's key.
    readers: Vec<(ServerId, ConnectionId)>,
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

    /// Registers the connection for a push at the next change of the lock's key.
    pub(in crate::world) fn register(&mut self, server: ServerId, connection: ConnectionId) {
        if !self.readers.contains(&(server, connection)) {
            self.readers.push((server, connection));
        }
    }

    /// Returns true if a connection is registered at any server.
    pub(in crate::world) fn has_readers(&self) -> bool {
        !self.readers.is_empty()
    }

    /// Removes all registrations at the server, and returns their connections.
    pub(in crate::world) fn take_readers(&mut self, server: ServerId) -> Vec<ConnectionId> {
        let of_server = self.readers.iter().filter(|&&(of, _)| of == server);
        let taken = of_server.map(|&(_, connection)| connection).collect();
        self.readers.retain(|&(of, _)| of != server);
        taken
    }
}
