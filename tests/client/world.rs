//! A world in memory: nodes behind `tokio::io::duplex`, a clock that only the test moves, and the
//! only executor.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use redlock_client::environment::{BoxFuture, Endpoint, Environment, Stream, Timer};
use redlock_client::{Builder, Redlock};
use redlock_protocol::BootInstant;

use crate::node::{Habit, Node};

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const MS: Duration = Duration::from_millis(1);
pub(crate) const TTL: Duration = Duration::from_secs(10);

/// Five nodes, and everything else that a client can see.
pub(crate) struct World {
    shared: Arc<Shared>,
}

#[derive(Default)]
pub(crate) struct Shared {
    clock: Arc<Clock>,
    nodes: Mutex<BTreeMap<String, Node>>,
    tasks: Mutex<Vec<BoxFuture<'static, ()>>>,
    /// Tasks that run apart from those of the application.
    apart: Mutex<Vec<BoxFuture<'static, ()>>>,
    entropy: Mutex<Option<u64>>,
    process: AtomicU32,
    outside_runtime: AtomicBool,
    runtime_is_ending: AtomicBool,
    woken: Arc<Flag>,
}

#[derive(Default)]
struct Clock {
    now: Mutex<Duration>,
    /// Ends of all sleeps; collected anew in every step.
    sleepers: Mutex<Vec<Duration>>,
}

impl Clock {
    fn poll_sleep(&self, at: BootInstant) -> Poll<()> {
        let at = at.since(BootInstant::ZERO);
        if *self.now.lock().unwrap() >= at {
            return Poll::Ready(());
        }
        self.sleepers.lock().unwrap().push(at);
        Poll::Pending
    }
}

struct Sleeper(Arc<Clock>);

impl Timer for Sleeper {
    fn poll_until(&mut self, at: BootInstant, _: &mut Context<'_>) -> Poll<()> {
        self.0.poll_sleep(at)
    }
}

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl World {
    pub(crate) fn new() -> Self {
        let shared = Shared::default();
        // The boot clock has run for a while, because nothing may depend on its origin.
        *shared.clock.now.lock().unwrap() = 1_000 * SECOND;
        *shared.entropy.lock().unwrap() = Some(0);
        let names = ["a", "b", "c", "d", "e"].map(String::from);
        let node = |name: String| (name.clone(), Node::new(name.as_bytes()[0]));
        *shared.nodes.lock().unwrap() = names.map(node).into();
        Self { shared: Arc::new(shared) }
    }

    pub(crate) fn builder(&self) -> Builder {
        let nodes = ["a", "b", "c", "d", "e"].map(|name| format!("redis://{name}"));
        Redlock::builder()
            .nodes(nodes)
            .ttl(TTL)
            .fleet_max_ttl(TTL)
            .environment(Arc::clone(&self.shared) as Arc<dyn Environment>)
    }

    pub(crate) fn client(&self) -> Redlock {
        self.builder().build().unwrap()
    }

    /// Changes or reads the node `name`.
    pub(crate) fn node<T>(&self, name: &str, act: impl FnOnce(&mut Node) -> T) -> T {
        act(self.shared.nodes.lock().unwrap().get_mut(name).unwrap())
    }

    pub(crate) fn each_node(&self, act: impl FnMut(&mut Node)) {
        self.shared.nodes.lock().unwrap().values_mut().for_each(act);
    }

    /// Number of nodes that hold `key` now.
    pub(crate) fn holders(&self, key: &str) -> usize {
        let now = self.now();
        let nodes = self.shared.nodes.lock().unwrap();
        nodes.values().filter(|node| node.value(key.as_bytes(), now).is_some()).count()
    }

    pub(crate) fn now(&self) -> Duration {
        *self.shared.clock.now.lock().unwrap()
    }

    /// Moves the clock without letting anything take a step.
    pub(crate) fn pass(&self, time: Duration) {
        *self.shared.clock.now.lock().unwrap() += time;
    }

    pub(crate) fn tasks(&self) -> usize {
        self.shared.tasks.lock().unwrap().len() + self.shared.apart.lock().unwrap().len()
    }

    /// Continues as the process `id`, forked from the one before. It has the same copy of
    /// everything.
    pub(crate) fn become_process(&self, id: u32) {
        self.shared.process.store(id, Ordering::Relaxed);
    }

    /// Drops all tasks.
    pub(crate) fn drop_tasks(&self) {
        self.end_runtime();
        let apart = std::mem::take(&mut *self.shared.apart.lock().unwrap());
        drop(apart);
    }

    /// Drops the tasks of the application's runtime; the timer goes on.
    pub(crate) fn end_runtime(&self) {
        let tasks = std::mem::take(&mut *self.shared.tasks.lock().unwrap());
        drop(tasks);
    }

    /// Makes calls come from outside of any runtime, or from within one again.
    pub(crate) fn set_outside_runtime(&self, outside: bool) {
        self.shared.outside_runtime.store(outside, Ordering::Relaxed);
    }

    /// Makes the runtime drop new tasks at once, as one that is ending does, or run them again.
    pub(crate) fn set_runtime_is_ending(&self, ending: bool) {
        self.shared.runtime_is_ending.store(ending, Ordering::Relaxed);
    }

    pub(crate) fn exhaust_entropy(&self) {
        *self.shared.entropy.lock().unwrap() = None;
    }

    /// Lets all tasks and nodes take steps until none has anything left to do at this instant.
    pub(crate) fn settle(&self) {
        let waker = Waker::from(Arc::clone(&self.shared.woken));
        let mut context = Context::from_waker(&waker);
        self.shared.woken.0.store(true, Ordering::Relaxed);
        while self.shared.woken.0.swap(false, Ordering::Relaxed) {
            self.shared.clock.sleepers.lock().unwrap().clear();
            self.step(&mut context);
        }
    }

    /// Polls `future` without moving the clock. Returns its output, or `None` if it needs time to
    /// pass.
    pub(crate) fn poll<T>(&self, future: &mut (impl Future<Output = T> + Unpin)) -> Option<T> {
        let waker = Waker::from(Arc::clone(&self.shared.woken));
        let mut context = Context::from_waker(&waker);
        loop {
            self.shared.woken.0.store(false, Ordering::Relaxed);
            self.shared.clock.sleepers.lock().unwrap().clear();
            if let Poll::Ready(output) = pin!(&mut *future).poll(&mut context) {
                return Some(output);
            }
            self.step(&mut context);
            if !self.shared.woken.0.load(Ordering::Relaxed) {
                return None;
            }
        }
    }

    /// Polls `future` once, then lets tasks and nodes take a step. If none of them has anything
    /// left to do, moves the clock to the next timer.
    pub(crate) fn poll_once<T>(&self, future: &mut (impl Future<Output = T> + Unpin)) -> Option<T> {
        let waker = Waker::from(Arc::clone(&self.shared.woken));
        let mut context = Context::from_waker(&waker);
        self.shared.woken.0.store(false, Ordering::Relaxed);
        self.shared.clock.sleepers.lock().unwrap().clear();
        let polled = pin!(&mut *future).poll(&mut context);
        self.step(&mut context);
        if polled.is_pending() && !self.shared.woken.0.load(Ordering::Relaxed) {
            self.pass_to_next_timer();
        }
        match polled {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    fn pass_to_next_timer(&self) {
        let next = self.shared.clock.sleepers.lock().unwrap().iter().min().copied();
        let next = next.filter(|&next| next > self.now()).expect("somebody waits for a timer");
        self.pass(next - self.now());
    }

    /// Returns true if a task or a future waits for a timer.
    pub(crate) fn has_timer(&self) -> bool {
        self.settle();
        !self.shared.clock.sleepers.lock().unwrap().is_empty()
    }

    /// Runs `future` to completion. Moves the clock to the next timer whenever nothing else is left
    /// to do.
    pub(crate) fn block_on<T>(&self, future: impl IntoFuture<Output = T>) -> T {
        let mut future = Box::pin(future.into_future());
        loop {
            if let Some(output) = self.poll(&mut future) {
                return output;
            }
            self.pass_to_next_timer();
        }
    }

    fn step(&self, context: &mut Context<'_>) {
        for list in [&self.shared.tasks, &self.shared.apart] {
            // Take the tasks out of the list meanwhile: a task may spawn another one.
            let mut tasks = std::mem::take(&mut *list.lock().unwrap());
            tasks.retain_mut(|task| task.as_mut().poll(context).is_pending());
            let mut all = list.lock().unwrap();
            tasks.append(&mut all);
            *all = tasks;
        }
        let now = self.now();
        self.each_node(|node| node.step(now, context));
    }
}

impl Environment for Shared {
    fn connect<'a>(&'a self, to: &'a Endpoint) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            let (host, _) = to.tcp().unwrap();
            let panics = self.nodes.lock().unwrap()[host].habit == Habit::Panics;
            assert!(!panics, "the system gives no thread to resolve the name");
            let stream = self.nodes.lock().unwrap().get_mut(host).unwrap().accept()?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }

    fn now(&self) -> BootInstant {
        BootInstant::ZERO.after(*self.clock.now.lock().unwrap())
    }

    fn timer(&self) -> Box<dyn Timer> {
        Box::new(Sleeper(Arc::clone(&self.clock)))
    }

    fn can_spawn(&self) -> io::Result<()> {
        if self.outside_runtime.load(Ordering::Relaxed) {
            return Err(io::Error::other("no runtime"));
        }
        Ok(())
    }

    fn spawn_apart(&self, task: BoxFuture<'static, ()>) {
        self.woken.0.store(true, Ordering::Relaxed);
        self.apart.lock().unwrap().push(task);
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        if self.runtime_is_ending.load(Ordering::Relaxed) {
            return drop(task);
        }
        self.woken.0.store(true, Ordering::Relaxed);
        self.tasks.lock().unwrap().push(task);
    }

    fn process(&self) -> u32 {
        self.process.load(Ordering::Relaxed)
    }

    fn fill_random(&self, bytes: &mut [u8]) -> io::Result<()> {
        let mut entropy = self.entropy.lock().unwrap();
        let Some(next) = entropy.as_mut() else {
            return Err(io::Error::other("no entropy"));
        };
        *next += 1;
        for (place, byte) in bytes.iter_mut().enumerate() {
            let word = *next + 1_000 * (place / 64) as u64;
            let mixed =
                word.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(8 * (place % 8) as u32);
            *byte = (mixed >> 56) as u8;
        }
        Ok(())
    }
}
