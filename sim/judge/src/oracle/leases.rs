//! Facts about every attempt, and about its lease if it was granted.

use super::ground::{MS_NS, NEVER, exceeds, since};
use crate::history::{
    AttemptId, ClientId, ClockKind, CommandId, HostId, Id, KeyEnd, NodeId, NodeIds, Writer,
};
use crate::ids::PerClient;

/// Basis of a lease's deadline: the attempt, or the last extension that succeeded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Basis {
    /// T1 in true time.
    pub began_ns: u64,
    /// Reading of the lease's clock at T1.
    pub t1_local_ns: u64,
    /// Drift that the lease allows for.
    pub drift_ns: u64,
}

impl Basis {
    pub(super) const NOTHING: Self = Self { began_ns: NEVER, t1_local_ns: 0, drift_ns: 0 };
}

/// One round of an extension.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    /// Basis of the lease if the round succeeds.
    pub basis: Basis,
    /// TTL of the keys after the round.
    pub ttl_ns: u64,
    /// The first command that can belong to the round.
    pub(super) first_command: CommandId,
    /// True if the client has decided about the round.
    pub(super) settled: bool,
    /// Nodes that executed a command of the round with success.
    pub(super) executed_on: NodeIds,
    /// Those of the nodes whose answers the client received before the old deadline.
    pub(super) confirmed_by: NodeIds,
    /// Time for which the process had run when the last of these answers came.
    pub(super) confirmed_ran_ns: u64,
    /// Nodes with repaired keys when the round began. If the round succeeds without these nodes,
    /// they count from then on.
    pub(super) repaired_before: NodeIds,
    /// Those of them whose keys the client knew of.
    pub(super) known_before: NodeIds,
}

impl Round {
    pub(super) const NONE: Self = Self {
        basis: Basis::NOTHING,
        ttl_ns: 0,
        first_command: CommandId(u32::MAX),
        settled: true,
        executed_on: NodeIds::EMPTY,
        confirmed_by: NodeIds::EMPTY,
        confirmed_ran_ns: 0,
        repaired_before: NodeIds::EMPTY,
        known_before: NodeIds::EMPTY,
    };
}

/// Facts about one attempt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt {
    /// T1 in true time; [`NEVER`] if it was not reported.
    pub began_ns: u64,
    /// Clock from which T1 was read.
    pub clock: ClockKind,
    /// Reading of that clock at T1.
    pub t1_local_ns: u64,
    /// TTL of the attempt's keys.
    pub ttl_ns: u64,
    /// Drift that the lease allows for.
    pub drift_ns: u64,
    /// A majority of the configured nodes.
    pub needed: u32,
    /// True if a command of the attempt was written before T1 was read.
    pub wrote_early: bool,
    /// Nodes that executed the attempt's SET with success.
    pub set_on: NodeIds,
    /// Those of the nodes whose answers the client received.
    pub confirmed_by: NodeIds,
    /// Those of the nodes that were not in quarantine at T1, as far as the client knew at some time
    /// since the answer.
    pub eligible_since_answer: NodeIds,
    /// Those of these nodes whose quarantine could not be over at T1 by a clock within the drift.
    pub eligible_early: NodeIds,
    /// Nodes whose votes the client counted for the grant.
    pub granted_by: NodeIds,
    /// Nodes whose votes the client counted last, for the grant or for an extension.
    pub counted: NodeIds,
    /// Nodes whose votes the client counted earlier, but not last.
    pub counted_once: NodeIds,
    /// Time at which the client decided that the attempt is granted; [`NEVER`] if it did not.
    pub decided_ns: u64,
    /// Deadline of the lease, as decided last.
    pub deadline_local_ns: u64,
    /// True if, at any decision so far, the lease was already over when it was decided.
    pub over_when_decided: bool,
    /// Basis of the deadline.
    pub basis: Basis,
    /// The extension under way, or the last one.
    pub round: Round,
    /// Time at which the last extension failed before the deadline; [`NEVER`] if none has failed since
    /// the last success.
    pub failed_ns: u64,
    /// Nodes whose keys were set again after the grant and do not count yet.
    pub repaired: NodeIds,
    /// Time at which the application received the lease; [`NEVER`] if it did not.
    pub delivered_ns: u64,
    /// Total time for which the process may have run at a use of the lease that is excused by the
    /// stop during which the lease ended; `None` if it ended during none.
    pub excused_ns: Option<u64>,
    /// Time at which the lease was last compared with the clock.
    pub checked_ns: u64,
    /// True if the client has stopped counting answers.
    pub settled: bool,
    /// Time at which the attempt failed or its lease was released; [`NEVER`] if neither has
    /// happened.
    pub finished_ns: u64,
    /// Total time for which the process had been stopped before T1.
    pub stopped_before_ns: u64,
}

const BLANK: Attempt = Attempt {
    began_ns: NEVER,
    clock: ClockKind::Boot,
    t1_local_ns: 0,
    ttl_ns: 0,
    drift_ns: 0,
    needed: 0,
    wrote_early: false,
    set_on: NodeIds::EMPTY,
    confirmed_by: NodeIds::EMPTY,
    eligible_since_answer: NodeIds::EMPTY,
    eligible_early: NodeIds::EMPTY,
    granted_by: NodeIds::EMPTY,
    counted: NodeIds::EMPTY,
    counted_once: NodeIds::EMPTY,
    decided_ns: NEVER,
    deadline_local_ns: 0,
    over_when_decided: false,
    basis: Basis::NOTHING,
    round: Round::NONE,
    failed_ns: NEVER,
    repaired: NodeIds::EMPTY,
    delivered_ns: NEVER,
    excused_ns: None,
    checked_ns: 0,
    settled: false,
    finished_ns: NEVER,
    stopped_before_ns: 0,
};

/// History of an attempt's SET on one node, and of its key there.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyLife {
    /// Time at which the SET was written; [`NEVER`] if it was not.
    pub written_ns: u64,
    /// Time at which the client received the answer; [`NEVER`] if it did not.
    pub answered_ns: u64,
    /// True if the answer was an error.
    pub failed: bool,
    /// Writers of the keys that first and last made the node refuse the SET: it receives a SET for
    /// each of its names.
    pub refused_for: [Writer; 2],
    /// Time at which the first release was executed; [`NEVER`] if none was.
    pub released_ns: u64,
    /// True if another release was executed a node timeout or more after the first.
    pub released_again: bool,
    /// True if the SET was executed behind a second release, a node timeout or more after the first.
    pub overtaken: bool,
    /// Time at which the SET was executed; [`NEVER`] if it was not.
    pub set_ns: u64,
    /// Time of the extension since which the key counts, if it was set again after the grant: the
    /// extension succeeded without it, and began when the client knew of the key. [`NEVER`] if there was
    /// none.
    pub regained_ns: u64,
    /// Time at which the key last received its expiry, by the SET or by a command that re-timed it.
    pub timed_ns: u64,
    /// Reading of the node's wall clock at `timed_ns`.
    pub timed_wall_ns: u64,
    /// True if a command re-timed the key after its lease was finished, when the key was there only
    /// because the node's clock had lost time.
    pub outlived: bool,
    /// Time at which the key ended; [`NEVER`] if it did not.
    pub ended_ns: u64,
    /// Time at which the key last ended, also after it had returned; [`NEVER`] if it did not.
    pub gone_ns: u64,
    /// Host on which it did, if its clock had then lost more time than the drift of the lease since
    /// the key was timed.
    pub outlived_on: Option<HostId>,
    /// Expiry that the key last received, on the node's wall clock; [`NEVER`] if it has none.
    pub promised_wall_ms: u64,
    /// Expiry of the key when it ended: an earlier one if the node had forgotten the last.
    pub expiry_wall_ms: u64,
    /// Cause of the key's end, and the sender of the command that ended it.
    pub end: Option<(KeyEnd, Writer)>,
    /// Host that was the node's master when the key ended.
    pub ended_on: HostId,
    /// Reading of the lease's clock when the key ended.
    pub ended_local_ns: u64,
    /// Time that the node's wall clock gained on true time between `timed_ns` and the key's end; not
    /// more than 0 if this did not shorten the key's life.
    pub node_gained_ns: i64,
    /// Time that the node's wall clock had lost since `timed_ns` when an extension last found that the
    /// key lives long enough: regained, it takes from the life that the extension promised.
    pub regainable_ns: i64,
}

impl KeyLife {
    /// Returns true if by `at_ns` the key has lived, in true time, for as long as its last expiry
    /// promised.
    pub(super) fn has_lived(&self, at_ns: u64) -> bool {
        let promised_ns =
            self.expiry_wall_ms.saturating_mul(MS_NS).saturating_sub(self.timed_wall_ns);
        at_ns.saturating_sub(self.timed_ns) >= promised_ns
    }

    /// Returns the time that the node's wall clock, which reads `wall_ns` at `at_ns`, has gained on
    /// true time since the key was timed: not more than 0 if this did not shorten the key's life.
    pub(super) fn node_gained_ns(&self, (at_ns, wall_ns): (u64, u64)) -> i64 {
        let lived_ns = since(self.timed_ns, at_ns);
        let gained_ns = since(self.timed_wall_ns, wall_ns).saturating_sub(lived_ns);
        if self.has_lived(at_ns) { gained_ns.min(0) } else { gained_ns }
    }

    /// Returns true if the node's wall clock, at `now` (true time and its reading), has lost more than
    /// the drift of the lease since the key was timed.
    pub(super) fn outlives(&self, attempt: &Attempt, now: (u64, u64)) -> bool {
        exceeds(self.node_gained_ns(now).saturating_neg(), attempt.drift_ns)
    }

    /// Records that the node refused the SET for a key of `writer`.
    pub(super) fn refused(&mut self, writer: Writer) {
        let [first, last] = &mut self.refused_for;
        if *first == Writer::Nobody {
            *first = writer;
        }
        *last = writer;
    }
}

const UNBORN: KeyLife = KeyLife {
    written_ns: NEVER,
    answered_ns: NEVER,
    failed: false,
    refused_for: [Writer::Nobody; 2],
    released_ns: NEVER,
    released_again: false,
    overtaken: false,
    set_ns: NEVER,
    regained_ns: NEVER,
    timed_ns: NEVER,
    timed_wall_ns: 0,
    outlived: false,
    ended_ns: NEVER,
    gone_ns: NEVER,
    outlived_on: None,
    promised_wall_ms: NEVER,
    expiry_wall_ms: NEVER,
    end: None,
    ended_on: HostId(0),
    ended_local_ns: 0,
    node_gained_ns: 0,
    regainable_ns: 0,
};

/// Every attempt of a run, by client and number.
#[derive(Clone, Debug)]
pub(super) struct Leases {
    nodes: usize,
    /// Number of clients, with the probes.
    clients: usize,
    attempts: PerClient<Vec<Attempt>>,
    /// `nodes` entries for each attempt.
    keys: PerClient<Vec<KeyLife>>,
}

impl Leases {
    pub(super) fn new(nodes: usize, clients: usize) -> Self {
        let expected = |client: ClientId| if client.index() < clients { 16 } else { 0 };
        let attempts = PerClient::from_fn(|client| Vec::with_capacity(expected(client)));
        let keys = PerClient::from_fn(|client| Vec::with_capacity(expected(client) * nodes));
        Self { nodes, clients, attempts, keys }
    }

    pub(super) fn reset(&mut self) {
        self.attempts.first_mut(self.clients).iter_mut().for_each(Vec::clear);
        self.keys.first_mut(self.clients).iter_mut().for_each(Vec::clear);
    }

    /// Returns the facts about `id`; `None` if there are none.
    pub(super) fn get(&self, id: AttemptId) -> Option<&Attempt> {
        self.attempts.get(id.client)?.get(place(id)?)
    }

    /// Returns the facts about `id` for an update; `None` if there are none.
    pub(super) fn get_mut(&mut self, id: AttemptId) -> Option<&mut Attempt> {
        self.attempts.get_mut(id.client)?.get_mut(place(id)?)
    }

    /// Returns the key of `id` on `node`.
    pub(super) fn key(&self, id: AttemptId, node: NodeId) -> Option<&KeyLife> {
        let place = self.key_place(id, node)?;
        self.keys.get(id.client)?.get(place)
    }

    /// Returns the key of `id` on `node` for an update.
    pub(super) fn key_mut(&mut self, id: AttemptId, node: NodeId) -> Option<&mut KeyLife> {
        let place = self.key_place(id, node)?;
        self.keys.get_mut(id.client)?.get_mut(place)
    }

    /// Returns the facts about `id`, created if necessary; `None` if there can be no such attempt.
    pub(super) fn ensure(&mut self, id: AttemptId) -> Option<&mut Attempt> {
        let place = place(id).filter(|_| id.client.index() < self.clients)?;
        let attempts = &mut self.attempts[id.client];
        if place >= attempts.len() {
            attempts.resize(place + 1, BLANK);
            self.keys[id.client].resize((place + 1) * self.nodes, UNBORN);
        }
        Some(&mut attempts[place])
    }

    /// Returns the attempts of `client`, in the order of their numbers.
    pub(super) fn of_client(&self, client: ClientId) -> impl Iterator<Item = AttemptId> + use<> {
        let newest = self.newest(client).map_or(0, |it| it.number);
        (1..=newest).map(move |number| AttemptId { client, number })
    }

    /// Returns the newest attempt of `client`.
    pub(super) fn newest(&self, client: ClientId) -> Option<AttemptId> {
        let number = self.attempts.get(client)?.len() as u16;
        (number > 0).then_some(AttemptId { client, number })
    }

    /// Returns true if `id` is the newest attempt of its client.
    pub(super) fn is_newest(&self, id: AttemptId) -> bool {
        let attempts = self.attempts.get(id.client);
        attempts.is_some_and(|attempts| attempts.len() == usize::from(id.number))
    }

    /// Returns two attempts in the order of T1.
    pub(super) fn in_order(&self, one: AttemptId, other: AttemptId) -> (AttemptId, AttemptId) {
        let t1 = |id| (self.get(id).map_or(NEVER, |it| it.began_ns), id);
        if t1(one) <= t1(other) { (one, other) } else { (other, one) }
    }

    fn key_place(&self, id: AttemptId, node: NodeId) -> Option<usize> {
        let node = node.index();
        (node < self.nodes).then_some(place(id)? * self.nodes + node)
    }
}

fn place(id: AttemptId) -> Option<usize> {
    usize::from(id.number).checked_sub(1)
}
