//! The bound: the same bytes on as many connections, shared by all tasks, without a lock protocol.
//!
//! All commands of the tasks to one node go out in one write, and its replies come in with one
//! read. A task is woken once for its SETs, by the reply that completes the majority, and once for
//! its releases, by the last reply. Replies are counted but not inspected.

use core::future::poll_fn;
use core::pin::Pin;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::task::{Context, Poll, Waker};
use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::clients::{Client, TTL};

const RELEASE_SCRIPT: &str = "if redis.call('get',KEYS[1])==ARGV[1] then \
    return redis.call('del',KEYS[1]) else return 0 end";

/// The bound.
pub(crate) struct Raw {
    lanes: Vec<Arc<Lane>>,
    slots: Arc<[Slot]>,
    script: String,
}

/// Replies that one task waits for.
#[derive(Default)]
struct Slot {
    sets: AtomicUsize,
    releases: AtomicUsize,
    waker: Mutex<Option<Waker>>,
}

/// A reply that is expected on a connection, and the task that waits for it.
#[derive(Clone, Copy)]
enum Answer {
    Set { task: usize },
    Release { task: usize },
}

/// One connection.
struct Lane {
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    outgoing: Vec<u8>,
    unanswered: VecDeque<Answer>,
    /// Waker of the lane's task, while that task sleeps.
    sleeper: Option<Waker>,
    ended: bool,
}

/// A key that is set.
pub(crate) struct Held {
    task: usize,
    key: String,
}

impl Raw {
    pub(crate) async fn connect(ports: &[u16], tasks: usize) -> Self {
        let script = load_script(ports);
        let slots: Arc<[Slot]> = (0..tasks).map(|_| Slot::default()).collect();
        let mut lanes = Vec::new();
        for &port in ports {
            let stream = TcpStream::connect(("127.0.0.1", port)).await.expect("the server is up");
            stream.set_nodelay(true).expect("a TCP socket");
            let lane = Arc::new(Lane { queue: Mutex::default() });
            let needed = (ports.len() / 2 + 1, ports.len());
            tokio::spawn(serve(Arc::clone(&lane), Arc::clone(&slots), stream, needed));
            lanes.push(lane);
        }
        Self { lanes, slots, script }
    }

    fn send(&self, answer: Answer, write: impl Fn(&mut Vec<u8>)) {
        for lane in &self.lanes {
            let mut queue = lane.lock();
            write(&mut queue.outgoing);
            queue.unanswered.push_back(answer);
            let sleeper = queue.sleeper.take();
            drop(queue);
            sleeper.into_iter().for_each(Waker::wake);
        }
    }

    async fn wait(&self, task: usize, done: impl Fn(&Slot) -> bool) {
        let slot = &self.slots[task];
        poll_fn(|context| {
            // Store the waker before the check, so that a reply in between wakes the task.
            *slot.waker.lock().expect("nobody panics") = Some(context.waker().clone());
            if done(slot) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

/// Returns a token of the same length as the others', without the cost of random bytes.
fn token(task: usize) -> [u8; 20] {
    let mut token = [0x5a; 20];
    token[..8].copy_from_slice(&task.to_le_bytes());
    token
}

impl Client for Raw {
    const NAME: &str = "raw";
    type Held = Held;

    async fn acquire(&self, task: usize, key: &str) -> Held {
        let slot = &self.slots[task];
        slot.sets.store(0, Ordering::Relaxed);
        slot.releases.store(0, Ordering::Relaxed);
        let ttl = TTL.as_millis();
        self.send(Answer::Set { task }, |bytes| {
            write_all(bytes, b"*6\r\n$3\r\nSET\r\n");
            write_bulk(bytes, key.as_bytes());
            write_bulk(bytes, &token(task));
            write_all(bytes, b"$2\r\nNX\r\n$2\r\nPX\r\n");
            write!(bytes, "$5\r\n{ttl}\r\n").expect("memory takes it");
        });
        let majority = self.lanes.len() / 2 + 1;
        self.wait(task, |slot| slot.sets.load(Ordering::Acquire) >= majority).await;
        Held { task, key: key.to_owned() }
    }

    async fn release(&self, Held { task, key }: Held) {
        self.send(Answer::Release { task }, |bytes| {
            write_all(bytes, b"*5\r\n$7\r\nEVALSHA\r\n");
            write_bulk(bytes, self.script.as_bytes());
            write_all(bytes, b"$1\r\n1\r\n");
            write_bulk(bytes, key.as_bytes());
            write_bulk(bytes, &token(task));
        });
        let all = self.lanes.len();
        self.wait(task, |slot| slot.releases.load(Ordering::Acquire) == all).await;
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        for lane in &self.lanes {
            let mut queue = lane.lock();
            queue.ended = true;
            queue.sleeper.take().into_iter().for_each(Waker::wake);
        }
    }
}

impl Lane {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("nobody panics")
    }
}

/// Writes and reads until the bound is dropped. Wakes a task after `sets` replies to its SETs, and
/// after `releases` replies to its releases.
async fn serve(
    lane: Arc<Lane>,
    slots: Arc<[Slot]>,
    mut stream: TcpStream,
    (sets, releases): (usize, usize),
) {
    let (mut outgoing, mut answered) = (Vec::new(), Vec::new());
    let mut incoming = vec![0; 64 * 1_024];
    let mut deferred = false;
    poll_fn(|context| {
        // Yield once, so that the other ready tasks can queue their commands and all go out in one
        // write.
        if !core::mem::replace(&mut deferred, true) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        deferred = false;
        loop {
            {
                let mut queue = lane.lock();
                if queue.ended {
                    return Poll::Ready(());
                }
                core::mem::swap(&mut outgoing, &mut queue.outgoing);
                queue.sleeper = Some(context.waker().clone());
            }
            write(&mut stream, &mut outgoing, context);
            let mut read = ReadBuf::new(&mut incoming);
            let ready = Pin::new(&mut stream).poll_read(context, &mut read);
            core::task::ready!(ready).expect("the server is up");
            // Every reply is one line. A line that is split over two reads is counted with its
            // second half.
            let lines = read.filled().iter().filter(|&&byte| byte == b'\n').count();
            assert!(!read.filled().is_empty(), "the server is up");
            answered.extend(lane.lock().unanswered.drain(..lines));
            for answer in answered.drain(..) {
                let (task, is_last) = match answer {
                    Answer::Set { task } => (task, &slots[task].sets, sets),
                    Answer::Release { task } => (task, &slots[task].releases, releases),
                }
                .counted();
                if is_last {
                    let waker = slots[task].waker.lock().expect("nobody panics").take();
                    waker.into_iter().for_each(Waker::wake);
                }
            }
        }
    })
    .await;
}

trait Counted {
    fn counted(self) -> (usize, bool);
}

impl Counted for (usize, &AtomicUsize, usize) {
    fn counted(self) -> (usize, bool) {
        let (task, count, needed) = self;
        (task, count.fetch_add(1, Ordering::AcqRel) + 1 == needed)
    }
}

fn write(stream: &mut TcpStream, outgoing: &mut Vec<u8>, context: &mut Context<'_>) {
    if outgoing.is_empty() {
        return;
    }
    match Pin::new(stream).poll_write(context, outgoing) {
        // 64 tasks with one command each fit into any socket's buffer.
        Poll::Ready(Ok(written)) if written == outgoing.len() => outgoing.clear(),
        other => panic!("{other:?} of {} bytes", outgoing.len()),
    }
}

fn write_all(bytes: &mut Vec<u8>, more: &[u8]) {
    bytes.extend_from_slice(more);
}

fn write_bulk(bytes: &mut Vec<u8>, text: &[u8]) {
    write!(bytes, "${}\r\n", text.len()).expect("memory takes it");
    bytes.extend_from_slice(text);
    bytes.extend_from_slice(b"\r\n");
}

/// Loads the script on every server and returns its hash.
fn load_script(ports: &[u16]) -> String {
    let mut hash = String::new();
    for port in ports {
        let client = redis::Client::open(format!("redis://127.0.0.1:{port}")).expect("a URL");
        let mut connection = client.get_connection().expect("the server is up");
        let load = redis::cmd("SCRIPT").arg("LOAD").arg(RELEASE_SCRIPT).query(&mut connection);
        hash = load.expect("the server takes the script");
    }
    hash
}
