//! The production environment: tokio's network, timers and tasks, and the operating system's clock
//! and entropy.

#![expect(clippy::disallowed_methods, reason = "everything else reaches the world through here")]

mod apart;
mod connect;
mod timer;

use core::time::Duration;
use std::io;
use std::panic;
use std::sync::{Arc, OnceLock};

use redlock_protocol::BootInstant;
use rustix::net::sockopt;
use tokio::net::{TcpStream, UnixDatagram, UnixStream};
use tokio::runtime::Handle;

use self::apart::Apart;
use self::timer::TokioTimer;
use super::{Address, BoxFuture, Endpoint, Environment, Stream, Timer};

#[cfg(any(target_os = "linux", target_os = "android"))]
const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;
/// On Apple systems the monotonic clock counts time asleep. Its rate is adjusted; rustix has no
/// `CLOCK_MONOTONIC_RAW` there.
#[cfg(target_vendor = "apple")]
const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;

/// Environment on a tokio runtime with its network enabled.
#[derive(Clone, Debug, Default)]
pub struct TokioEnvironment {
    /// Thread that runs every task, if the client has a thread of its own; started at first use.
    background: Option<Arc<OnceLock<Apart>>>,
}

impl TokioEnvironment {
    /// Environment of a client that shares no scheduler with the application.
    pub(crate) fn in_background() -> Self {
        Self { background: Some(Arc::default()) }
    }
}

/// Returns the reading of the client's clock, which counts time asleep.
fn now() -> BootInstant {
    let time = rustix::time::clock_gettime(CLOCK);
    let seconds = u64::try_from(time.tv_sec).expect("a clock that counts from boot");
    let nanos = u64::try_from(time.tv_nsec).expect("nanoseconds are not negative");
    BootInstant::from_nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}

/// Returns the caller's runtime, if connections can be opened on it.
fn runtime_of_caller() -> io::Result<Handle> {
    let runtime = Handle::try_current().map_err(io::Error::other)?;
    // Tokio reports a runtime without network only by a panic.
    let socket = panic::catch_unwind(UnixDatagram::unbound);
    let socket = socket.map_err(|_| io::Error::other("the tokio runtime has no network enabled"));
    socket?.map(|_| runtime)
}

impl Environment for TokioEnvironment {
    fn connect<'a>(&'a self, to: &'a Endpoint) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            Ok(match to.address() {
                Address::Tcp { host, port } => {
                    let stream = connect::connect(host, *port, to.connect_timeout()).await?;
                    prepare(&stream, to.patience())?;
                    Box::new(stream) as Box<dyn Stream>
                }
                Address::Unix(path) => Box::new(UnixStream::connect(path).await?),
            })
        })
    }

    fn now(&self) -> BootInstant {
        now()
    }

    fn timer(&self) -> Box<dyn Timer> {
        Box::new(TokioTimer::New)
    }

    fn can_spawn(&self) -> io::Result<()> {
        let Some(background) = &self.background else {
            apart::timekeeper()?;
            return runtime_of_caller().map(drop);
        };
        if background.get().is_some_and(Apart::is_inherited) {
            return Err(io::Error::other("the client's thread is in the parent process"));
        }
        if background.get().is_none() {
            // If two threads start at the same time, one of them ends unused.
            let _ = background.set(Apart::start("redlock")?);
        }
        Ok(())
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        match self.background.as_ref().and_then(|it| it.get()) {
            Some(background) => background.spawn(task),
            None => drop(tokio::spawn(task)),
        }
    }

    fn spawn_apart(&self, task: BoxFuture<'static, ()>) {
        match self.background.as_ref().and_then(|it| it.get()) {
            Some(background) => background.spawn(task),
            None => apart::timekeeper().expect("it was started before").spawn(task),
        }
    }

    fn process(&self) -> u32 {
        std::process::id()
    }

    fn fill_random(&self, bytes: &mut [u8]) -> io::Result<()> {
        getrandom::fill(bytes).map_err(|error| io::Error::other(error.to_string()))
    }
}

/// Idle time after which a connection is probed. Then [`PROBES`] probes follow, [`PROBE_EVERY`]
/// apart. They detect a dead peer before the connection is needed.
const PROBE_AFTER: Duration = Duration::from_secs(15);
const PROBE_EVERY: Duration = Duration::from_secs(5);
const PROBES: u32 = 3;

fn prepare(stream: &TcpStream, patience: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    // When a link gives a connection up, the kernel must send no more of its bytes: a SET sent
    // after the reset would outlive the release that is owed for it.
    sockopt::set_socket_linger(stream, Some(Duration::ZERO))?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, PROBE_AFTER)?;
    sockopt::set_tcp_keepintvl(stream, PROBE_EVERY)?;
    sockopt::set_tcp_keepcnt(stream, PROBES)?;
    // Nor may the kernel retry for longer than the link waits.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        let patience_ms = i32::try_from(patience.as_millis()).unwrap_or(i32::MAX);
        sockopt::set_tcp_user_timeout(stream, patience_ms.unsigned_abs())?;
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = patience;
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn the_clock_does_not_go_back() {
        let first = TokioEnvironment::default().now();
        assert!(TokioEnvironment::default().now() >= first);
        assert!(first > BootInstant::ZERO);
    }

    #[tokio::test]
    async fn a_dropped_connection_is_reset() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let endpoint: Endpoint = format!("redis://127.0.0.1:{port}").parse().unwrap();
        let mut ours = TokioEnvironment::default().connect(&endpoint).await.unwrap();
        let (mut theirs, _) = listener.accept().await.unwrap();
        ours.write_all(b"hello").await.unwrap();
        let mut bytes = [0; 5];
        theirs.read_exact(&mut bytes).await.unwrap();
        assert_eq!(&bytes, b"hello");
        drop(ours);
        let error = theirs.read(&mut bytes).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }

    #[tokio::test]
    async fn the_kernel_is_no_more_patient_than_the_link() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        prepare(&stream, Duration::from_millis(700)).unwrap();
        assert!(stream.nodelay().unwrap());
        assert_eq!(sockopt::socket_linger(&stream).unwrap(), Some(Duration::ZERO));
        assert!(sockopt::socket_keepalive(&stream).unwrap());
        assert_eq!(sockopt::tcp_keepidle(&stream).unwrap(), PROBE_AFTER);
        #[cfg(any(target_os = "linux", target_os = "android"))]
        assert_eq!(sockopt::tcp_user_timeout(&stream).unwrap(), 700);
        prepare(&stream, Duration::MAX).unwrap();
    }

    #[tokio::test]
    async fn a_socket_with_a_path_is_reached() {
        let path = std::env::temp_dir().join(format!("redlock-client-{}", std::process::id()));
        let listener = tokio::net::UnixListener::bind(&path).unwrap();
        let endpoint: Endpoint = format!("unix://{}", path.display()).parse().unwrap();
        let mut ours = TokioEnvironment::default().connect(&endpoint).await.unwrap();
        let (mut theirs, _) = listener.accept().await.unwrap();
        std::fs::remove_file(&path).unwrap();
        ours.write_all(b"hello").await.unwrap();
        let mut bytes = [0; 5];
        theirs.read_exact(&mut bytes).await.unwrap();
        assert_eq!(&bytes, b"hello");
    }

    #[test]
    fn entropy_is_not_constant() {
        let (mut one, mut other) = ([0; 20], [0; 20]);
        TokioEnvironment::default().fill_random(&mut one).unwrap();
        TokioEnvironment::default().fill_random(&mut other).unwrap();
        assert_ne!(one, other);
    }
}
