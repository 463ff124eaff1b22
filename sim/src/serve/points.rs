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

/// Returns true if it is seen that an attempt reaches `step`: requests and replies pass the masters,
/// and workers report that they enter.
pub(super) const fn is_seen(step: AttemptStep) -> bool {
    match step {
        AttemptStep::Enter
        | AttemptStep::Execute
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
        self.reach_each(|point| {
            (point.client, point.step) == (attempt.client, step)
                && point.attempt.is_none_or(|number| number == attempt.number)
                && point.node.is_none_or(|awaited| awaited == node)
        })
    }

    /// Notes that the worker of `client` enters its critical section: it does not wait for faults.
    pub(super) fn enter(&self, client: ClientId) {
        self.reach_each(|point| (point.client, point.step) == (client, AttemptStep::Enter));
    }

    fn reach_each(&self, is_here: impl Fn(&Point) -> bool) -> bool {
        let mut waits = false;
        for Point { fault, .. } in self.points.iter().filter(|it| is_here(it)) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_begins_when_its_worker_enters_for_the_first_time() {
        let (fault, client, step) = (FaultId(0), ClientId(1), AttemptStep::Enter);
        let point = Point { fault, client, attempt: None, step, node: None };
        let points = Points { points: vec![point], ..Points::default() };
        points.enter(ClientId(0));
        assert!(points.lock().asked.is_empty(), "another worker's section");
        points.enter(client);
        points.enter(client);
        assert_eq!(points.lock().asked, [fault]);
    }
}
