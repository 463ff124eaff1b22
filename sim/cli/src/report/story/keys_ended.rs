//! Explains why keys ended, and why a client reported its lease as lost.

use lock_judge::history::{KeyEnd, LostReason, NodeId, Writer};
use lock_judge::scenario::Family;
use lock_judge::text;

use super::{Clause, span};
use crate::report::faults;
use crate::report::timeline::{Attempt, Key, KeyEnded, Timeline};

/// A key that ends at least this long before its time ended early, in nanoseconds. Smaller
/// differences come from clocks that tick in milliseconds.
const EARLY_NS: u64 = 2_000_000;

/// Returns true if `key` ended before its time.
pub(super) fn is_early(key: &Key, ended: KeyEnded) -> bool {
    key.expected_ns.is_some_and(|due_ns| ended.moment.at_ns + EARLY_NS < due_ns)
}

pub(super) const fn how(cause: KeyEnd) -> &'static str {
    match cause {
        KeyEnd::Command => "been deleted",
        KeyEnd::Evicted => "been evicted",
        KeyEnd::Expired => "expired",
        KeyEnd::FailedOver => "been left behind by a failover",
        KeyEnd::Flushed => "been flushed",
        KeyEnd::Restarted => "been lost in a restart",
    }
}

/// Explains why `key` of `lease` ended, with `{ended}` for the time.
fn why(timeline: &Timeline<'_>, lease: &Attempt, key: &Key, ended: KeyEnded) -> String {
    match is_early(key, ended) {
        true => early(timeline, lease, key, ended),
        false => format!("the key had {} at {{ended}}", how(ended.cause)),
    }
}

/// Explains why a key ended before its time.
pub(super) fn early(
    timeline: &Timeline<'_>,
    first: &Attempt,
    key: &Key,
    ended: KeyEnded,
) -> String {
    let host = key.node.first_host();
    let name = timeline.node_name(key.node);
    let at = "{ended}";
    let (from_ns, to_ns) = (key.set.at_ns, ended.moment.at_ns);
    let fault = |family| {
        let trouble = faults::on(timeline, family, host, from_ns, to_ns)?;
        Some(faults::because(timeline.scenario, trouble))
    };
    match ended.cause {
        KeyEnd::Expired => match fault(Family::Clock) {
            Some(because) => format!("{because}, and the key expired at {at}"),
            None => match initial_rate(timeline, name) {
                Some(rate) => {
                    format!("{name}’s clocks drift by {rate}, and the key expired at {at}")
                }
                None => format!("the key expired at {at}"),
            },
        },
        KeyEnd::Restarted => match fault(Family::Memory) {
            Some(because) => format!("{because}, and the restart lost the key"),
            None => format!("{name} restarted without the key at {at}"),
        },
        KeyEnd::FailedOver => match fault(Family::Memory) {
            Some(because) => format!("{because}; the new master lacked the key"),
            None => format!("{name} failed over at {at}; the new master lacked the key"),
        },
        KeyEnd::Evicted | KeyEnd::Flushed => {
            fault(Family::Memory).unwrap_or_else(|| format!("it had {} at {at}", how(ended.cause)))
        }
        KeyEnd::Command => match ended.by {
            Writer::Attempt(by) if by == first.id => format!("its own release deleted it at {at}"),
            Writer::Attempt(by) => {
                let (client, number) = (timeline.client_name(by.client), by.number);
                format!("{client} deleted it at {at} with a command of its attempt {number}")
            }
            by => format!("{} deleted it at {at}", timeline.writer_name(by)),
        },
    }
}

/// Returns the initial rate of a host's clocks, or `None` if they run true.
pub(super) fn initial_rate(timeline: &Timeline<'_>, host: &str) -> Option<String> {
    let spec = timeline.scenario.cluster.clocks.get(host)?;
    (spec.rate_ppm != 0).then(|| text::percent(spec.rate_ppm))
}

/// Keys that ended for one reason.
struct Group {
    /// The reason, with `{ended}` for the time.
    because: String,
    ended: Vec<(NodeId, KeyEnded)>,
}

/// Tells which keys of `lease` its client knew to be gone, and why they were; `None` unless the client
/// had reported that by `by_ns`.
pub(super) fn reported(timeline: &Timeline<'_>, lease: &Attempt, by_ns: u64) -> Option<Clause> {
    let is_told = |(_, why): &(_, LostReason)| *why == LostReason::KeysGone;
    let (lost, _) = lease.lost.filter(is_told).filter(|(at, _)| at.at_ns <= by_ns)?;
    let mut groups: Vec<Group> = Vec::new();
    let own = timeline.keys.iter().filter(|key| key.writer == Writer::Attempt(lease.id));
    for (key, ended) in own.filter_map(|key| Some((key, key.ended?))) {
        if ended.moment.event > lost.event {
            continue;
        }
        let because = why(timeline, lease, key, ended);
        match groups.iter_mut().find(|group| group.because == because) {
            Some(group) => group.ended.push((key.node, ended)),
            None => groups.push(Group { because, ended: vec![(key.node, ended)] }),
        }
    }
    let told: Vec<String> = groups.iter().map(|group| sentence(timeline, group)).collect();
    let (client, name) = (timeline.client_name(lease.id.client), timeline.name(lease.id));
    let (at, told) = (text::instant(lost.at_ns), told.join("; "));
    Some(Clause::at(lost, format!("{client} learnt at {at} that keys of {name} were gone: {told}")))
}

fn sentence(timeline: &Timeline<'_>, Group { because, ended }: &Group) -> String {
    let nodes: Vec<&str> = ended.iter().map(|(node, _)| timeline.node_name(*node)).collect();
    let span = span(ended.iter().map(|(_, ended)| ended.moment.at_ns));
    format!("on {}, because {}", text::list(&nodes), because.replace("{ended}", &span))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;
    use crate::report::timeline::Moment;

    #[test]
    fn a_reported_loss_has_the_reasons_for_which_keys_ended() {
        let played = fixture::jump();
        let timeline = fixture::timeline(&played);
        let mut lease = timeline.leases().next().expect("a lease").clone();
        let told = |lease: &Attempt| reported(&timeline, lease, 9_000_000_000).map(|it| it.text);
        let at_ns = 8_000_000_000;
        let later = timeline.events.iter().position(|it| it.at_ns > at_ns).expect("a release");
        let moment = Moment { at_ns, event: later - 1 };
        lease.lost = Some((moment, LostReason::DeadlinePassed));
        assert_eq!(told(&lease), None, "no key was reported as lost");
        lease.lost = Some((moment, LostReason::KeysGone));
        insta::assert_snapshot!(told(&lease).expect("keys are gone"), @"c1 learnt at 8.000 s that keys of L1 were gone: on C, because fault “jump” moved C’s wall clock by +10 s at 1.000 s, and the key expired at 1.000 s");
        lease.lost = Some((Moment { at_ns: 9_500_000_000, ..moment }, LostReason::KeysGone));
        assert_eq!(told(&lease), None, "it was over before");
    }
}
