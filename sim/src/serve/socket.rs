//! Listeners and connections: TCP, Unix sockets, TLS, and a network in memory.

use std::fs;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use bytes::BytesMut;
use rustls::{ServerConfig, ServerConnection};
use tokio::io::{Interest, Ready};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixStream};

use super::memory::{Accepted, Listener, Memory};

/// Maximum number of connections that the kernel queues before we accept them.
const BACKLOG: u32 = 1_024;

/// The network that connects masters and workers.
#[derive(Clone, Debug)]
pub(super) enum Network {
    /// The machine's own.
    Kernel,
    Memory(Arc<Memory>),
}

impl Network {
    /// Listens at `address`; on the machine's own network at any free port if its port is 0.
    pub(super) fn listen(&self, address: SocketAddr) -> io::Result<Door> {
        match self {
            Self::Kernel => Door::at(address),
            Self::Memory(memory) => memory.listen(address).map(Door::Memory),
        }
    }
}

/// A listening socket.
pub(super) enum Door {
    Memory(Listener),
    Tcp(TcpListener),
    Path(UnixListener),
    Tls(TcpListener, Arc<ServerConfig>),
}

/// One connection. Only [`Socket::ready`] waits.
pub(super) enum Socket {
    Memory(Accepted),
    Tcp(TcpStream),
    Path(UnixStream),
    Tls(TcpStream, Box<ServerConnection>),
}

impl Door {
    /// Listens at `address`; at any free port if its port is 0.
    pub(super) fn at(address: SocketAddr) -> io::Result<Self> {
        listen(address).map(Self::Tcp)
    }

    /// Listens at `path`, after removing a file that an earlier process left there.
    pub(super) fn at_path(path: &Path) -> io::Result<Self> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => UnixListener::bind(path).map(Self::Path),
        }
    }

    /// Listens at `address` for TLS connections.
    pub(super) fn secure(address: SocketAddr, config: Arc<ServerConfig>) -> io::Result<Self> {
        Ok(Self::Tls(listen(address)?, config))
    }

    /// Returns the local address.
    ///
    /// # Errors
    ///
    /// If the listener is a Unix socket, which has no address.
    pub(super) fn address(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Memory(listener) => Ok(listener.address),
            Self::Tcp(listener) | Self::Tls(listener, _) => listener.local_addr(),
            Self::Path(_) => Err(io::ErrorKind::AddrNotAvailable.into()),
        }
    }

    /// Accepts the next connection.
    pub(super) async fn accept(&self) -> io::Result<Socket> {
        match self {
            Self::Memory(listener) => listener.accept().await.map(Socket::Memory),
            Self::Tcp(listener) => listener.accept().await.map(|(stream, _)| Socket::Tcp(stream)),
            Self::Path(listener) => listener.accept().await.map(|(stream, _)| Socket::Path(stream)),
            Self::Tls(listener, config) => {
                let (stream, _) = listener.accept().await?;
                let session =
                    ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
                Ok(Socket::Tls(stream, Box::new(session)))
            }
        }
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

impl Socket {
    /// Returns the name of the client, if the network knows it.
    pub(super) fn client(&self) -> Option<&str> {
        match self {
            Self::Memory(accepted) => Some(&accepted.client),
            Self::Tcp(_) | Self::Path(_) | Self::Tls(..) => None,
        }
    }

    /// Returns the address of the peer, in the form of `CLIENT LIST`.
    pub(super) fn peer(&self) -> String {
        match self {
            Self::Tcp(stream) | Self::Tls(stream, _) => {
                stream.peer_addr().map_or_else(|_| String::new(), |it| it.to_string())
            }
            Self::Memory(_) | Self::Path(_) => String::from("?:0"),
        }
    }

    /// Returns the local address, in the form of `CLIENT LIST`.
    pub(super) fn local(&self) -> String {
        match self {
            Self::Tcp(stream) | Self::Tls(stream, _) => {
                stream.local_addr().map_or_else(|_| String::new(), |it| it.to_string())
            }
            Self::Memory(accepted) => accepted.address.to_string(),
            Self::Path(_) => String::from("?:0"),
        }
    }

    /// Makes writes leave at once, without waiting to fill a packet.
    pub(super) fn set_nodelay(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) | Self::Tls(stream, _) => stream.set_nodelay(true),
            Self::Memory(_) | Self::Path(_) => Ok(()),
        }
    }

    /// Makes the connection end with a reset.
    pub(super) fn set_reset(&mut self) {
        match self {
            Self::Memory(accepted) => accepted.end.set_reset(),
            Self::Tcp(stream) | Self::Tls(stream, _) => {
                // The peer may be gone already.
                let _ = stream.set_zero_linger();
            }
            Self::Path(_) => {}
        }
    }

    /// Waits until the connection can be read or written.
    pub(super) async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        match self {
            Self::Memory(accepted) => Ok(accepted.end.ready(interest).await),
            Self::Tcp(stream) | Self::Tls(stream, _) => stream.ready(interest).await,
            Self::Path(stream) => stream.ready(interest).await,
        }
    }

    /// Appends received bytes to `buffer`. Returns their number; 0 means that no more will come.
    pub(super) fn try_read(&mut self, buffer: &mut BytesMut) -> io::Result<usize> {
        match self {
            Self::Memory(accepted) => accepted.end.try_read(buffer),
            Self::Tcp(stream) => stream.try_read_buf(buffer),
            Self::Path(stream) => stream.try_read_buf(buffer),
            Self::Tls(stream, session) => read_secure(stream, session, buffer),
        }
    }

    /// Writes some of `bytes`, and returns how many.
    pub(super) fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Memory(accepted) => accepted.end.try_write(bytes),
            Self::Tcp(stream) => stream.try_write(bytes),
            Self::Path(stream) => stream.try_write(bytes),
            Self::Tls(stream, session) => {
                flush(stream, session)?;
                if session.wants_write() {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                let taken = session.writer().write(bytes)?;
                flush(stream, session)?;
                Ok(taken)
            }
        }
    }

    /// Returns true if TLS holds bytes that the kernel has not accepted yet.
    pub(super) fn is_stuck(&self) -> bool {
        matches!(self, Self::Tls(_, session) if session.wants_write())
    }

    /// Hands the bytes that TLS holds to the kernel.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tls(stream, session) => flush(stream, session),
            Self::Memory(_) | Self::Tcp(_) | Self::Path(_) => Ok(()),
        }
    }
}

/// The encrypted side of a TLS connection.
struct Raw<'a>(&'a TcpStream);

impl Read for Raw<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(bytes)
    }
}

impl Write for Raw<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn flush(stream: &TcpStream, session: &mut ServerConnection) -> io::Result<()> {
    while session.wants_write() {
        match session.write_tls(&mut Raw(stream)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn read_secure(
    stream: &TcpStream,
    session: &mut ServerConnection,
    buffer: &mut BytesMut,
) -> io::Result<usize> {
    loop {
        let came = session.read_tls(&mut Raw(stream))?;
        let state = session.process_new_packets();
        // Sends the TLS alert that tells a rejected peer the reason.
        flush(stream, session)?;
        let state = state.map_err(io::Error::other)?;
        let count = state.plaintext_bytes_to_read();
        if count > 0 {
            let place = buffer.len();
            buffer.resize(place + count, 0);
            session.reader().read_exact(&mut buffer[place..])?;
            return Ok(count);
        }
        if came == 0 || state.peer_has_closed() {
            return Ok(0);
        }
    }
}
