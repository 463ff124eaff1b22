//! Acquisitions that a closed client ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use redlock_client::AcquireErrorKind;
use redlock_client::observe::{Event, Observer};
use redlock_client::testing::Nodes;

use crate::SECOND;

/// Number of attempts that have begun.
#[derive(Default)]
struct Attempts(AtomicUsize);

impl Observer for Attempts {
    fn event(&self, event: &Event<'_>) {
        if matches!(event, Event::AttemptBegan { .. }) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[tokio::test(start_paused = true)]
#[expect(clippy::disallowed_methods, reason = "the tasks are joined")]
async fn no_attempt_of_a_queued_task_begins_when_the_client_is_closed() {
    let attempts = Arc::new(Attempts::default());
    let nodes = Nodes::new(3);
    let redlock = nodes.builder().observer(attempts.clone()).build().unwrap();
    let _held = redlock.acquire("res").await.unwrap();
    let queued = [(); 3].map(|()| {
        let redlock = redlock.clone();
        tokio::spawn(async move { redlock.acquire("res").wait(SECOND).await.map(drop) })
    });
    tokio::task::yield_now().await;
    assert_eq!(attempts.0.load(Ordering::Relaxed), 1);
    let _ = redlock.close(SECOND).await;
    for task in queued {
        assert_eq!(task.await.unwrap().unwrap_err().kind(), AcquireErrorKind::Closed);
    }
    assert_eq!(attempts.0.load(Ordering::Relaxed), 1);
}
