//! Events that observers receive.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use redlock_client::observe::{Event, Observer};
use redlock_client::{AcquireErrorKind, LostReason, Redlock, Standing};

use crate::acquiring;
use crate::node::Habit;
use crate::world::{SECOND, World};

/// Observer that records the text that `of` returns for each event.
struct Notes {
    of: fn(&Event<'_>) -> Option<String>,
    taken: Mutex<Vec<String>>,
}

impl Observer for Notes {
    fn event(&self, event: &Event<'_>) {
        self.taken.lock().unwrap().extend((self.of)(event));
    }
}

impl Notes {
    fn new(of: fn(&Event<'_>) -> Option<String>) -> Arc<Self> {
        Arc::new(Self { of, taken: Mutex::default() })
    }

    fn taken(&self) -> String {
        self.taken.lock().unwrap().join(" ")
    }
}

fn name(event: &Event<'_>) -> Option<String> {
    let text = format!("{event:?}");
    text.split([' ', '{']).next().map(String::from)
}

fn observed(world: &World, notes: &Arc<Notes>) -> Redlock {
    let observer = Arc::clone(notes) as Arc<dyn Observer>;
    world.builder().observer(observer).build().unwrap()
}

#[test]
fn every_observer_sees_the_course_of_a_lease() {
    let world = World::new();
    let notes = [Notes::new(name), Notes::new(name)];
    let builder = world.builder().nodes(["redis://a"]);
    let observers = notes.iter().map(|it| Arc::clone(it) as Arc<dyn Observer>);
    let redlock = observers.fold(builder, |builder, it| builder.observer(it)).build().unwrap();
    let lease = world.block_on(redlock.acquire("res")).unwrap();
    world.block_on(lease.release());
    let expected = "Connected Written Answered Eligible AttemptBegan Written Answered Decided Delivered \
        ReleaseCalled Written Answered Released";
    assert_eq!(notes.each_ref().map(|it| it.taken()), [expected; 2]);
}

#[test]
fn every_acquisition_has_one_outcome() {
    let notes = Notes::new(|event| match *event {
        Event::Delivered { resource, .. } => Some(format!("{}:got", resource.escape_ascii())),
        Event::AcquireFailed { resource, kind, .. } => {
            Some(format!("{}:{kind:?}", resource.escape_ascii()))
        }
        Event::AcquireCancelled { resource, .. } => {
            Some(format!("{}:dropped", resource.escape_ascii()))
        }
        _ => None,
    });
    let world = World::new();
    let redlock = observed(&world, &notes);
    let lease = world.block_on(redlock.acquire("one")).unwrap();
    world.each_node(|node| node.set("two", "somebody"));
    assert!(world.block_on(redlock.try_acquire("two")).is_err());
    let mut dropped = acquiring(&redlock, "one");
    assert!(world.poll(&mut dropped).is_none());
    drop(dropped);
    let mut closed = acquiring(&redlock, "one");
    assert!(world.poll(&mut closed).is_none());
    let _closed = world.block_on(redlock.close(SECOND));
    let refused = world.block_on(closed).unwrap_err();
    assert_eq!(refused.kind(), AcquireErrorKind::Closed);
    world.exhaust_entropy();
    let redlock = observed(&world, &notes);
    world.block_on(redlock.acquire("three")).unwrap_err();
    drop(lease);
    world.settle();
    assert_eq!(notes.taken(), "one:got two:Taken one:dropped one:Closed three:NoEntropy");
}

fn ends_of_leases() -> Arc<Notes> {
    Notes::new(|event| match *event {
        Event::Lost { reason, .. } => Some(format!("lost:{reason:?}")),
        Event::ReleaseCalled { lost, .. } => Some(format!("released:{}", lost.is_some())),
        Event::LeftToExpire { lost, .. } => Some(format!("left:{}", lost.is_some())),
        _ => None,
    })
}

#[test]
fn a_lease_that_was_lost_is_not_lost_again_by_its_release() {
    let notes = ends_of_leases();
    let world = World::new();
    let redlock = observed(&world, &notes);
    let lost = world.block_on(redlock.acquire("one")).unwrap();
    assert_eq!(world.block_on(lost.lost()), LostReason::DeadlinePassed);
    drop(lost);
    drop(world.block_on(redlock.acquire("two")).unwrap());
    world.block_on(redlock.acquire("three")).unwrap().leave_until_expiry();
    let _lease = world.block_on(redlock.acquire("four")).unwrap();
    let _closed = world.block_on(redlock.close(SECOND));
    let expected = "lost:DeadlinePassed released:true released:false left:false lost:Closed";
    assert_eq!(notes.taken(), expected);
}

#[test]
fn a_lease_that_is_released_late_was_lost() {
    let notes = ends_of_leases();
    let world = World::new();
    let redlock = observed(&world, &notes);
    let dropped = world.block_on(redlock.acquire("one")).unwrap();
    world.pass(60 * SECOND); // the process was stopped: no task has run
    drop(dropped);
    let left = world.block_on(redlock.acquire("two")).unwrap();
    world.pass(60 * SECOND);
    left.leave_until_expiry();
    let expected = "lost:DeadlinePassed released:true lost:DeadlinePassed left:true";
    assert_eq!(notes.taken(), expected);
}

#[test]
fn nodes_come_go_and_come_of_age() {
    let notes = Notes::new(|event| match *event {
        Event::Connected { node, .. } => Some(format!("{}:connected", node)),
        Event::ConnectFailed { node, error, .. } => Some(format!("{}:{error}", node)),
        Event::Disconnected { node, .. } => Some(format!("{}:gone", node)),
        Event::Eligible { node, standing: Standing::Quarantined(_), .. } => {
            Some(format!("{}:young", node))
        }
        Event::QuarantineEnded { node, .. } => Some(format!("{}:old", node)),
        _ => None,
    });
    let world = World::new();
    world.node("a", |node| node.uptime_s = 1);
    world.node("b", |node| node.habit = Habit::Refuses);
    let observer = Arc::clone(&notes) as Arc<dyn Observer>;
    let builder = world.builder().nodes(["redis://a", "redis://b"]).observer(observer);
    let redlock = builder.build().unwrap();
    world.poll(&mut Box::pin(redlock.ready(std::time::Duration::ZERO)));
    world.settle();
    world.pass(11 * SECOND);
    let _health = redlock.health();
    world.node("a", |node| node.habit = Habit::Says(b"?\r\n".to_vec()));
    world.node("b", |node| node.habit = Habit::Answers);
    assert!(world.block_on(redlock.acquire("res").wait(5 * SECOND)).is_err());
    let taken = notes.taken();
    let (before, after) = taken.split_once("0:old").expect("it comes of age");
    assert!(before.contains("0:connected 0:young"), "{taken}");
    assert!(before.contains("1:connection refused"), "{taken}");
    assert!(after.contains("0:gone") && after.contains("1:connected"), "{taken}");
}

#[test]
fn the_end_of_a_quarantine_is_reported_to_an_idle_client() {
    let notes = Notes::new(|event| match *event {
        Event::QuarantineEnded { node, .. } => Some(node.to_string()),
        _ => None,
    });
    let world = World::new();
    world.node("a", |node| node.uptime_s = 1);
    world.node("b", |node| node.uptime_s = 2);
    let redlock = observed(&world, &notes);
    assert_eq!(world.poll(&mut pin!(redlock.ready(SECOND))), Some(Ok(())));
    world.settle();
    world.block_on(poll_fn(
        |_| if notes.taken() == "1 0" { Poll::Ready(()) } else { Poll::Pending },
    ));
    assert!(!world.has_timer(), "each is reported once");
}

/// Observer that panics at every event, and again when the panic's payload is dropped.
struct Faulty;

impl Observer for Faulty {
    fn event(&self, _: &Event<'_>) {
        std::panic::resume_unwind(Box::new(Bomb));
    }
}

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        std::panic::resume_unwind(Box::new("an observer's own fault"));
    }
}

#[test]
fn an_observer_that_panics_costs_nothing() {
    let world = World::new();
    let notes = Notes::new(name);
    let observers =
        [Arc::new(Faulty) as Arc<dyn Observer>, Arc::clone(&notes) as Arc<dyn Observer>];
    let builder = observers.into_iter().fold(world.builder(), |builder, it| builder.observer(it));
    let redlock = builder.build().unwrap();
    for _ in 0..2 {
        let lease = world.block_on(redlock.acquire("res")).unwrap();
        world.block_on(lease.release());
    }
    assert!(notes.taken().ends_with("Released"), "the others are told");
}
