//! Rare situations that a run can come into. An exploration that never saw one says so: what was
//! never reached was never tested.

use std::collections::BTreeSet;

use lock_judge::history::{
    Answer, AttemptId, Event, EventKind, KeyEnd, NodeId, OpKind, Settlement, Writer,
};

macro_rules! situations {
    ($($(#[doc = $words:literal])+ $name:ident),* $(,)?) => {
        /// A situation that a run of the simulator can come into.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
}

impl Watch {
    fn observe(&mut self, kind: &EventKind) {
        if let Some(situation) = self.situation(kind) {
            self.seen.insert(situation);
        }
    }

    fn situation(&mut self, kind: &EventKind) -> Option<Situation> {
        use Situation as S;
        let when = |is: bool, situation| is.then_some(situation);
        match *kind {
            EventKind::AttemptSettled { attempt, outcome } => {
                self.settled.insert(attempt);
                let was_decided = self.decided.contains(&attempt);
                return match outcome {
                    Settlement::Granted => None,
                    _ if was_decided => Some(S::RefusedAtDelivery),
                    Settlement::Cancelled => Some(S::Cancelled),
                    Settlement::Quarantined => Some(S::Quarantined),
                    Settlement::Split => Some(S::Split),
                    Settlement::Taken => Some(S::Taken),
                    Settlement::TooFewNodes => Some(S::TooFewNodes),
                    Settlement::TooSlow => Some(S::TooSlow),
                };
            }
            EventKind::GrantDecided { attempt, .. } => {
                self.decided.insert(attempt);
                return when(!self.down.is_empty(), S::GrantedWithoutANode);
            }
            EventKind::GrantDelivered { attempt, .. } => {
                self.held.insert(attempt);
            }
            EventKind::ReleaseCalled { attempt } => {
                self.held.remove(&attempt);
            }
            EventKind::LostDelivered { attempt } => {
                self.held.remove(&attempt);
                return Some(S::Lost);
            }
            EventKind::Delivered { op: OpKind::TimeLeft, .. } => return Some(S::TimeLeftAsked),
            EventKind::Delivered { op: OpKind::Look, .. } => return Some(S::Listened),
            EventKind::Delivered { op: OpKind::Read, .. } => return Some(S::Watched),
            EventKind::GaveUp { .. } => return Some(S::GaveUp),
            EventKind::Delivered { answer: Answer::Error, .. } => return Some(S::ErrorReply),
            EventKind::Delivered { attempt, op: OpKind::Set, .. } => {
                return when(self.settled.contains(&attempt), S::LateReply);
            }
            EventKind::Executed { attempt, op: OpKind::Set, changed: true, .. } => {
                return when(self.held.contains(&attempt), S::Repaired);
            }
            EventKind::Executed { attempt, node, op: OpKind::Release, .. } => {
                return when(!self.released.insert((attempt, node)), S::ReleasedTwice);
            }
            EventKind::ExtensionSettled { extended, .. } => {
                return Some(if extended { S::Extended } else { S::ExtensionFailed });
            }
            EventKind::ExtensionRefused { .. } => return Some(S::ExtensionRefused),
            EventKind::NodeDown { node, .. } => {
                self.down.insert(node);
            }
            EventKind::NodeUp { node, .. } => {
                self.down.remove(&node);
            }
            EventKind::Stopped { .. } => return when(!self.held.is_empty(), S::StoppedWithALease),
            EventKind::Killed { .. } => return when(!self.held.is_empty(), S::KilledWithALease),
            EventKind::Eligible { client, .. } => {
                let holds = self.held.iter().any(|attempt| attempt.client == client);
                return when(holds, S::IneligibleWithALease);
            }
            EventKind::KeyEnded { writer: Writer::Attempt(attempt), cause, .. } => {
                let forgot =
                    matches!(cause, KeyEnd::FailedOver | KeyEnd::Flushed | KeyEnd::Restarted);
                return when(forgot && self.held.contains(&attempt), S::ForgottenWithALease);
            }
            EventKind::KeyReturned { .. } => return Some(S::KeyReturned),
            EventKind::FailedOver { .. } => return Some(S::FailedOver),
            EventKind::WriteRejected { .. } => return Some(S::WriteRejected),
            _ => {}
        }
        None
    }
}
