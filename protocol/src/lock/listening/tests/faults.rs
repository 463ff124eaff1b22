//! Nodes that do not push, push too much, answer late or not at all.

use core::time::Duration;

use super::{
    WINDOW, asleep_for, config, is_due, looks, registered, release, sound_asleep, taken_for,
    taken_on,
};
use crate::command::{LockId, Op, Reply};
use crate::lock::LockConfig;
use crate::retry::RetryDelay;
use crate::testing::{World, ms};
use crate::validity::Drift;

/// Lets all nodes answer and a millisecond pass, and begins the attempt that is due then; returns true
/// if one is.
fn attempts_in_a_ms(world: &mut World, lock: LockId) -> bool {
    world.answer_all();
    world.pass(ms(1));
    let is_due = is_due(world);
    if is_due {
        world.begin(lock, 2);
    }
    is_due
}

#[test]
fn a_node_that_did_not_push_is_found_out_and_not_relied_upon() {
    let (mut world, _) = sound_asleep();
    world.pass_answering(ms(1_000));
    for index in registered(&world) {
        world.nodes[index].registered = false;
        world.change(index, Some((8, 30_000)));
    }
    world.pass_answering(ms(4_001));
    let begun = world.now;
    while !is_due(&mut world) {
        world.pass(ms(10));
        world.answer_all();
    }
    assert!(world.now.since(begun) < ms(1_000), "too few nodes wake it: it asks from time to time");
}

/// Lets the nodes' clocks lose a `lag`th of their time while a use with the allowance `drift` listens,
/// and checks that it relies on them.
fn lagging_nodes_are_relied_upon(drift: Drift, lag: u64) {
    let mut world = World::warm(5);
    (0..5).for_each(|index| world.change(index, Some((9, 30_000))));
    let config = LockConfig { drift, ..config(&world) };
    world.acquire(config, 1);
    world.answer_all();
    world.pass_answering(ms(20));
    let listened = registered(&world);
    let begun = world.now;
    // Looks into pushes of the first node put off the check of the others.
    for _ in 0..3 {
        world.pass_answering(ms(4_000));
        world.push(listened[0]);
        world.answer_all();
    }
    let passed_ms = world.now.since(begun).as_millis() as u64;
    for &index in &listened[1..] {
        world.nodes[index].registered = false;
        world.change(index, Some((9, 30_000 - 20 - passed_ms + passed_ms / lag)));
    }
    world.pass_answering(ms(5_100));
    assert_eq!(registered(&world), listened, "no other node takes their place");
}

#[test]
fn a_key_on_a_lagging_clock_is_no_change_unheard() {
    lagging_nodes_are_relied_upon(Drift::default(), 110);
    let poor_clocks = Drift { share_ppm: 20_000, ..Drift::default() };
    lagging_nodes_are_relied_upon(poor_clocks, 55);
}

#[test]
fn a_push_that_overtakes_the_reply_is_looked_into() {
    let (mut world, _) = sound_asleep();
    let first = registered(&world)[0];
    world.push(first);
    let (_, look) = *world.nodes[first].inbox.front().expect("it looks again");
    let reply = world.nodes[first].execute(look, world.now);
    world.change(first, None);
    world.answer_with(first, reply);
    assert!(!world.nodes[first].inbox.is_empty(), "the reply was older than the push");
    world.answer_all();
    world.pass(WINDOW);
    assert!(is_due(&mut world));
}

#[test]
fn a_lost_connection_is_replaced_and_used_again_later() {
    let (mut world, _) = sound_asleep();
    let before = registered(&world);
    world.close(before[0]);
    world.answer_all();
    assert_eq!(registered(&world).len(), 3, "another node takes its place");
    (0..5).for_each(|index| {
        if world.nodes[index].epoch.is_some() {
            world.close(index);
        }
    });
    assert_eq!(registered(&world).len(), 0);
    world.pass(ms(4));
    assert!(!is_due(&mut world), "nothing speaks for an attempt");
    world.pass(ms(6));
    for index in 0..5 {
        if world.nodes[index].dialed.is_some() {
            world.accept(index);
        }
    }
    world.answer_all();
    assert_eq!(registered(&world).len(), 3, "registered again behind the introduction");
}

#[test]
fn a_node_that_was_away_hides_no_change_on_another_node() {
    for nodes in [2, 4] {
        let (mut world, _) = taken_on(nodes, 30_000);
        world.pass_answering(ms(30));
        // The use listens to other nodes from now on, and remembers keys of these.
        for index in registered(&world) {
            world.close(index);
            world.pass_answering(ms(10));
            world.accept(index);
            world.pass_answering(ms(30));
        }
        release(&mut world);
        world.events();
        world.pass_answering(2 * WINDOW);
        assert!(is_due(&mut world), "{nodes} nodes");
    }
}

#[test]
fn without_pushes_the_attempts_grow_rare() {
    let mut world = World::warm(5);
    for index in 0..5 {
        world.nodes[index].pushes = false;
        world.change(index, Some((9, 600_000)));
    }
    let config = config(&world);
    let lock = world.acquire(config, 1);
    let (begun, mut attempts, mut late) = (world.now, 1, 0);
    while world.now.since(begun) < ms(10_000) {
        if attempts_in_a_ms(&mut world, lock) {
            attempts += 1;
            late += usize::from(world.now.since(begun) > ms(9_000));
        }
    }
    assert!((40..140).contains(&attempts), "{attempts}");
    assert!((1..4).contains(&late), "{late}: about one in a second");
    assert!(looks(&world) <= 5, "a node that does not push is not looked at again");
}

#[test]
fn a_node_that_answers_errors_is_not_asked_in_a_loop() {
    let (mut world, lock) = taken_for(600_000);
    let (begun, mut attempts) = (world.now, 1);
    while world.now.since(begun) < ms(10_000) {
        while let Some(index) = (0..5).find(|&it| !world.nodes[it].inbox.is_empty()) {
            match world.nodes[index].inbox[0].1 {
                Op::Look { .. } => world.answer_with(index, Reply::Error),
                _ => world.answer(index),
            }
        }
        world.pass(ms(1));
        if is_due(&mut world) {
            world.begin(lock, 2);
            attempts += 1;
        }
    }
    assert!(attempts < 140, "{attempts}");
    assert!(looks(&world) < 800, "{}", looks(&world));
}

/// A world in which two of five nodes have keys of two dead clients, and a third cannot set any; a
/// use that begins its first attempt.
fn split_for_long() -> (World, LockId) {
    let mut world = World::warm(5);
    world.change(0, Some((8, 600_000)));
    world.change(1, Some((9, 600_000)));
    let config = config(&world);
    let lock = world.acquire(config, 1);
    (world, lock)
}

/// Lets `time_ms` pass there. Returns the number of attempts.
fn attempts_while_split((world, lock): &mut (World, LockId), time_ms: u64) -> usize {
    let (end, mut attempts) = (world.now.after(ms(time_ms)), 0);
    while world.now < end {
        while let Some((_, op)) = world.nodes[2].inbox.front() {
            match op {
                Op::Set { .. } => world.answer_with(2, Reply::Error),
                _ => world.answer(2),
            }
        }
        world.answer_all();
        world.pass(ms(1));
        if is_due(world) {
            world.begin(*lock, 2);
            attempts += 1;
        }
    }
    attempts
}

#[test]
fn votes_that_stay_split_are_attempted_ever_more_rarely() {
    let mut split = split_for_long();
    let attempts = attempts_while_split(&mut split, 9_000);
    assert!((20..100).contains(&attempts), "{attempts}");
    let late = attempts_while_split(&mut split, 1_000);
    assert!((1..4).contains(&late), "{late}: about one in a second");
}

#[test]
fn a_change_is_news_however_long_the_wait_was() {
    for later_ms in (0..1_000).step_by(50) {
        let mut split = split_for_long();
        attempts_while_split(&mut split, 9_000 + later_ms);
        let blocking: Vec<usize> = registered(&split.0).into_iter().filter(|it| *it < 2).collect();
        assert!(!blocking.is_empty(), "{later_ms}: it listens to a key that blocks");
        blocking.iter().for_each(|&index| split.0.change(index, None));
        let longest_ms = RetryDelay::default().longest.as_millis() as u64;
        let attempts = attempts_while_split(&mut split, longest_ms + 10);
        assert!(attempts > 0, "{later_ms}: it does not wait for the end of a long delay");
    }
}

#[test]
fn pushes_without_a_change_put_no_attempt_off() {
    let mut split = split_for_long();
    attempts_while_split(&mut split, 9_000);
    let mut attempts = 0;
    for _ in 0..60 {
        registered(&split.0).into_iter().for_each(|index| split.0.push(index));
        attempts += attempts_while_split(&mut split, 50);
    }
    assert!((2..10).contains(&attempts), "{attempts}: about one in a second");
}

#[test]
fn a_hanging_node_does_not_delay_the_reports_of_others() {
    let (mut world, _) = asleep_for(30_000);
    let anchor = registered(&world)[0];
    world.pass(ms(20));
    world.answer_all();
    // The only node that was asked at first says nothing more.
    world.nodes[anchor].registered = false;
    release(&mut world);
    let others = (0..5).filter(|&it| it != anchor);
    others.for_each(|index| {
        while !world.nodes[index].inbox.is_empty() {
            world.answer(index);
        }
    });
    world.pass(WINDOW);
    assert!(is_due(&mut world));
}

#[test]
fn pushes_without_a_change_are_looked_into_ever_more_rarely() {
    let (mut world, _) = sound_asleep();
    let (begun, before) = (world.now, looks(&world));
    while world.now.since(begun) < ms(2_000) {
        (0..5).for_each(|index| world.push(index));
        world.answer_all();
        world.pass(Duration::from_micros(100));
        world.events();
    }
    let asked = looks(&world) - before;
    assert!(asked < 150, "{asked} looks because of 100 000 pushes");
}

#[test]
fn pushes_without_a_change_hide_no_change_on_another_node() {
    for [storm, silent] in [[0, 1], [1, 0]] {
        let (mut world, _) = taken_on(2, 30_000);
        let pushes = |world: &mut World, times: usize| {
            for _ in 0..times {
                world.push(storm);
                world.pass_answering(ms(10));
            }
        };
        pushes(&mut world, 40);
        world.events();
        // The look at one node is put off now, and does not show that the other one is free.
        [silent, storm].into_iter().for_each(|index| world.change(index, None));
        world.push(silent);
        pushes(&mut world, 40);
        assert!(is_due(&mut world), "node {silent} was released");
    }
}

#[test]
fn a_node_that_is_back_is_asked_soon_however_long_the_wait_was() {
    let mut world = World::warm(5);
    (0..3).for_each(|index| world.close(index));
    let config = config(&world);
    let lock = world.acquire(config, 1);
    let waited = world.now.after(ms(20_000));
    while world.now < waited || world.nodes[0].dialed.is_none() {
        attempts_in_a_ms(&mut world, lock);
    }
    world.accept(0);
    world.answer_all();
    let begun = world.now;
    while !is_due(&mut world) {
        world.pass(ms(1));
    }
    assert!(world.now.since(begun) <= 2 * WINDOW, "{:?}", world.now.since(begun));
}

/// Begins an acquisition of which no SET is answered in time, and its second attempt when it is due:
/// that one asks no node.
fn stuck() -> (World, LockId) {
    let mut world = World::warm(5);
    let config = config(&world);
    let lock = world.acquire(config, 1);
    world.events();
    while !is_due(&mut world) {
        world.pass(ms(1));
    }
    world.begin(lock, 2);
    assert!(!is_due(&mut world));
    (world, lock)
}

#[test]
fn nodes_that_answer_again_are_asked_soon() {
    let (mut world, _) = stuck();
    world.answer_all();
    world.pass(2 * WINDOW);
    assert!(is_due(&mut world));
}

#[test]
fn nodes_that_are_always_too_slow_are_not_polled() {
    let (mut world, lock) = stuck();
    let begun = world.now;
    for _ in 0..20 {
        world.pass(ms(60));
        world.answer_all();
        while !is_due(&mut world) {
            world.pass(ms(1));
        }
        world.begin(lock, 2);
    }
    assert!(world.now.since(begun) > ms(5_000), "{:?}", world.now.since(begun));
}

#[test]
fn nodes_that_answer_looks_too_late_in_turn_are_not_polled() {
    let (mut world, _) = taken_on(2, 30_000);
    // Both refuse the SET, and from then on answer after the node timeout.
    (0..2).for_each(|index| world.answer(index));
    let mut owed_ms = [0; 2];
    for _ in 0..2_400 {
        world.pass(ms(1));
        for (index, owed_ms) in owed_ms.iter_mut().enumerate() {
            let is_owed = !world.nodes[index].inbox.is_empty();
            *owed_ms = if is_owed { *owed_ms + 1 } else { 0 };
            if *owed_ms > 60 {
                *owed_ms = 0;
                world.answer(index);
            }
        }
    }
    assert!(looks(&world) < 10, "{} looks in 2.4 s", looks(&world));
}

#[test]
fn too_few_nodes_are_waited_for_and_not_asked() {
    let mut world = World::warm(5);
    (0..3).for_each(|index| world.close(index));
    let config = config(&world);
    world.acquire(config, 1);
    world.answer_all();
    world.events();
    assert_eq!(looks(&world), 0);
    world.pass(ms(10));
    (0..3).for_each(|index| world.accept(index));
    world.answer_all();
    world.pass(2 * WINDOW);
    assert!(is_due(&mut world), "they are back");
}

#[test]
fn attempts_that_ask_no_node_are_rare_from_the_beginning() {
    let mut world = World::warm(5);
    (0..3).for_each(|index| world.close(index));
    let config = config(&world);
    let lock = world.acquire(config, 1);
    let attempts = (0..500).filter(|_| attempts_in_a_ms(&mut world, lock)).count();
    assert!((1..=5).contains(&attempts), "{attempts} attempts, at most one in 100 ms");
}

#[test]
fn pushes_behind_each_reply_are_looked_into_ever_more_rarely() {
    let (mut world, _) = sound_asleep();
    let (begun, before) = (world.now, looks(&world));
    (0..5).for_each(|index| world.push(index));
    while world.now.since(begun) < ms(2_000) {
        for index in 0..5 {
            if !world.nodes[index].inbox.is_empty() {
                world.answer(index);
                world.push(index);
            }
        }
        world.pass(Duration::from_micros(100));
        assert!(!is_due(&mut world), "nothing has changed");
    }
    let asked = looks(&world) - before;
    assert!(asked < 150, "{asked} looks, at most 20 000 round trips");
}

#[test]
fn a_node_that_has_forgotten_the_key_wakes_no_client() {
    let mut world = World::warm(5);
    (1..5).for_each(|index| world.change(index, Some((9, 30_000))));
    let config = config(&world);
    world.acquire(config, 1);
    world.answer_all();
    world.events();
    world.pass_answering(ms(10_000));
    assert!(!is_due(&mut world));
    assert!(looks(&world) < 10, "{}", looks(&world));
    release(&mut world);
    world.answer_all();
    world.pass(WINDOW);
    assert!(is_due(&mut world));
}

#[test]
fn a_node_whose_reply_was_read_late_is_still_relied_upon() {
    let mut world = World::warm(5);
    (0..5).for_each(|index| world.change(index, Some((9, 30_000))));
    let retry = RetryDelay { silence: ms(1_000), ..RetryDelay::default() };
    let config = LockConfig { retry, ..config(&world) };
    world.acquire(config, 1);
    world.pass_answering(ms(100));
    world.events();
    for _ in 0..5 {
        let asks = |world: &World| world.nodes.iter().any(|node| !node.inbox.is_empty());
        for _ in 0..1_100 {
            if !asks(&world) {
                world.pass(ms(1));
            }
        }
        let checked: Vec<_> = (0..5).filter(|&it| !world.nodes[it].inbox.is_empty()).collect();
        let replies = checked.iter().map(|&index| {
            let (_, look) = world.nodes[index].inbox[0];
            (index, world.nodes[index].execute(look, world.now))
        });
        let replies: Vec<_> = replies.collect();
        world.pass(ms(30));
        replies.into_iter().for_each(|(index, reply)| world.answer_with(index, reply));
    }
    assert!(!is_due(&mut world), "enough nodes would tell");
}

#[test]
fn a_node_that_pushes_after_all_is_relied_upon_again() {
    let (mut world, _) = sound_asleep();
    for index in registered(&world) {
        world.nodes[index].registered = false;
        world.change(index, Some((8, 60_000)));
    }
    world.pass_answering(ms(5_001));
    (0..5).for_each(|index| world.push(index));
    world.pass_answering(ms(100));
    world.events();
    world.pass_answering(ms(2_000));
    assert!(!is_due(&mut world));
}
