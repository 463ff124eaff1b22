//! The calls of the class: what it does node after node, and how each call ends.

use lock_judge::history::{Id, NodeId, Settlement};
use lock_judge::ids::ResourceId;

use super::{CONNECT_TIMEOUT, FIRST, PhpClient, RETRY_LEAST_MS, RETRY_MOST_MS, State, TRIES, Task};
use crate::subject::policy::nanos;
use crate::subject::{Action, CommandKind, FreshAttempt, Now, Patience, Route};

impl PhpClient {
    pub(super) fn due(&mut self) {
        self.state = State::Due;
        self.actions.push_back(Action::AttemptDue);
    }

    pub(super) fn is_of(&self, route: Route, node: NodeId) -> bool {
        route.node == node && route.epoch == self.instances[node].epoch
    }

    /// Continues the task at `node`, or with the step after the last node.
    pub(super) fn go_on(&mut self, task: Task, node: NodeId, now: Now) {
        match task {
            Task::Connect if node.index() < self.settings.nodes => self.dial(task, node, now),
            Task::Connect => self.go_on(Task::Lock, FIRST, now),
            _ if node.index() < self.known => self.ask(task, node, now),
            Task::Lock => self.decide(now),
            Task::UnlockAfterFailure => self.sleep(now),
            Task::Unlock => self.finish(),
        }
    }

    fn dial(&mut self, task: Task, node: NodeId, now: Now) {
        self.instances[node].epoch += 1;
        self.actions.push_back(Action::Dial(self.route(node)));
        let timeout_boot_ns = now.boot_ns + nanos(CONNECT_TIMEOUT);
        self.state = State::Blocked { task, node, dials: true, timeout_boot_ns };
    }

    /// Sends the task's command to a node; first reopens a lost connection.
    pub(super) fn ask(&mut self, task: Task, node: NodeId, now: Now) {
        if !self.instances[node].is_open {
            return self.dial(task, node, now);
        }
        let kind = match task {
            Task::Connect | Task::Lock => {
                CommandKind::Set { ttl_ms: Some(self.settings.ttl.as_millis() as u64) }
            }
            Task::Unlock | Task::UnlockAfterFailure => CommandKind::CompareAndDelete,
        };
        let FreshAttempt { attempt, token, .. } = self.fresh;
        let (route, resource) = (self.route(node), ResourceId::default());
        self.actions.push_back(Action::Write { route, attempt, resource, kind, token });
        let timeout_boot_ns = now.boot_ns.saturating_add(nanos(self.socket_timeout));
        self.state = State::Blocked { task, node, dials: false, timeout_boot_ns };
    }

    /// Decides the attempt after every instance has answered; `now` is T2.
    fn decide(&mut self, now: Now) {
        let ttl_ns = nanos(self.settings.ttl);
        let drift_ns = nanos(self.settings.drift.of(self.settings.ttl));
        self.deadline_ns = (self.t1_ns + ttl_ns).saturating_sub(drift_ns);
        let left_ns = self.deadline_ns.saturating_sub(now.lease_ns);
        if 2 * self.agreed.len() >= self.quorum_doubled() && left_ns > 0 {
            self.state = State::Decided { left_ns };
            let (attempt, deadline_ns) = (self.fresh.attempt, self.deadline_ns);
            let counted = self.agreed;
            self.actions.push_back(Action::Decided { attempt, counted, deadline_ns });
            return;
        }
        let slow = 2 * self.agreed.len() >= self.quorum_doubled();
        self.settle(if slow { Settlement::TooSlow } else { Settlement::Taken });
        self.go_on(Task::UnlockAfterFailure, FIRST, now);
    }

    /// Throws an exception: leaves the call and skips its remaining steps.
    pub(super) fn throw(&mut self, task: Task, now: Now) {
        match task {
            Task::Connect | Task::Lock => self.settle(Settlement::TooFewNodes),
            Task::UnlockAfterFailure => {}
            Task::Unlock => return self.finish(),
        }
        self.tries_of_call = TRIES;
        match self.patience {
            Patience::AtOnce | Patience::Attempts(_) => self.give_up(),
            Patience::UntilBoot(_) => self.sleep(now),
        }
    }

    pub(super) fn settle(&mut self, outcome: Settlement) {
        let attempt = self.fresh.attempt;
        self.actions.push_back(Action::AttemptSettled { attempt, outcome });
    }

    fn sleep(&mut self, now: Now) {
        let choices = u128::from(RETRY_MOST_MS - RETRY_LEAST_MS + 1);
        let drawn = (u128::from(self.fresh.jitter) * choices) >> 64;
        let delay_ns = (RETRY_LEAST_MS + drawn as u64) * 1_000_000;
        self.state = State::Sleeping { until_boot_ns: now.boot_ns + delay_ns };
    }

    pub(super) fn try_again(&mut self, now: Now) {
        if self.tries_of_call == TRIES {
            self.tries_of_call = 0;
        }
        let again = self.patience.allows(self.tries, now.boot_ns);
        if again { self.due() } else { self.give_up() }
    }

    fn give_up(&mut self) {
        self.state = State::Idle;
        self.actions.push_back(Action::GaveUp);
    }

    /// Ends `unlock()`, after it returned or threw.
    fn finish(&mut self) {
        self.state = State::Idle;
        if let Some(patience) = self.wanted.take() {
            self.acquire(patience);
        }
    }

    pub(super) fn hang_up(&mut self, node: NodeId) {
        self.instances[node].is_open = false;
        self.actions.push_back(Action::Close(self.route(node)));
    }

    pub(super) fn route(&self, node: NodeId) -> Route {
        Route { node, lane: 0, epoch: self.instances[node].epoch }
    }
}

/// Returns the node that the class asks after `node`.
pub(super) fn after(node: NodeId) -> NodeId {
    NodeId(node.0 + 1)
}
