//! A proxy between client and server that can delay, hold and cut connections.

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// Direction of bytes, as seen by the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    ToServer,
    ToClient,
}

/// Fault in one direction of every connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Delays every chunk by this long.
    Delays(Duration),
    /// Resets a connection after this many of its bytes have passed. Happens once.
    CutsAfter(usize),
    /// Lets this many bytes of a connection pass, and holds the others until the faults change.
    HoldsAfter(usize),
}

/// Proxy for connections to one server.
pub(crate) struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

struct Shared {
    server: SocketAddr,
    faults: Mutex<Vec<(Way, Fault)>>,
    changed: Notify,
    accepted: AtomicUsize,
    /// Connections with a number below this pass nothing on any more.
    frozen: AtomicUsize,
    passed: [AtomicUsize; 2],
}

impl Proxy {
    /// Starts a proxy without faults.
    pub(crate) async fn to(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let shared = Arc::new(Shared {
            server: SocketAddr::from(([127, 0, 0, 1], port)),
            faults: Mutex::default(),
            changed: Notify::new(),
            accepted: AtomicUsize::new(0),
            frozen: AtomicUsize::new(0),
            passed: Default::default(),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Self { address, shared, accepting }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Replaces the faults of all connections; held bytes are reconsidered.
    pub(crate) fn suffer(&self, faults: impl IntoIterator<Item = (Way, Fault)>) {
        *self.shared.faults.lock().expect("nobody panics") = faults.into_iter().collect();
        self.shared.changed.notify_waiters();
    }

    /// Keeps the existing connections open, but passes nothing on any more.
    pub(crate) fn freeze(&self) {
        self.shared.frozen.store(self.accepted(), Ordering::SeqCst);
    }

    /// Number of connections so far.
    pub(crate) fn accepted(&self) -> usize {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// Number of bytes passed, on all connections.
    pub(crate) fn passed(&self, way: Way) -> usize {
        self.shared.passed[way as usize].load(Ordering::SeqCst)
    }

    /// Returns true if no fault is left. A cut clears the list of faults.
    pub(crate) fn is_over(&self) -> bool {
        self.shared.faults.lock().expect("nobody panics").is_empty()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Shared {
    fn fault(&self, way: Way) -> Option<Fault> {
        let faults = self.faults.lock().expect("nobody panics");
        faults.iter().find(|(of, _)| *of == way).map(|&(_, fault)| fault)
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((client, _)) = listener.accept().await {
        let number = shared.accepted.fetch_add(1, Ordering::SeqCst);
        tokio::spawn(serve(number, client, Arc::clone(&shared)));
    }
}

async fn serve(number: usize, mut client: TcpStream, shared: Arc<Shared>) {
    let Ok(mut server) = TcpStream::connect(shared.server).await else {
        return;
    };
    for stream in [&client, &server] {
        // A drop resets the connection, so that unsent bytes are discarded.
        let set = stream.set_nodelay(true).and_then(|()| stream.set_zero_linger());
        set.expect("a connection of ours");
    }
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    // The end of either direction ends the connection.
    tokio::select! {
        biased;
        _ = pass(from_client, to_server, number, Way::ToServer, &shared) => {}
        _ = pass(from_server, to_client, number, Way::ToClient, &shared) => {}
    }
}

/// Passes bytes on until the connection must end.
async fn pass(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    number: usize,
    way: Way,
    shared: &Shared,
) -> io::Result<()> {
    let mut passed = 0;
    let mut chunk = [0; 4_096];
    loop {
        let length = from.read(&mut chunk).await?;
        if length == 0 {
            return Ok(());
        }
        let mut rest = &chunk[..length];
        while !rest.is_empty() {
            // Created before the faults are read, so that no change is missed.
            let changed = shared.changed.notified();
            if number < shared.frozen.load(Ordering::SeqCst) {
                return pending().await;
            }
            let fault = shared.fault(way);
            let room = match fault {
                Some(Fault::CutsAfter(limit) | Fault::HoldsAfter(limit)) => {
                    limit.saturating_sub(passed)
                }
                Some(Fault::Delays(_)) | None => usize::MAX,
            };
            if let Some(Fault::Delays(time)) = fault {
                tokio::time::sleep(time).await;
            }
            let (now, later) = rest.split_at(room.min(rest.len()));
            to.write_all(now).await?;
            shared.passed[way as usize].fetch_add(now.len(), Ordering::SeqCst);
            passed += now.len();
            rest = later;
            match fault {
                Some(Fault::CutsAfter(limit)) if passed >= limit => {
                    shared.faults.lock().expect("nobody panics").clear();
                    return Ok(());
                }
                Some(Fault::HoldsAfter(_)) if !rest.is_empty() => changed.await,
                _ => {}
            }
        }
    }
}
