//! Credentials from a provider.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use redlock_client::{AcquireErrorKind, Credentials, NodeName};
use tracing::Level;

use crate::logs::logged_in;
use crate::world::{SECOND, World};

#[test]
fn an_error_of_the_provider_is_the_answer_of_the_node() {
    let mut shown = String::new();
    let log = logged_in(Level::TRACE, |world| {
        let is_sealed = Arc::new(AtomicBool::new(true));
        let vault = Arc::clone(&is_sealed);
        let provider = move |node: NodeName| {
            let is_sealed = vault.load(Ordering::Relaxed) && node.place < 3;
            async move { if is_sealed { Err("sealed") } else { Ok(Credentials::new("iam", "hush")) } }
        };
        let redlock = world.builder().credentials(provider).build().unwrap();
        let error = world.block_on(redlock.acquire("res").wait(SECOND)).unwrap_err();
        assert_eq!(error.kind(), AcquireErrorKind::TooFewNodes);
        let reason = Some("the provider of credentials failed: sealed");
        assert_eq!(error.nodes()[2].error.as_deref(), reason);
        let health = redlock.health();
        assert_eq!(health.nodes[0].last_error.as_deref(), reason);
        assert!(health.nodes[3].connected, "the provider answers for this node");
        is_sealed.store(false, Ordering::Relaxed);
        let lease = world.block_on(redlock.acquire("res").wait(5 * SECOND)).unwrap();
        shown = format!("{error} {health} {redlock:?} {lease:?}");
        world.block_on(lease.release());
    });
    assert!(log.contains("the provider of credentials failed: sealed"), "{log}");
    assert!(!log.contains("hush") && !shown.contains("hush"), "{shown} {log}");
}

#[test]
fn a_panic_of_the_provider_is_an_error_of_the_connection() {
    let fault = || std::panic::resume_unwind(Box::new("the provider's own fault"));
    let is_broken = Arc::new(AtomicBool::new(true));
    for panics_at_once in [true, false] {
        let world = World::new();
        is_broken.store(true, Ordering::Relaxed);
        let vault = Arc::clone(&is_broken);
        let provider = move |_: NodeName| {
            let is_broken = vault.load(Ordering::Relaxed);
            if is_broken && panics_at_once {
                fault();
            }
            async move {
                if is_broken {
                    fault();
                }
                Ok::<_, std::io::Error>(Credentials::new("iam", "hush"))
            }
        };
        let redlock = world.builder().credentials(provider).build().unwrap();
        let error = world.block_on(redlock.acquire("res").wait(SECOND)).unwrap_err();
        let reason = Some("the provider of credentials failed: it panicked");
        assert_eq!(error.nodes()[2].error.as_deref(), reason);
        is_broken.store(false, Ordering::Relaxed);
        // No call of the application reaches the client meanwhile.
        let all_introduced = |_: &mut Context<'_>| {
            let mut all = true;
            world.each_node(|node| all &= !node.executed.is_empty());
            if all { Poll::Ready(()) } else { Poll::Pending }
        };
        world.block_on(poll_fn(all_introduced));
        drop(world.block_on(redlock.acquire("res")).unwrap());
    }
}
