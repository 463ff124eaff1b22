//! A proxy that keeps its clients' connections open while the server behind it goes away.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Forwards to a server that can be changed.
pub(crate) struct Switch {
    address: SocketAddr,
    server: Arc<AtomicU16>,
    /// Number of connections to servers so far.
    opened: Arc<AtomicUsize>,
    accepting: JoinHandle<()>,
}

impl Switch {
    pub(crate) async fn to(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let server = Arc::new(AtomicU16::new(port));
        let opened = Arc::new(AtomicUsize::new(0));
        let (of_all, opened_by_all) = (Arc::clone(&server), Arc::clone(&opened));
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (port, opened) = (Arc::clone(&of_all), Arc::clone(&opened_by_all));
                tokio::spawn(serve(client, port, opened));
            }
        });
        Self { address, server, opened, accepting }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Number of connections to servers so far.
    pub(crate) fn opened(&self) -> usize {
        self.opened.load(Ordering::SeqCst)
    }

    /// Directs new connections to this port: those of new clients, and those of clients whose
    /// server has closed.
    pub(crate) fn lead_to(&self, port: u16) {
        self.server.store(port, Ordering::SeqCst);
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Serves a client until it is gone.
async fn serve(mut client: TcpStream, port: Arc<AtomicU16>, opened: Arc<AtomicUsize>) {
    let (mut from_client, mut to_client) = client.split();
    loop {
        let Ok(mut server) = TcpStream::connect(("127.0.0.1", port.load(Ordering::SeqCst))).await
        else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        opened.fetch_add(1, Ordering::SeqCst);
        let (mut from_server, mut to_server) = server.split();
        let up = async {
            let mut chunk = [0; 4_096];
            loop {
                match from_client.read(&mut chunk).await {
                    Ok(0) | Err(_) => return,
                    // Bytes that the server no longer accepts are lost.
                    Ok(length) => drop(to_server.write_all(&chunk[..length]).await),
                }
            }
        };
        tokio::select! {
            () = up => return,
            _ = copy(&mut from_server, &mut to_client) => {}
        }
    }
}
