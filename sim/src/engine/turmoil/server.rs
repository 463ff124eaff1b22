//! Turmoil's host of a server: carries bytes between connections and the world. The world decides
//! what happens to the bytes.

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use lock_judge::ids::ServerId;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use turmoil::net::{TcpListener, TcpStream};

use super::shared::Shared;

/// Port on which servers listen.
pub(super) const PORT: u16 = 6_379;

/// Accepts every connection; no client uses one that the world has refused.
pub(super) struct Carrier {
    shared: Arc<Shared>,
    server: ServerId,
    accepting: Pin<Box<dyn Future<Output = Accepted>>>,
    ends: Vec<ServerEnd>,
}

type Accepted = io::Result<(TcpListener, TcpStream, SocketAddr)>;

impl Carrier {
    pub(super) fn new(shared: &Arc<Shared>, server: ServerId) -> Self {
        let bound = TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT));
        let accepting = Box::pin(async move { accept(bound.await?).await });
        Self { shared: Arc::clone(shared), server, accepting, ends: Vec::new() }
    }
}

async fn accept(listener: TcpListener) -> Accepted {
    let (stream, client) = listener.accept().await?;
    Ok((listener, stream, client))
}

impl Future for Carrier {
    type Output = turmoil::Result;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let carrier = self.get_mut();
        let mut state = carrier.shared.lock();
        state.active = true;
        state.carriers[carrier.server] = Some(context.waker().clone());
        drop(state);
        while let Poll::Ready(accepted) = carrier.accepting.as_mut().poll(context) {
            let (listener, stream, client) = accepted?;
            carrier.ends.push(ServerEnd { stream, client });
            carrier.accepting = Box::pin(accept(listener));
        }
        let (shared, server) = (&carrier.shared, carrier.server);
        carrier.ends.retain_mut(|end| end.poll(shared, server, context).is_pending());
        Poll::Pending
    }
}

/// A server's end of a connection.
struct ServerEnd {
    stream: TcpStream,
    client: SocketAddr,
}

impl ServerEnd {
    /// Returns `Ready` when the client has closed the connection.
    fn poll(&mut self, shared: &Shared, server: ServerId, context: &mut Context<'_>) -> Poll<()> {
        while let Poll::Ready(read) = self.poll_read(shared, server, context) {
            if !read {
                return Poll::Ready(());
            }
        }
        let mut guard = shared.lock();
        let state = &mut *guard;
        let Some(&number) = state.numbers.get(&self.client) else { return Poll::Pending };
        let wire = state.world.wire.as_mut().expect("clients speak bytes");
        let outgoing = core::mem::take(&mut wire.end(number).outgoing);
        drop(guard);
        if outgoing.is_empty() {
            return Poll::Pending;
        }
        match Pin::new(&mut self.stream).poll_write(context, &outgoing) {
            Poll::Ready(Ok(written)) => assert_eq!(written, outgoing.len(), "turmoil takes all"),
            Poll::Ready(Err(_)) => return Poll::Ready(()),
            Poll::Pending => unreachable!("turmoil's buffers are large"),
        }
        Poll::Pending
    }

    /// Reads bytes into the kernel of the server, whether or not a process runs. Returns true if
    /// bytes were read.
    fn poll_read(
        &mut self,
        shared: &Shared,
        server: ServerId,
        context: &mut Context<'_>,
    ) -> Poll<bool> {
        let mut chunk = [0; 4_096];
        let mut chunk = ReadBuf::new(&mut chunk);
        let read = Pin::new(&mut self.stream).poll_read(context, &mut chunk);
        let read = core::task::ready!(read);
        if read.is_err() || chunk.filled().is_empty() {
            return Poll::Ready(false);
        }
        let mut guard = shared.lock();
        let state = &mut *guard;
        let number = state.numbers[&self.client];
        let wire = state.world.wire.as_mut().expect("clients speak bytes");
        wire.end(number).requests.push(chunk.filled());
        if state.lines[&number].still {
            state.world.answer_at_once(server, number);
        }
        Poll::Ready(true)
    }
}
