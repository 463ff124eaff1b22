//! The messages on the network.

use lock_judge::history::{AttemptId, ClientId};
use lock_judge::ids::ResourceId;

use super::network::Arrival;
use crate::resource::StoreRequest;
use crate::subject::{Reply, Request};

/// Content of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packet {
    Request(Request),
    Reply(Reply),
    /// A replica has applied its master's stream up to the position `to`.
    Acknowledged {
        to: u32,
    },
    /// Notice that the key of this resource has changed.
    Changed(ResourceId),
    /// Notice that the server's keys are gone.
    Forgot,
    /// A part of a master's stream, for a replica.
    Effects {
        from: u32,
        to: u32,
    },
    StoreRequest(StoreRequest),
    /// A write of this client was handled, applied or not.
    StoreServed(ClientId),
    /// Version that a read returned.
    StoreVersion(ClientId, u32),
}

/// Returns the attempt and the kind of command that a message is about; its delay is drawn for
/// these.
pub(super) fn meaning(what: &Arrival<Packet>) -> (AttemptId, u8) {
    match what {
        Arrival::Message(Packet::Request(request)) => (request.attempt, request.kind.op() as u8),
        Arrival::Message(Packet::Reply(reply)) => (reply.attempt, reply.op as u8),
        Arrival::Message(Packet::StoreRequest(StoreRequest::Read { attempt, .. })) => {
            (*attempt, 32)
        }
        Arrival::Message(Packet::StoreRequest(StoreRequest::Write { attempt, .. })) => {
            (*attempt, 33)
        }
        Arrival::Message(Packet::StoreServed(_) | Packet::StoreVersion(..)) => {
            (AttemptId::default(), 34)
        }
        Arrival::Message(Packet::Effects { to, .. } | Packet::Acknowledged { to }) => {
            (AttemptId { number: *to as u16, ..AttemptId::default() }, 37)
        }
        Arrival::Message(Packet::Forgot) => (AttemptId::default(), 38),
        Arrival::Message(Packet::Changed(resource)) => {
            (AttemptId { number: resource.0.into(), ..AttemptId::default() }, 39)
        }
        Arrival::Handshake => (AttemptId::default(), 35),
        Arrival::Closed | Arrival::Reset => (AttemptId::default(), 36),
    }
}
