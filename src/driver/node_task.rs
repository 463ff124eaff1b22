//! The task of one node: dials, writes, reads. It moves bytes and decides nothing.

use core::future::Future;
use core::pin::{Pin, pin};
use core::task::{Context, Poll};
use std::io;
use std::sync::Arc;

use bytes::{Buf, BytesMut};
use redlock_protocol::NodeIndex;
use tokio::io::{AsyncReadExt, AsyncWrite};

use super::Driver;
use crate::dial::{DialError, Dialed, dial};
use crate::environment::{BoxFuture, Stream};
use crate::panics::contain;
use crate::printable::printable;
use crate::resp::{Decoder, Malformed};

enum Transport {
    None,
    Dialing { epoch: u32, dial: BoxFuture<'static, Result<Dialed, DialError>> },
    Open(Connection),
}

struct Connection {
    epoch: u32,
    stream: Box<dyn Stream>,
    outgoing: BytesMut,
    /// Writability last reported to the driver.
    writable: bool,
    unflushed: bool,
    decoder: Decoder,
}

/// Reason for the end of a connection.
#[derive(Debug, thiserror::Error)]
enum Closed {
    #[error("the server closed the connection")]
    ByServer,
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

impl Transport {
    fn epoch(&self) -> Option<u32> {
        match self {
            Self::None => None,
            Self::Dialing { epoch, .. } | Self::Open(Connection { epoch, .. }) => Some(*epoch),
        }
    }

    fn outgoing(&mut self) -> Option<&mut BytesMut> {
        match self {
            Self::Open(connection) => Some(&mut connection.outgoing),
            _ => None,
        }
    }
}

/// Serves one node until the client is gone and no release is owed.
pub(crate) struct NodeTask {
    driver: Arc<Driver>,
    node: NodeIndex,
    transport: Transport,
    /// True between being woken and doing the work, which is deferred to the next poll.
    deferred: bool,
}

impl NodeTask {
    pub(crate) fn new(driver: Arc<Driver>, node: NodeIndex) -> Self {
        Self { driver, node, transport: Transport::None, deferred: false }
    }

    /// Drops the current transport and dials the connection `epoch`, if there is one.
    fn follow(&mut self, epoch: Option<u32>) {
        self.transport = match epoch {
            None => Transport::None,
            Some(epoch) => {
                self.driver.dialing(self.node, epoch);
                let (driver, node) = (Arc::clone(&self.driver), self.node);
                let dial =
                    Box::pin(
                        async move { dial(&**driver.environment(), driver.endpoint(node)).await },
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
        // The task must outlive a panic: it also sends the releases owed.
        let polled = contain(|| dial.as_mut().poll(context));
        match core::task::ready!(polled.unwrap_or(Poll::Ready(Err(DialError::Panicked)))) {
            Ok(Dialed { stream, decoder, is_tracked }) => {
                self.transport = Transport::Open(Connection {
                    epoch,
                    stream,
                    outgoing: BytesMut::new(),
                    writable: true,
                    unflushed: false,
                    decoder,
                });
                self.driver.connected(self.node, epoch, is_tracked);
            }
            Err(error) => self.close(error.text()),
        }
        Poll::Ready(())
    }

    fn poll_connection(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Transport::Open(connection) = &mut self.transport else {
            return Poll::Pending;
        };
        let polled = connection.poll(&self.driver, self.node, context);
        polled.map(|read| {
            if let Err(error) = read {
                self.close(printable(error.to_string().as_bytes(), &[], &[]));
            }
        })
    }

    fn close(&mut self, why: Arc<str>) {
        if let Some(epoch) = self.transport.epoch() {
            self.transport = Transport::None;
            self.driver.closed(self.node, epoch, why);
        }
    }
}

impl Connection {
    /// Writes as much as it can, then reads once. Ready when bytes were read or the connection is
    /// gone.
    fn poll(
        &mut self,
        driver: &Driver,
        node: NodeIndex,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Closed>> {
        self.write(driver, node, context)?;
        let read = pin!(self.stream.read_buf(self.decoder.room()));
        if core::task::ready!(read.poll(context)?) == 0 {
            return Poll::Ready(Err(Closed::ByServer));
        }
        Poll::Ready(Ok(driver.replies(node, self.epoch, &mut self.decoder)?))
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
                Poll::Ready(Ok(_)) => return Err(Closed::ByServer),
                Poll::Ready(Err(error)) => return Err(error.into()),
                Poll::Pending => break,
            }
            self.unflushed = true;
        }
        if self.unflushed && self.outgoing.is_empty() {
            match Pin::new(stream).poll_flush(context) {
                Poll::Ready(Ok(())) => self.unflushed = false,
                Poll::Ready(Err(error)) => return Err(error.into()),
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
        // Other ready tasks run first, so that the commands of all of them go out in one write. A
        // woken task would otherwise run next, before the others have added their commands.
        task.deferred = !task.deferred;
        if task.deferred {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if task.driver.is_inherited() {
            return Poll::Pending; // the runtime is inherited, too: its sockets are the parent's
        }
        loop {
            let (epoch, outgoing) = (task.transport.epoch(), task.transport.outgoing());
            let orders = task.driver.orders(task.node, epoch, outgoing, context);
            if orders.finished {
                return Poll::Ready(());
            }
            if orders.epoch != task.transport.epoch() {
                task.follow(orders.epoch);
            }
            let dialed = task.poll_dial(context).is_ready();
            let moved = task.poll_connection(context).is_ready();
            if dialed || moved {
                continue;
            }
            if !orders.look {
                return Poll::Pending;
            }
            task.driver.looked(task.node);
        }
    }
}

impl Drop for NodeTask {
    fn drop(&mut self) {
        if self.driver.is_inherited() {
            // Closing its socket here would end the parent's registration of it in epoll.
            core::mem::forget(core::mem::replace(&mut self.transport, Transport::None));
        }
        self.driver.node_task_ended(self.node, self.transport.epoch());
    }
}
