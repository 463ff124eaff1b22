//! Limits within which a client can keep its liveness promises. Slower or longer conditions are
//! drawn as faults, which the oracle sees and excuses. Plans keep these limits, and so do the
//! scenarios that plans are shrunk to.

use lock_judge::scenario::{Client, FaultKind, Scenario, Span};

/// Longest one-way delay: clients wait half a second for a connection to open.
const DELAY_MAX: Span = Span::from_ms(100);

/// Returns the longest usual one-way delay: a reply comes within the node timeout.
pub(super) fn longest_delay(scenario: &Scenario) -> Span {
    Span(scenario.lock.node_timeout.0 * 2 / 5).min(DELAY_MAX)
}

/// Returns the longest usual time of a sync.
pub(super) fn longest_sync(scenario: &Scenario) -> Span {
    Span(scenario.lock.node_timeout.0 / 10)
}

/// Returns true for a fault that every plan ends: full memory or a hanging disk that lasts excuses
/// whatever comes after it.
pub(super) const fn must_end(kind: &FaultKind) -> bool {
    match kind {
        FaultKind::DiskStall(_) | FaultKind::MemoryFull(_) => true,
        FaultKind::Attach(_)
        | FaultKind::ClockJump(_)
        | FaultKind::ClockRate(_)
        | FaultKind::ClockSlew(_)
        | FaultKind::Delay(_)
        | FaultKind::Delete(_)
        | FaultKind::Demote(_)
        | FaultKind::Evict(_)
        | FaultKind::Failover(_)
        | FaultKind::Flush(_)
        | FaultKind::Kill(_)
        | FaultKind::Partition(_)
        | FaultKind::Pause(_)
        | FaultKind::Power(_)
        | FaultKind::Shutdown(_)
        | FaultKind::Snapshot(_)
        | FaultKind::SpuriousPush(_)
        | FaultKind::Stall(_)
        | FaultKind::Suspend(_)
        | FaultKind::Swap(_) => false,
    }
}

/// Returns true if a lease of `client` has enough validity left after the slowest usual attempt.
fn leaves_validity(scenario: &Scenario, client: &Client) -> bool {
    let lock = &scenario.lock;
    let ttl = scenario.ttl_of(client);
    let attempt_ns = 2 * longest_delay(scenario).0 + longest_sync(scenario).0;
    ttl.0 > lock.min_validity.0 + lock.drift.of(ttl).0 + attempt_ns
}

/// Returns true if `scenario` keeps all limits.
pub(super) fn are_kept(scenario: &Scenario) -> bool {
    let cluster = &scenario.cluster;
    let links = cluster.links.iter().map(|link| link.delay);
    let replicas = cluster.replicas.iter().map(|replica| replica.delay);
    let usual = [cluster.network.delay, scenario.store.delay];
    let mut delays = links.chain(replicas).chain(usual);
    let mut faults = scenario.faults.iter();
    delays.all(|delay| delay.max <= longest_delay(scenario))
        && cluster.disk.sync_takes <= longest_sync(scenario)
        && scenario.clients.iter().all(|client| leaves_validity(scenario, client))
        && faults.all(|it| !must_end(&it.kind) || it.until.is_some() || it.lasts.is_some())
}
