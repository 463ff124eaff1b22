//! The assumptions under which a lock is judged, and which of them a scenario breaks.

use core::fmt;
use core::str::FromStr;

use lock_judge::history::{ClientId, NodeId};
use lock_judge::oracle::Blame;
use lock_judge::scenario::{
    At, Cause, Fault, FaultKind, Persistence, RestartGuard, Rights, Scenario, SignedSpan, Span,
    SpanRange, Stopwatch, nearest,
};
use serde::{Deserialize, Serialize};

use crate::subject::kind;

/// An assumption on the first page of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Assumption {
    /// Clocks keep their rates within half the drift that the lease allows for, and no wall clock of
    /// a node is stepped forward.
    Clock,
    /// Nodes delete no single live keys, restore no old ones, and forget nothing in a way that the
    /// restart guard rules out or that a proxy hides.
    Memory,
    /// Nobody but the clients deletes keys of locks.
    Operator,
    /// All clients lock on the same nodes: on all of their lists or, for locks on one node, on the
    /// first.
    Membership,
    /// Every client draws random numbers of its own.
    Randomness,
}

impl Assumption {
    /// All assumptions.
    pub const ALL: [Self; 5] =
        [Self::Clock, Self::Memory, Self::Operator, Self::Membership, Self::Randomness];

    /// Returns the name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Clock => "clock",
            Self::Memory => "memory",
            Self::Operator => "operator",
            Self::Membership => "membership",
            Self::Randomness => "randomness",
        }
    }

    /// Returns the assumption that a cause breaks; `None` if no lock prevents that cause (K1, K7,
    /// K10).
    #[must_use]
    pub const fn of(cause: Blame) -> Option<Self> {
        match cause {
            Blame::Amnesia(_) => Some(Self::Memory),
            Blame::Clock(_) => Some(Self::Clock),
            Blame::Operator => Some(Self::Operator),
            Blame::Membership => Some(Self::Membership),
            Blame::Randomness => Some(Self::Randomness),
            Blame::Application | Blame::DelayedWrite | Blame::Pause => None,
        }
    }
}

impl FromStr for Assumption {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let names = Self::ALL.map(Self::name);
        Self::ALL.into_iter().find(|it| it.name() == name).ok_or_else(|| {
            let help = match nearest(name, names) {
                Some(other) => format!("did you mean `{other}`?"),
                None => format!("expected one of {}", names.map(|it| format!("`{it}`")).join(", ")),
            };
            format!("`{name}` is no assumption: {help}")
        })
    }
}

/// A set of assumptions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Assumptions(u8);

impl Assumptions {
    /// No assumption.
    pub const NONE: Self = Self(0);

    /// Returns true if the set has `assumption`.
    #[must_use]
    pub const fn has(self, assumption: Assumption) -> bool {
        self.0 & (1 << assumption as u8) != 0
    }

    /// Returns true if every assumption of this set is in `other`.
    #[must_use]
    pub const fn is_within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// Returns the assumptions that `scenario` breaks if all of its faults begin.
    #[must_use]
    pub fn broken_by(scenario: &Scenario) -> Self {
        let mut broken: Self = scenario
            .faults
            .iter()
            .filter(|fault| fault.enabled)
            .filter_map(|fault| of_fault(scenario, fault))
            .collect();
        if wrong_clocks(scenario).next().is_some() {
            broken.add(Assumption::Clock);
        }
        let first = membership(scenario, scenario.probe());
        let has_two_names = first.windows(2).any(|pair| pair[0] == pair[1]);
        if has_two_names
            || scenario.client_ids().any(|client| membership(scenario, client) != first)
        {
            broken.add(Assumption::Membership);
        }
        if scenario.clients.iter().any(|client| client.copy_of.is_some()) {
            broken.add(Assumption::Randomness);
        }
        if scenario.cluster.disk.lies {
            broken.add(Assumption::Memory);
        }
        broken
    }

    fn add(&mut self, assumption: Assumption) {
        self.0 |= 1 << assumption as u8;
    }
}

impl FromIterator<Assumption> for Assumptions {
    fn from_iter<I: IntoIterator<Item = Assumption>>(assumptions: I) -> Self {
        let mut set = Self::NONE;
        assumptions.into_iter().for_each(|it| set.add(it));
        set
    }
}

impl fmt::Display for Assumptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Assumption::ALL.into_iter().filter(|it| self.has(*it)).map(Assumption::name);
        let names: Vec<_> = names.collect();
        formatter.write_str(if names.is_empty() { "none" } else { "" })?;
        formatter.write_str(&names.join(", "))
    }
}

/// Returns true if `scenario` breaks the assumption behind `cause`, at the very host that `cause`
/// names.
#[must_use]
pub(super) fn is_broken_at(scenario: &Scenario, cause: Blame) -> bool {
    let Some(assumption) = Assumption::of(cause) else { return false };
    let (Blame::Amnesia(host) | Blame::Clock(host)) = cause else {
        return Assumptions::broken_by(scenario).has(assumption);
    };
    let name = scenario.host_name(host);
    // What happens to a replica happens to the node that it may stand for.
    let replicas = &scenario.cluster.replicas;
    let is_meant =
        |struck: &str| struck == name || replicas.iter().any(|it| it.id == struck && it.of == name);
    let faults = scenario.faults.iter().filter(|fault| fault.enabled);
    let breaking = faults.filter(|fault| of_fault(scenario, fault) == Some(assumption));
    let mut struck = breaking.flat_map(|fault| fault.kind.hosts()).map(String::as_str);
    match assumption {
        Assumption::Clock => {
            struck.chain(wrong_clocks(scenario)).chain(unpromised_masters(scenario)).any(is_meant)
        }
        _ => scenario.cluster.disk.lies || struck.any(is_meant),
    }
}

/// Returns true if `cause` is a host's amnesia, and a fault of `scenario` may take the memory of that
/// very host.
#[must_use]
pub(super) fn may_forget(scenario: &Scenario, cause: Blame) -> bool {
    let Blame::Amnesia(host) = cause else { return false };
    let name = scenario.host_name(host);
    let faults = scenario.faults.iter().filter(|fault| fault.enabled);
    let mut losses = faults.filter(|it| it.kind.descriptor().blames.contains(&Cause::Amnesia));
    losses.any(|fault| fault.kind.hosts().iter().any(|struck| struck == name))
}

/// Returns the nodes that `client` locks on, sorted. A node under two names is there twice.
fn membership(scenario: &Scenario, client: ClientId) -> Vec<NodeId> {
    let mut nodes = scenario.members(client);
    let own = scenario.client(client).or(scenario.clients.first());
    let uses_one_node = own.and_then(|it| kind(&it.subject)).is_some_and(|it| it.uses_one_node());
    if uses_one_node {
        nodes.truncate(1);
    }
    nodes.sort_unstable();
    nodes
}

/// Returns the hosts whose clocks run at a wrong rate from the beginning.
fn wrong_clocks(scenario: &Scenario) -> impl Iterator<Item = &str> {
    let clocks = scenario.cluster.clocks.iter();
    let wrong = clocks.filter(|(host, _)| is_too_far(scenario, host, 0));
    wrong.map(|(host, _)| host.as_str())
}

/// Returns the replicas that become masters although the restart guard rules failovers out: their
/// clocks, by which keys expire from then on, are not promised either.
fn unpromised_masters(scenario: &Scenario) -> impl Iterator<Item = &str> {
    let faults = scenario.faults.iter().filter(|fault| fault.enabled);
    faults.filter_map(|fault| match &fault.kind {
        FaultKind::Failover(it) => of_fault(scenario, fault).map(|_| it.to.as_str()),
        _ => None,
    })
}

fn of_fault(scenario: &Scenario, fault: &Fault) -> Option<Assumption> {
    let is_node = |name: &String| !scenario.clients.iter().any(|client| client.id == *name);
    let strikes_a_node = fault.kind.hosts().iter().any(is_node);
    let broken = |is_broken: bool, assumption| is_broken.then_some(assumption);
    match &fault.kind {
        FaultKind::ClockJump(it) => broken(strikes_a_node && it.by.max.0 > 0, Assumption::Clock),
        FaultKind::ClockRate(it) => {
            let is_far = it.host.0.iter().any(|host| is_too_far(scenario, host, it.ppm.into()));
            broken(is_far, Assumption::Clock)
        }
        FaultKind::ClockSlew(it) => {
            let length_ns = match (fault.at.clone(), fault.until, fault.lasts) {
                (At::Time(at), Some(until), _) => until.0.saturating_sub(at.max.0),
                (_, _, lasts) => lasts.map_or(1, |lasts| lasts.min.0),
            };
            let ppm = |by: SignedSpan| i128::from(by.0) * 1_000_000 / i128::from(length_ns.max(1));
            let rates_ppm = [it.by.min, it.by.max].map(ppm);
            let is_steep =
                |host: &String| rates_ppm.iter().any(|it| is_too_far(scenario, host, *it));
            broken(it.host.0.iter().any(is_steep), Assumption::Clock)
        }
        FaultKind::Delete(_) => Some(Assumption::Operator),
        FaultKind::Evict(_) | FaultKind::Swap(_) => Some(Assumption::Memory),
        // The replica is a server that the operator did not promise anything about.
        FaultKind::Failover(it) => {
            let promised = scenario.lock.restart_guard != RestartGuard::Quarantine;
            // A server that had no keys to begin with does not show that it took over.
            let is_hidden = is_unread(scenario) && attaches(scenario, &it.to);
            broken(promised || is_hidden || it.told.is_some(), Assumption::Memory)
        }
        FaultKind::Kill(it) | FaultKind::Power(it) | FaultKind::Shutdown(it) if strikes_a_node => {
            let is_hidden = it.behind_a_proxy || it.backup_of.is_some();
            let hosts = it.host.0.iter().filter(|name| is_node(name));
            let promise = hosts.into_iter().all(|host| match scenario.lock.restart_guard {
                RestartGuard::Quarantine => true,
                RestartGuard::Durable => keeps_everything(scenario, host) && !it.replaced,
                RestartGuard::DelayedRestart => {
                    let is_late = |after: SpanRange| {
                        it.measured_on == Stopwatch::True && after.min >= longest_key(scenario)
                    };
                    // A second death may be cut short by the restart after the first.
                    it.restart_after.is_none_or(is_late) && deaths(scenario, host) == 1
                }
            });
            broken(is_hidden || !promise, Assumption::Memory)
        }
        // A client that meets the node for the first time afterwards believes the promise; one to
        // which servers push nothing, or which may not use the canary, may not notice at all.
        FaultKind::Demote(_) | FaultKind::Flush(_) => {
            let promised = scenario.lock.restart_guard != RestartGuard::Quarantine;
            let is_unheard = scenario.clients.iter().any(|client| client.deaf);
            broken(promised || is_unheard || is_unread(scenario), Assumption::Memory)
        }
        FaultKind::Attach(_)
        | FaultKind::Delay(_)
        | FaultKind::DiskStall(_)
        | FaultKind::Kill(_)
        | FaultKind::MemoryFull(_)
        | FaultKind::Partition(_)
        | FaultKind::Pause(_)
        | FaultKind::Power(_)
        | FaultKind::Shutdown(_)
        | FaultKind::Snapshot(_)
        | FaultKind::SpuriousPush(_)
        | FaultKind::Stall(_)
        | FaultKind::Suspend(_) => None,
    }
}

/// Returns true if the clock of `host`, which a fault makes `extra_ppm` faster than usual, departs from
/// true time by more than half the drift that a lease allows for.
fn is_too_far(scenario: &Scenario, host: &str, extra_ppm: i128) -> bool {
    let usual_ppm = scenario.cluster.clocks.get(host).map_or(0, |clock| clock.rate_ppm);
    (i128::from(usual_ppm) + extra_ppm).unsigned_abs()
        > u128::from(scenario.lock.drift.share_ppm / 2)
}

/// Returns true if the clients may not use the canary of some server.
fn is_unread(scenario: &Scenario) -> bool {
    scenario.cluster.rights().any(|rights| rights != Rights::All)
}

/// Returns true if the replica `name` follows its master only from some fault on.
fn attaches(scenario: &Scenario, name: &str) -> bool {
    let attaches = |it: &Fault| matches!(&it.kind, FaultKind::Attach(it) if it.host.0 == [name]);
    scenario.faults.iter().any(attaches)
}

fn keeps_everything(scenario: &Scenario, host: &str) -> bool {
    scenario.cluster.persistence_on(host, host) == Persistence::Always
}

/// Returns true if `host` dies in `scenario`.
pub(super) fn dies(scenario: &Scenario, host: &str) -> bool {
    deaths(scenario, host) > 0
}

fn deaths(scenario: &Scenario, host: &str) -> usize {
    let faults = scenario.faults.iter().filter(|fault| fault.enabled);
    let deaths = faults.filter(|fault| {
        matches!(fault.kind, FaultKind::Kill(_) | FaultKind::Power(_) | FaultKind::Shutdown(_))
            && fault.kind.hosts().iter().any(|name| name == host)
    });
    deaths.map(|fault| fault.times_max() as usize).sum()
}

/// Returns the time after which every key that was set before is over, on a clock within the drift:
/// the longest TTL, the drift, and a millisecond for the rounding of clocks.
pub(super) fn longest_key(scenario: &Scenario) -> Span {
    let ttl = scenario.fleet_max_ttl();
    Span(ttl.0 + scenario.lock.drift.of(ttl).0 + 1_000_000)
}

#[cfg(test)]
mod tests;
