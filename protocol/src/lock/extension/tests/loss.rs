//! The loss of a lease by an extension that finds its keys gone.

use super::*;

#[test]
fn a_lease_whose_keys_are_gone_is_lost_at_once_and_for_good() {
    let (mut world, lock) = held_by_three();
    forget(&mut world, 0);
    forget(&mut world, 1);
    world.pass(ms(1_000));
    world.extend(lock).expect("begun");
    world.answer(0);
    assert_eq!(settled(&world.events()), Some(Err(ExtendError::TooFewNodes)));
    assert!(world.client.check(lock, Duration::ZERO, world.now).is_ok());
    world.answer(1);
    assert_eq!(lost(&world.events()), Some(LostReason::KeysGone));
    let check = world.client.check(lock, Duration::ZERO, world.now);
    assert_eq!(check, Err(LostReason::KeysGone));
    assert_eq!(world.extend(lock), Err(ExtendError::Lost(LostReason::KeysGone)));
    world.pass(TTL);
    assert_eq!(lost(&world.events()), None, "once");
}

#[test]
fn lacking_half_of_an_even_number_of_keys_loses_the_lease() {
    let mut world = World::warm(4);
    let lock = world.acquire(lock_config(4), 1);
    (0..3).for_each(|index| world.answer(index));
    world.client.deliver(lock, world.now).expect("granted");
    world.answer(3);
    world.pass(ms(1_000));
    world.extend(lock).expect("begun");
    (0..2).for_each(|index| forget(&mut world, index));
    world.events();
    world.answer(0);
    assert_eq!(lost(&world.events()), None, "three of four are a majority");
    world.answer(1);
    assert_eq!(lost(&world.events()), Some(LostReason::KeysGone), "two of four are none");
}

#[test]
fn a_round_under_way_fails_with_the_lease() {
    let (mut world, lock) = held();
    (3..5).for_each(|index| world.answer(index));
    [0, 3, 4].into_iter().for_each(|index| forget(&mut world, index));
    world.pass(ms(1_000));
    world.extend(lock).expect("begun");
    world.answer(3);
    world.answer(4);
    assert_eq!(world.events(), []);
    world.answer(0);
    let reason = LostReason::KeysGone;
    let failed =
        Event::ExtensionFailed { lock, token: token(1), reason: ExtendError::Lost(reason) };
    assert_eq!(world.events(), [failed, Event::Lost { lock, reason }]);
}

#[test]
fn a_node_that_refused_the_lock_lacks_the_key() {
    let mut world = World::warm(3);
    let lock = world.acquire(lock_config(3), 1);
    world.answer_with(2, Reply::Nil);
    (0..2).for_each(|index| world.answer(index));
    world.client.deliver(lock, world.now).expect("granted");
    world.events();
    forget(&mut world, 1);
    world.pass(ms(1_000));
    world.extend(lock).expect("begun");
    world.answer(1);
    assert_eq!(lost(&world.events()), Some(LostReason::KeysGone));
}

#[test]
fn a_success_that_comes_after_the_loss_counts_for_nothing() {
    let (mut world, lock) = held_by_three();
    let deadline = world.now.after(ms(9_898));
    world.pass(ms(9_890));
    world.extend(lock).expect("begun");
    world.answer(0);
    world.pass(ms(7));
    let reason = ExtendError::Lost(LostReason::DeadlinePassed);
    assert_eq!(settled(&world.events()), Some(Err(reason)));
    assert!(world.now < deadline);
    world.answer(1);
    assert_eq!(world.events(), []);
    let check = world.client.check(lock, Duration::ZERO, world.now);
    assert_eq!(check, Err(LostReason::DeadlinePassed));
}
