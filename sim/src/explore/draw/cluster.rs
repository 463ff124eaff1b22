//! Draws the lock's parameters and the masters.

use core::num::NonZeroU16;

use lock_judge::scenario::{
    ActiveExpiry, Checks, ClockSpec, Disk, LinkSpec, NodeSpec, Persistence, Replica, RestartGuard,
    Retry, Rights, Server, SignedSpan, Span, SpanRange, Start,
};

use super::Sketch;
use crate::explore::assumptions::{Assumption, Assumptions};
use crate::explore::limits;

/// Share of the plans whose clients may have few commands on a connection.
const WINDOW_PERCENT: u64 = 15;
/// Share of the plans in which the clients' user lacks rights.
const RIGHTS_PERCENT: u64 = 8;
/// Share of the plans in which the protected resource compares versions.
const VERSIONS_PERCENT: u64 = 10;

const NODES: [&str; 9] = ["A", "B", "C", "D", "E", "F", "G", "H", "I"];

const PERSISTENCE: [Persistence; 5] = [
    Persistence::None,
    Persistence::Rdb,
    Persistence::No,
    Persistence::Everysec,
    Persistence::Always,
];

impl Sketch {
    pub(super) fn lock(&mut self) {
        let dice = &mut self.dice;
        let ttl_ms = dice.pick(&[40, 150, 500, 2_000, 10_000, 30_000]) + dice.below(10);
        let lock = &mut self.plan.lock;
        lock.ttl = Span::from_ms(ttl_ms);
        let share = |percent: u64| Span(lock.ttl.0 / 100 * percent);
        lock.node_timeout = dice.length(share(1).max(Span::from_ms(1)), share(25));
        if dice.percent(20) {
            lock.min_validity = dice.length(share(1), share(20));
        }
        let first = dice.length(share(1).max(Span::from_ms(1)), share(5));
        lock.retry = Retry { first, longest: dice.length(Span(2 * first.0), share(60)) };
        if dice.percent(40) {
            let fleet_ms = dice.between(ttl_ms, 3 * ttl_ms);
            lock.fleet_max_ttl = Some(Span::from_ms(fleet_ms));
        }
        lock.extensions_max = dice.weighted(&[(6, 100), (1, 1), (1, 2), (1, 0)]);
        lock.restart_guard = dice.weighted(&[
            (6, RestartGuard::Quarantine),
            (2, RestartGuard::Durable),
            (2, RestartGuard::DelayedRestart),
        ]);
        self.horizon =
            dice.length(self.plan.fleet_max_ttl(), Span(4 * self.plan.fleet_max_ttl().0));
    }

    pub(super) fn cluster(&mut self) {
        let dice = &mut self.dice;
        let count = dice.weighted(
            &[(40_usize, 3_usize), (30, 5), (8, 1), (5, 2), (6, 4), (4, 7), (2, 6), (2, 8), (3, 9)]
                .map(|(weight, count)| (weight as u64, count)),
        );
        let cluster = &mut self.plan.cluster;
        cluster.nodes = NODES[..count].iter().map(|name| String::from(*name)).collect();
        cluster.server = dice.pick(&[
            Server::Redis7,
            Server::Redis7,
            Server::Redis72,
            Server::Redis84,
            Server::Valkey9,
        ]);
        self.plan.lock.plain_extensions = cluster.server.extends_plainly() && dice.percent(50);
        cluster.active_expiry = dice.pick(&[ActiveExpiry::Late, ActiveExpiry::Prompt]);
        if dice.percent(25) {
            cluster.connections = Start::Cold;
        }
        if dice.percent(20) {
            cluster.uptime = dice.length(Span::from_ms(1), Span(2 * self.plan.lock.ttl.0));
        }
        self.plan.store.checks = dice.pick(&[
            Checks::Nothing,
            Checks::Nothing,
            Checks::TokenOnWrite,
            Checks::TokenOnOpenAndWrite,
            Checks::CompareAndSetOwner,
        ]);
        self.delays();
        self.disks();
        if self.dice.percent(25) {
            self.replicas();
        }
    }

    /// Lets the protected resource compare versions in some plans. Drawn last: the other plans are as they
    /// would be without it.
    pub(super) fn versions(&mut self) {
        if self.is_ours && self.dice.percent(VERSIONS_PERCENT) {
            self.plan.store.checks = Checks::CompareAndSetVersion;
        }
    }

    /// Narrows the clients' connections in some plans, so that commands find no room. Drawn last: plans
    /// without it are as they would be if no connection were narrow.
    pub(super) fn window(&mut self) {
        if self.is_ours && self.dice.percent(WINDOW_PERCENT) {
            self.plan.lock.window = NonZeroU16::new(self.dice.between(1, 16) as u16);
        }
    }

    /// Withholds rights from the clients' user in some plans: on all servers, or on one node. Drawn last:
    /// plans without it are as they would be if users had all rights.
    pub(super) fn rights(&mut self) {
        if !self.is_ours || !self.dice.percent(RIGHTS_PERCENT) {
            return;
        }
        let rights = self.dice.pick(&[Rights::NoCanary, Rights::NoInfo]);
        let before = self.plan.cluster.clone();
        if self.dice.percent(50) {
            self.plan.cluster.rights = rights;
        } else {
            let node = self.dice.pick(&self.names_of_nodes());
            self.plan.cluster.node.entry(node).or_default().rights = Some(rights);
        }
        // Without them, clients may not notice what some faults do.
        if !Assumptions::broken_by(&self.plan).is_within(self.broken) {
            self.plan.cluster = before;
        }
    }

    fn delays(&mut self) {
        let usual = self.delay();
        self.plan.cluster.network.delay = usual;
        self.plan.store.delay = self.delay();
    }

    /// Returns one-way delays within which a node can answer in time and be connected to. What is
    /// slower is a fault of its own.
    fn delay(&mut self) -> SpanRange {
        let longest = limits::longest_delay(&self.plan);
        let min = self.dice.length(Span(longest.0 / 100), longest);
        let max = if self.dice.percent(40) { min } else { self.dice.length(min, longest) };
        SpanRange { min, max: max.max(min) }
    }

    fn disks(&mut self) {
        let guard = self.plan.lock.restart_guard;
        let slowest = limits::longest_sync(&self.plan);
        let (dice, cluster) = (&mut self.dice, &mut self.plan.cluster);
        let may_forget = guard != RestartGuard::Durable || self.broken.has(Assumption::Memory);
        if !may_forget {
            cluster.persistence = Persistence::Always;
        } else {
            cluster.persistence = dice.pick(&PERSISTENCE);
            for name in &cluster.nodes {
                if dice.percent(10) {
                    let persistence = Some(dice.pick(&PERSISTENCE));
                    cluster
                        .node
                        .insert(name.clone(), NodeSpec { persistence, ..NodeSpec::default() });
                }
            }
        }
        let sync_takes =
            if dice.percent(50) { Span(0) } else { dice.length(Span(10_000), slowest) };
        let lies = self.broken.has(Assumption::Memory) && dice.percent(10);
        cluster.disk = Disk { sync_takes, sync_at: None, lies };
    }

    fn replicas(&mut self) {
        for node in self.names_of_nodes() {
            if self.dice.percent(40) {
                let delay = self.delay();
                let id = format!("{node}2");
                self.plan.cluster.replicas.push(Replica { id, of: node, delay });
            }
        }
    }

    /// Draws slow links and wrong clocks, once the names of all hosts are known.
    pub(super) fn differences(&mut self) {
        let machines = self.names_of_machines();
        if self.dice.percent(25) {
            let (nodes, clients) = (self.names_of_nodes(), self.names_of_clients());
            let between = [self.dice.some(&nodes), self.dice.some(&clients)];
            let delay = self.delay();
            self.plan.cluster.links.push(LinkSpec { between, delay });
        }
        for name in machines {
            if self.dice.percent(70) {
                continue;
            }
            let rate_ppm = self.rate_ppm();
            let reach_ms = self.dice.pick(&[0, 1_000, 3_600_000]);
            let offset_ms = self.dice.between(0, 2 * reach_ms) as i64 - reach_ms as i64;
            let offset = SignedSpan(offset_ms * 1_000_000);
            self.plan.cluster.clocks.insert(name, ClockSpec { offset, rate_ppm });
        }
    }

    /// Returns a rate within half the drift of a lease, often at its very edge; beyond it only in a
    /// plan that may break the assumption about clocks.
    pub(super) fn rate_ppm(&mut self) -> i32 {
        let edge = self.plan.lock.drift.share_ppm / 2;
        let wild = self.may_break(Assumption::Clock) && self.dice.percent(50);
        let size = if wild {
            self.dice.between(u64::from(edge), 400_000)
        } else if self.dice.percent(50) {
            u64::from(edge)
        } else {
            self.dice.between(0, u64::from(edge))
        };
        let size = size as i32;
        if self.dice.percent(50) { size } else { -size }
    }

    fn names_of_machines(&self) -> Vec<String> {
        [self.names_of_clients(), self.names_of_nodes(), self.names_of_replicas()].concat()
    }
}
