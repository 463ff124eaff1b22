//! A network in memory, for masters and workers of one thread in simulated time.
//!
//! It only moves bytes: delays and partitions are the masters' affair, as on loopback TCP.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, Ready};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Unread bytes that a direction of a connection holds at most, as the kernel's buffers would.
const CAPACITY_BYTES: usize = 64 * 1_024;

/// The listeners of a network.
#[derive(Debug, Default)]
pub(super) struct Memory {
    listeners: Mutex<BTreeMap<SocketAddr, UnboundedSender<Accepted>>>,
}

/// A listener's end of a connection.
#[derive(Debug)]
pub(super) struct Accepted {
    pub(super) end: End,
    /// Name of the client that dialled.
    pub(super) client: String,
    pub(super) address: SocketAddr,
}

/// A listening socket; it closes when it is dropped.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) address: SocketAddr,
    accepted: tokio::sync::Mutex<UnboundedReceiver<Accepted>>,
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SocketAddr, UnboundedSender<Accepted>>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Listens at `address`.
    ///
    /// # Errors
    ///
    /// If another listener is open there.
    pub(super) fn listen(&self, address: SocketAddr) -> io::Result<Listener> {
        let mut listeners = self.lock();
        if listeners.get(&address).is_some_and(|it| !it.is_closed()) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let (sender, accepted) = unbounded_channel();
        listeners.insert(address, sender);
        Ok(Listener { address, accepted: tokio::sync::Mutex::new(accepted) })
    }

    /// Opens a connection of `client` to the listener at `address`.
    ///
    /// # Errors
    ///
    /// `ConnectionRefused` if nothing listens there.
    pub(super) fn connect(&self, address: SocketAddr, client: &str) -> io::Result<End> {
        let (here, there) = End::pair();
        let accepted = Accepted { end: there, client: client.to_owned(), address };
        let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
        let listeners = self.lock();
        let listener = listeners.get(&address).ok_or_else(refused)?;
        listener.send(accepted).map_err(|_| refused())?;
        Ok(here)
    }
}

impl Listener {
    /// Accepts the next connection.
    ///
    /// # Errors
    ///
    /// If another listener has taken the address over.
    pub(super) async fn accept(&self) -> io::Result<Accepted> {
        let accepted = self.accepted.lock().await.recv().await;
        accepted.ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
    }
}

/// One direction of a connection.
#[derive(Debug, Default)]
struct Lane {
    bytes: BytesMut,
    /// True once no more bytes will be written.
    is_ended: bool,
    /// True once nobody will read.
    is_abandoned: bool,
    is_reset: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Lane {
    fn wake(&mut self) {
        self.reader.take().into_iter().chain(self.writer.take()).for_each(Waker::wake);
    }

    fn is_readable(&self) -> bool {
        !self.bytes.is_empty() || self.is_ended || self.is_reset
    }

    fn room(&self) -> usize {
        CAPACITY_BYTES - self.bytes.len()
    }

    fn is_writable(&self) -> bool {
        self.room() > 0 || self.is_abandoned || self.is_reset
    }
}

/// One end of a connection.
#[derive(Debug)]
pub struct End {
    lanes: Arc<Mutex<[Lane; 2]>>,
    /// The lane that this end reads; it writes the other one.
    reads: usize,
    /// True if the end is closed with a reset.
    resets: bool,
}

impl End {
    fn pair() -> (Self, Self) {
        let lanes = Arc::new(Mutex::default());
        let end = |reads| Self { lanes: Arc::clone(&lanes), reads, resets: false };
        (end(0), end(1))
    }

    /// Calls `use_lanes` with the lanes that this end reads and writes.
    fn with<T>(&self, use_lanes: impl FnOnce(&mut Lane, &mut Lane) -> T) -> T {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let [first, second] = &mut *lanes;
        if self.reads == 0 { use_lanes(first, second) } else { use_lanes(second, first) }
    }

    /// Makes the connection end with a reset.
    pub(super) fn set_reset(&mut self) {
        self.resets = true;
    }

    /// Waits until the connection can be read or written.
    pub(super) async fn ready(&self, interest: Interest) -> Ready {
        std::future::poll_fn(|context| {
            self.with(|read, written| {
                let mut ready = Ready::EMPTY;
                if interest.is_readable() {
                    if read.is_readable() {
                        ready |= Ready::READABLE;
                    }
                    read.reader = Some(context.waker().clone());
                }
                if interest.is_writable() {
                    if written.is_writable() {
                        ready |= Ready::WRITABLE;
                    }
                    written.writer = Some(context.waker().clone());
                }
                if ready.is_empty() { Poll::Pending } else { Poll::Ready(ready) }
            })
        })
        .await
    }

    /// Removes up to `most` received bytes, and passes them to `take`. Returns their number; 0 means
    /// that no more will come.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if nothing has arrived, `ConnectionReset` after a reset.
    fn read(&self, most: usize, take: impl FnOnce(&[u8])) -> io::Result<usize> {
        self.with(|lane, _| {
            if lane.is_reset {
                return Err(io::ErrorKind::ConnectionReset.into());
            }
            let count = lane.bytes.len().min(most);
            if count == 0 && !lane.is_ended {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            take(&lane.bytes[..count]);
            lane.bytes.advance(count);
            lane.wake();
            Ok(count)
        })
    }

    /// Appends received bytes to `buffer`, as many as it has room for. Returns their number; 0 means
    /// that no more will come.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if nothing has arrived, `ConnectionReset` after a reset.
    pub(super) fn try_read(&self, buffer: &mut BytesMut) -> io::Result<usize> {
        let room = buffer.capacity() - buffer.len();
        self.read(room, |bytes| buffer.extend_from_slice(bytes))
    }

    /// Writes some of `bytes`, and returns how many.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if there is no room, `ConnectionReset` after a reset, and `BrokenPipe` if the
    /// peer has closed the connection.
    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.with(|_, lane| {
            if lane.is_reset {
                return Err(io::ErrorKind::ConnectionReset.into());
            }
            if lane.is_abandoned || lane.is_ended {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            let count = lane.room().min(bytes.len());
            if count == 0 && !bytes.is_empty() {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            lane.bytes.extend_from_slice(&bytes[..count]);
            lane.wake();
            Ok(count)
        })
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let resets = self.resets;
        self.with(|read, written| {
            read.is_abandoned = true;
            written.is_ended = true;
            for lane in [read, written] {
                lane.is_reset |= resets;
                lane.wake();
            }
        });
    }
}

impl AsyncRead for End {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.read(buffer.remaining(), |bytes| buffer.put_slice(bytes)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.with(|lane, _| lane.reader = Some(context.waker().clone()));
                Poll::Pending
            }
            read => Poll::Ready(read.map(drop)),
        }
    }
}

impl AsyncWrite for End {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.try_write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.with(|_, lane| lane.writer = Some(context.waker().clone()));
                Poll::Pending
            }
            written => Poll::Ready(written),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(|_, lane| {
            lane.is_ended = true;
            lane.wake();
        });
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    fn address() -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], 6_379))
    }

    fn connected() -> (End, End) {
        let network = Memory::default();
        let listener = network.listen(address()).expect("the address is free");
        let here = network.connect(address(), "c1").expect("it listens");
        let there = listener.accepted.try_lock().expect("no other").try_recv().expect("one came");
        (here, there.end)
    }

    #[test]
    fn nothing_listens_once_the_listener_is_dropped() {
        let network = Memory::default();
        let refused = |network: &Memory| network.connect(address(), "c1").map_err(|it| it.kind());
        assert_eq!(refused(&network).err(), Some(io::ErrorKind::ConnectionRefused));
        let listener = network.listen(address()).expect("the address is free");
        let taken = network.listen(address()).map_err(|it| it.kind());
        assert_eq!(taken.err(), Some(io::ErrorKind::AddrInUse));
        drop(listener);
        assert_eq!(refused(&network).err(), Some(io::ErrorKind::ConnectionRefused));
        assert!(network.listen(address()).is_ok());
    }

    #[test]
    fn written_bytes_are_read_before_the_end() {
        let (here, there) = connected();
        assert_eq!(here.try_write(b"abc").ok(), Some(3));
        drop(here);
        let mut buffer = BytesMut::with_capacity(2);
        assert_eq!(there.try_read(&mut buffer).ok(), Some(2));
        buffer.reserve(8);
        assert_eq!(there.try_read(&mut buffer).ok(), Some(1));
        assert_eq!((&buffer[..], there.try_read(&mut buffer.clone()).ok()), (&b"abc"[..], Some(0)));
        assert_eq!(there.try_write(b"x").map_err(|it| it.kind()), Err(io::ErrorKind::BrokenPipe));
    }

    #[test]
    fn a_reset_drops_what_was_not_read() {
        let (here, mut there) = connected();
        assert_eq!(there.try_write(b"abc").ok(), Some(3));
        there.set_reset();
        drop(there);
        let mut buffer = BytesMut::with_capacity(8);
        let read = here.try_read(&mut buffer).map_err(|it| it.kind());
        assert_eq!(read, Err(io::ErrorKind::ConnectionReset));
    }

    #[tokio::test]
    async fn a_writer_waits_for_room() {
        let (mut here, mut there) = connected();
        let sent = vec![7; 3 * CAPACITY_BYTES];
        let length = sent.len();
        let write = async move { here.write_all(&sent).await };
        let mut received = Vec::new();
        let (written, read) = tokio::join!(write, there.read_to_end(&mut received));
        assert!(written.is_ok());
        assert_eq!((read.ok(), received.len()), (Some(length), length));
    }
}
