//! The delays that faults add to messages.

use lock_judge::history::{HostId, OpKind};
use lock_judge::scenario::Message;

use super::network::Arrival;
use super::packet::Packet;
use crate::plan::FaultEffect;
use crate::resource::StoreRequest;

/// The faults that delay messages now.
#[derive(Debug, Default)]
pub(super) struct AddedDelays(Vec<FaultEffect>);

impl AddedDelays {
    /// Resets to the beginning of a run.
    pub(super) fn reset(&mut self) {
        self.0.clear();
    }

    pub(super) fn begin(&mut self, effect: FaultEffect) {
        self.0.push(effect);
    }

    /// Ends a delay.
    ///
    /// # Panics
    ///
    /// If the delay has not begun.
    pub(super) fn end(&mut self, effect: FaultEffect) {
        let place = self.0.iter().position(|&active| active == effect);
        self.0.swap_remove(place.expect("a delay ends once"));
    }

    /// Returns the time that is added to the way of `what`.
    #[inline]
    pub(super) fn added_ns(&self, from: HostId, to: HostId, what: &Arrival<Packet>) -> u64 {
        self.0.iter().map(|effect| added_ns(effect, from, to, what)).sum()
    }
}

fn added_ns(effect: &FaultEffect, from: HostId, to: HostId, what: &Arrival<Packet>) -> u64 {
    let FaultEffect::Delay { from: senders, to: receivers, by_ns, only } = *effect else {
        return 0;
    };
    if !senders.contains(from) || !receivers.contains(to) {
        return 0;
    }
    let is_concerned = match (only, what) {
        (None, _) => true,
        (Some(Message::Answer), Arrival::Message(Packet::Reply(_))) => true,
        (Some(Message::Extend), Arrival::Message(Packet::Request(request))) => {
            request.kind.op() == OpKind::Extend
        }
        (Some(Message::Release), Arrival::Message(Packet::Request(request))) => {
            matches!(request.kind.op(), OpKind::Release | OpKind::Delete)
        }
        (Some(Message::Set), Arrival::Message(Packet::Request(request))) => {
            request.kind.op() == OpKind::Set
        }
        (Some(Message::Write), Arrival::Message(Packet::StoreRequest(request))) => {
            matches!(request, StoreRequest::Write { .. })
        }
        _ => false,
    };
    if is_concerned { by_ns } else { 0 }
}
