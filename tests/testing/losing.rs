//! Leases that a test ends, and errors that it constructs.

use std::future::{Future, pending};
use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::Duration;

use redlock_client::testing::Nodes;
use redlock_client::{
    AcquireError, AcquireErrorKind, Closed, ExtendError, ExtendErrorKind, Lease, LostReason,
    NodeAnswer, NodeVerdict, Released, ResourceError, WithError,
};

use crate::{MS, SECOND, TTL};

const REASONS: [LostReason; 5] = [
    LostReason::Closed,
    LostReason::DeadlinePassed,
    LostReason::KeepAliveEnded,
    LostReason::KeepAliveFailed,
    LostReason::KeysGone,
];

#[tokio::test(start_paused = true)]
async fn a_lost_lease_is_lost_everywhere_for_the_reason_given() {
    for reason in REASONS {
        let redlock = Nodes::new(3).client();
        let lease = redlock.acquire("res").await.unwrap();
        let mut before = lease.lost();
        let mut context = Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut before).poll(&mut context).is_pending());
        lease.lose(reason);
        assert_eq!(before.await, reason);
        assert_eq!(lease.lost().await, reason);
        assert_eq!(lease.check(Duration::ZERO), Err(reason));
        assert!(lease.check_confirmed(Duration::ZERO).is_err());
        assert_eq!((lease.is_valid(), lease.remaining()), (false, Duration::ZERO));
        let extended = lease.extend(TTL).await.map_err(|error| error.kind());
        assert_eq!(extended, Err(ExtendErrorKind::Lost(reason)));
        assert_eq!(lease.guard(pending::<()>()).await, Err(reason));
        lease.lose(LostReason::Released);
        assert_eq!(lease.check(Duration::ZERO), Err(reason), "the first reason stays");
        assert_eq!(lease.release().await, Released::Confirmed);
    }
}

#[tokio::test(start_paused = true)]
async fn lock_of_a_lease_that_was_lost_is_free() {
    let nodes = Nodes::new(3);
    let (redlock, other) = (nodes.client(), nodes.client());
    let lease = redlock.acquire("res").await.unwrap();
    lease.lose(LostReason::KeysGone);
    nodes.advance(MS).await;
    assert_eq!(nodes.copies("res"), 0);
    assert!(other.try_acquire("res").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn work_is_dropped_when_its_lease_is_lost_by_hand() {
    let redlock = Nodes::new(3).client();
    let done = redlock.acquire("res").with(async |lease: &Lease| {
        lease.lose(LostReason::KeepAliveFailed);
        pending::<()>().await;
    });
    assert_eq!(done.await, Err(WithError::Lost(LostReason::KeepAliveFailed)));
}

#[test]
fn errors_are_made_of_their_parts() {
    let answer = NodeAnswer::of(1, "redis://b:6379", NodeVerdict::Taken);
    let error = AcquireError::of(AcquireErrorKind::Taken);
    assert_eq!(
        (error.kind(), error.attempts(), error.retry_after()),
        (AcquireErrorKind::Taken, 0, None)
    );
    let error = error.with_retry_after(SECOND).with_answers(2, vec![answer.clone()]);
    assert_eq!((error.attempts(), error.retry_after()), (2, Some(SECOND)));
    assert_eq!(error.nodes(), std::slice::from_ref(&answer));
    assert_eq!(error.with_resource("b").resource(), Some(&b"b"[..]));
    let loss = ResourceError::of("b", LostReason::KeysGone);
    assert_eq!((loss.resource(), loss.error()), (&b"b"[..], &LostReason::KeysGone));
    assert_eq!(ExtendError::of(ExtendErrorKind::TooMany).kind(), ExtendErrorKind::TooMany);
    assert_eq!(Closed::of(vec![answer.clone()]).left(), [answer]);
    assert!(Closed::of(Vec::new()).is_complete());
}
