//! A simulated client with its nodes, for tests: no sockets, and a clock that moves only on
//! request.

mod fake_node;
mod world;

use core::time::Duration;

pub(super) use self::fake_node::FakeNode;
pub(super) use self::world::World;
use super::command::{LockId, Reply, ResourceId};
use super::digest::Digest;
use super::holder::Holder;
use super::link::{LinkConfig, Window};
use super::lock::{AttemptError, Fresh, Limit, LockConfig};
use super::node_set::Event;
use super::quorum::{NodeCount, NodeIndex, NodeMask};
use super::restart::{Canary, Introduction, RestartGuard, RunId};
use super::retry::RetryDelay;
use super::time::BootInstant;
use super::token::Token;
use super::validity::Drift;

pub(super) const RESOURCE: ResourceId = ResourceId(7);
pub(super) const TTL: Duration = Duration::from_secs(10);
pub(super) const NODE_TIMEOUT: Duration = Duration::from_millis(50);

pub(super) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(super) fn at_ms(ms: u64) -> BootInstant {
    BootInstant::from_nanos(ms * 1_000_000)
}

pub(super) fn node(index: usize) -> NodeIndex {
    NodeIndex::new(index)
}

pub(super) fn mask(indices: &[usize]) -> NodeMask {
    let mut mask = NodeMask::EMPTY;
    indices.iter().for_each(|&index| mask.insert(node(index)));
    mask
}

pub(super) fn token(byte: u8) -> Token {
    Token::from_bytes([byte; Token::LENGTH])
}

/// A canary that names the data set by this number and is a day old.
pub(super) fn canary(memory: u8) -> Option<Canary> {
    let (memory, history) = (Digest::of(&[memory]), Digest::of(b"history"));
    Some(Canary { memory, history, age: Duration::from_secs(86_400) })
}

/// The refusal of a node whose key holds the token of `byte`.
pub(super) fn held_by(byte: u8) -> Reply {
    Reply::Held(Holder::of(token(byte).as_bytes()))
}

/// Randomness with the longest wait between attempts, so that tests can see the next attempt begin.
pub(super) fn fresh(byte: u8) -> Fresh {
    Fresh { token: token(byte), jitter: u64::MAX }
}

pub(super) fn link_config() -> LinkConfig {
    LinkConfig {
        node_timeout: NODE_TIMEOUT,
        connect_timeout: ms(500),
        restart_guard: RestartGuard::Quarantine,
        fleet_max_ttl: TTL,
        drift: Drift::default(),
        introduction_max_age: Duration::MAX,
        window: Window::default(),
    }
}

pub(super) fn lock_config(nodes: usize) -> LockConfig {
    LockConfig {
        extensions_max: 4,
        keep_alive: None,
        plain_extensions: false,
        watched: false,
        nodes: NodeCount::new(nodes).expect("one to nine"),
        ttl: TTL,
        drift: Drift::default(),
        min_validity: Duration::ZERO,
        retry: RetryDelay::default(),
        limit: Limit::Attempts(1),
    }
}

/// The introduction of a master that has been up for a day.
pub(super) fn introduction(run: u8) -> Introduction {
    let (run_id, uptime) = (RunId([run; 20]), Duration::from_secs(86_400));
    Introduction { run_id, uptime, is_master: true, succession: None, canary: canary(1) }
}

pub(super) fn decided(events: &[Event]) -> Option<(NodeMask, BootInstant)> {
    events.iter().find_map(|event| match *event {
        Event::Decided { counted, deadline, .. } => Some((counted, deadline)),
        _ => None,
    })
}

pub(super) fn failed(events: &[Event]) -> Option<AttemptError> {
    events.iter().find_map(|event| match *event {
        Event::AttemptFailed { reason, .. } => Some(reason),
        _ => None,
    })
}

/// A warm world of five nodes with a lease granted by the first three; the others have not
/// answered.
pub(super) fn held() -> (World, LockId) {
    let mut world = World::warm(5);
    let lock = world.acquire(lock_config(5), 1);
    (0..3).for_each(|index| world.answer(index));
    world.client.deliver(lock, world.now).expect("granted");
    world.events();
    (world, lock)
}

/// A warm world of three nodes with a lease whose key all three have set.
pub(super) fn held_by_three() -> (World, LockId) {
    held_by_three_with(lock_config(3))
}

/// As [`held_by_three`], with another configuration.
pub(super) fn held_by_three_with(config: LockConfig) -> (World, LockId) {
    let mut world = World::warm(3);
    let lock = world.acquire(config, 1);
    (0..2).for_each(|index| world.answer(index));
    world.client.deliver(lock, world.now).expect("granted");
    world.answer(2);
    world.events();
    (world, lock)
}
