//! Clients at work: sections, checks, releases and writes, and stops of their processes.

use super::{Tale, host};
use crate::history::{AttemptId, BasedOn, EventKind, FencingToken, LostReason, WriteId};

impl Tale {
    pub(in crate::oracle::tests) fn sends_write(
        &mut self,
        id: AttemptId,
        based_on: u32,
        token: u64,
    ) -> &mut Self {
        let (write, based_on) = (WriteId(id.client.0.into()), BasedOn::on(based_on));
        let fencing_token = FencingToken(token);
        self.tell(EventKind::WriteSent { attempt: id, write, based_on, fencing_token })
    }

    pub(in crate::oracle::tests) fn write_lands(
        &mut self,
        id: AttemptId,
        (based_on, version): (u32, u32),
        fencing_token: u64,
    ) -> &mut Self {
        let (write, based_on) = (WriteId(id.client.0.into()), BasedOn::on(based_on));
        let fencing_token = FencingToken(fencing_token);
        self.tell(EventKind::WriteApplied { attempt: id, write, based_on, version, fencing_token })
    }

    pub(in crate::oracle::tests) fn enters(&mut self, id: AttemptId) -> &mut Self {
        self.tell(EventKind::SectionEntered { attempt: id })
    }

    pub(in crate::oracle::tests) fn leaves(&mut self, id: AttemptId) -> &mut Self {
        self.tell(EventKind::SectionLeft { attempt: id })
    }

    pub(in crate::oracle::tests) fn checks(&mut self, id: AttemptId, alive: bool) -> &mut Self {
        self.tell(EventKind::Checked { attempt: id, alive })
    }

    pub(in crate::oracle::tests) fn releases(&mut self, id: AttemptId) -> &mut Self {
        self.tell(EventKind::ReleaseCalled { attempt: id })
    }

    /// Its client reports that the keys of `id` are gone.
    pub(in crate::oracle::tests) fn loses(&mut self, id: AttemptId) -> &mut Self {
        self.loses_by(id, LostReason::KeysGone)
    }

    pub(in crate::oracle::tests) fn loses_by(
        &mut self,
        id: AttemptId,
        reason: LostReason,
    ) -> &mut Self {
        self.tell(EventKind::LostDelivered { attempt: id, reason })
    }

    pub(in crate::oracle::tests) fn stops(&mut self, id: AttemptId) -> &mut Self {
        self.tell(EventKind::Stopped { host: host(id), suspended: false })
    }

    pub(in crate::oracle::tests) fn continues(&mut self, id: AttemptId) -> &mut Self {
        self.tell(EventKind::Continued { host: host(id) })
    }

    pub(in crate::oracle::tests) fn kills(&mut self, id: AttemptId) -> &mut Self {
        self.tell(EventKind::Killed { host: host(id), power: false })
    }
}
