//! The real world: tokio's network, timers and tasks, and the operating system's clock and entropy.

#![expect(clippy::disallowed_methods, reason = "everything else reaches the world through here")]

use core::time::Duration;
use std::io;

use tokio::net::{TcpStream, UnixStream};

use super::{Address, BoxFuture, Endpoint, Environment, Stream};
use crate::protocol::BootInstant;

#[cfg(any(target_os = "linux", target_os = "android"))]
const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;
/// On Apple's systems the monotonic clock is the one that counts time asleep.
#[cfg(target_vendor = "apple")]
const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
compile_error!("a lease needs a clock that counts time asleep, and none is known for this system");

/// The world of a tokio runtime with its network and timers enabled.
#[derive(Clone, Copy, Debug, Default)]
pub struct TokioEnvironment;

impl Environment for TokioEnvironment {
    fn connect<'a>(&'a self, to: &'a Endpoint) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            let stream = match to.address() {
                Address::Tcp { host, port } => TcpStream::connect((host.as_str(), *port)).await?,
                Address::Unix(path) => {
                    let stream = UnixStream::connect(path).await?;
                    return Ok(Box::new(stream) as Box<dyn Stream>);
                }
            };
            stream.set_nodelay(true)?;
            // A link that gives a connection up must be sure that the kernel sends nothing more of
            // it: a SET sent after the reset would outlive the release that is owed for it.
            stream.set_zero_linger()?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }

    fn now(&self) -> BootInstant {
        let time = rustix::time::clock_gettime(CLOCK);
        let seconds = u64::try_from(time.tv_sec).expect("a clock that counts from boot");
        let nanos = u64::try_from(time.tv_nsec).expect("nanoseconds are not negative");
        BootInstant::from_nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
    }

    fn sleep_until(&self, at: BootInstant) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            loop {
                let left = at.since(TokioEnvironment.now());
                if left.is_zero() {
                    return;
                }
                // Tokio's clock stands still while the host sleeps, ours does not: look again.
                tokio::time::sleep(left.min(LONGEST_SLEEP)).await;
            }
        })
    }

    fn spawn(&self, _name: &'static str, task: BoxFuture<'static, ()>) {
        tokio::spawn(task);
    }

    fn fill_random(&self, bytes: &mut [u8]) -> io::Result<()> {
        getrandom::fill(bytes).map_err(|error| io::Error::other(error.to_string()))
    }
}

/// How late a timer can be after the host has slept.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn the_clock_does_not_go_back() {
        let first = TokioEnvironment.now();
        assert!(TokioEnvironment.now() >= first);
        assert!(first > BootInstant::ZERO);
    }

    #[tokio::test]
    async fn a_timer_is_never_early() {
        let at = TokioEnvironment.now().after(Duration::from_millis(3));
        TokioEnvironment.sleep_until(at).await;
        assert!(TokioEnvironment.now() >= at);
        TokioEnvironment.sleep_until(BootInstant::ZERO).await;
    }

    #[tokio::test]
    async fn a_dropped_connection_is_reset() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let endpoint: Endpoint = format!("redis://127.0.0.1:{port}").parse().unwrap();
        let mut ours = TokioEnvironment.connect(&endpoint).await.unwrap();
        let (mut theirs, _) = listener.accept().await.unwrap();
        ours.write_all(b"hello").await.unwrap();
        let mut bytes = [0; 5];
        theirs.read_exact(&mut bytes).await.unwrap();
        assert_eq!(&bytes, b"hello");
        drop(ours);
        let error = theirs.read(&mut bytes).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }

    #[test]
    fn entropy_is_not_constant() {
        let (mut one, mut other) = ([0; 20], [0; 20]);
        TokioEnvironment.fill_random(&mut one).unwrap();
        TokioEnvironment.fill_random(&mut other).unwrap();
        assert_ne!(one, other);
    }
}
