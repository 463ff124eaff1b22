//! A client's end of a connection.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use turmoil::net::TcpStream;

use super::world::World;

/// A stream that a partition can reset, and that resets itself when it is dropped: turmoil would
/// still deliver what a partition held back.
pub(super) struct ClientStream {
    world: Arc<World>,
    stream: TcpStream,
    address: SocketAddr,
}

impl ClientStream {
    pub(super) fn new(world: Arc<World>, stream: TcpStream, address: SocketAddr) -> Self {
        Self { world, stream, address }
    }

    fn check(&self) -> io::Result<()> {
        let cut = self.world.lock().connections[&self.address].cut;
        if cut { Err(io::ErrorKind::ConnectionReset.into()) } else { Ok(()) }
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl Drop for ClientStream {
    fn drop(&mut self) {
        let mut guard = self.world.lock();
        let state = &mut *guard;
        let Some(connection) = state.connections.get_mut(&self.address) else { return };
        let (client, node) = (usize::from(connection.client), usize::from(connection.node));
        // A process that dies leaves the closing to its kernel, which sends what was written.
        connection.reset |= !state.clients[client].dead;
        let current = &mut state.clients[client].connected[node];
        if *current == Some(self.address) {
            *current = None;
        }
    }
}
