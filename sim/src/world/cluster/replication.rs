//! Replication state of a server.

use lock_judge::ids::{ConnectionId, ServerId};

use crate::subject::Request;

/// Role of a server in its node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::world) enum Role {
    /// The node's master.
    #[default]
    Master,
    /// A former master that does not know that it was replaced.
    Deposed,
    /// Follows the master.
    Replica,
}

/// Replication state of a server.
#[derive(Clone, Debug, Default)]
pub(in crate::world) struct Replication {
    pub(in crate::world) role: Role,
    /// As a replica: the server that it follows, and the connection to that server.
    follows: ServerId,
    pub(in crate::world) upstream: Option<ConnectionId>,
    /// As a master: the connections to its replicas.
    pub(in crate::world) links: Vec<Link>,
    /// As a master: clients that wait for replicas.
    waits: Vec<Wait>,
    /// Later requests of those clients.
    behind: Vec<(ConnectionId, Request)>,
}

/// A master's connection to a replica.
#[derive(Clone, Copy, Debug)]
pub(in crate::world) struct Link {
    pub(in crate::world) connection: ConnectionId,
    /// Position in the stream up to which this replica was sent data.
    pub(in crate::world) sent: u32,
    pub(in crate::world) acknowledged: u32,
}

/// An unanswered `WAIT`.
#[derive(Clone, Copy, Debug)]
pub(in crate::world) struct Wait {
    pub(in crate::world) serial: u32,
    pub(in crate::world) connection: ConnectionId,
    pub(in crate::world) request: Request,
    /// Position in the stream that the replicas must reach.
    pub(in crate::world) target: u32,
    pub(in crate::world) replicas: u8,
}

impl Replication {
    /// Resets to the beginning of a run.
    pub(in crate::world) fn reset(&mut self, role: Role, follows: ServerId) {
        self.follow(role, follows);
        self.upstream = None;
        self.forget();
    }

    /// Clears the state of a master whose process is gone or that was deposed.
    pub(in crate::world) fn forget(&mut self) {
        self.links.clear();
        self.waits.clear();
        self.behind.clear();
    }

    /// Sets the role, and the server that a replica follows.
    pub(in crate::world) fn follow(&mut self, role: Role, server: ServerId) {
        (self.role, self.follows) = (role, server);
    }

    /// Returns the server that a replica follows.
    pub(in crate::world) fn follows(&self) -> ServerId {
        self.follows
    }

    /// Returns true if requests on this connection must wait behind an earlier `WAIT`.
    pub(in crate::world) fn is_waiting(&self, connection: ConnectionId) -> bool {
        self.waits.iter().any(|wait| wait.connection == connection)
    }

    pub(in crate::world) fn wait_behind(&mut self, connection: ConnectionId, request: Request) {
        self.behind.push((connection, request));
    }

    /// Takes the oldest request that waits behind a `WAIT` that has ended.
    pub(in crate::world) fn take_behind(&mut self, connection: ConnectionId) -> Option<Request> {
        if self.is_waiting(connection) {
            return None;
        }
        let next = self.behind.iter().position(|(whose, _)| *whose == connection)?;
        Some(self.behind.remove(next).1)
    }

    pub(in crate::world) fn begin_wait(&mut self, wait: Wait) {
        self.waits.push(wait);
    }

    /// Takes the `WAIT` with this number, unless it has ended.
    pub(in crate::world) fn take_wait(&mut self, serial: u32) -> Option<Wait> {
        let place = self.waits.iter().position(|wait| wait.serial == serial)?;
        Some(self.waits.remove(place))
    }

    /// Takes a `WAIT` that enough replicas satisfy now.
    pub(in crate::world) fn take_satisfied_wait(&mut self) -> Option<Wait> {
        let place = self
            .waits
            .iter()
            .position(|wait| self.acknowledged(wait.target) >= usize::from(wait.replicas))?;
        Some(self.waits.remove(place))
    }

    /// Returns the number of replicas that have the stream up to `target`.
    pub(in crate::world) fn acknowledged(&self, target: u32) -> usize {
        self.links.iter().filter(|link| link.acknowledged >= target).count()
    }
}
