//! A node: the wire around a simulated master.

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use turmoil::net::{TcpListener, TcpStream};

use super::request::{self, Malformed};
use super::world::{State, Told, World};
use crate::engine::stage::nodes::key_ended;
use crate::history::{Answer, EventKind, Writer};
use crate::master::{Change, Command, Reply};

/// Where nodes listen.
const PORT: u16 = 6_379;

/// The host of a node: serves connections while there is a server process, and is a kernel that
/// refuses them while there is none.
pub(super) struct NodeProcess {
    world: Arc<World>,
    node: u8,
    /// Which start of the process this is.
    incarnation: Option<u32>,
    accepting: Option<Pin<Box<dyn Future<Output = Accepted>>>>,
    ends: Vec<ServerEnd>,
}

type Accepted = io::Result<(TcpListener, TcpStream, SocketAddr)>;

impl NodeProcess {
    pub(super) fn new(world: &Arc<World>, node: u8) -> Self {
        let world = Arc::clone(world);
        Self { world, node, incarnation: None, accepting: None, ends: Vec::new() }
    }

    /// Drops everything of a process that is gone, and listens anew for one that is there.
    fn follow(&mut self, incarnation: Option<u32>) {
        if core::mem::replace(&mut self.incarnation, incarnation) != incarnation {
            self.ends.clear();
            self.accepting = None;
            if incarnation.is_some() {
                let bound = TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT));
                self.accepting = Some(Box::pin(async move { accept(bound.await?).await }));
            }
        }
    }
}

impl Future for NodeProcess {
    type Output = turmoil::Result;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let process = self.get_mut();
        let mut state = process.world.lock();
        let host = &mut state.nodes[usize::from(process.node)];
        host.waker = Some(context.waker().clone());
        let incarnation = host.master.is_running().then(|| host.master.incarnation());
        drop(state);
        process.follow(incarnation);
        while let Some(accepting) = &mut process.accepting
            && let Poll::Ready(accepted) = accepting.as_mut().poll(context)
        {
            let (listener, stream, client) = accepted?;
            process.ends.push(ServerEnd::new(stream, client));
            process.accepting = Some(Box::pin(accept(listener)));
        }
        let (world, node) = (&process.world, process.node);
        process.ends.retain_mut(|end| end.poll(world, node, context).is_pending());
        Poll::Pending
    }
}

async fn accept(listener: TcpListener) -> Accepted {
    let (stream, client) = listener.accept().await?;
    Ok((listener, stream, client))
}

/// A node's end of a connection.
struct ServerEnd {
    stream: TcpStream,
    client: SocketAddr,
    /// What the kernel has taken in and the process has not.
    received: Vec<u8>,
    outgoing: Vec<u8>,
    /// No more bytes will come.
    ended: bool,
}

impl ServerEnd {
    fn new(stream: TcpStream, client: SocketAddr) -> Self {
        Self { stream, client, received: Vec::new(), outgoing: Vec::new(), ended: false }
    }

    /// Ready when the connection is over.
    fn poll(&mut self, world: &World, node: u8, context: &mut Context<'_>) -> Poll<()> {
        loop {
            let read = self.poll_read(world, context).is_ready();
            let mut state = world.lock();
            let connection = state.connections.get(&self.client);
            if connection.is_some_and(|connection| connection.cut) {
                return Poll::Ready(());
            }
            let stalled = state.nodes[usize::from(node)].stalls > 0;
            if !stalled && self.execute(&mut state, node).is_err() {
                return Poll::Ready(());
            }
            drop(state);
            if self.poll_write(context).is_err() || (self.ended && !stalled) {
                return Poll::Ready(());
            }
            if !read || self.ended {
                return Poll::Pending;
            }
        }
    }

    /// What has arrived is read even while the process executes nothing: it is in the kernel, and a
    /// reset by the client does not take it back.
    fn poll_read(&mut self, world: &World, context: &mut Context<'_>) -> Poll<()> {
        if self.ended {
            return Poll::Pending;
        }
        if world.lock().connections.get(&self.client).is_some_and(|it| it.reset) {
            self.ended = true;
            return Poll::Ready(());
        }
        let mut chunk = [0; 4_096];
        let mut chunk = ReadBuf::new(&mut chunk);
        let read = Pin::new(&mut self.stream).poll_read(context, &mut chunk);
        let read = core::task::ready!(read);
        self.received.extend_from_slice(chunk.filled());
        self.ended = read.is_err() || chunk.filled().is_empty();
        Poll::Ready(())
    }

    fn poll_write(&mut self, context: &mut Context<'_>) -> Result<(), ()> {
        while !self.outgoing.is_empty() {
            match Pin::new(&mut self.stream).poll_write(context, &self.outgoing) {
                Poll::Ready(Ok(written)) if written > 0 => drop(self.outgoing.drain(..written)),
                Poll::Ready(_) => return Err(()),
                Poll::Pending => return Ok(()),
            }
        }
        Ok(())
    }

    fn execute(&mut self, state: &mut State, node: u8) -> Result<(), Malformed> {
        while let Some(arguments) = request::take(&mut self.received)? {
            if request::is_greeting(&arguments) {
                self.outgoing.extend(b"-ERR unknown command\r\n");
                continue;
            }
            let connection = state.connections.get_mut(&self.client);
            let told = connection.and_then(|connection| connection.to_execute.pop_front());
            let told = told.expect("every command that arrives was written");
            match request::command(&arguments) {
                Some(command) => {
                    let reply = state.execute(node, told, command);
                    request::write(&mut self.outgoing, &reply);
                }
                None => self.outgoing.extend(b"-ERR unknown command\r\n"),
            }
        }
        Ok(())
    }
}

impl State {
    fn execute(&mut self, node: u8, told: Told, command: Command<'_>) -> Reply {
        let wall_ms = self.wall_ms(node);
        let Told { command: number, attempt, op } = told;
        let writer = Writer::Attempt(attempt);
        let done = self.nodes[usize::from(node)].master.execute(command, wall_ms, writer);
        if let Some(expired) = &done.expired {
            self.record(key_ended(node, expired));
        }
        if matches!(command, Command::Info) {
            return done.reply;
        }
        let answer = match done.reply {
            Reply::Error(_) => Answer::Error,
            Reply::Integer(0) | Reply::Nil => Answer::No,
            _ => Answer::Yes,
        };
        self.record(EventKind::Executed {
            command: number,
            attempt,
            node,
            op,
            answer,
            changed: done.effect.change != Change::Nothing,
            before: done.effect.before,
            after: done.effect.after,
            expires_wall_ms: done.effect.expires_wall_ms.unwrap_or(u64::MAX),
        });
        if let Some(ended) = &done.ended {
            self.record(key_ended(node, ended));
        }
        done.reply
    }

    /// The active expiry cycle of every node that runs, as soon as a key's time is over.
    pub(super) fn expire_keys(&mut self) {
        for node in 0..self.nodes.len() as u8 {
            let wall_ms = self.wall_ms(node);
            let now_ns = self.now_ns;
            let Self { nodes, recorder, .. } = self;
            let host = &mut nodes[usize::from(node)];
            let due = host.master.keyspace().next_expiry().is_some_and(|when| when < wall_ms);
            if due && host.master.is_running() && host.stalls == 0 {
                host.master.expire_active(wall_ms, |ended| {
                    recorder.record(now_ns, key_ended(node, &ended));
                });
            }
        }
    }
}
