//! Nodes in memory, as a test sees them.

#![expect(clippy::disallowed_methods, reason = "the clock of a test is tokio's")]

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use redlock_protocol::MAX_NODES;

use super::environment::{MemoryEnvironment, url};
use super::fleet::Fleet;
use super::node::Node;
use crate::builder::{Builder, DEFAULT_CANARY_KEY};
use crate::client::Redlock;

/// TTL of [`Nodes::builder`].
const TTL: Duration = Duration::from_secs(10);
/// Longest TTL of the fleet, of [`Nodes::builder`].
const FLEET_MAX_TTL: Duration = Duration::from_secs(30);

/// Simulated Redis servers in memory, for tests of code that locks. Clones refer to the same nodes.
///
/// Places are counted from 0, as in [`Builder::nodes`]. New nodes vote at once. Time is that of the
/// tokio runtime: with `#[tokio::test(start_paused = true)]` no test waits.
///
/// A client notices a fault when its tasks run: await something after it, for example
/// [`Nodes::advance`].
#[derive(Clone)]
pub struct Nodes {
    fleet: Arc<Fleet>,
    count: usize,
}

impl Nodes {
    /// Creates `count` nodes, empty and running.
    ///
    /// # Panics
    ///
    /// If `count` is not 1 to 9.
    #[must_use]
    #[track_caller]
    pub fn new(count: usize) -> Self {
        let is_possible = (1..=MAX_NODES).contains(&count);
        assert!(is_possible, "{count} nodes: a client has 1 to {MAX_NODES} nodes");
        let places = u8::try_from(count).expect("at most nine");
        Self { fleet: Arc::new(Fleet::new(places, DEFAULT_CANARY_KEY)), count }
    }

    /// Returns a new client of these nodes, with the settings of [`Nodes::builder`].
    #[must_use]
    pub fn client(&self) -> Redlock {
        self.builder().build().expect("the settings fit each other")
    }

    /// Returns the builder of a client of these nodes, with a TTL of 10 s and a `fleet_max_ttl` of
    /// 30 s. Both can be set to other values.
    pub fn builder(&self) -> Builder {
        self.redirect(Redlock::builder().ttl(TTL).fleet_max_ttl(FLEET_MAX_TTL))
    }

    /// Replaces the nodes and the environment of `builder`, for example the application's own, by
    /// these nodes. Other settings stay. Call it last: a later [`Builder::background_thread`] would
    /// undo it.
    ///
    /// If the client has its own [`Builder::canary_key`], the nodes have no canary of that name:
    /// with the default guard they cannot vote until a quarantine (`fleet_max_ttl` plus drift) has
    /// passed.
    pub fn redirect(&self, builder: Builder) -> Builder {
        let environment = MemoryEnvironment(Arc::clone(&self.fleet));
        builder.nodes((0..self.count).map(url)).environment(Arc::new(environment))
    }

    /// Ends the server process at `place`. Its connections end, new ones are refused; its keys stay
    /// on its disk.
    ///
    /// # Panics
    ///
    /// If there is no such place.
    #[track_caller]
    pub fn stop(&self, place: usize) {
        self.check(place);
        self.fleet.turn(|nodes, _, wakes| nodes[place].stop(wakes));
    }

    /// Starts the stopped server process at `place` with the keys that it had, or lets a hung one
    /// continue, which then executes the requests that it received meanwhile.
    ///
    /// Without a promise ([`RestartGuard`](crate::RestartGuard)) clients that knew the old process
    /// do not count the new one's votes until a quarantine has passed, as in production.
    ///
    /// # Panics
    ///
    /// If there is no such place.
    #[track_caller]
    pub fn start(&self, place: usize) {
        self.check(place);
        self.fleet.turn(|nodes, at, wakes| nodes[place].start(at, wakes));
    }

    /// Makes the node at `place` hang until [`Nodes::start`]: it accepts and keeps connections, but
    /// executes and answers nothing.
    ///
    /// # Panics
    ///
    /// If there is no such place.
    #[track_caller]
    pub fn hang(&self, place: usize) {
        self.check(place);
        self.fleet.turn(|nodes, _, _| nodes[place].hang());
    }

    /// Deletes all data of the node at `place`, running or stopped. A running server tells its
    /// clients: they do not count its votes until a quarantine has passed, and a lease whose keys
    /// are gone from a majority of the nodes is lost.
    ///
    /// # Panics
    ///
    /// If there is no such place.
    #[track_caller]
    pub fn forget(&self, place: usize) {
        self.check(place);
        self.fleet.turn(|nodes, at, wakes| nodes[place].forget(at, wakes));
    }

    /// Delays every reply that the node at `place` sends from now on by `delay`; zero at first.
    ///
    /// # Panics
    ///
    /// If there is no such place.
    #[track_caller]
    pub fn delay(&self, place: usize, delay: Duration) {
        self.check(place);
        self.fleet.turn(|nodes, _, _| nodes[place].set_delay(delay));
    }

    /// Returns the number of nodes, running or stopped, that have the key of `resource`.
    #[must_use]
    pub fn copies(&self, resource: impl AsRef<[u8]>) -> usize {
        let key = resource.as_ref();
        let has = |nodes: &[Node], at| nodes.iter().filter(|node| node.has(key, at)).count();
        self.fleet.turn(|nodes, at, _| has(nodes, at))
    }

    /// Lets `time` pass. Everything that is due meanwhile happens at its own time.
    ///
    /// A key lives through the last millisecond of its TTL: to see it expired, advance by the TTL
    /// and 1 ms more.
    ///
    /// # Panics
    ///
    /// If the clock of the runtime is not paused: the test would wait. Use
    /// `#[tokio::test(start_paused = true)]`.
    pub async fn advance(&self, time: Duration) {
        // Moves nothing, and panics unless the clock is paused.
        tokio::time::advance(Duration::ZERO).await;
        tokio::time::sleep(time).await;
    }

    #[track_caller]
    fn check(&self, place: usize) {
        let count = self.count;
        assert!(place < count, "no node at place {place}: the last one is at {}", count - 1);
    }
}

impl fmt::Debug for Nodes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Nodes").field("count", &self.count).finish_non_exhaustive()
    }
}
