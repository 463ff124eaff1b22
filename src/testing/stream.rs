//! A client's end of a connection to a node in memory.

use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::clock::ClockTimer;
use super::fleet::Fleet;
use super::node::Arrival;
use crate::environment::Timer;

/// Bytes written are at the node at once; its replies arrive after its delay.
pub(super) struct MemoryStream {
    fleet: Arc<Fleet>,
    place: usize,
    /// Number of the connection at its node.
    id: u64,
    timer: ClockTimer,
}

impl MemoryStream {
    /// Opens a connection to the node at `place`.
    ///
    /// # Errors
    ///
    /// If there is no such node, or no process runs there.
    pub(super) fn open(fleet: &Arc<Fleet>, place: usize) -> io::Result<Self> {
        let id = fleet.turn(|nodes, _, _| {
            let node = nodes.get_mut(place).ok_or(io::ErrorKind::NotFound)?;
            node.accept()
        })?;
        Ok(Self { fleet: Arc::clone(fleet), place, id, timer: ClockTimer::new(&fleet.clock) })
    }
}

impl AsyncRead for MemoryStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { fleet, place, id, timer } = &mut *self;
        loop {
            let read = fleet.turn(|nodes, at, _| nodes[*place].read(*id, at, buffer, context));
            match read? {
                Arrival::Read => return Poll::Ready(Ok(())),
                Arrival::At(arrives) => ready!(timer.poll_until(arrives, context)),
                Arrival::Nothing => return Poll::Pending,
            }
        }
    }
}

impl AsyncWrite for MemoryStream {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Self { fleet, place, id, .. } = &*self;
        let written = fleet.turn(|nodes, at, wakes| nodes[*place].receive(*id, bytes, at, wakes));
        Poll::Ready(written.map(|()| bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Drop for MemoryStream {
    fn drop(&mut self) {
        self.fleet.last_turn(|nodes| nodes[self.place].close(self.id));
    }
}
