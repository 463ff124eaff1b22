//! Who has a server, and what others are told while a script has it for too long.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use tokio::sync::{Mutex, MutexGuard};

use super::hours::Hours;
use crate::master::profile::Profile;
use crate::master::resp::Value;
use crate::master::server::{ScriptControl, Server};

/// Commands within which a script may run: what their names begin with.
const SCRIPTED: [&[u8]; 2] = [b"EVAL", b"EXEC"];

/// Commands by which a server may want something else of requests: what their names begin with.
const SETTING: [&[u8]; 3] = [b"ACL", b"CONFIG", b"EXEC"];

/// How often a script is told to end whose process dies: one that begins at that moment may not
/// have heard it.
const INSISTS_NS: u64 = 1_000_000;

/// A server that one connection at a time has.
#[derive(Debug)]
pub(super) struct Executor {
    hours: Arc<Hours>,
    /// Whoever executes has it, for a moment or for a script. It is fair, and nobody waits for it
    /// without letting others run.
    server: Mutex<Server>,
    script: Arc<ScriptControl>,
    /// Which server it is.
    pub(super) profile: &'static Profile,
    /// When the request began within which a script may be running; 0: there is none.
    since_ns: AtomicU64,
    /// How long others are kept waiting by a script before they are told so
    /// (`busy-reply-threshold`).
    patience_ns: AtomicU64,
    /// Its process dies: nobody executes any more.
    is_dying: AtomicBool,
    /// What a connection meets that has said nothing.
    manners: Manners,
}

/// What a server wants of requests before it looks at them.
#[derive(Debug, Default)]
struct Manners {
    /// Whoever comes must say who he is.
    asks_who: AtomicBool,
    /// The longest argument (`proto-max-bulk-len`).
    bulk_max: AtomicU64,
}

impl Manners {
    fn learn(&self, server: &Server) {
        let bulk_max = server.config().number("proto-max-bulk-len").unsigned_abs();
        self.bulk_max.store(bulk_max, Ordering::Release);
        self.asks_who.store(!server.users().is_open(), Ordering::Release);
    }
}

/// What becomes of who wants to execute.
pub(super) enum Entrance<'a> {
    Open(MutexGuard<'a, Server>),
    /// A script keeps the server.
    Busy,
    /// There is no process.
    Dead,
}

impl Executor {
    pub(super) fn new(mut server: Server, hours: Arc<Hours>) -> Self {
        let script = Arc::new(ScriptControl::watched());
        server.set_script_control(Arc::clone(&script));
        let manners = Manners::default();
        manners.learn(&server);
        Self {
            hours,
            script,
            profile: server.profile(),
            since_ns: 0.into(),
            patience_ns: patience_ns(&server).into(),
            is_dying: false.into(),
            manners,
            server: Mutex::new(server),
        }
    }

    /// Whether whoever comes must say who he is.
    pub(super) fn asks_who(&self) -> bool {
        self.manners.asks_who.load(Ordering::Acquire)
    }

    /// The longest argument, in bytes.
    pub(super) fn bulk_max(&self) -> u64 {
        self.manners.bulk_max.load(Ordering::Acquire)
    }

    /// The server, for the world around it.
    pub(super) async fn server(&self) -> MutexGuard<'_, Server> {
        self.server.lock().await
    }

    /// The server, unless a script keeps it for too long.
    pub(super) async fn enter(&self) -> Entrance<'_> {
        let entered_ns = self.hours.now_ns();
        let server = loop {
            let since_ns = match self.since_ns.load(Ordering::Acquire) {
                0 => entered_ns,
                since_ns => since_ns,
            };
            let patience_ns = self.patience_ns.load(Ordering::Acquire);
            tokio::select! {
                biased;
                server = self.server.lock() => break server,
                () = self.hours.sleep_until(since_ns.saturating_add(patience_ns)) => {
                    if self.since_ns.load(Ordering::Acquire) != 0 && self.script.is_running() {
                        return Entrance::Busy;
                    }
                    tokio::task::yield_now().await;
                }
            }
        };
        let lives = server.is_running() && !self.is_dying();
        if lives { Entrance::Open(server) } else { Entrance::Dead }
    }

    /// The server of a process that dies now, whatever keeps it. Nobody executes from here on,
    /// until [`Executor::revive`].
    pub(super) async fn wrest(&self) -> MutexGuard<'_, Server> {
        self.is_dying.store(true, Ordering::Release);
        let mut server = core::pin::pin!(self.server.lock());
        loop {
            self.script.abort();
            tokio::select! {
                biased;
                server = &mut server => return server,
                () = self.hours.sleep_until(self.hours.now_ns() + INSISTS_NS) => {}
            }
        }
    }

    /// `server` is that of a new process.
    pub(super) fn revive(&self, server: &Server) {
        self.manners.learn(server);
        self.is_dying.store(false, Ordering::Release);
    }

    pub(super) fn is_dying(&self) -> bool {
        self.is_dying.load(Ordering::Acquire)
    }

    /// Has `server` execute `request`.
    pub(super) fn execute<T>(
        &self,
        server: &mut Server,
        request: &[Bytes],
        execute: impl FnOnce(&mut Server) -> T,
    ) -> T {
        let is_one_of = |words: &[&[u8]]| words.iter().any(|word| begins_with(request, word));
        let done = if is_one_of(&SCRIPTED) {
            self.patience_ns.store(patience_ns(server), Ordering::Release);
            self.since_ns.store(self.hours.now_ns().max(1), Ordering::Release);
            // This thread may be the one that listens to sockets for all the others.
            tokio::task::block_in_place(|| execute(server))
        } else {
            execute(server)
        };
        if is_one_of(&SETTING) {
            self.manners.learn(server);
        }
        done
    }

    /// Who entered leaves: nothing is executed any more.
    pub(super) fn leave(&self, server: MutexGuard<'_, Server>) {
        self.since_ns.store(0, Ordering::Release);
        drop(server);
    }

    /// What is said to `request` while a script keeps the server, if it is to end the script.
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

    /// Ends the script that runs, if there is one, and executes nothing more.
    pub(super) fn abort(&self) {
        self.is_dying.store(true, Ordering::Release);
        while self.server.try_lock().is_err() {
            self.script.abort();
            std::thread::yield_now();
        }
    }
}

/// Whether the name of a request begins so.
pub(super) fn begins_with(request: &[Bytes], word: &[u8]) -> bool {
    let start = request.first().and_then(|name| name.get(..word.len()));
    start.is_some_and(|start| start.eq_ignore_ascii_case(word))
}

fn patience_ns(server: &Server) -> u64 {
    match server.config().number("busy-reply-threshold").unsigned_abs() {
        // Nobody is told.
        0 => u64::MAX,
        patience_ms => patience_ms.saturating_mul(1_000_000),
    }
}
