//! A client process: a lock client, and the applications that use the lock client, one for each task.
//!
//! A process runs in small pieces. Before each piece, the faults that wait for it begin. If one of
//! them stops the process, the piece runs when the process resumes.

mod actions;
mod inputs;

use lock_judge::history::{AttemptId, BasedOn, ClientId, FencingToken, HostId, NodeId};
use lock_judge::ids::{ConnectionId, IdVec, PerNode};
use lock_judge::scenario::{AttemptStep, Span};
use redlock_protocol::Votes;

use crate::plan::{Plan, PlannedOp, Script};
use crate::subject::{Action, Now, Route, Subject};
use crate::world::World;

/// The event that the application waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    ForExtension,
    ForLease {
        cancel_at_true_ns: Option<u64>,
    },
    ForLoss,
    ForVersion,
    /// A write is under way; the wait ends early if the application learns that the lease is over.
    ForWrite,
    Nothing,
    UntilBoot(u64),
    UntilBootOrLoss(u64),
    UntilTrue(u64),
}

/// The lease that the application holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) attempt: AttemptId,
    pub(super) fencing_token: FencingToken,
    pub(super) lost: bool,
    pub(super) seen: BasedOn,
    pub(super) in_section: bool,
}

/// One client process.
#[derive(Debug)]
pub(super) struct Process {
    /// The first task; the rest of the world knows the process by it.
    pub(super) client: ClientId,
    pub(super) host: HostId,
    pub(super) subject: Subject,
    /// Nodes of the cluster, in the order of the client's own list.
    pub(super) members: IdVec<NodeId, NodeId>,
    /// The tasks that use the subject; a task's place is its number for the subject.
    pub(super) tasks: Vec<Task>,
    quorum: usize,
    /// The action before which a fault stopped the process, and its task.
    action: Option<(usize, Action)>,
    pub(super) routes: Vec<(Route, ConnectionId)>,
    pub(super) store: ConnectionId,
    timer_serial: u32,
    timer_at_ns: u64,
    /// Time at which the subject next needs a timeout, as of the end of the latest call of `run`.
    subject_due_boot_ns: Option<u64>,
    eligible_from_ns: IdVec<NodeId, u64>,
    /// True if the subject has had no input that can lead to an action since it last had no action
    /// left.
    is_drained: bool,
}

/// One task of a process: an application, and its use of the lock.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) client: ClientId,
    pub(super) script: Script,
    pub(super) waiting: Waiting,
    attempts: u16,
    /// TTL of the present acquisition; `None` for the client's.
    pub(super) wanted_ttl: Option<Span>,
    /// Number of OK replies to the current attempt that the process has read, if faults wait for
    /// points.
    votes: usize,
    pub(super) to_deliver: Option<AttemptId>,
    /// The new deadline of the extended lease, which the application has not yet learnt.
    pub(super) to_prolong: Option<(AttemptId, u64)>,
    /// Number of extensions of the lease.
    pub(super) rounds: u16,
    /// Drawn when the grant is decided, so that tokens have the order of grants.
    drawn_token: FencingToken,
    pub(super) held: Option<Held>,
    /// Votes for the lease that were recorded last.
    known_votes: Votes,
    pub(super) done: bool,
    got_lease: bool,
}

impl Task {
    fn new((client, ops): (ClientId, Vec<PlannedOp>)) -> Self {
        Self {
            client,
            script: Script::new(ops),
            waiting: Waiting::Nothing,
            attempts: 0,
            wanted_ttl: None,
            votes: 0,
            to_deliver: None,
            to_prolong: None,
            rounds: 0,
            drawn_token: FencingToken::NONE,
            held: None,
            known_votes: Votes::default(),
            done: false,
            got_lease: false,
        }
    }

    /// Returns true if the application awaits a lease or a new deadline that is there.
    fn has_news(&self) -> bool {
        self.to_deliver.is_some() || self.to_prolong.is_some()
    }

    /// Resets to the beginning of a run.
    fn reset(&mut self) {
        self.script.restart();
        self.waiting = Waiting::Nothing;
        self.attempts = 0;
        self.wanted_ttl = None;
        self.to_deliver = None;
        self.to_prolong = None;
        self.held = None;
        self.done = self.script.is_empty();
        self.got_lease = false;
    }
}

/// Most steps of a process at one instant.
const STEPS_MAX: u32 = 1 << 20;

impl Process {
    /// Returns the process of `client`, with the operations of each of its tasks.
    pub(super) fn new(
        plan: &Plan,
        client: ClientId,
        tasks: Vec<(ClientId, Vec<PlannedOp>)>,
    ) -> Self {
        let subject = plan.subject(client);
        let quorum = subject.profile().quorum;
        Self {
            client,
            host: plan.client_host(client),
            subject,
            members: plan.members(client).to_vec().into(),
            tasks: tasks.into_iter().map(Task::new).collect(),
            quorum,
            action: None,
            routes: Vec::with_capacity(32),
            store: ConnectionId::default(),
            timer_serial: 0,
            timer_at_ns: u64::MAX,
            subject_due_boot_ns: None,
            eligible_from_ns: IdVec::new(),
            is_drained: false,
        }
    }

    /// Resets to the beginning of a run; with `warm`, the connections to running nodes are open.
    pub(super) fn reset(&mut self, world: &mut World, warm: bool) {
        self.tasks.iter_mut().for_each(Task::reset);
        self.action = None;
        self.routes.clear();
        self.timer_serial = 0;
        self.timer_at_ns = u64::MAX;
        self.is_drained = false;
        let now = self.now(world);
        match &mut self.subject {
            Subject::GetSet(it) => it.reset(warm),
            Subject::Php(it) => it.reset(warm),
            Subject::Policy(it) => it.reset(warm),
            Subject::Redlock(it) if !warm => it.reset(now, None),
            Subject::Redlock(it) => {
                let introductions = PerNode::from_fn(|node| {
                    let server = world.cluster.known(self.client, *self.members.get(node)?);
                    let is_open = world.is_open_at_start(server);
                    is_open.then(|| world.introduction(server))?
                });
                it.reset(now, Some(&introductions));
            }
        }
        self.store = world.open(self.host, world.plan.scenario.store_host(), 0);
        if warm {
            self.open_warm_connections(world);
        }
        self.eligible_from_ns.clear();
        if matches!(self.subject, Subject::Redlock(_)) {
            self.eligible_from_ns.resize(self.members.len(), 0);
            self.tell_eligibility(world);
        }
    }

    /// Takes all steps that are possible now, and sets the timer for the rest.
    ///
    /// # Panics
    ///
    /// If the steps have no end: the client is wrong, and no run of it would end.
    pub(super) fn run(&mut self, world: &mut World) {
        let mut steps = 0;
        while self.step(world) {
            steps += 1;
            assert!(steps < STEPS_MAX, "a client takes step after step at one instant");
        }
        if world.clients.is_dead(self.client) {
            self.end();
        } else if world.clients.can_run(self.client) {
            self.tell_votes(world);
            self.arm_timer(world);
        }
    }

    /// Ends all tasks.
    pub(super) fn end(&mut self) {
        self.tasks.iter_mut().for_each(|task| task.done = true);
    }

    /// Returns true if every task has done all its steps.
    pub(super) fn is_done(&self) -> bool {
        self.tasks.iter().all(|task| task.done)
    }

    /// Returns true if every task has been granted a lease.
    pub(super) fn got_leases(&self) -> bool {
        self.tasks.iter().all(|task| task.got_lease)
    }

    /// Returns the numbers of the tasks.
    pub(super) fn numbers(&self) -> core::ops::Range<usize> {
        0..self.tasks.len()
    }

    /// Returns true if the process has a timer that will fire.
    pub(super) fn has_timer(&self) -> bool {
        self.timer_at_ns != u64::MAX
    }

    /// Returns true if `serial` is the number of the latest timer; older timers are ignored.
    pub(super) fn is_current_timer(&self, serial: u32) -> bool {
        serial == self.timer_serial
    }

    fn step(&mut self, world: &mut World) -> bool {
        if !world.clients.can_run(self.client) {
            return false;
        }
        if !self.is_drained {
            if let Some((task, action)) = self.action.take().or_else(|| self.subject.poll_action())
            {
                return self.act(world, task, action);
            }
            self.is_drained = true;
        }
        if self.hand_over(world) || self.use_locks(world) {
            self.is_drained = false;
            return true;
        }
        // The step that the application was about to take may have been the one before which a fault
        // stops the process.
        if !world.clients.can_run(self.client) {
            return false;
        }
        while let Some(input) = world.clients.first_input(self.client) {
            self.take_in(world, input);
            // An answer without consequences, and without a fault that waits for it, leaves nothing to
            // do.
            if !self.is_drained || world.plan.has_points {
                return true;
            }
        }
        self.expire_timer(world)
    }

    /// Takes the next step of the first application that can take one; returns true if one did.
    fn use_locks(&mut self, world: &mut World) -> bool {
        for task in self.numbers() {
            if self.use_lock(world, task) {
                return true;
            }
            // The step may have been the one before which a fault stops the process.
            if !world.clients.can_run(self.client) {
                return false;
            }
        }
        false
    }

    /// Hands a lease or a new deadline to the application that awaits it; returns true if one did.
    fn hand_over(&mut self, world: &mut World) -> bool {
        let Some(task) = self.tasks.iter().position(Task::has_news) else { return false };
        if let Some(attempt) = self.tasks[task].to_deliver {
            if self.reach(world, attempt, AttemptStep::Deliver, None) {
                self.tasks[task].to_deliver = None;
                self.deliver(world, task);
            }
        } else if let Some((attempt, deadline_local_ns)) = self.tasks[task].to_prolong.take() {
            self.prolong(world, task, attempt, deadline_local_ns);
        }
        true
    }

    /// Begins the faults that wait for this point; returns true if the process may continue.
    pub(super) fn reach(
        &self,
        world: &mut World,
        attempt: AttemptId,
        step: AttemptStep,
        node: Option<NodeId>,
    ) -> bool {
        world.reach(attempt, step, node);
        world.clients.can_run(self.client)
    }

    #[inline]
    pub(super) fn now(&self, world: &World) -> Now {
        world.read_clocks(self.host, self.subject.lease_clock())
    }
}
