//! What is known of every attempt, and of its lease if it was granted one.

use super::ground::NEVER;
use super::setting::{CLIENTS_MAX, NODES_MAX};
use crate::history::{AttemptId, ClockKind, KeyEnd, Writer};

/// What the deadline of a lease rests on: the attempt, or the last extension that succeeded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Basis {
    /// T1 in true time.
    pub began_ns: u64,
    /// What the lease's clock read then.
    pub t1_local_ns: u64,
    /// What the lease gives up for drift.
    pub drift_ns: u64,
}

impl Basis {
    pub(super) const NOTHING: Self = Self { began_ns: NEVER, t1_local_ns: 0, drift_ns: 0 };
}

/// One extension.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    /// What the lease will rest on if it succeeds.
    pub basis: Basis,
    /// How long keys live from then on.
    pub ttl_ns: u64,
    /// The number of the first command that can be its own.
    pub(super) first_command: u32,
    /// The nodes that executed its command with success.
    pub(super) executed_on: u16,
    /// Those of them whose answer came before the deadline that it is to move.
    pub(super) confirmed_by: u16,
    /// The repaired nodes as it began: if it succeeds without them they count from then on.
    pub(super) repaired_before: u16,
}

impl Round {
    pub(super) const NONE: Self = Self {
        basis: Basis::NOTHING,
        ttl_ns: 0,
        first_command: u32::MAX,
        executed_on: 0,
        confirmed_by: 0,
        repaired_before: 0,
    };
}

/// One attempt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt {
    /// T1 in true time; [`NEVER`] if it was not told.
    pub began_ns: u64,
    /// The clock that T1 was read from.
    pub clock: ClockKind,
    /// What it read.
    pub t1_local_ns: u64,
    /// How long its keys live.
    pub ttl_ns: u64,
    /// What its lease gives up for drift.
    pub drift_ns: u64,
    /// A majority of the configured nodes.
    pub needed: u32,
    /// Whether a command of it was written before T1 was read.
    pub wrote_early: bool,
    /// The nodes that executed its SET with success.
    pub set_on: u16,
    /// Those of them whose answer it has.
    pub confirmed_by: u16,
    /// The nodes whose votes the client counted, last: for the grant, or for an extension.
    pub counted: u16,
    /// Those that it counted before that, and no longer does.
    pub counted_once: u16,
    /// When it was decided; [`NEVER`] if it was not.
    pub decided_ns: u64,
    /// When the lease is over, as it was decided last.
    pub deadline_local_ns: u64,
    /// Whether the lease was over when that was decided, then or ever before.
    pub over_when_decided: bool,
    /// What that deadline rests on.
    pub basis: Basis,
    /// The extension under way, or the last one.
    pub round: Round,
    /// The nodes whose keys were made after the grant, and do not count yet.
    pub repaired: u16,
    /// When somebody last compared the lease with the clock.
    pub looked_ns: u64,
    /// Whether the client counts no answers any more.
    pub settled: bool,
    /// When it failed, or its lease was released; [`NEVER`] if neither has happened.
    pub finished_ns: u64,
    /// For how long the process had been stopped until T1.
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
    set_on: 0,
    confirmed_by: 0,
    counted: 0,
    counted_once: 0,
    decided_ns: NEVER,
    deadline_local_ns: 0,
    over_when_decided: false,
    basis: Basis::NOTHING,
    round: Round::NONE,
    repaired: 0,
    looked_ns: 0,
    settled: false,
    finished_ns: NEVER,
    stopped_before_ns: 0,
};

/// What an attempt's SET on one node, and its key there, went through.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyLife {
    /// When the SET was written; [`NEVER`] if it was not.
    pub written_ns: u64,
    /// When its answer was taken in; [`NEVER`] if it was not.
    pub answered_ns: u64,
    /// Whether that was an error.
    pub failed: bool,
    /// Writer of the key that made the node refuse the SET.
    pub refused_for: Writer,
    /// When the SET was executed; [`NEVER`] if it was not.
    pub set_ns: u64,
    /// When it was given its expiry last: by the SET, or by what re-timed it.
    pub timed_ns: u64,
    /// What the node's wall clock read then.
    pub timed_wall_ns: u64,
    /// When the key ended; [`NEVER`] if it did not.
    pub ended_ns: u64,
    /// Why, and by whose command.
    pub end: Option<(KeyEnd, Writer)>,
    /// What the lease's clock read then.
    pub ended_local_ns: u64,
    /// How much the node's wall clock had gained on true time by then, since the expiry was given.
    pub node_gained_ns: i64,
}

const UNBORN: KeyLife = KeyLife {
    written_ns: NEVER,
    answered_ns: NEVER,
    failed: false,
    refused_for: Writer::Nobody,
    set_ns: NEVER,
    timed_ns: NEVER,
    timed_wall_ns: 0,
    ended_ns: NEVER,
    end: None,
    ended_local_ns: 0,
    node_gained_ns: 0,
};

/// Every attempt of a run, by client and number.
#[derive(Clone, Debug)]
pub(super) struct Leases {
    nodes: usize,
    /// The probe counted.
    clients: usize,
    attempts: [Vec<Attempt>; CLIENTS_MAX],
    /// `nodes` a piece.
    keys: [Vec<KeyLife>; CLIENTS_MAX],
}

impl Leases {
    pub(super) fn new(nodes: usize, clients: usize) -> Self {
        assert!(nodes <= NODES_MAX, "{nodes} nodes");
        assert!(clients <= CLIENTS_MAX, "{clients} clients");
        let attempts = core::array::from_fn(|_| Vec::with_capacity(16));
        let keys = core::array::from_fn(|_| Vec::with_capacity(16 * nodes));
        Self { nodes, clients, attempts, keys }
    }

    pub(super) fn reset(&mut self) {
        self.attempts.iter_mut().for_each(Vec::clear);
        self.keys.iter_mut().for_each(Vec::clear);
    }

    /// What is known of `id`; `None` if nothing is.
    pub(super) fn get(&self, id: AttemptId) -> Option<&Attempt> {
        self.attempts.get(usize::from(id.client))?.get(place(id)?)
    }

    /// The same, to add to it.
    pub(super) fn get_mut(&mut self, id: AttemptId) -> Option<&mut Attempt> {
        self.attempts.get_mut(usize::from(id.client))?.get_mut(place(id)?)
    }

    /// The key of `id` on `node`.
    pub(super) fn key(&self, id: AttemptId, node: u8) -> Option<&KeyLife> {
        let place = self.key_place(id, node)?;
        self.keys[usize::from(id.client)].get(place)
    }

    /// The same, to add to it.
    pub(super) fn key_mut(&mut self, id: AttemptId, node: u8) -> Option<&mut KeyLife> {
        let place = self.key_place(id, node)?;
        self.keys[usize::from(id.client)].get_mut(place)
    }

    /// What is known of `id`, from now on; `None` if there can be no such attempt.
    pub(super) fn ensure(&mut self, id: AttemptId) -> Option<&mut Attempt> {
        let place = place(id).filter(|_| usize::from(id.client) < self.clients)?;
        let attempts = &mut self.attempts[usize::from(id.client)];
        if place >= attempts.len() {
            attempts.resize(place + 1, BLANK);
            self.keys[usize::from(id.client)].resize((place + 1) * self.nodes, UNBORN);
        }
        Some(&mut attempts[place])
    }

    /// The newest attempt of `client`.
    pub(super) fn newest(&self, client: u8) -> Option<AttemptId> {
        let number = self.attempts.get(usize::from(client))?.len() as u16;
        (number > 0).then_some(AttemptId { client, number })
    }

    /// Whether `id` is the newest attempt of its client.
    pub(super) fn is_newest(&self, id: AttemptId) -> bool {
        let attempts = self.attempts.get(usize::from(id.client));
        attempts.is_some_and(|attempts| attempts.len() == usize::from(id.number))
    }

    /// The earlier one of two attempts by T1, then the other.
    pub(super) fn in_order(&self, one: AttemptId, other: AttemptId) -> (AttemptId, AttemptId) {
        let t1 = |id| (self.get(id).map_or(NEVER, |it| it.began_ns), id);
        if t1(one) <= t1(other) { (one, other) } else { (other, one) }
    }

    fn key_place(&self, id: AttemptId, node: u8) -> Option<usize> {
        let (node, client) = (usize::from(node), usize::from(id.client));
        (node < self.nodes && client < CLIENTS_MAX).then_some(place(id)? * self.nodes + node)
    }
}

fn place(id: AttemptId) -> Option<usize> {
    usize::from(id.number).checked_sub(1)
}
