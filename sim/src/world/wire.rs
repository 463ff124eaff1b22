//! The bytes on connections, if clients speak bytes: requests as they arrive, replies as they
//! leave. The world itself carries packets, one for each request and each reply. A connection loses
//! nothing from its middle, so the next packet stands for the next bytes.

use std::collections::{BTreeMap, VecDeque};

use lock_judge::ids::ConnectionId;
use redis_sim::resp::Requests;
use redis_sim::server::Session;

use crate::subject::Request;

/// The servers' ends of all connections, by number.
#[derive(Debug, Default)]
pub(crate) struct Wire {
    ends: BTreeMap<ConnectionId, End>,
    /// Connections with bytes for their host to carry.
    spoke: Vec<ConnectionId>,
}

/// A server's end of a connection.
#[derive(Debug, Default)]
pub(crate) struct End {
    /// Bytes that the kernel has received and the process has not read.
    pub(crate) requests: Requests,
    pub(super) session: Session,
    /// Replies that wait for the disk, oldest first.
    pub(super) held: VecDeque<Vec<u8>>,
    /// Replies for the host to carry.
    pub(crate) outgoing: Vec<u8>,
    /// Length of each reply that was sent and has not arrived.
    pub(crate) lengths: VecDeque<usize>,
    /// Requests whose form the server rejected; the client sends them again in another form.
    pub(crate) again: VecDeque<Request>,
}

impl Wire {
    /// Takes the connections with bytes for their host to carry.
    pub(crate) fn take_spoken(&mut self) -> Vec<ConnectionId> {
        core::mem::take(&mut self.spoke)
    }

    /// Returns the server's end of a connection.
    pub(crate) fn end(&mut self, connection: ConnectionId) -> &mut End {
        let session = || Session::new(u64::from(connection.0) + 1);
        let end = || End { session: session(), ..End::default() };
        self.ends.entry(connection).or_insert_with(end)
    }

    /// Starts a new session: a new process serves the connection.
    pub(super) fn renew(&mut self, connection: ConnectionId) {
        let end = self.end(connection);
        end.session = Session::new(u64::from(connection.0) + 1);
        end.held.clear();
    }

    /// Sends the next reply of the connection.
    pub(super) fn send(&mut self, connection: ConnectionId) {
        let end = self.end(connection);
        let answer = end.held.pop_front().expect("what is sent has been answered");
        end.lengths.push_back(answer.len());
        end.outgoing.extend_from_slice(&answer);
        self.spoke.push(connection);
    }
}

impl End {
    /// Drops the next request: no process receives it.
    pub(super) fn drop_request(&mut self) {
        let request = self.requests.next_request().expect("clients send requests");
        assert!(request.is_some(), "what has arrived is whole");
    }
}
