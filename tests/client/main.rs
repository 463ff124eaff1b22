//! Tests the client from its public API down to the bytes, with nodes in memory and a clock that
//! the test moves. No test here waits in real time.

mod acquisition;
mod blocking;
mod cancellation;
mod closing;
mod connections;
mod credentials;
mod docs;
mod extension;
mod forked;
mod handle;
mod lease;
mod line;
mod logs;
mod many;
#[cfg(feature = "metrics")]
mod metrics;
mod node;
mod observing;
mod outage;
mod permits;
mod readiness;
mod replies;
mod secrets;
mod taken;
mod tasks;
mod waiting;
mod watching;
mod work;
mod world;

use redlock_client::environment::BoxFuture;
use redlock_client::{AcquireError, AcquireErrorKind, Lease, Redlock};

type Acquiring<'a> = BoxFuture<'a, Result<Lease, AcquireError>>;

fn acquiring<'a>(redlock: &'a Redlock, resource: &'a str) -> Acquiring<'a> {
    Box::pin(redlock.acquire(resource).into_future())
}

fn kind(result: Result<Lease, AcquireError>) -> AcquireErrorKind {
    result.unwrap_err().kind()
}
