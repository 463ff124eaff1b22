//! Dialling with credentials of a provider.

use core::future::Future;
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::BytesMut;
use redlock_protocol::BootInstant;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::*;
use crate::credentials::{Credentials, NodeProvider, Provider};
use crate::environment::{BoxFuture, Timer};

/// A network of one line.
struct Line(Mutex<Option<DuplexStream>>);

impl Environment for Line {
    fn connect<'a>(&'a self, _: &'a Endpoint) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
        let stream = self.0.lock().unwrap().take().expect("one connection a line");
        Box::pin(async move { Ok(Box::new(stream) as Box<dyn Stream>) })
    }

    fn now(&self) -> BootInstant {
        BootInstant::ZERO
    }

    fn timer(&self) -> Box<dyn Timer> {
        unreachable!("a dial has no timer")
    }

    fn can_spawn(&self) -> io::Result<()> {
        Ok(())
    }

    fn spawn(&self, _: BoxFuture<'static, ()>) {}

    fn spawn_apart(&self, _: BoxFuture<'static, ()>) {}

    fn fill_random(&self, _: &mut [u8]) -> io::Result<()> {
        Ok(())
    }
}

pub(super) fn poll<T>(future: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Returns the client's first bytes on a new connection, and the outcome after the server's `reply`.
fn dialed(endpoint: &Endpoint, reply: &str) -> (String, Result<(), DialError>) {
    let (ours, mut theirs) = duplex(1 << 16);
    let line = Line(Mutex::new(Some(ours)));
    let mut dialing = pin!(dial(&line, endpoint));
    let early = poll(dialing.as_mut());
    let mut bytes = BytesMut::new();
    while let Poll::Ready(Ok(1..)) = poll(pin!(theirs.read_buf(&mut bytes))) {}
    let said = String::from_utf8_lossy(&bytes).replace("\r\n", " ");
    if let Poll::Ready(outcome) = early {
        return (said, outcome.map(drop));
    }
    let _ = poll(pin!(theirs.write_all(reply.repeat(9).as_bytes())));
    drop(theirs);
    match poll(dialing) {
        Poll::Ready(outcome) => (said, outcome.map(drop)),
        Poll::Pending => panic!("the server is gone"),
    }
}

fn endpoint(provider: Arc<Provider>) -> Endpoint {
    let mut endpoint: Endpoint = "redis://a".parse().unwrap();
    endpoint.set_provider(NodeProvider::new(2, &provider));
    endpoint
}

#[test]
fn credentials_are_asked_for_at_each_connection() {
    let asked = AtomicU32::new(0);
    let endpoint = endpoint(Arc::new(move |node| {
        let number = asked.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            assert_eq!((node.place, &*node.node), (2, "redis://a:6379"));
            Ok(Credentials::new("iam", format!("token-{number}")))
        })
    }));
    for number in 0..2 {
        let (said, outcome) = dialed(&endpoint, "+OK\r\n");
        assert!(said.contains(&format!(" AUTH $3 iam $7 token-{number} ")), "{said}");
        assert!(outcome.is_ok());
    }
}

#[test]
fn an_error_of_the_provider_is_the_reason_of_the_failed_dial() {
    let endpoint = endpoint(Arc::new(|_| {
        Box::pin(async { Err(io::Error::other("the vault\nis sealed").into()) })
    }));
    let (said, outcome) = dialed(&endpoint, "+OK\r\n");
    assert_eq!(said, "", "nothing is sent without credentials");
    let text = outcome.unwrap_err().text();
    assert_eq!(&*text, r"the provider of credentials failed: the vault\nis sealed");
}

#[test]
fn provided_credentials_are_hidden_in_texts_of_the_server() {
    let endpoint = endpoint(Arc::new(|_| Box::pin(async { Ok(Credentials::new("iam", "hush")) })));
    let (_, outcome) = dialed(&endpoint, "-WRONGPASS iam has not 'hush'\r\n");
    assert_eq!(&*outcome.unwrap_err().text(), "WRONGPASS … has not '…'");
    assert_eq!(&*endpoint.printable(b"NOPERM User iam", None), "NOPERM User …");
    assert!(!format!("{endpoint:?} {:?}", Credentials::new("iam", "hush")).contains("hush"));
}
