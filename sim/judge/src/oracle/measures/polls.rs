//! Attempts of clients that poll: they ask again although nothing has changed.
//!
//! For a client that waits, something changes when its acquisition begins; when another client sets,
//! deletes or re-times a key, or any key but its own ends; when a fault, a node or a process begins or
//! ends; when the client counts a node from another instant on; and when an attempt fails for another
//! reason than the one before. An attempt that writes no command costs nobody anything, and does not
//! count.
//!
//! A client of this project to which servers push can sleep until something changes. Its attempts are
//! *in vain* while keys of others and quarantines leave it no majority, its connections to all nodes
//! work, and no node can lose keys without a push. Two reasons to attempt nevertheless are excused: an
//! acquisition that may make a number of attempts, or that does not wait; and clocks that are wrong or
//! are set, because a key that lives for longer than it told looks like a change without a push.

use core::mem;

use crate::history::{ClientId, ClientIds, NodeId, Settlement, Writer};
use crate::ids::PerClient;
use crate::oracle::facts::Facts;
use crate::oracle::measured::Measured;
use crate::scenario::Quantity;

const SECOND_NS: u64 = 1_000_000_000;

/// Attempts of a run so far.
#[derive(Debug)]
pub(super) struct Polls {
    asking: ClientIds,
    of: PerClient<Asking>,
    most: u64,
    most_in_vain: u64,
}

/// An acquisition in progress.
#[derive(Clone, Copy, Debug, Default)]
struct Asking {
    /// Time of the last change.
    since_ns: u64,
    /// Number of whole seconds without a change at the last counted attempt.
    second: u64,
    /// Attempts in that second that have written a command.
    attempts: u64,
    /// Attempts since the last change that have written a command.
    unchanged: u64,
    /// True if the latest attempt has written no command yet.
    unwritten: bool,
    /// Why the last attempt failed.
    failed: Option<Settlement>,
}

impl Asking {
    /// Records a change.
    fn changes(&mut self, now_ns: u64) {
        (self.since_ns, self.second, self.attempts, self.unchanged) = (now_ns, 0, 0, 0);
    }
}

impl Polls {
    pub(super) fn new() -> Self {
        Self {
            asking: ClientIds::EMPTY,
            of: PerClient::filled(Asking::default()),
            most: 0,
            most_in_vain: 0,
        }
    }

    pub(super) fn reset(&mut self) {
        (self.asking, self.most, self.most_in_vain) = (ClientIds::EMPTY, 0, 0);
    }

    /// Records T1 of a judged attempt.
    pub(super) fn began(&mut self, now_ns: u64, client: ClientId) {
        let of = &mut self.of[client];
        if !self.asking.contains(client) {
            *of = Asking { since_ns: now_ns, ..Asking::default() };
            self.asking.insert(client);
        }
        of.unwritten = true;
    }

    /// Records a command by which an attempt may set its key.
    pub(super) fn written(&mut self, facts: &Facts, client: ClientId) {
        if !self.asking.contains(client) || !mem::take(&mut self.of[client].unwritten) {
            return;
        }
        let of = &mut self.of[client];
        of.unchanged += 1;
        if is_in_vain(facts, client, of.since_ns) {
            self.most_in_vain = self.most_in_vain.max(of.unchanged);
        }
        let second = (facts.now_ns - of.since_ns) / SECOND_NS;
        if second != of.second {
            (of.second, of.attempts) = (second, 0);
        }
        of.attempts += 1;
        if second > 0 {
            self.most = self.most.max(of.attempts);
        }
    }

    /// Records the end of an attempt.
    pub(super) fn settled(&mut self, now_ns: u64, client: ClientId, outcome: Settlement) {
        if matches!(outcome, Settlement::Granted | Settlement::Cancelled) {
            self.asking.remove(client);
        } else if self.asking.contains(client) {
            let of = &mut self.of[client];
            if of.failed.replace(outcome) != Some(outcome) {
                of.changes(now_ns);
            }
        }
    }

    /// Records the end of an acquisition without a lease.
    pub(super) fn gave_up(&mut self, client: ClientId) {
        self.asking.remove(client);
    }

    /// Records that `client` counts a node from another instant on.
    pub(super) fn eligible(&mut self, now_ns: u64, client: ClientId) {
        if self.asking.contains(client) {
            self.of[client].changes(now_ns);
        }
    }

    /// Records a change that every client but `by` may react to.
    pub(super) fn changes(&mut self, now_ns: u64, by: Option<ClientId>) {
        for client in self.asking.iter().filter(|client| Some(*client) != by) {
            self.of[client].changes(now_ns);
        }
    }

    pub(super) fn measure(&self, measured: &mut Measured) {
        measured.set(Quantity::PollsInASecond, Some(self.most));
        measured.set(Quantity::AttemptsInVain, Some(self.most_in_vain));
    }
}

/// Returns true if `client` could sleep until a server pushes, if nothing has changed since `since_ns`.
fn is_in_vain(facts: &Facts, client: ClientId, since_ns: u64) -> bool {
    let (setting, members) = (&facts.setting, facts.setting.members(client));
    let may_attempt = setting.counts_attempts(client) || setting.asks_at_once(client);
    let works = |node| facts.connected_since_ns(client, node) <= since_ns;
    let can_vote = |node: &NodeId| {
        let is_free = client_of(facts.keys.writer(*node)).is_none_or(|owner| owner == client);
        is_free && facts.counts(client, *node)
    };
    setting.hears(client)
        && setting.silent.is_empty()
        && setting.steady
        && !may_attempt
        && members.iter().all(works)
        && members.iter().filter(can_vote).count() < facts.majority_of(client)
}

pub(super) fn client_of(writer: Writer) -> Option<ClientId> {
    match writer {
        Writer::Attempt(id) => Some(id.client),
        Writer::Nobody | Writer::Operator => None,
    }
}
