//! Drives the protocol machines: one mutex guards them and the state that belongs to them.
//!
//! Every input is handled in one [`Driver::turn`]: lock, read the clock, pass the input to the
//! machines, carry out their commands, unlock, wake. The clock is read while the lock is held, so
//! readings never go back from one turn to the next. The driver itself makes no protocol decision.

mod extensions;
mod inherited;
mod names;
mod node_task;
#[cfg(test)]
mod offline;
mod pipeline;
mod pump;
mod standing;
mod telling;
mod timeouts;
mod timer_task;
mod transports;
mod uses;
mod waiters;
mod wakers;
mod wakes;

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::task::{Context, Waker};
use std::sync::{Arc, Mutex, MutexGuard};

use redlock_protocol::{BootInstant, LinkConfig, LockConfig, LockId, NodeIndex, NodeSet};

use self::names::Names;
use self::node_task::NodeTask;
use self::timer_task::TimerTask;
use self::transports::Node;
use self::uses::Uses;
use self::waiters::{Waiter, Waiters};
pub(crate) use self::wakers::Caller;
use self::wakes::Wakes;
use crate::environment::{Endpoint, Environment};
use crate::error::AcquireError;
use crate::observe::Observers;
use crate::resp::Encoder;

/// The machines of one client, with their environment.
pub(crate) struct Driver {
    environment: Arc<dyn Environment>,
    observers: Observers,
    endpoints: Vec<Endpoint>,
    /// Name of the canary, the key that identifies a node's data set.
    canary_key: Box<[u8]>,
    /// True if every task is running, as far as is known without the lock.
    all_run: AtomicBool,
    links: Box<[LinkConfig]>,
    /// Id of the process that started the tasks; 0 before the first use.
    process: AtomicU32,
    /// Not to be locked in a process that inherited the client (`inherited.rs`).
    state: Mutex<State>,
}

/// State shared by the tasks of one client; guarded by the mutex.
pub(crate) struct State {
    pub(crate) machine: NodeSet,
    names: Names,
    uses: Uses,
    nodes: Vec<Node>,
    encoder: Encoder,
    timer: Task,
    /// True once the tasks were started: the client has been used.
    used: bool,
    /// Last reading of the clock.
    clock: BootInstant,
    /// Instant that the timer task waits for.
    armed: Option<BootInstant>,
    /// True once the last handle is gone or the client was closed: the tasks end once no release is
    /// owed and no reply is awaited.
    closing: bool,
    /// True once the client was closed: later acquisitions are refused.
    closed: bool,
    /// True if the client belongs to another process: this state replaces its own.
    inherited: bool,
    waiters: Waiters,
    wakes: Wakes,
}

/// A background task: its state and its waker.
#[derive(Debug, Default)]
struct Task {
    running: bool,
    waker: Option<Waker>,
}

impl Task {
    fn wake(&mut self, wakes: &mut Wakes) {
        wakes.extend(self.waker.take());
    }

    fn listen(&mut self, context: &Context<'_>) {
        self.waker = Some(context.waker().clone());
    }
}

impl Driver {
    pub(crate) fn new(
        environment: Arc<dyn Environment>,
        observers: Observers,
        endpoints: Vec<Endpoint>,
        canary_key: Box<[u8]>,
        links: &[LinkConfig],
    ) -> Self {
        let state = Mutex::new(State::new(links));
        let (all_run, process) = (AtomicBool::new(false), AtomicU32::new(0));
        let links = Box::from(links);
        Self { environment, observers, endpoints, canary_key, all_run, links, process, state }
    }

    pub(crate) fn canary_key(&self) -> &[u8] {
        &self.canary_key
    }

    pub(crate) fn environment(&self) -> &Arc<dyn Environment> {
        &self.environment
    }

    pub(crate) fn endpoint(&self, node: NodeIndex) -> &Endpoint {
        &self.endpoints[node.get()]
    }

    /// Handles one input: runs `act` on the locked state, then carries out the machines' commands
    /// and events. In a process that inherited the client, `act` gets the state of a closed client.
    ///
    /// # Panics
    ///
    /// If a machine has panicked before: its state is then unreliable.
    pub(crate) fn turn<T>(&self, act: impl FnOnce(&mut State, BootInstant) -> T) -> T {
        if self.is_inherited() {
            return self.turn_inherited(act);
        }
        self.turn_on(self.lock(), act)
    }

    /// Same as [`Driver::turn`] for the tasks, which do nothing in a process that inherited the
    /// client: does not look which process it is, because that is a system call.
    fn turn_of_task<T>(&self, act: impl FnOnce(&mut State, BootInstant) -> T) -> T {
        self.turn_on(self.lock(), act)
    }

    fn turn_on<T>(
        &self,
        mut state: MutexGuard<'_, State>,
        act: impl FnOnce(&mut State, BootInstant) -> T,
    ) -> T {
        let now = self.read_clock(&mut state);
        let result = act(&mut state, now);
        self.pump(&mut state, now);
        state.wake_tasks();
        let wakes = core::mem::take(&mut state.wakes);
        drop(state);
        wakes.wake();
        result
    }

    /// Same as [`Driver::turn`] for destructors, which must not panic: does nothing after a panic,
    /// nor in a process that inherited the client.
    pub(crate) fn last_turn(&self, act: impl FnOnce(&mut State, BootInstant)) {
        if !self.is_inherited()
            && let Ok(state) = self.state.lock()
        {
            self.turn_on(state, act);
        }
    }

    /// Starts the tasks that are not running: at first use, and after their runtime has ended.
    ///
    /// # Errors
    ///
    /// If tasks cannot be started from here. Running tasks go on.
    fn start_tasks(self: &Arc<Self>) -> Result<(), AcquireError> {
        if self.all_run.load(Ordering::Acquire) {
            return Ok(());
        }
        if self.is_inherited() {
            return Err(inherited::refusal());
        }
        self.environment.can_spawn().map_err(|why| AcquireError::not_started(&why))?;
        self.belong_here();
        let mut state = self.lock();
        self.all_run.store(true, Ordering::Release);
        let again = core::mem::replace(&mut state.used, true);
        let timer = !core::mem::replace(&mut state.timer.running, true);
        let nodes = state.machine.nodes().iter();
        let nodes: Vec<NodeIndex> = nodes
            .filter(|node| !core::mem::replace(&mut state.nodes[node.get()].task.running, true))
            .collect();
        drop(state);
        for node in nodes {
            let task = NodeTask::new(Arc::clone(self), node);
            self.environment.spawn(Box::pin(task));
        }
        if timer {
            let task = TimerTask::new(Arc::clone(self));
            self.environment.spawn_apart(Box::pin(task));
        }
        if again {
            self.open_connections_again();
        }
        Ok(())
    }

    /// Requests the connections that ended with their tasks: nodes push the loss of a lease's keys
    /// only on open ones. A dial whose task ends at once, with its runtime, is no failure of the
    /// node (`time_out_nodes`).
    fn open_connections_again(&self) {
        self.turn(|state, now| {
            if !state.closing {
                state.machine.connect(now);
            }
        });
    }

    /// Runs `act`, which may make a caller wait, and then starts the tasks that are not running.
    /// The order matters: a task that ended before the caller waited could not wake it, and nothing
    /// else would start the task again.
    pub(crate) fn serve<T>(self: &Arc<Self>, act: impl FnOnce(&Self) -> T) -> T {
        let result = act(self);
        // If no task can be started, the timer still ends the caller's wait at its deadline.
        let _ = self.start_tasks();
        result
    }

    /// Runs `act`, which makes no caller wait, and then starts the tasks that have ended: their end
    /// wakes no such caller, and the next extension would find no task. Starts none before the
    /// first use of the client, and none once they may end.
    pub(crate) fn call<T>(self: &Arc<Self>, act: impl FnOnce(&mut State, BootInstant) -> T) -> T {
        let (result, needs_tasks) = self.turn(|state, now| {
            let result = act(state, now);
            (result, state.used && !state.is_finished() && !self.all_run.load(Ordering::Acquire))
        });
        if needs_tasks {
            // Outside a runtime none can be started; `act` needs none.
            let _ = self.start_tasks();
        }
        result
    }

    /// Runs the timer task's turn: handles due timeouts and returns the instant to wait for; `None`
    /// when the task is to end. A timer already `armed` for an earlier instant may stay so.
    pub(crate) fn tick(
        &self,
        armed: Option<BootInstant>,
        context: &Context<'_>,
    ) -> Option<Option<BootInstant>> {
        self.turn_of_task(|state, now| {
            self.time_out_nodes(state, now);
            state.machine.handle_lock_timeout(now);
            state.waiters.wake_until(now, &mut state.wakes);
            self.pump(state, now);
            state.timer.listen(context);
            state.armed = armed.into_iter().chain(state.next_timeout()).min();
            (!state.is_finished()).then_some(state.armed)
        })
    }

    pub(crate) fn timer_task_ended(&self) {
        self.last_turn(|state, _| {
            state.timer = Task::default();
            state.armed = None;
            self.task_ended(state);
        });
    }

    /// Records the end of a task, perhaps with its runtime. Wakes all waiting callers: their next
    /// polls start the task again, and nothing else would.
    fn task_ended(&self, state: &mut State) {
        self.all_run.store(false, Ordering::Release);
        state.uses.wake_all(&mut state.wakes);
        state.waiters.wake_all(&mut state.wakes);
    }

    /// Lets the tasks end: the last handle is gone.
    pub(crate) fn close(&self) {
        self.last_turn(|state, _| state.closing = true);
    }

    /// Opens a use of the lock on `resource`. Its first attempt begins at once, and the caller is
    /// woken when there is an outcome. `config` is called with the instant from which the wait
    /// counts.
    ///
    /// # Errors
    ///
    /// After the client was closed, and where no task can be started.
    pub(crate) fn open(
        self: &Arc<Self>,
        resource: &[u8],
        config: impl FnOnce(BootInstant) -> LockConfig,
        context: &Context<'_>,
    ) -> Result<LockId, AcquireError> {
        self.start_tasks()?;
        self.serve(|it| it.open_use(resource, config, context))
    }

    fn open_use(
        &self,
        resource: &[u8],
        config: impl FnOnce(BootInstant) -> LockConfig,
        context: &Context<'_>,
    ) -> Result<LockId, AcquireError> {
        self.turn(|state, now| {
            state.refuse_if_closed()?;
            let resource = state.names.intern(resource, &mut state.machine);
            let config = config(now);
            let lock = state.machine.open(resource, config, now);
            state.uses.open(lock, resource, config.ttl, now, context.waker().clone());
            Ok(lock)
        })
    }

    /// Requests that every connection opens.
    ///
    /// # Errors
    ///
    /// After the client was closed, and where no task can be started.
    pub(crate) fn connect(self: &Arc<Self>) -> Result<(), AcquireError> {
        self.start_tasks()?;
        self.turn(|state, now| {
            state.refuse_if_closed()?;
            state.machine.connect(now);
            Ok(())
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no machine has panicked")
    }

    fn read_clock(&self, state: &mut State) -> BootInstant {
        state.clock = self.environment.now();
        state.clock
    }
}

impl State {
    fn new(links: &[LinkConfig]) -> Self {
        Self {
            machine: NodeSet::new(links),
            names: Names::default(),
            uses: Uses::default(),
            nodes: links.iter().map(|_| Node::default()).collect(),
            encoder: Encoder::default(),
            timer: Task::default(),
            used: false,
            clock: BootInstant::ZERO,
            armed: None,
            closing: false,
            closed: false,
            inherited: false,
            waiters: Waiters::default(),
            wakes: Wakes::default(),
        }
    }

    /// Wakes the timer task if the next timeout is earlier than its timer, and all tasks and waiting
    /// callers if the tasks may end.
    fn wake_tasks(&mut self) {
        let next = self.next_timeout();
        // A timer that fires early does no harm: it is set again then.
        let is_earlier = next.is_some_and(|next| self.armed.is_none_or(|armed| next < armed));
        let is_finished = self.is_finished();
        if is_earlier || is_finished {
            self.timer.wake(&mut self.wakes);
        }
        if is_finished {
            for node in &mut self.nodes {
                node.task.wake(&mut self.wakes);
            }
            self.waiters.wake_all(&mut self.wakes);
        }
    }

    /// Returns true if the tasks may end.
    fn is_finished(&self) -> bool {
        self.closing && self.machine.is_idle()
    }
}

#[cfg(test)]
mod tests;
