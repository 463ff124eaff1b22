//! Connects to a host that may have several addresses (RFC 8305, "Happy Eyeballs").

use core::future::poll_fn;
use core::task::Poll;
use core::time::Duration;
use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpStream, lookup_host};

use super::now;
use super::timer::TokioTimer;
use crate::environment::{BoxFuture, Timer};

/// Longest head start of an address over the next one.
const HEAD_START_MAX: Duration = Duration::from_millis(250);

/// Opens a connection to the first address of `host` that accepts one. An address that does not
/// answer delays the next one by at most a share of `within`, so that all of them are tried in
/// time.
pub(super) async fn connect(host: &str, port: u16, within: Duration) -> io::Result<TcpStream> {
    // The name is resolved anew each time.
    let addresses: Vec<SocketAddr> = lookup_host((host, port)).await?.collect();
    let share = within / u32::try_from(addresses.len().max(1)).unwrap_or(u32::MAX);
    connect_any(alternated(addresses), share.min(HEAD_START_MAX)).await
}

/// Returns the addresses with the two families alternating: a network without a route for one
/// family costs one head start.
fn alternated(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let first_is_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (one, other): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| address.is_ipv6() == first_is_v6);
    let (mut one, mut other) = (one.into_iter(), other.into_iter());
    let turns = core::iter::from_fn(|| {
        let turn: Vec<SocketAddr> = one.next().into_iter().chain(other.next()).collect();
        Some(turn).filter(|turn| !turn.is_empty())
    });
    turns.flatten().collect()
}

async fn connect_any(addresses: Vec<SocketAddr>, head_start: Duration) -> io::Result<TcpStream> {
    let mut waiting = addresses.into_iter();
    let mut trying: Vec<BoxFuture<'_, io::Result<TcpStream>>> = Vec::new();
    let mut error = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    loop {
        match waiting.next() {
            Some(address) => trying.push(Box::pin(TcpStream::connect(address))),
            None if trying.is_empty() => return Err(error),
            None => {}
        }
        let (mut timer, until) = (TokioTimer::New, now().after(head_start));
        let is_last = waiting.as_slice().is_empty();
        let outcome = poll_fn(|context| {
            for place in 0..trying.len() {
                if let Poll::Ready(outcome) = trying[place].as_mut().poll(context) {
                    drop(trying.swap_remove(place));
                    return Poll::Ready(Some(outcome));
                }
            }
            if is_last { Poll::Pending } else { timer.poll_until(until, context).map(|()| None) }
        });
        match outcome.await {
            Some(Ok(stream)) => return Ok(stream),
            Some(Err(it)) => error = it,
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream as BlockingStream};
    use std::os::fd::OwnedFd;

    use rustix::net::{AddressFamily, SocketType, bind, listen, socket};

    use super::*;

    /// An address that neither accepts nor refuses connections: its queue is full.
    struct BlackHole {
        address: SocketAddr,
        _queue: (TcpListener, Vec<BlockingStream>),
    }

    impl BlackHole {
        fn new() -> Self {
            let any: SocketAddr = ([127, 0, 0, 1], 0).into();
            let socket: OwnedFd = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
            bind(&socket, &any).unwrap();
            listen(&socket, 0).unwrap();
            let listener = TcpListener::from(socket);
            let address = listener.local_addr().unwrap();
            let patience = Duration::from_millis(100);
            let queued =
                core::iter::from_fn(|| BlockingStream::connect_timeout(&address, patience).ok());
            let queued = queued.collect();
            Self { address, _queue: (listener, queued) }
        }
    }

    /// Returns the address reached, long before the system gives up the first of `addresses`.
    async fn reached(addresses: Vec<SocketAddr>) -> io::Result<SocketAddr> {
        let connecting = connect_any(addresses, Duration::from_millis(1));
        let connected = tokio::time::timeout(Duration::from_secs(10), connecting).await;
        connected.expect("no address is waited for")?.peer_addr()
    }

    #[tokio::test]
    async fn an_address_that_does_not_answer_delays_no_other() {
        let (hole, listener) = (BlackHole::new(), TcpListener::bind("127.0.0.1:0").unwrap());
        let good = listener.local_addr().unwrap();
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let reached = reached(vec![hole.address, closed, hole.address, good]).await;
        assert_eq!(reached.unwrap(), good);
    }

    #[tokio::test]
    async fn a_host_that_refuses_everywhere_is_an_error() {
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let error = reached(vec![closed, closed]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        let error = reached(Vec::new()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn families_take_turns() {
        let [v4, v6]: [fn(u16) -> SocketAddr; 2] =
            [|port| ([127, 0, 0, 1], port).into(), |port| ([0; 16], port).into()];
        let given = vec![v6(1), v6(2), v6(3), v4(4)];
        assert_eq!(alternated(given), [v6(1), v4(4), v6(2), v6(3)]);
    }
}
