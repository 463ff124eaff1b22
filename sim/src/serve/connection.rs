//! One connection to a master.
//!
//! Requests are taken in as they arrive, executed when they are due and the node executes at all,
//! and answered when that is due: what the network does to them lies in these two waits.

use std::collections::VecDeque;
use std::io;

use bytes::BytesMut;
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::TcpStream;

use super::limits::{ARRIVALS_MAX, BATCH_MAX, READ_BYTES, REPLIES_BYTES_MAX};
use super::node::Node;
use crate::history::Writer;
use crate::master::resp::{ProtocolError, Request, Requests, Value};
use crate::master::server::{Answer, Session, Touched, Turn};

const TOO_MANY: &[u8] = b"-ERR max number of clients reached\r\n";

/// Tells a client that there are too many.
pub(super) async fn refuse(mut stream: TcpStream) {
    // Whether it hears it is its own affair.
    let _ = stream.write_all(TOO_MANY).await;
}

/// Serves `stream`, the `id`-th connection of `node`, until it ends.
pub(super) async fn serve(stream: TcpStream, node: &Node, id: u64) {
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let mut connection = Connection {
        node,
        stream,
        requests: Requests::default(),
        session: Session::new(id),
        arrivals: VecDeque::new(),
        replies: Vec::new(),
        sent: 0,
        touched: Vec::new(),
        waits_until_ns: None,
        takes: true,
        stays: true,
    };
    // An error ends this connection and nothing else.
    let _ = connection.run().await;
}

/// Something that came.
type Arrival = Result<Request, ProtocolError>;

struct Connection<'a> {
    node: &'a Node,
    stream: TcpStream,
    requests: Requests,
    session: Session,
    /// What came and is not executed.
    arrivals: VecDeque<Arrival>,
    /// What is answered and not sent.
    replies: Vec<u8>,
    /// How much of it is sent.
    sent: usize,
    touched: Vec<Touched>,
    /// `WAIT`: the next request waits until then.
    waits_until_ns: Option<u64>,
    /// Whether more is to come.
    takes: bool,
    /// Whether it is to be closed once everything is answered.
    stays: bool,
}

impl Connection<'_> {
    async fn run(&mut self) -> io::Result<()> {
        let node = self.node;
        loop {
            let mut changed = core::pin::pin!(node.changed.notified());
            changed.as_mut().enable();
            self.parse();
            self.execute().await;
            self.write()?;
            let unsent = self.sent < self.replies.len();
            let idle = self.arrivals.is_empty() && self.waits_until_ns.is_none();
            if !unsent && (!self.stays || (!self.takes && idle)) {
                return Ok(());
            }
            let reads = self.takes && self.stays && self.arrivals.len() < ARRIVALS_MAX;
            let interest = match (reads, unsent) {
                (true, true) => Some(Interest::READABLE | Interest::WRITABLE),
                (true, false) => Some(Interest::READABLE),
                (false, true) => Some(Interest::WRITABLE),
                (false, false) => None,
            };
            let due_ns = self.waits_until_ns;
            tokio::select! {
                biased;
                () = changed => {}
                ready = self.stream.ready(interest.unwrap_or(Interest::READABLE)),
                    if interest.is_some() => {
                    if ready?.is_readable() && reads {
                        self.read()?;
                    }
                }
                () = sleep_until(node, due_ns.unwrap_or_default()), if due_ns.is_some() => {}
            }
        }
    }

    fn read(&mut self) -> io::Result<()> {
        let buffer: &mut BytesMut = self.requests.buffer();
        buffer.reserve(READ_BYTES);
        match self.stream.try_read_buf(buffer) {
            Ok(0) => self.takes = false,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // What has come is executed all the same.
            Err(_) => self.takes = false,
        }
        Ok(())
    }

    /// Turns bytes into requests.
    fn parse(&mut self) {
        while self.stays && self.arrivals.len() < ARRIVALS_MAX {
            match self.requests.next_request() {
                Ok(None) => return,
                Ok(Some(request)) => self.arrivals.push_back(Ok(request)),
                Err(error) => {
                    self.arrivals.push_back(Err(error));
                    self.takes = false;
                    return;
                }
            }
        }
    }

    /// Executes what is due.
    async fn execute(&mut self) {
        if self.waits_until_ns.is_some_and(|until_ns| until_ns <= self.node.hours.now_ns()) {
            self.waits_until_ns = None;
            self.reply(&Value::Integer(0));
        }
        while self.stays && !self.arrivals.is_empty() && self.waits_until_ns.is_none() {
            if self.replies.len() - self.sent > REPLIES_BYTES_MAX {
                return;
            }
            let node = self.node;
            let mut server = node.server.lock().await;
            for _ in 0..BATCH_MAX {
                let Some(arrival) = self.arrivals.pop_front() else { return };
                let request = match arrival {
                    Ok(request) => request,
                    Err(error) => {
                        self.reply(&Value::error(error.to_string()));
                        self.stays = false;
                        return;
                    }
                };
                let turn = Turn {
                    wall_ns: node.wall_ns(),
                    writer: Writer::Operator,
                    touched: &mut self.touched,
                };
                let answer = self.session.execute(&mut server, &request, turn);
                self.touched.clear();
                match answer {
                    Answer::Reply(value) => self.reply(&value),
                    Answer::LastReply(value) => {
                        self.reply(&value);
                        self.stays = false;
                    }
                    Answer::Silence => {}
                    Answer::Wait { timeout_ms, .. } => {
                        let wait_ns = (timeout_ms.unsigned_abs()).saturating_mul(1_000_000);
                        let now_ns = node.hours.now_ns();
                        self.waits_until_ns = Some(match timeout_ms {
                            0 => u64::MAX,
                            _ => now_ns.saturating_add(wait_ns),
                        });
                    }
                }
                if !self.stays || self.waits_until_ns.is_some() {
                    return;
                }
            }
        }
    }

    fn reply(&mut self, value: &Value) {
        value.encode(self.session.protocol(), &mut self.replies);
    }

    fn write(&mut self) -> io::Result<()> {
        while self.sent < self.replies.len() {
            match self.stream.try_write(&self.replies[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        self.replies.clear();
        self.sent = 0;
        Ok(())
    }
}

async fn sleep_until(node: &Node, at_ns: u64) {
    if at_ns == u64::MAX {
        return core::future::pending().await;
    }
    #[expect(clippy::disallowed_methods, reason = "masters wait in real time")]
    tokio::time::sleep_until(node.hours.instant(at_ns)).await;
}
