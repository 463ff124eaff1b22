//! A proxy that keeps the connections of its clients, whatever becomes of the server behind it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Leads to whatever server it is told to.
pub(crate) struct Switch {
    address: SocketAddr,
    server: Arc<AtomicU16>,
    /// Connections to servers so far.
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

    /// How many connections to servers there have been.
    pub(crate) fn opened(&self) -> usize {
        self.opened.load(Ordering::SeqCst)
    }

    /// New connections to a server, from a client's and from those that lost theirs, lead there.
    pub(crate) fn lead_to(&self, port: u16) {
        self.server.store(port, Ordering::SeqCst);
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Until the client is gone.
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
                    // What the server does not take any more is lost.
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
