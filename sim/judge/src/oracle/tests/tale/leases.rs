//! Attempts, grants and extensions.

use super::{DRIFT_MS, MS, TTL_MS, Tale, host, node};
use crate::history::{AttemptId, EventKind, FencingToken, NodeIds, RoundId, Settlement};

impl Tale {
    pub(in crate::oracle::tests) fn begins(&mut self, id: AttemptId) -> &mut Self {
        let (clock, t1_local_ns) = (self.clock, self.reads_ns(host(id), self.clock));
        self.began.push((id, clock, t1_local_ns));
        let members = self.scenario.members(id.client).len();
        self.tell(EventKind::AttemptBegan {
            attempt: id,
            clock,
            t1_local_ns,
            ttl_ns: TTL_MS * MS,
            drift_ns: DRIFT_MS * MS,
            needed: (members / 2 + 1) as u8,
        })
    }

    pub(in crate::oracle::tests) fn deadline_ns(&self, id: AttemptId) -> u64 {
        let began = self.began.iter().find(|it| it.0 == id).expect("it began");
        began.2 + (TTL_MS - DRIFT_MS) * MS
    }

    pub(in crate::oracle::tests) fn decides(&mut self, id: AttemptId, counted: &str) -> &mut Self {
        let t2_local_ns = self.reads_ns(host(id), self.clock);
        let deadline_local_ns = self.deadline_ns(id);
        self.tell(EventKind::GrantDecided {
            attempt: id,
            counted: counted.chars().map(node).collect::<NodeIds>(),
            t2_local_ns,
            deadline_local_ns,
        })
        .settles(id, Settlement::Granted)
    }

    pub(in crate::oracle::tests) fn delivers(&mut self, id: AttemptId) -> &mut Self {
        let deadline_local_ns = self.deadline_ns(id);
        self.delivers_until(id, deadline_local_ns, 0)
    }

    pub(in crate::oracle::tests) fn delivers_until(
        &mut self,
        id: AttemptId,
        deadline_local_ns: u64,
        fencing_token: u64,
    ) -> &mut Self {
        let clock = self.clock;
        self.tell(EventKind::GrantDelivered {
            attempt: id,
            clock,
            deadline_local_ns,
            fencing_token: FencingToken(fencing_token),
        })
    }

    pub(in crate::oracle::tests) fn settles(
        &mut self,
        id: AttemptId,
        outcome: Settlement,
    ) -> &mut Self {
        self.tell(EventKind::AttemptSettled { attempt: id, outcome })
    }

    /// Adds a whole acquisition that takes 2 ms: the SETs after 1 ms, the grant after 2 ms.
    pub(in crate::oracle::tests) fn acquires(&mut self, id: AttemptId, nodes: &str) -> &mut Self {
        let t1_ns = self.now_ns;
        self.begins(id).at_ns(t1_ns + MS).sets(id, nodes);
        self.at_ns(t1_ns + 2 * MS).decides(id, nodes).delivers(id)
    }

    /// Adds a report on the keys of the lease.
    pub(in crate::oracle::tests) fn knows(
        &mut self,
        id: AttemptId,
        confirmed: &str,
        possible: &str,
    ) -> &mut Self {
        let [confirmed, possible] =
            [confirmed, possible].map(|nodes| nodes.chars().map(node).collect::<NodeIds>());
        self.tell(EventKind::VotesChanged { attempt: id, confirmed, possible })
    }

    /// Begins an extension now, with the usual TTL.
    pub(in crate::oracle::tests) fn begins_extension(&mut self, id: AttemptId) -> &mut Self {
        let t1_local_ns = self.reads_ns(host(id), self.clock);
        self.rounds.push((id, t1_local_ns));
        self.tell(EventKind::ExtensionBegan {
            attempt: id,
            round: RoundId(1),
            t1_local_ns,
            ttl_ns: TTL_MS * MS,
        })
    }

    /// Returns the new deadline of the last extension of `id`, computed soundly.
    pub(in crate::oracle::tests) fn extended_until_ns(&self, id: AttemptId) -> u64 {
        let round = self.rounds.iter().rev().find(|it| it.0 == id).expect("an extension began");
        round.1 + (TTL_MS - DRIFT_MS) * MS
    }

    /// Adds the decision that the extension succeeds.
    pub(in crate::oracle::tests) fn succeeds(
        &mut self,
        id: AttemptId,
        counted: &str,
        until_ns: u64,
    ) -> &mut Self {
        self.tell(EventKind::ExtensionSettled {
            attempt: id,
            round: RoundId(1),
            extended: true,
            counted: counted.chars().map(node).collect::<NodeIds>(),
            deadline_local_ns: until_ns,
        })
    }

    /// Adds the decision that the extension fails.
    pub(in crate::oracle::tests) fn fails_to_extend(&mut self, id: AttemptId) -> &mut Self {
        self.tell(EventKind::ExtensionSettled {
            attempt: id,
            round: RoundId(1),
            extended: false,
            counted: NodeIds::EMPTY,
            deadline_local_ns: 0,
        })
    }

    /// Adds the notification of the application about the new deadline.
    pub(in crate::oracle::tests) fn prolongs(
        &mut self,
        id: AttemptId,
        deadline_local_ns: u64,
    ) -> &mut Self {
        let clock = self.clock;
        self.tell(EventKind::ExtensionDelivered { attempt: id, clock, deadline_local_ns })
    }

    /// Adds a whole extension that takes 2 ms: executed after 1 ms, decided and delivered after
    /// 2 ms.
    pub(in crate::oracle::tests) fn extends(&mut self, id: AttemptId, nodes: &str) -> &mut Self {
        let t1_ns = self.now_ns;
        self.begins_extension(id).at_ns(t1_ns + MS).retimes(id, id, nodes).at_ns(t1_ns + 2 * MS);
        let until_ns = self.extended_until_ns(id);
        self.succeeds(id, nodes, until_ns).prolongs(id, until_ns)
    }
}
