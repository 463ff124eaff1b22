//! Random steps, and random configurations of the uses of the lock.

use core::time::Duration;

use proptest::prelude::*;

use super::NODES;
use crate::testing::{TTL, ms};

#[derive(Clone, Copy, Debug)]
pub(super) enum Do {
    Acquire,
    Answer(usize),
    /// The connection closes; the commands that it carried are executed, or not.
    Close(usize, bool),
    /// The connection closes; extensions and SETs that it carried are executed later, or never.
    CloseLate(usize),
    /// The caller fetches the oldest grant.
    Deliver,
    Error(usize),
    /// Extends the lease at this index to this many milliseconds from now, whatever is left of it.
    Extend(usize, u64),
    /// The node executes the commands that a lost connection has left in its receive queue.
    Late(usize),
    /// Lets a lease end by itself.
    Leave(usize),
    Open(usize),
    /// Extends the oldest lease to this TTL over a connection that is lost and opened again.
    Overtake(usize, u64),
    Pass(u64),
    /// Acquires, and tries for this long, behind any earlier use.
    Queue(u64),
    Release(usize),
    /// The node pushes a change of the key that there was not.
    Push(usize),
    /// Extends the oldest lease after this time; the nodes marked true answer all commands.
    Round(u64, [bool; NODES]),
    /// The process dies and comes back without its keys.
    Restart(usize),
    /// The client is suspended: time passes, but no timer fires before it continues.
    Stop(u64),
    Writable(usize, bool),
}

pub(super) fn what() -> impl Strategy<Value = Do> {
    let any = || 0..NODES;
    prop_oneof![
        4 => Just(Do::Acquire),
        16 => any().prop_map(Do::Answer),
        2 => (any(), prop::bool::ANY).prop_map(|(node, lands)| Do::Close(node, lands)),
        4 => Just(Do::Deliver),
        1 => any().prop_map(Do::Error),
        1 => any().prop_map(Do::CloseLate),
        2 => (0..2_usize, 5_000..=10_000_u64).prop_map(|(which, ttl)| Do::Extend(which, ttl)),
        2 => any().prop_map(Do::Late),
        1 => (0..2_usize).prop_map(Do::Leave),
        2 => (any(), 5_000..=10_000_u64).prop_map(|(node, ttl)| Do::Overtake(node, ttl)),
        8 => any().prop_map(Do::Open),
        4 => (0..60_u64).prop_map(Do::Pass),
        1 => (0..4_000_u64).prop_map(Do::Pass),
        2 => (0..500_u64).prop_map(Do::Queue),
        1 => any().prop_map(Do::Push),
        3 => (0..4_usize).prop_map(Do::Release),
        1 => any().prop_map(Do::Restart),
        6 => (0..2_000_u64, prop::array::uniform3(prop::bool::weighted(0.8)))
            .prop_map(|(after, answer)| Do::Round(after, answer)),
        1 => (0..12_000_u64).prop_map(Do::Stop),
        1 => (any(), prop::bool::ANY).prop_map(|(node, writable)| Do::Writable(node, writable)),
    ]
}

/// Configuration of the uses of the lock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub(super) ttl: Duration,
    pub(super) keep_alive: Option<Duration>,
    /// Nodes have plain owner-checked SETs, and extensions use them.
    pub(super) plain: bool,
}

pub(super) fn terms() -> impl Strategy<Value = Terms> {
    let keep_alive = prop::option::of(0..40_000_u64);
    (prop::bool::ANY, keep_alive, prop::bool::ANY).prop_map(|(short, keep_alive, plain)| {
        let ttl = if short { TTL / 2 } else { TTL };
        Terms { ttl, keep_alive: keep_alive.map(ms), plain }
    })
}
