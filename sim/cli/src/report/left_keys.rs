//! Keys of the lock that killed clients left behind for longer than the lock's TTL.

use lock_judge::history::{
    ClientId, ClockKind, ClockSegments, Event, EventKind, NodeId, Segment, Writer,
};
use lock_judge::ids::IdVec;
use lock_judge::scenario::{Case, Quantity, Scenario};
use lock_judge::text;
use redlock_sim::search::{Played, QuantityResult};

const MS_NS: u64 = 1_000_000;

/// A key of the lock: its writer, and its expiry by the node's wall clock.
type Key = (Writer, u64);

/// Names the keys because of which others waited for too long in the run of a case that the page
/// shows; `None` if there are none.
pub(crate) fn left_keys_of(played: &Played) -> Option<String> {
    played.result.quantities.iter().find_map(|found| {
        let events = played.history(found.failing_seed?)?;
        left_keys(&played.result.case, found, events)
    })
}

/// Names the keys of a killed client because of which others waited for too long, as `found` says;
/// `None` if there are none.
pub(crate) fn left_keys(case: &Case, found: &QuantityResult, events: &[Event]) -> Option<String> {
    let is_wait = found.quantity == Quantity::WaitWithoutHolder && !found.failures.is_empty();
    is_wait.then(|| keys_of_the_killed(case, events)).flatten()
}

/// Names the keys that a killed client has at the end of a run and that outlive the client by more
/// than the TTL of the scenario; `None` if there are none.
fn keys_of_the_killed(case: &Case, events: &[Event]) -> Option<String> {
    let scenario = &case.scenario;
    let ended_ns = events.last()?.at_ns;
    let (keys, clocks) = at_end(scenario, events);
    let left_ns = |node: NodeId, expires_wall_ms: u64| match expires_wall_ms {
        u64::MAX => u64::MAX,
        _ => {
            let wall_ns = clocks.segment(node.first_host(), ClockKind::Wall).local_at(ended_ns);
            expires_wall_ms.saturating_mul(MS_NS).saturating_sub(wall_ns)
        }
    };
    killed(scenario, events).find_map(|(client, killed_ns)| {
        let own = keys.iter().filter(|(_, (writer, _))| {
            matches!(writer, Writer::Attempt(attempt) if attempt.client == client)
        });
        let own: Vec<u64> = own.map(|(node, (_, expires))| left_ns(node, *expires)).collect();
        let longest_ns = own.iter().copied().max()?;
        let since_ns = ended_ns.saturating_sub(killed_ns);
        if since_ns.saturating_add(longest_ns) <= scenario.lock.ttl.0 {
            return None;
        }
        let life = match longest_ns {
            u64::MAX => String::from("has no TTL"),
            left_ns => format!("would live for {} more", text::length(left_ns)),
        };
        let name = &scenario.client(client)?.id;
        let (since, ttl) = (text::length(since_ns), text::length(scenario.lock.ttl.0));
        Some(format!(
            "{name}’s key for “{}” was left on {} of {} nodes {since} after {name} was killed, and \
             {life}: set it with the scenario’s TTL, {ttl} (`DRIVE_TTL_MS`)",
            scenario.lock.resource,
            own.len(),
            keys.len(),
        ))
    })
}

/// Returns the clients that were killed, and when.
fn killed<'a>(
    scenario: &'a Scenario,
    events: &'a [Event],
) -> impl Iterator<Item = (ClientId, u64)> + 'a {
    events.iter().filter_map(|event| match event.kind {
        EventKind::Killed { host, .. } => Some((scenario.client_on(host)?, event.at_ns)),
        _ => None,
    })
}

/// Returns the key of each node and the clocks of all hosts after the last event.
fn at_end(scenario: &Scenario, events: &[Event]) -> (IdVec<NodeId, Key>, ClockSegments) {
    let mut keys = IdVec::filled(scenario.cluster.nodes.len(), (Writer::Nobody, 0));
    let mut clocks = ClockSegments::default();
    for &Event { at_ns, kind } in events {
        match kind {
            EventKind::Clock { host, clock, local_ns, rate_ppb } => {
                clocks.set(host, clock, Segment { true_ns: at_ns, local_ns, rate_ppb });
            }
            EventKind::Executed { node, changed: true, after, expires_wall_ms, .. } => {
                keys[node] = (after, expires_wall_ms);
            }
            EventKind::KeyReturned { node, writer, expires_wall_ms } => {
                keys[node] = (writer, expires_wall_ms);
            }
            EventKind::KeyEnded { node, .. } => keys[node] = (Writer::Nobody, 0),
            _ => {}
        }
    }
    (keys, clocks)
}
