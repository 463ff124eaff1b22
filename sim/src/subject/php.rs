//! The PHP class that many articles on this lock show: one blocking call after the other.
//!
//! Everything happens in one thread. The class asks a node, waits for the reply until the socket
//! timeout, and asks the next node. Its clock is the wall clock. A lost connection throws an
//! exception that leaves `lock()` at once: nothing is released. The result of `lock()` is a
//! duration.
//!
//! Here T1 is read before the first attempt connects; the class reads T1 afterwards. The first
//! lease is therefore shorter here, by the time it takes to connect.

mod calls;

use core::time::Duration;
use std::collections::VecDeque;

use lock_judge::history::{AttemptId, ClockKind, Id, LostReason, NodeId, Settlement};
use lock_judge::ids::IdVec;
use redlock_protocol::{NodeIndex, NodeMask, Token};

use self::calls::after;
use super::{
    Action, Delivered, FreshAttempt, Now, Patience, Profile, Reply, ReplyValue, Route, Settings,
};

/// Number of tries in one call of `lock()`; they share a token.
const TRIES: u32 = 3;

/// Bounds of the random wait between tries.
const RETRY_LEAST_MS: u64 = 100;
const RETRY_MOST_MS: u64 = 200;

/// Connect timeout: the third number of each server in the class's examples.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(10);

/// `default_socket_timeout` of PHP, which bounds the wait for a reply.
pub(super) const SOCKET_TIMEOUT: Duration = Duration::from_secs(60);

/// The node that the class asks first.
const FIRST: NodeId = NodeId(0);

/// A task that the class does node after node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    Connect,
    Lock,
    UnlockAfterFailure,
    Unlock,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Due,
    /// Waits for the reply of a node, or for its connection to open.
    Blocked {
        task: Task,
        node: NodeId,
        dials: bool,
        timeout_boot_ns: u64,
    },
    Sleeping {
        until_boot_ns: u64,
    },
    Decided {
        left_ns: u64,
    },
    Held {
        lost: bool,
    },
}

/// The class's connection to one node.
#[derive(Clone, Copy, Debug, Default)]
struct Instance {
    epoch: u32,
    is_open: bool,
}

/// The PHP class and the loop that calls it.
#[derive(Clone, Debug)]
pub struct PhpClient {
    settings: Settings,
    socket_timeout: Duration,
    instances: IdVec<NodeId, Instance>,
    /// Number of instances that the class has: those that connected before the first failed
    /// connect.
    known: usize,
    actions: VecDeque<Action>,
    state: State,
    patience: Patience,
    /// Set if the application wants the lock while the class still unlocks.
    wanted: Option<Patience>,
    tries: u32,
    tries_of_call: u32,
    fresh: FreshAttempt,
    agreed: NodeMask,
    t1_ns: u64,
    deadline_ns: u64,
    look_again_boot_ns: u64,
}

impl PhpClient {
    /// Returns a client of `settings.nodes` nodes that waits for a reply for `socket_timeout`.
    #[must_use]
    pub fn new(settings: Settings, socket_timeout: Duration) -> Self {
        let attempt = AttemptId::default();
        let token = Token::from_bytes([0; Token::LENGTH]);
        Self {
            settings,
            socket_timeout,
            instances: IdVec::filled(settings.nodes, Instance::default()),
            known: 0,
            actions: VecDeque::with_capacity(16),
            state: State::Idle,
            patience: Patience::Attempts(1),
            wanted: None,
            tries: 0,
            tries_of_call: 0,
            fresh: FreshAttempt { attempt, token, jitter: 0 },
            agreed: NodeMask::EMPTY,
            t1_ns: 0,
            deadline_ns: 0,
            look_again_boot_ns: 0,
        }
    }

    /// Resets to the beginning of a run. With `warm`, the class has connected before.
    pub fn reset(&mut self, warm: bool) {
        self.instances.fill(Instance { epoch: u32::from(warm), is_open: warm });
        self.known = if warm { self.settings.nodes } else { 0 };
        self.actions.clear();
        self.state = State::Idle;
        self.wanted = None;
    }

    pub(super) fn profile(&self) -> Profile {
        let nodes = self.settings.nodes;
        let quorum = self.quorum_doubled().div_ceil(2);
        Profile { nodes, lanes: 1, quorum, expires: true, gives_up_drift: true }
    }

    /// Returns twice the class's quorum `min(n, n / 2 + 1)`. The class computes it in floats; the
    /// double is an integer.
    fn quorum_doubled(&self) -> usize {
        let nodes = self.settings.nodes;
        (2 * nodes).min(nodes + 2)
    }

    pub(super) fn acquire(&mut self, patience: Patience) {
        if self.state != State::Idle {
            self.wanted = Some(patience);
            return;
        }
        self.patience = patience;
        self.tries = 0;
        self.tries_of_call = 0;
        self.due();
    }

    pub(super) fn begin(&mut self, fresh: FreshAttempt, now: Now) {
        if self.state != State::Due {
            return;
        }
        let token = if self.tries_of_call == 0 { fresh.token } else { self.fresh.token };
        self.fresh = FreshAttempt { token, ..fresh };
        self.tries += 1;
        self.tries_of_call += 1;
        self.agreed = NodeMask::EMPTY;
        self.t1_ns = now.lease_ns;
        self.go_on(if self.known == 0 { Task::Connect } else { Task::Lock }, FIRST, now);
    }

    pub(super) fn deliver(&mut self, now: Now) -> Option<Delivered> {
        let State::Decided { left_ns } = self.state else { return None };
        self.state = State::Held { lost: false };
        self.deadline_ns = now.lease_ns.saturating_add(left_ns);
        self.look_again_boot_ns = now.boot_ns.saturating_add(left_ns);
        let (attempt, deadline_ns) = (self.fresh.attempt, self.deadline_ns);
        Some(Delivered { attempt, clock: ClockKind::Wall, deadline_ns, fencing_token: None })
    }

    pub(super) fn is_alive(&self, now: Now) -> bool {
        matches!(self.state, State::Held { .. }) && now.lease_ns < self.deadline_ns
    }

    /// Unlocks. A script in the middle of `lock()` ends, and its sockets close.
    pub(super) fn release(&mut self, now: Now) {
        self.wanted = None;
        match self.state {
            State::Held { .. } => return self.go_on(Task::Unlock, FIRST, now),
            State::Blocked { task: Task::Unlock, .. } => {
                self.actions.push_back(Action::GaveUp);
                return;
            }
            State::Blocked { task, node, .. } => {
                self.hang_up(node);
                if task != Task::UnlockAfterFailure {
                    self.settle(Settlement::Cancelled);
                }
            }
            State::Decided { .. } => self.settle(Settlement::Cancelled),
            State::Idle | State::Due | State::Sleeping { .. } => {}
        }
        self.state = State::Idle;
        self.actions.push_back(Action::GaveUp);
    }

    pub(super) fn handle_connected(&mut self, route: Route, now: Now) {
        let State::Blocked { task, node, dials: true, .. } = self.state else { return };
        if !self.is_of(route, node) {
            return;
        }
        self.instances[node].is_open = true;
        if task == Task::Connect {
            self.known = node.index() + 1;
            self.go_on(task, after(node), now);
        } else {
            self.ask(task, node, now);
        }
    }

    pub(super) fn handle_closed(&mut self, route: Route, now: Now) {
        let node = route.node;
        if !self.is_of(route, node) {
            return;
        }
        self.instances[node].is_open = false;
        if let State::Blocked { task, node: awaited, .. } = self.state
            && awaited == node
        {
            self.throw(task, now);
        }
    }

    pub(super) fn handle_reply(&mut self, route: Route, reply: Reply, now: Now) {
        let State::Blocked { task, node, dials: false, .. } = self.state else { return };
        if !self.is_of(route, node) {
            return;
        }
        if task == Task::Lock && reply.value == ReplyValue::Ok {
            self.agreed.insert(NodeIndex::new(node.index()));
        }
        self.go_on(task, after(node), now);
    }

    pub(super) fn handle_timeout(&mut self, now: Now) {
        match self.state {
            State::Blocked { task, node, timeout_boot_ns, .. }
                if timeout_boot_ns <= now.boot_ns =>
            {
                self.hang_up(node);
                self.throw(task, now);
            }
            State::Sleeping { until_boot_ns } if until_boot_ns <= now.boot_ns => {
                self.try_again(now);
            }
            State::Held { lost: false } if self.look_again_boot_ns <= now.boot_ns => {
                let left_ns = self.deadline_ns.saturating_sub(now.lease_ns);
                self.look_again_boot_ns = now.boot_ns + left_ns;
                if left_ns == 0 {
                    self.state = State::Held { lost: true };
                    let (attempt, reason) = (self.fresh.attempt, LostReason::DeadlinePassed);
                    self.actions.push_back(Action::Lost { attempt, reason });
                }
            }
            _ => {}
        }
    }

    pub(super) fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    pub(super) fn poll_timeout_boot_ns(&self) -> Option<u64> {
        match self.state {
            State::Blocked { timeout_boot_ns, .. } => Some(timeout_boot_ns),
            State::Sleeping { until_boot_ns } => Some(until_boot_ns),
            State::Held { lost: false } => Some(self.look_again_boot_ns),
            State::Idle | State::Due | State::Decided { .. } | State::Held { lost: true } => None,
        }
    }
}

#[cfg(test)]
mod tests;
