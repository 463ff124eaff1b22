//! Exclusive access to a server, and the replies to other connections while a script blocks it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use redis_sim::profile::Profile;
use redis_sim::resp::Value;
use redis_sim::server::{ScriptControl, Server};
use tokio::sync::{Mutex, MutexGuard};

use super::run_clock::RunClock;

/// Prefixes of the commands that can run a script.
const SCRIPTED: [&[u8]; 2] = [b"EVAL", b"EXEC"];

/// Prefixes of the commands that can change the server's demands on requests.
const SETTING: [&[u8]; 3] = [b"ACL", b"CONFIG", b"EXEC"];

/// Interval between attempts to abort a script whose process dies. A script that starts at the same
/// moment may miss the first abort.
const INSISTS_NS: u64 = 1_000_000;

/// Shortest interval between checks whether a request that blocks the server runs a script.
const LOOKS_AGAIN_NS: u64 = 1_000_000;

/// A server that one connection at a time can use.
#[derive(Debug)]
pub(super) struct Executor {
    clock: Arc<RunClock>,
    /// Held while a connection executes, for a moment or for the length of a script. The mutex is
    /// fair, and waiting for it does not block the thread.
    server: Mutex<Server>,
    script: Arc<ScriptControl>,
    /// Server software that it imitates.
    pub(super) profile: &'static Profile,
    /// Start time of the request that may be running a script; 0 if there is none.
    since_ns: AtomicU64,
    /// Time for which a script may run before other connections are told that the server is busy
    /// (`busy-reply-threshold`).
    patience_ns: AtomicU64,
    /// True while the process is dying: nothing is executed any more.
    is_dying: AtomicBool,
    /// The server's demands on a new connection.
    manners: Manners,
}

/// The server's demands on a request, checked before the server sees it.
#[derive(Debug, Default)]
struct Manners {
    /// True if connections must authenticate.
    asks_who: AtomicBool,
    /// Maximum length of an argument in bytes (`proto-max-bulk-len`).
    bulk_max: AtomicU64,
}

impl Manners {
    fn learn(&self, server: &Server) {
        let bulk_max = server.config().number("proto-max-bulk-len").unsigned_abs();
        self.bulk_max.store(bulk_max, Ordering::Release);
        self.asks_who.store(!server.users().is_open(), Ordering::Release);
    }
}

/// Outcome of [`Executor::enter`].
pub(super) enum Entrance<'a> {
    Open(MutexGuard<'a, Server>),
    /// A script blocks the server.
    Busy,
    /// The process is dead.
    Dead,
}

impl Executor {
    pub(super) fn new(mut server: Server, clock: Arc<RunClock>) -> Self {
        let script = match clock.is_simulated() {
            // No time passes while a script runs: it ends after a fixed number of instructions.
            true => ScriptControl::default(),
            false => ScriptControl::watched(),
        };
        let script = Arc::new(script);
        server.set_script_control(Arc::clone(&script));
        let manners = Manners::default();
        manners.learn(&server);
        Self {
            clock,
            script,
            profile: server.profile(),
            since_ns: 0.into(),
            patience_ns: patience_ns(&server).into(),
            is_dying: false.into(),
            manners,
            server: Mutex::new(server),
        }
    }

    /// Returns true if connections must authenticate.
    pub(super) fn asks_who(&self) -> bool {
        self.manners.asks_who.load(Ordering::Acquire)
    }

    /// Returns the maximum length of an argument, in bytes.
    pub(super) fn bulk_max(&self) -> u64 {
        self.manners.bulk_max.load(Ordering::Acquire)
    }

    /// Waits for exclusive access to the server, for use by the simulator itself.
    pub(super) async fn server(&self) -> MutexGuard<'_, Server> {
        self.server.lock().await
    }

    /// Waits for exclusive access to the server, but returns [`Entrance::Busy`] if a script blocks
    /// it for too long.
    pub(super) async fn enter(&self) -> Entrance<'_> {
        // One wait for the mutex, so that this connection keeps its place in the queue.
        let mut server = core::pin::pin!(self.server.lock());
        let mut looks_again_ns = 0;
        let server = loop {
            let wakes_ns = self.busy_from_ns().max(looks_again_ns);
            tokio::select! {
                biased;
                server = &mut server => break server,
                () = self.clock.sleep_until(wakes_ns) => {
                    let now_ns = self.clock.now_ns();
                    // Another script may have begun meanwhile.
                    if self.busy_from_ns() <= now_ns && self.script.is_running() {
                        return Entrance::Busy;
                    }
                    looks_again_ns = now_ns + LOOKS_AGAIN_NS;
                }
            }
        };
        let lives = server.is_running() && !self.is_dying();
        if lives { Entrance::Open(server) } else { Entrance::Dead }
    }

    /// Returns the time from which the server is busy: it has executed the present script for too long,
    /// or a script that begins now.
    fn busy_from_ns(&self) -> u64 {
        let since_ns = match self.since_ns.load(Ordering::Acquire) {
            0 => self.clock.now_ns(),
            since_ns => since_ns,
        };
        since_ns.saturating_add(self.patience_ns.load(Ordering::Acquire))
    }

    /// Takes the server of a process that dies now, aborting any script that blocks it. Nothing is
    /// executed from here on, until [`Executor::revive`].
    pub(super) async fn wrest(&self) -> MutexGuard<'_, Server> {
        self.is_dying.store(true, Ordering::Release);
        let mut server = core::pin::pin!(self.server.lock());
        loop {
            self.script.abort();
            tokio::select! {
                biased;
                server = &mut server => return server,
                () = self.clock.sleep_until(self.clock.now_ns() + INSISTS_NS) => {}
            }
        }
    }

    /// Accepts requests again; `server` belongs to a new process.
    pub(super) fn revive(&self, server: &Server) {
        self.manners.learn(server);
        self.is_dying.store(false, Ordering::Release);
    }

    pub(super) fn is_dying(&self) -> bool {
        self.is_dying.load(Ordering::Acquire)
    }

    /// Executes `request` on `server` by calling `execute`.
    pub(super) fn execute<T>(
        &self,
        server: &mut Server,
        request: &[Bytes],
        execute: impl FnOnce(&mut Server) -> T,
    ) -> T {
        let is_one_of = |words: &[&[u8]]| words.iter().any(|word| begins_with(request, word));
        let done = if is_one_of(&SCRIPTED) {
            self.patience_ns.store(patience_ns(server), Ordering::Release);
            self.since_ns.store(self.clock.now_ns().max(1), Ordering::Release);
            match self.clock.is_simulated() {
                true => execute(server),
                // This thread may be the one that polls the sockets of all connections.
                false => tokio::task::block_in_place(|| execute(server)),
            }
        } else {
            execute(server)
        };
        if is_one_of(&SETTING) {
            self.manners.learn(server);
        }
        done
    }

    /// Ends an access that [`Executor::enter`] granted.
    pub(super) fn leave(&self, server: MutexGuard<'_, Server>) {
        self.since_ns.store(0, Ordering::Release);
        drop(server);
    }

    /// Returns the reply to `request` while a script blocks the server, if `request` is `SCRIPT
    /// KILL`.
    pub(super) fn answer_kill(&self, request: &[Bytes]) -> Option<Value> {
        let is = |word: &Bytes, name: &[u8]| word.eq_ignore_ascii_case(name);
        match request {
            [script, kill] if is(script, b"SCRIPT") && is(kill, b"KILL") => {
                let killed = self.script.kill();
                Some(killed.map_or_else(Value::error, |()| Value::ok()))
            }
            _ => None,
        }
    }

    /// Aborts the running script, if there is one, and executes nothing more.
    pub(super) fn abort(&self) {
        self.is_dying.store(true, Ordering::Release);
        while self.server.try_lock().is_err() {
            self.script.abort();
            std::thread::yield_now();
        }
    }
}

/// Returns true if the name of a request begins with `word`, in any case.
pub(super) fn begins_with(request: &[Bytes], word: &[u8]) -> bool {
    let start = request.first().and_then(|name| name.get(..word.len()));
    start.is_some_and(|start| start.eq_ignore_ascii_case(word))
}

fn patience_ns(server: &Server) -> u64 {
    match server.config().number("busy-reply-threshold").unsigned_abs() {
        // 0 turns the busy reply off.
        0 => u64::MAX,
        patience_ms => patience_ms.saturating_mul(1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use redis_sim::profile::REDIS_7_0;
    use redis_sim::server::{Answer, Session, Turn};
    use redis_sim::{Master, Storage, Writer};
    use tokio::runtime::{Builder, Runtime};

    use super::*;

    const MS: u64 = 1_000_000;

    fn server() -> Server {
        Server::new(Master::new(Storage::default(), [0; 20], 0), &REDIS_7_0)
    }

    /// Returns an executor in simulated time, with a patience of 5 s.
    fn executor(runtime: &Runtime) -> Executor {
        let clock = Arc::new(RunClock::simulated(runtime.handle().clone()));
        let script = Arc::new(ScriptControl::watched());
        Executor { script, patience_ns: (5_000 * MS).into(), ..Executor::new(server(), clock) }
    }

    fn paused() -> Runtime {
        Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime")
    }

    /// Runs a script without end, until it is aborted.
    fn run_on(script: Arc<ScriptControl>) {
        let mut server = server();
        server.set_script_control(script);
        let request = [&b"EVAL"[..], b"while true do end", b"0"].map(Bytes::from_static);
        let turn = Turn { wall_ns: 0, writer: Writer::Operator, touched: &mut Vec::new() };
        let Answer::Reply(Value::Error(_)) = Session::new(1).execute(&mut server, &request, turn)
        else {
            panic!("it was aborted")
        };
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a script without end needs a thread of its own")]
    fn the_patience_begins_with_the_script_that_runs() {
        let runtime = paused();
        let executor = executor(&runtime);
        let script = Arc::clone(&executor.script);
        let runs = std::thread::spawn(move || run_on(script));
        while !executor.script.is_running() {
            std::thread::yield_now();
        }
        let (open, busy) = runtime.block_on(async {
            let server = executor.server().await;
            executor.since_ns.store(1, Ordering::Release);
            let waits = async { matches!(executor.enter().await, Entrance::Open(_)) };
            let runs = async {
                executor.clock.sleep_until(4_000 * MS).await;
                // The next script.
                executor.since_ns.store(executor.clock.now_ns(), Ordering::Release);
                executor.clock.sleep_until(7_000 * MS).await;
                executor.leave(server);
            };
            let (open, ()) = tokio::join!(waits, runs);
            let _server = executor.server().await;
            executor.since_ns.store(executor.clock.now_ns(), Ordering::Release);
            (open, matches!(executor.enter().await, Entrance::Busy))
        });
        executor.script.abort();
        runs.join().expect("it was aborted");
        assert!(open, "the second script has run for 3 s");
        assert!(busy, "the third script does not end");
    }

    #[test]
    fn a_long_wait_keeps_its_place_in_the_queue() {
        let runtime = paused();
        let executor = executor(&runtime);
        let order = runtime.block_on(async {
            let order = std::sync::Mutex::new(Vec::new());
            let server = executor.server().await;
            let waits = async |from_ms, number| {
                executor.clock.sleep_until(from_ms * MS).await;
                if let Entrance::Open(server) = executor.enter().await {
                    order.lock().expect("nobody panics").push(number);
                    executor.leave(server);
                }
            };
            let releases = async {
                executor.clock.sleep_until(6_000 * MS).await;
                executor.leave(server);
            };
            tokio::join!(waits(1, 1), waits(2_000, 2), releases);
            order.into_inner().expect("nobody panics")
        });
        assert_eq!(order, [1, 2]);
    }
}
