//! The numbers of a scenario that judging needs.

use crate::history::HostIndex;
use crate::scenario::{Client, Drift, Scenario, Start};

/// The most nodes of a scenario.
pub(super) const NODES_MAX: usize = 9;

/// The most clients of a scenario, the probe counted.
pub(super) const CLIENTS_MAX: usize = crate::scenario::CLIENTS_MAX + 1;

/// A client gives up a silent connection after this, or after four node timeouts if that is more.
const GIVE_UP_LEAST_NS: u64 = 500_000_000;

/// The longest wait before a client dials again, and for a connection to open.
const REDIAL_NS: u64 = 1_000_000_000;
const CONNECT_NS: u64 = 500_000_000;

/// What timers and processes may add to a bound.
const SLACK_NS: u64 = 10_000_000;

const MS_NS: u64 = 1_000_000;

/// What the judge knows before anything has happened.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    /// How many nodes there are.
    pub nodes: usize,
    /// How many clients there are without the probe; also the probe's place.
    pub probe: usize,
    /// How many hosts there are in all.
    pub hosts: usize,
    /// What a lease that is extended gives up for drift.
    pub drift: Drift,
    /// Whether leases are extended.
    pub extends: bool,
    /// For so long a lease may be held from its grant on, however often it is extended.
    pub held_most_ns: u64,
    /// How long a node may take to answer.
    pub node_timeout_ns: u64,
    /// How long a client waits for an answer before it gives a connection up.
    pub give_up_ns: u64,
    /// The longest pause between two attempts of a client that keeps trying.
    pub retry_ns: u64,
    /// Within this an attempt settles, on the client's clock: even one that asks node after node.
    pub attempt_ns: u64,
    /// Within this after a failure or a release no key is left on a node that can be reached: the
    /// connection is given up once, and a round trip and a node timeout follow.
    pub release_ns: u64,
    /// The same after a node could not be reached: it is dialled again, late, and then told.
    pub heal_ns: u64,
    /// Within this a client that keeps trying, with a majority that can be reached, sees somebody
    /// granted: what is there expires by clocks within the drift that the lock allows for, one
    /// retry delay passes, and one attempt.
    pub progress_ns: u64,
    /// Whether connections are open when the run begins.
    pub warm: bool,
    /// The clients that say that the lock is taken only if somebody has it, bit by bit.
    say_whose: u16,
    /// The clients that ask at once wherever they ask.
    ask_at_once: u16,
}

impl Setting {
    /// The numbers of `scenario`.
    ///
    /// # Panics
    ///
    /// If it has more nodes or clients than a valid scenario may have.
    pub(super) fn new(scenario: &Scenario) -> Self {
        let (nodes, probe) = (scenario.cluster.nodes.len(), scenario.clients.len());
        assert!(nodes <= NODES_MAX, "{nodes} nodes");
        assert!(probe < CLIENTS_MAX, "{probe} clients");
        let links = scenario.cluster.links.iter().map(|link| link.delay.max.0);
        let one_way_ns = links.fold(scenario.cluster.network.delay.max.0, u64::max);
        let round_trip_ns = one_way_ns.saturating_mul(2);
        let node_timeout_ns = scenario.lock.node_timeout.0;
        let retry = scenario.lock.retry;
        let retry_ns = retry.longest.0.max(retry.first.0).max(2 * round_trip_ns);
        let give_up_ns = node_timeout_ns.saturating_mul(4).max(GIVE_UP_LEAST_NS);
        let slack_ns = SLACK_NS + 2 * round_trip_ns;
        let attempt_ns = node_timeout_ns.saturating_mul(nodes as u64) + slack_ns;
        let release_ns = give_up_ns + node_timeout_ns + slack_ns;
        let ttl_ns = scenario.fleet_max_ttl().0;
        let drift = scenario.lock.drift;
        let share_ns = u128::from(ttl_ns) * u128::from(drift.share_ppm) / 1_000_000;
        let drift_ns = u64::try_from(share_ns).unwrap_or(u64::MAX).saturating_add(drift.constant.0);
        let mut steps = scenario.clients.iter().flat_map(|client| &client.steps);
        let leases_most = u64::from(scenario.lock.extensions_max).saturating_add(1);
        Self {
            nodes,
            probe,
            hosts: scenario.host_count(),
            drift,
            extends: steps.any(|step| step.extend.is_some()),
            held_most_ns: ttl_ns.saturating_mul(leases_most),
            node_timeout_ns,
            give_up_ns,
            retry_ns,
            attempt_ns,
            release_ns,
            heal_ns: release_ns + REDIAL_NS + CONNECT_NS,
            progress_ns: [drift_ns, MS_NS, retry_ns, attempt_ns]
                .into_iter()
                .fold(ttl_ns, u64::saturating_add),
            warm: scenario.cluster.connections == Start::Warm,
            say_whose: mask(scenario, |client| client.says_whose()),
            ask_at_once: mask(scenario, |client| client.asks_at_once()),
        }
    }

    /// True if `client` reports `Taken` only when somebody holds the lock.
    pub(super) fn says_whose(&self, client: u8) -> bool {
        self.say_whose & 1_u16.checked_shl(client.into()).unwrap_or(0) != 0
    }

    /// True if every acquisition of `client` is `at-once`.
    pub(super) fn asks_at_once(&self, client: u8) -> bool {
        self.ask_at_once & 1_u16.checked_shl(client.into()).unwrap_or(0) != 0
    }

    /// The host of the client at `place`.
    pub(super) fn client_host(&self, place: u8) -> HostIndex {
        HostIndex(self.nodes as u8 + place)
    }

    /// The client whose host it is.
    pub(super) fn client_of(&self, host: HostIndex) -> Option<u8> {
        let place = host.get().checked_sub(self.nodes)?;
        (place <= self.probe).then_some(place as u8)
    }

    /// Whether the attempts of `client` are judged: those of the probe only measure.
    pub(super) fn is_judged(&self, client: u8) -> bool {
        usize::from(client) < self.probe
    }
}

/// The places of the clients that are `meant`, bit by bit.
fn mask(scenario: &Scenario, meant: impl Fn(&Client) -> bool) -> u16 {
    let places = scenario.clients.iter().enumerate().filter(|(_, client)| meant(client));
    places.fold(0, |mask, (place, _)| mask | 1_u16 << place)
}

const _: () = assert!(CLIENTS_MAX <= 16, "a client has a bit");
