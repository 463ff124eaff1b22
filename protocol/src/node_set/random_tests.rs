//! Invariants under random events, against nodes that follow the rules.

mod lease_records;
mod play;
mod steps;

use proptest::prelude::*;

use self::play::Play;
use self::steps::{Do, Terms, terms, what};
use crate::testing::{RESOURCE, node};

const NODES: usize = 3;

/// State of a client before the random steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    New,
    Granted,
    /// Granted by the nodes 0 and 1. The SET to node 2 may be executed late; meanwhile the lease has
    /// read that node 2 lacks the key.
    GrantedByTwo,
}

/// Applies `steps` to a client.
fn play(steps: Vec<Do>, terms: Terms, start: Start) -> Result<(), TestCaseError> {
    let mut play = Play::new(terms);
    play.world.client.connect(play.world.now);
    play.world.drain();
    if start != Start::New {
        (0..NODES).for_each(|index| play.go(Do::Open(index)));
        play.go(Do::Round(0, [true; NODES]));
        play.go(Do::Acquire);
        if start == Start::GrantedByTwo {
            play.go(Do::CloseLate(2));
        }
        play.go(Do::Round(0, [true; NODES]));
        play.go(Do::Deliver);
        prop_assert_eq!(play.held.len(), 1);
    }
    if start == Start::GrantedByTwo {
        play.go(Do::Pass(500));
        (0..NODES).for_each(|index| play.go(Do::Open(index)));
        (0..NODES).for_each(|index| play.drain_inbox(index));
    }
    steps.into_iter().for_each(|step| play.go(step));
    play.heal();
    for (index, it) in play.world.nodes.iter().enumerate() {
        // A use that waited until a majority counts may be making an attempt at this very moment.
        let mut opened = play.opened.iter();
        let known = it.key.is_none_or(|key| {
            play.left.contains(&key)
                || opened.any(|&lock| play.world.client.token(lock) == Some(key))
        });
        prop_assert!(known || play.world.now > it.expires, "a key on {}", index);
        prop_assert_eq!(play.world.client.owed(node(index)), 0);
    }
    if play.world.client.uses(RESOURCE) {
        // A use waits until a majority counts again.
        play.tend(210);
    }
    prop_assert!(!play.world.client.uses(RESOURCE));
    prop_assert_eq!(play.world.client.poll_timeout(), None);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// No panic, no timer that changes nothing (`World::fire`), never two leases. Once all nodes
    /// answer, no release is owed, no key is left behind and no timer is armed.
    #[test]
    fn random_schedules_have_one_holder_and_leave_no_key(
        steps in prop::collection::vec(what(), 1..100),
        terms in terms(),
    ) {
        play(steps, terms, Start::New)?;
    }

    /// The same for a lease that is extended. No other attempt is granted between the lease's grant
    /// and the beginning of a successful round; each key that a success counted is there until the
    /// deadline, unless its node has forgotten it, whatever is executed late; and no lease is kept
    /// alive for longer than allowed.
    #[test]
    fn random_schedules_extend_only_continuous_leases(
        steps in prop::collection::vec(what(), 1..60),
        terms in terms(),
    ) {
        play(steps, terms, Start::Granted)?;
    }

    /// The same for a lease with a SET that may be executed late.
    #[test]
    fn random_schedules_lose_no_lease_without_cause(
        steps in prop::collection::vec(what(), 1..60),
        terms in terms(),
    ) {
        play(steps, terms, Start::GrantedByTwo)?;
    }
}
