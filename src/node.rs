//! The task of one node: dials, writes, reads. It moves bytes and decides nothing.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::io;
use std::sync::Arc;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::driver::Driver;
use crate::environment::{BoxFuture, Stream};
use crate::protocol::{NodeIndex, Reply};
use crate::resp::Decoder;

/// Bytes read at once.
const CHUNK: usize = 4_096;

enum Transport {
    None,
    Dialing { epoch: u32, dial: BoxFuture<'static, io::Result<Box<dyn Stream>>> },
    Open(Connection),
}

struct Connection {
    epoch: u32,
    stream: Box<dyn Stream>,
    outgoing: BytesMut,
    /// The transport has been said to take bytes.
    writable: bool,
    unflushed: bool,
    decoder: Decoder,
}

/// The connection is gone.
struct Closed;

impl Transport {
    fn epoch(&self) -> Option<u32> {
        match self {
            Self::None => None,
            Self::Dialing { epoch, .. } | Self::Open(Connection { epoch, .. }) => Some(*epoch),
        }
    }
}

/// Serves one node until the client is gone and nothing is owed.
pub(crate) struct NodeTask {
    driver: Arc<Driver>,
    node: NodeIndex,
    transport: Transport,
}

impl NodeTask {
    pub(crate) fn new(driver: Arc<Driver>, node: NodeIndex) -> Self {
        Self { driver, node, transport: Transport::None }
    }

    /// Drops the transport that there is and dials `epoch`, if there is to be one.
    fn follow(&mut self, epoch: Option<u32>) {
        self.transport = match epoch {
            None => Transport::None,
            Some(epoch) => {
                let (driver, node) = (Arc::clone(&self.driver), self.node);
                let dial =
                    Box::pin(
                        async move { driver.environment().connect(driver.endpoint(node)).await },
                    );
                Transport::Dialing { epoch, dial }
            }
        };
    }

    fn poll_dial(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Transport::Dialing { epoch, dial } = &mut self.transport else {
            return Poll::Pending;
        };
        let epoch = *epoch;
        match core::task::ready!(dial.as_mut().poll(context)) {
            Ok(stream) => {
                self.transport = Transport::Open(Connection {
                    epoch,
                    stream,
                    outgoing: BytesMut::new(),
                    writable: true,
                    unflushed: false,
                    decoder: Decoder::default(),
                });
                self.driver.connected(self.node, epoch);
            }
            Err(error) => {
                tracing::debug!(node = self.node.get(), %error, "cannot connect");
                self.close();
            }
        }
        Poll::Ready(())
    }

    fn poll_connection(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Transport::Open(connection) = &mut self.transport else {
            return Poll::Pending;
        };
        let polled = connection.poll(&self.driver, self.node, context);
        polled.map(|read| read.unwrap_or_else(|Closed| self.close()))
    }

    fn close(&mut self) {
        if let Some(epoch) = self.transport.epoch() {
            self.transport = Transport::None;
            self.driver.closed(self.node, epoch);
        }
    }
}

impl Connection {
    /// Writes what it can, then reads once. Ready when something was read, or nothing ever will be.
    fn poll(
        &mut self,
        driver: &Driver,
        node: NodeIndex,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Closed>> {
        self.write(driver, node, context)?;
        let mut chunk = [0; CHUNK];
        let mut chunk = ReadBuf::new(&mut chunk);
        let read = core::task::ready!(Pin::new(&mut self.stream).poll_read(context, &mut chunk));
        if read.is_err() || chunk.filled().is_empty() {
            return Poll::Ready(Err(Closed));
        }
        self.decoder.push(chunk.filled());
        let mut replies: Vec<Reply> = Vec::new();
        let end = loop {
            match self.decoder.next() {
                Ok(Some(reply)) => replies.push(reply),
                Ok(None) => break Ok(()),
                // Whose answer this was is in doubt, and so is every later one (catalogue N5).
                Err(error) => {
                    tracing::warn!(node = node.get(), %error, "dropping the connection");
                    break Err(Closed);
                }
            }
        };
        driver.replies(node, self.epoch, &replies);
        Poll::Ready(end)
    }

    fn write(
        &mut self,
        driver: &Driver,
        node: NodeIndex,
        context: &mut Context<'_>,
    ) -> Result<(), Closed> {
        let stream = &mut self.stream;
        while !self.outgoing.is_empty() {
            match Pin::new(&mut *stream).poll_write(context, &self.outgoing) {
                Poll::Ready(Ok(written)) if written > 0 => self.outgoing.advance(written),
                Poll::Ready(_) => return Err(Closed),
                Poll::Pending => break,
            }
            self.unflushed = true;
        }
        if self.unflushed && self.outgoing.is_empty() {
            match Pin::new(stream).poll_flush(context) {
                Poll::Ready(Ok(())) => self.unflushed = false,
                Poll::Ready(Err(_)) => return Err(Closed),
                Poll::Pending => {}
            }
        }
        let writable = self.outgoing.is_empty();
        if core::mem::replace(&mut self.writable, writable) != writable {
            driver.writable(node, self.epoch, writable);
        }
        Ok(())
    }
}

impl Future for NodeTask {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let task = self.get_mut();
        loop {
            let orders = task.driver.orders(task.node, task.transport.epoch(), context);
            if orders.finished {
                return Poll::Ready(());
            }
            if orders.epoch != task.transport.epoch() {
                task.follow(orders.epoch);
            }
            if let Transport::Open(connection) = &mut task.transport {
                connection.outgoing.extend_from_slice(&orders.outgoing);
            }
            let dialed = task.poll_dial(context).is_ready();
            let moved = task.poll_connection(context).is_ready();
            if !dialed && !moved {
                return Poll::Pending;
            }
        }
    }
}

impl Drop for NodeTask {
    fn drop(&mut self) {
        self.driver.node_task_ended(self.node, self.transport.epoch());
    }
}
