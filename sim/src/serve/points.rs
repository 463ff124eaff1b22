//! Faults that somebody asks for: by name, or because an attempt has reached a step that masters see.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lock_judge::history::{AttemptId, ClientId, FaultId, NodeId};
use lock_judge::scenario::AttemptStep;
use tokio::sync::Notify;

use crate::plan::{Begin, Plan};

/// A step of an attempt that a fault waits for.
#[derive(Clone, Copy, Debug)]
struct Point {
    fault: FaultId,
    client: ClientId,
    attempt: Option<u16>,
    step: AttemptStep,
    node: Option<NodeId>,
}

/// The faults that are asked for, and the points at which they are.
#[derive(Debug, Default)]
pub(super) struct Points {
    points: Vec<Point>,
    /// Number of votes by which an attempt is decided.
    quorum: usize,
    state: Mutex<State>,
    asks: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Faults that are to begin now, in the order of asking.
    asked: VecDeque<FaultId>,
    /// Faults whose points have been reached.
    reached: BTreeSet<FaultId>,
    /// Faults that have begun.
    begun: BTreeSet<FaultId>,
}

/// Returns true if masters see that an attempt reaches `step`: requests and replies pass them.
pub(super) const fn is_seen(step: AttemptStep) -> bool {
    match step {
        AttemptStep::Execute
        | AttemptStep::Reply
        | AttemptStep::T2
        | AttemptStep::ExtendExecute
        | AttemptStep::ExtendReply
        | AttemptStep::ReleaseExecute
        | AttemptStep::ReleaseReply => true,
        AttemptStep::T1
        | AttemptStep::Write
        | AttemptStep::Deliver
        | AttemptStep::Check
        | AttemptStep::Enter
        | AttemptStep::ExtendWrite
        | AttemptStep::ReleaseWrite
        | AttemptStep::StoreWrite
        | AttemptStep::StoreExecute
        | AttemptStep::Every => false,
    }
}

impl Points {
    /// Returns the points of the faults of `plan`.
    pub(super) fn new(plan: &Plan) -> Self {
        let points = plan.faults.values().filter_map(|it| match it.begin {
            Begin::At(_) => None,
            Begin::Before { client, attempt, step, node } => {
                Some(Point { fault: it.id, client, attempt, step, node })
            }
        });
        Self { points: points.collect(), quorum: plan.node_count / 2 + 1, ..Self::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if no fault waits for a step of an attempt.
    pub(super) fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Returns true if a vote is the one by which an attempt is decided that `confirmed` nodes have
    /// voted for.
    pub(super) fn is_decided_by_next(&self, confirmed: usize) -> bool {
        confirmed + 1 == self.quorum
    }

    /// Notes that `attempt` reaches `step`. Returns true if it must wait for a fault that begins now.
    pub(super) fn reach(&self, attempt: AttemptId, step: AttemptStep, node: NodeId) -> bool {
        let is_here = |point: &&Point| {
            (point.client, point.step) == (attempt.client, step)
                && point.attempt.is_none_or(|number| number == attempt.number)
                && point.node.is_none_or(|awaited| awaited == node)
        };
        let mut waits = false;
        for Point { fault, .. } in self.points.iter().filter(is_here) {
            let mut state = self.lock();
            // A fault that waits for any attempt begins at the first.
            let is_first = state.reached.insert(*fault);
            waits |= is_first || !state.begun.contains(fault);
            if is_first {
                state.asked.push_back(*fault);
                self.asks.notify_one();
            }
        }
        waits
    }

    /// Asks for the beginning of a fault.
    pub(super) fn ask(&self, fault: FaultId) {
        self.lock().asked.push_back(fault);
        self.asks.notify_one();
    }

    /// Waits until a fault is to begin now.
    pub(super) async fn asked(&self) -> FaultId {
        loop {
            let fault = self.lock().asked.pop_front();
            if let Some(fault) = fault {
                return fault;
            }
            self.asks.notified().await;
        }
    }

    /// Notes that a fault has begun at all its hosts.
    pub(super) fn begun(&self, fault: FaultId) {
        self.lock().begun.insert(fault);
    }
}
