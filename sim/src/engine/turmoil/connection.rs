//! A client's end of a connection: turmoil carries the bytes, the world decides which have arrived.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use lock_judge::ids::ConnectionId;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use turmoil::net::TcpStream;

use super::shared::Readable;
use super::shared::Shared;

/// Largest number of bytes in one read.
const CHUNK: usize = 4_096;

/// A stream that passes only the bytes that have arrived in the world, and that resets itself when
/// it is dropped.
pub(super) struct ClientStream {
    shared: Arc<Shared>,
    stream: TcpStream,
    number: ConnectionId,
}

impl ClientStream {
    pub(super) fn new(shared: Arc<Shared>, stream: TcpStream, number: ConnectionId) -> Self {
        Self { shared, stream, number }
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Readable::Bytes(arrived) = ready!(self.shared.poll_readable(self.number))? else {
            return Poll::Ready(Ok(()));
        };
        let mut chunk = [0; CHUNK];
        let most = arrived.min(buffer.remaining()).min(CHUNK);
        let mut chunk = ReadBuf::new(&mut chunk[..most]);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut chunk))?;
        buffer.put_slice(chunk.filled());
        let mut state = self.shared.lock();
        if let Some(line) = state.lines.get_mut(&self.number).filter(|line| !line.still) {
            line.read(chunk.filled().len());
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let may = ready!(self.shared.poll_writable(self.number, bytes))?;
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, &bytes[..may]))?;
        assert_eq!(written, may, "turmoil takes what it is given");
        Poll::Ready(Ok(written))
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
        self.shared.lock().let_go(self.number);
    }
}
