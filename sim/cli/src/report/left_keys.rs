//! Keys of the lock that killed clients left behind for longer than the lock's TTL.

use lock_judge::history::{
    ClientId, ClockKind, ClockSegments, Event, EventKind, Id, NodeId, Segment, Writer,
};
use lock_judge::ids::IdVec;
use lock_judge::scenario::{Case, Quantity, Scenario};
use lock_judge::text;
use redlock_sim::search::{Played, QuantityResult};

const MS_NS: u64 = 1_000_000;

/// A key of the lock.
#[derive(Clone, Copy, Debug)]
struct Key {
    writer: Writer,
    /// Expiry by the node's wall clock.
    expires_wall_ms: u64,
    /// Time that it had to live when it was set, by that clock.
    life_ns: u64,
}

impl Key {
    const NONE: Self = Self { writer: Writer::Nobody, expires_wall_ms: 0, life_ns: 0 };

    /// Returns the key that `writer` sets when the node's wall clock reads `wall_ns`.
    fn set(writer: Writer, expires_wall_ms: u64, wall_ns: u64) -> Self {
        let life_ns = left_ns(expires_wall_ms, wall_ns);
        Self { writer, expires_wall_ms, life_ns }
    }
}

/// Returns the time until a key expires; `u64::MAX` if it never does.
fn left_ns(expires_wall_ms: u64, wall_ns: u64) -> u64 {
    match expires_wall_ms {
        u64::MAX => u64::MAX,
        ms => ms.saturating_mul(MS_NS).saturating_sub(wall_ns),
    }
}

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

/// Names the keys that a killed client has at the end of a run, if it set one for longer than the TTL of
/// the scenario; `None` if it did not.
fn keys_of_the_killed(case: &Case, events: &[Event]) -> Option<String> {
    let scenario = &case.scenario;
    let ended_ns = events.last()?.at_ns;
    let (keys, clocks) = at_end(scenario, events);
    let left_ns = |(node, key): &(NodeId, &Key)| {
        left_ns(key.expires_wall_ms, wall_ns(&clocks, *node, ended_ns))
    };
    killed(scenario, events).find_map(|(client, killed_ns)| {
        let is_own = |key: &Key| matches!(key.writer, Writer::Attempt(it) if it.client == client);
        let own: Vec<(NodeId, &Key)> = keys.iter().filter(|(_, key)| is_own(key)).collect();
        if own.iter().all(|(_, key)| key.life_ns <= scenario.lock.ttl.0) {
            return None;
        }
        let longest_ns = own.iter().map(left_ns).max()?;
        let since_ns = ended_ns.saturating_sub(killed_ns);
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
    let mut keys = IdVec::filled(scenario.cluster.nodes.len(), Key::NONE);
    let mut clocks = ClockSegments::default();
    for node in NodeId::first(scenario.cluster.nodes.len()) {
        let as_true_time = Segment { true_ns: 0, local_ns: 0, rate_ppb: 0 };
        clocks.set(node.first_host(), ClockKind::Wall, as_true_time);
    }
    for &Event { at_ns, kind } in events {
        match kind {
            EventKind::Clock { host, clock, local_ns, rate_ppb } => {
                clocks.set(host, clock, Segment { true_ns: at_ns, local_ns, rate_ppb });
            }
            EventKind::Executed { node, changed: true, after, expires_wall_ms, .. } => {
                keys[node] = Key::set(after, expires_wall_ms, wall_ns(&clocks, node, at_ns));
            }
            EventKind::KeyReturned { node, writer, expires_wall_ms } => {
                keys[node] = Key::set(writer, expires_wall_ms, wall_ns(&clocks, node, at_ns));
            }
            EventKind::KeyEnded { node, .. } => keys[node] = Key::NONE,
            _ => {}
        }
    }
    (keys, clocks)
}

fn wall_ns(clocks: &ClockSegments, node: NodeId, at_ns: u64) -> u64 {
    clocks.segment(node.first_host(), ClockKind::Wall).local_at(at_ns)
}

#[cfg(test)]
mod tests {
    use lock_judge::history::{Answer, AttemptId, CommandId, OpKind};

    use super::*;
    use crate::report::fixture;

    /// Tells the keys of c1, killed at 1 s, whose last SET arrived `late_ms` later and had this TTL; the
    /// run ends 1 s after the kill.
    fn told(late_ms: u64, ttl_ms: u64) -> Option<String> {
        let mut case = fixture::jump().result.case;
        case.scenario.lock.ttl.0 = 1_500 * MS_NS;
        let (client, node) = (ClientId::at(0), NodeId(0));
        let (host, attempt) = (case.scenario.client_host(client), AttemptId { client, number: 1 });
        let set_ms = 1_000 + late_ms;
        let set = EventKind::Executed {
            command: CommandId(0),
            attempt,
            node,
            op: OpKind::Set,
            answer: Answer::Yes,
            changed: true,
            before: Writer::Nobody,
            after: Writer::Attempt(attempt),
            expires_wall_ms: set_ms + ttl_ms,
        };
        let events = [
            (1_000, EventKind::Killed { host, power: false }),
            (set_ms, set),
            (2_000, EventKind::Ended),
        ];
        let events = events.map(|(at_ms, kind)| Event { at_ns: at_ms * MS_NS, kind });
        keys_of_the_killed(&case, &events)
    }

    #[test]
    fn a_key_with_the_ttl_of_the_scenario_is_not_too_long() {
        assert_eq!(told(4, 1_500), None, "it arrived after the kill");
    }

    #[test]
    fn a_key_with_a_longer_ttl_is_named() {
        let told = told(0, 1_700).expect("it lives for too long");
        assert!(told.contains("would live for 700 ms more"), "{told}");
    }
}
