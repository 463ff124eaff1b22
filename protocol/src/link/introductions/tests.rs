//! Votes that wait for an introduction, tested through the client that counts them.

use core::time::Duration;

use crate::command::{Op, Reply};
use crate::lock::{AttemptError, Limit, LockConfig};
use crate::restart::{Introduction, RestartGuard, RunId, Standing};
use crate::testing::{
    NODE_TIMEOUT, TTL, World, canary, decided, failed, held_by, introduction, link_config,
    lock_config, ms, node,
};
use crate::validity::Drift;
use crate::{LinkConfig, NodeSet};

const MAX_AGE: Duration = Duration::from_secs(1);

/// A client of one node whose connection was opened just now.
fn world() -> World {
    World::warm_with(LinkConfig { introduction_max_age: MAX_AGE, ..link_config() }, 1)
}

/// Commands that were written and are unanswered.
fn asked(world: &World) -> Vec<Op> {
    world.nodes[0].inbox.iter().map(|&(_, op)| op).collect()
}

fn standing(client: &NodeSet, world: &World) -> Standing {
    client.standing(node(0), world.now)
}

// ---- behind a look

#[test]
fn a_look_after_a_long_silence_asks_what_has_become_of_the_node() {
    let mut world = world();
    let limit = Limit::Until(world.now.after(ms(60_000)));
    world.change(0, Some((9, 30_000)));
    world.acquire(LockConfig { limit, ..lock_config(1) }, 1);
    (0..3).for_each(|_| world.answer(0));
    world.pass(ms(900));
    assert_eq!(asked(&world), []);
    world.nodes[0].introduction =
        Introduction { run_id: RunId([2; 20]), canary: canary(2), ..introduction(1) };
    world.pass(ms(4_200));
    assert!(matches!(asked(&world)[..], [Op::Look { .. }, Op::Introduce]), "{:?}", asked(&world));
    (0..2).for_each(|_| world.answer(0));
    assert!(matches!(standing(&world.client, &world), Standing::Quarantined(_)));
}

// ---- behind a SET

#[test]
fn the_key_of_a_withheld_vote_is_released_once() {
    let link = LinkConfig { introduction_max_age: MAX_AGE, ..link_config() };
    let mut world = World::warm_with(link, 3);
    world.pass(MAX_AGE);
    world.acquire(lock_config(3), 1);
    world.answer(0);
    (1..3).for_each(|index| world.answer_with(index, held_by(9)));
    assert_eq!(failed(&world.events()), Some(AttemptError::Taken));
    world.pass_answering(NODE_TIMEOUT * 3);
    assert_eq!(world.nodes[0].written.iter().filter(|&op| *op == World::del(1)).count(), 1);
}

#[test]
fn a_set_soon_after_an_introduction_needs_no_other() {
    let mut world = world();
    world.pass(MAX_AGE - ms(1));
    world.acquire(lock_config(1), 1);
    assert_eq!(asked(&world), [World::set(1)]);
    world.answer(0);
    assert!(decided(&world.events()).is_some());
}

#[test]
fn vote_counts_if_the_introduction_behind_it_shows_no_change() {
    let mut world = world();
    world.pass(MAX_AGE);
    world.acquire(lock_config(1), 1);
    assert_eq!(asked(&world), [World::set(1), Op::Introduce]);
    world.answer(0);
    assert_eq!(decided(&world.events()), None);
    world.answer(0);
    assert!(decided(&world.events()).is_some());
}

#[test]
fn vote_of_another_process_on_the_connection_does_not_count() {
    let mut world = world();
    world.pass(MAX_AGE);
    world.nodes[0].introduction =
        Introduction { run_id: RunId([2; 20]), canary: canary(2), ..introduction(1) };
    world.acquire(lock_config(1), 1);
    world.answer(0);
    world.answer(0);
    assert_eq!(failed(&world.events()), Some(AttemptError::Quarantined));
}

#[test]
fn a_vote_of_an_emptied_data_set_does_not_count() {
    for restart_guard in [RestartGuard::Durable, RestartGuard::Quarantine] {
        let config = LinkConfig { introduction_max_age: MAX_AGE, restart_guard, ..link_config() };
        let mut world = World::warm_with(config, 1);
        world.pass(MAX_AGE);
        world.nodes[0].introduction.canary = canary(2);
        world.acquire(lock_config(1), 1);
        world.answer(0);
        world.answer(0);
        assert_eq!(failed(&world.events()), Some(AttemptError::Quarantined));
    }
}

#[test]
fn a_refusal_is_reported_without_an_introduction() {
    let mut world = world();
    world.pass(MAX_AGE);
    world.acquire(lock_config(1), 1);
    world.answer_with(0, crate::testing::held_by(9));
    assert_eq!(failed(&world.events()), Some(AttemptError::Taken));
}

#[test]
fn one_introduction_serves_the_sets_of_a_moment() {
    let mut world = world();
    world.pass(MAX_AGE);
    let lock = world.acquire(lock_config(1), 1);
    world.answer(0);
    world.answer(0);
    world.release(lock);
    world.answer(0);
    world.acquire(lock_config(1), 2);
    assert_eq!(asked(&world), [World::set(2)]);
}

#[test]
fn with_verified_votes_each_set_has_its_introduction() {
    let config = LinkConfig { introduction_max_age: Duration::ZERO, ..link_config() };
    let mut world = World::warm_with(config, 1);
    for byte in 1..4 {
        let lock = world.acquire(lock_config(1), byte);
        assert_eq!(asked(&world), [World::set(byte), Op::Introduce]);
        (0..2).for_each(|_| world.answer(0));
        assert!(decided(&world.events()).is_some());
        world.release(lock);
        world.answer(0);
    }
}

#[test]
fn verifying_every_vote_needs_more_than_the_first_introduction() {
    let config = LinkConfig { introduction_max_age: Duration::ZERO, ..link_config() };
    let mut world = World::cold_with(config, 1);
    world.client.connect(world.now);
    world.drain();
    world.close(0);
    world.pass(ms(10));
    world.acquire(lock_config(1), 1);
    world.accept(0);
    assert_eq!(asked(&world), [World::set(1), Op::Introduce]);
}

#[test]
fn a_vote_that_is_not_confirmed_in_time_counts_as_no_answer() {
    let mut world = world();
    world.pass(MAX_AGE);
    world.acquire(lock_config(1), 1);
    world.answer(0);
    world.pass(NODE_TIMEOUT);
    assert_eq!(failed(&world.events()), Some(AttemptError::TooFewNodes));
    assert!(asked(&world).contains(&World::del(1)));
}

#[test]
fn a_vote_that_waits_is_lost_with_its_connection() {
    let mut world = world();
    world.pass(MAX_AGE);
    world.acquire(lock_config(1), 1);
    world.answer(0);
    world.close(0);
    assert_eq!(failed(&world.events()), Some(AttemptError::TooFewNodes));
    assert_eq!(world.client.owed(node(0)), 1);
}

// ---- reports of lost keys

#[test]
fn node_that_reports_lost_keys_counts_after_an_introduction() {
    let mut world = world();
    world.forget(0);
    assert_eq!(standing(&world.client, &world), Standing::NotKnown);
    assert_eq!(asked(&world), [Op::Introduce]);
    world.answer(0);
    assert_eq!(standing(&world.client, &world), Standing::Counts, "another database was emptied");
}

#[test]
fn vote_in_flight_when_keys_are_lost_waits_for_an_introduction() {
    for (memory, is_granted) in [(1, true), (2, false)] {
        let mut world = world();
        world.acquire(lock_config(1), 1);
        world.forget(0);
        world.nodes[0].introduction.canary = canary(memory);
        world.answer(0);
        assert_eq!(decided(&world.events), None);
        world.answer(0);
        assert_eq!(decided(&world.events).is_some(), is_granted);
        assert_eq!(failed(&world.events), (!is_granted).then_some(AttemptError::Quarantined));
    }
}

#[test]
fn lost_keys_that_no_introduction_explains_are_remembered() {
    let full = crate::quarantine(TTL, Drift::default());
    for restart_guard in [RestartGuard::Durable, RestartGuard::Quarantine] {
        // The connection ends before the answer, or the node is met for the first time.
        for is_first in [false, true] {
            let config = LinkConfig { restart_guard, ..link_config() };
            let mut world = World::cold_with(config, 1);
            world.client.connect(world.now);
            world.drain();
            world.open(0);
            if !is_first {
                world.answer(0);
            }
            world.nodes[0].introduction.canary = None;
            world.forget(0);
            if is_first {
                world.answer_with(0, Reply::Error);
            }
            world.close(0);
            world.pass(ms(1_000));
            world.open(0);
            world.answer(0);
            let left = match standing(&world.client, &world) {
                Standing::Quarantined(left) => left,
                other => panic!("{restart_guard:?} {is_first}: {other:?}"),
            };
            assert!(left > full - ms(2_000), "{left:?}");
        }
    }
}

#[test]
fn lost_keys_are_quarantined_unless_the_canary_is_shown() {
    use RestartGuard::{DelayedRestart, Durable, Quarantine};
    for restart_guard in [Durable, DelayedRestart, Quarantine] {
        for refuses in [true, false] {
            let config = LinkConfig { restart_guard, ..link_config() };
            let mut world = World::warm_with(config, 1);
            // The connection, and the first quarantine that it has caused, are old the second time.
            for time in 0..2 {
                world.forget(0);
                world.nodes[0].introduction.canary = None;
                if refuses {
                    world.answer_with(0, Reply::Error);
                } else {
                    world.answer(0);
                }
                let standing = standing(&world.client, &world);
                let full = crate::quarantine(TTL, Drift::default());
                assert_eq!(standing, Standing::Quarantined(full), "{restart_guard:?} {time}");
                world.pass(full);
            }
        }
    }
}

#[test]
fn a_restart_does_not_explain_keys_lost_before_it() {
    let full = crate::quarantine(TTL, Drift::default());
    for restart_guard in [RestartGuard::Durable, RestartGuard::DelayedRestart] {
        for is_reported in [false, true] {
            let mut world = World::warm_with(LinkConfig { restart_guard, ..link_config() }, 1);
            if is_reported {
                world.forget(0);
            }
            world.close(0);
            world.nodes[0].introduction.run_id = RunId([2; 20]);
            world.pass(ms(1_000));
            world.open(0);
            world.answer(0);
            let expected = if is_reported { Standing::Quarantined(full) } else { Standing::Counts };
            assert_eq!(standing(&world.client, &world), expected, "{restart_guard:?}");
        }
    }
}

#[test]
fn an_introduction_answered_behind_the_push_suffices() {
    let mut world = world();
    world.pass(MAX_AGE);
    world.acquire(lock_config(1), 1);
    world.answer(0);
    world.forget(0);
    assert_eq!(decided(&world.events), None);
    world.answer(0);
    assert!(decided(&world.events).is_some());
}

#[test]
fn repeated_reports_lead_to_one_request_per_round_trip() {
    let mut world = world();
    for _ in 0..3 {
        (0..1_000).for_each(|_| world.forget(0));
        assert_eq!(asked(&world), [Op::Introduce]);
        assert_eq!(standing(&world.client, &world), Standing::NotKnown);
        world.answer(0);
        assert_eq!(standing(&world.client, &world), Standing::Counts);
        assert_eq!(asked(&world), []);
    }
}

#[test]
fn a_push_of_an_old_connection_is_nobodys() {
    let mut world = world();
    let epoch = world.nodes[0].epoch.expect("connected");
    world.close(0);
    world.client.handle_keys_lost(node(0), epoch, world.now);
    world.pass(ms(10));
    world.accept(0);
    assert_eq!(standing(&world.client, &world), Standing::Counts);
}

// ---- nodes that do not serve

#[test]
fn node_that_does_not_serve_is_asked_on_a_new_connection() {
    for reply in [
        Reply::NotServing,
        Reply::Introduction(Introduction { is_master: false, ..introduction(1) }),
    ] {
        let mut world = world();
        world.pass(MAX_AGE);
        world.acquire(lock_config(1), 1);
        if reply != Reply::NotServing {
            world.answer(0);
        }
        world.answer_with(0, reply);
        assert_eq!(standing(&world.client, &world), Standing::NotKnown, "{reply:?}");
        assert!(!world.client.is_open(node(0)));
        world.pass(ms(10));
        world.accept(0);
        assert!(world.client.is_open(node(0)));
    }
}

#[test]
fn node_that_does_not_serve_is_asked_at_growing_intervals() {
    let mut world = world();
    let mut dials = 0;
    for _ in 0..100 {
        if world.nodes[0].epoch.is_none() && world.nodes[0].dialed.is_some() {
            dials += 1;
            world.open(0);
            world.answer_with(0, Reply::NotServing);
        } else if world.nodes[0].epoch.is_some() {
            world.acquire(lock_config(1), 1);
            world.answer_with(0, Reply::NotServing);
        }
        world.pass(ms(100));
    }
    assert!((8..20).contains(&dials), "{dials} in ten seconds");
}

#[test]
fn a_master_that_refuses_commands_is_asked_at_growing_intervals() {
    let mut world = world();
    let mut dials = 0;
    for _ in 0..100 {
        if world.nodes[0].epoch.is_some() {
            world.acquire(lock_config(1), 1);
            world.answer_with(0, Reply::NotServing);
        } else if world.nodes[0].dialed.is_some() {
            dials += 1;
            world.accept(0);
        }
        world.pass(ms(100));
    }
    assert!((8..20).contains(&dials), "{dials} in ten seconds");
}

#[test]
fn a_demoted_node_that_is_a_master_again_is_quarantined() {
    let mut world = world();
    world.acquire(lock_config(1), 1);
    world.answer_with(0, Reply::NotServing);
    world.pass(ms(10));
    world.open(0);
    let replica = Introduction { is_master: false, ..introduction(1) };
    world.answer_with(0, Reply::Introduction(replica));
    world.pass(MAX_AGE);
    world.accept(0);
    assert!(matches!(standing(&world.client, &world), Standing::Quarantined(_)));
}
