//! Rare situations of a run. An exploration reports those that never occurred, because they were
//! not tested.

use std::collections::{BTreeMap, BTreeSet};

use lock_judge::history::{
    Answer, AttemptId, ClientId, CommandId, Event, EventKind, KeyEnd, NodeId, OpKind, Settlement,
    Writer,
};
use serde::{Deserialize, Serialize};

macro_rules! situations {
    ($($(#[doc = $words:literal])+ $name:ident),* $(,)?) => {
        /// A situation that a run of the simulator can come into.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize,
        )]
        #[serde(rename_all = "kebab-case")]
        pub enum Situation {
            $($(#[doc = $words])+ $name),*
        }

        impl Situation {
            /// All situations.
            pub const ALL: [Self; [$(Self::$name),*].len()] = [$(Self::$name),*];

            /// Returns a description.
            #[must_use]
            pub fn words(self) -> &'static str {
                let words = match self {
                    $(Self::$name => concat!($($words),+)),*
                };
                words.trim()
            }
        }
    };
}

situations! {
    /// a reply arrived after its attempt was settled
    LateReply,
    /// a grant was decided, and refused at its delivery
    RefusedAtDelivery,
    /// an attempt was cancelled
    Cancelled,
    /// an attempt did not ask enough nodes, because other commands were ahead
    Overloaded,
    /// an attempt was refused because of nodes in quarantine
    Quarantined,
    /// the votes were split
    Split,
    /// the lock was taken
    Taken,
    /// too few nodes answered
    TooFewNodes,
    /// an attempt took too long
    TooSlow,
    /// a node was asked how long a key lives
    TimeLeftAsked,
    /// a client that waited for the lock had looked at a key
    Listened,
    /// a lease had read its key
    Watched,
    /// an acquisition ended without a lease
    GaveUp,
    /// a node answered with an error
    ErrorReply,
    /// a lease was granted while a node was down
    GrantedWithoutANode,
    /// a process stopped while it held a lease
    StoppedWithALease,
    /// a process died while it held a lease
    KilledWithALease,
    /// an application was told that its lease is over
    Lost,
    /// an extension failed
    ExtensionFailed,
    /// an extension was refused before it began
    ExtensionRefused,
    /// a lease was extended
    Extended,
    /// a missing key was set again by an extension
    Repaired,
    /// a release was executed twice on one node
    ReleasedTwice,
    /// a node executed a command behind one that the same client wrote later
    Overtaken,
    /// a node forgot a key of a live lease
    ForgottenWithALease,
    /// a node became ineligible while the client held a lease
    IneligibleWithALease,
    /// a key came back
    KeyReturned,
    /// a node was replaced by its replica
    FailedOver,
    /// the resource rejected a write
    WriteRejected,
}

/// Returns the situations in which the run with these events was.
#[must_use]
pub(super) fn seen(events: &[Event]) -> BTreeSet<Situation> {
    let mut watch = Watch::default();
    events.iter().for_each(|event| watch.observe(&event.kind));
    watch.seen
}

#[derive(Default)]
struct Watch {
    seen: BTreeSet<Situation>,
    decided: BTreeSet<AttemptId>,
    settled: BTreeSet<AttemptId>,
    held: BTreeSet<AttemptId>,
    released: BTreeSet<(AttemptId, NodeId)>,
    down: BTreeSet<NodeId>,
    /// The last command written of those of each client that a node has executed.
    executed: BTreeMap<(ClientId, NodeId), CommandId>,
}

impl Watch {
    fn observe(&mut self, kind: &EventKind) {
        if let EventKind::Executed { command, attempt, node, .. } = *kind {
            let last = self.executed.entry((attempt.client, node)).or_insert(command);
            if command < *last {
                self.seen.insert(Situation::Overtaken);
            }
            *last = command.max(*last);
        }
        if let Some(situation) = self.situation(kind) {
            self.seen.insert(situation);
        }
    }

    fn situation(&mut self, kind: &EventKind) -> Option<Situation> {
        use Situation as S;
        match *kind {
            EventKind::AttemptSettled { attempt, outcome } => self.settled(attempt, outcome),
            EventKind::GrantDecided { attempt, .. } => {
                self.decided.insert(attempt);
                when(!self.down.is_empty(), S::GrantedWithoutANode)
            }
            EventKind::GrantDelivered { attempt, .. } => {
                self.held.insert(attempt);
                None
            }
            EventKind::ReleaseCalled { attempt } => {
                self.held.remove(&attempt);
                None
            }
            EventKind::LostDelivered { attempt, .. } => {
                self.held.remove(&attempt);
                Some(S::Lost)
            }
            EventKind::Delivered { op: OpKind::TimeLeft, .. } => Some(S::TimeLeftAsked),
            EventKind::Delivered { op: OpKind::Look, .. } => Some(S::Listened),
            EventKind::Delivered { op: OpKind::Read, .. } => Some(S::Watched),
            EventKind::GaveUp { .. } => Some(S::GaveUp),
            EventKind::Delivered { answer: Answer::Error, .. } => Some(S::ErrorReply),
            EventKind::Delivered { attempt, op: OpKind::Set, .. } => {
                when(self.settled.contains(&attempt), S::LateReply)
            }
            EventKind::Executed { attempt, op: OpKind::Set, changed: true, .. } => {
                when(self.held.contains(&attempt), S::Repaired)
            }
            EventKind::Executed { attempt, node, op: OpKind::Release, .. } => {
                when(!self.released.insert((attempt, node)), S::ReleasedTwice)
            }
            EventKind::ExtensionSettled { extended, .. } => {
                Some(if extended { S::Extended } else { S::ExtensionFailed })
            }
            EventKind::ExtensionRefused { .. } => Some(S::ExtensionRefused),
            EventKind::WriteRejected { .. } => Some(S::WriteRejected),
            _ => self.of_host(kind),
        }
    }

    fn settled(&mut self, attempt: AttemptId, outcome: Settlement) -> Option<Situation> {
        self.settled.insert(attempt);
        let was_decided = self.decided.contains(&attempt);
        match outcome {
            Settlement::Granted => None,
            _ if was_decided => Some(Situation::RefusedAtDelivery),
            Settlement::Cancelled => Some(Situation::Cancelled),
            Settlement::Overloaded => Some(Situation::Overloaded),
            Settlement::Quarantined => Some(Situation::Quarantined),
            Settlement::Split => Some(Situation::Split),
            Settlement::Taken => Some(Situation::Taken),
            Settlement::TooFewNodes => Some(Situation::TooFewNodes),
            Settlement::TooSlow => Some(Situation::TooSlow),
        }
    }

    fn of_host(&mut self, kind: &EventKind) -> Option<Situation> {
        use Situation as S;
        match *kind {
            EventKind::NodeDown { node, .. } => {
                self.down.insert(node);
                None
            }
            EventKind::NodeUp { node, .. } => {
                self.down.remove(&node);
                None
            }
            EventKind::Stopped { .. } => when(!self.held.is_empty(), S::StoppedWithALease),
            EventKind::Killed { .. } => when(!self.held.is_empty(), S::KilledWithALease),
            EventKind::Eligible { client, .. } => {
                let holds = self.held.iter().any(|attempt| attempt.client == client);
                when(holds, S::IneligibleWithALease)
            }
            EventKind::KeyEnded { writer: Writer::Attempt(attempt), cause, .. } => {
                let forgot =
                    matches!(cause, KeyEnd::FailedOver | KeyEnd::Flushed | KeyEnd::Restarted);
                when(forgot && self.held.contains(&attempt), S::ForgottenWithALease)
            }
            EventKind::KeyReturned { .. } => Some(S::KeyReturned),
            EventKind::FailedOver { .. } => Some(S::FailedOver),
            _ => None,
        }
    }
}

fn when(is: bool, situation: Situation) -> Option<Situation> {
    is.then_some(situation)
}
