//! Explains why two leases overlap: for each node, why the later lease got the node's vote while
//! the earlier lease was believed.

use lock_judge::history::{Answer, AttemptId, ClockKind, NodeId, NodeIds, OpKind};
use lock_judge::oracle::{Blame, Violation};
use lock_judge::scenario::{Family, FaultKind};
use lock_judge::text;

use super::{Clause, ends_by_release, keys_ended, outside, span, stop_before};
use crate::report::faults;
use crate::report::timeline::{Attempt, Command, FaultWindow, Timeline};

/// Explains, for every node that the first lease counts and that let the second one in, why the node
/// could vote twice.
pub(super) fn shared_nodes(
    timeline: &Timeline<'_>,
    violation: &Violation,
    (first, second): (&Attempt, &Attempt),
    at_ns: u64,
) -> Vec<Clause> {
    let (of_first, of_second) = (first.counted_at(at_ns), second.counted);
    let shared = of_first & of_second;
    let (l1, l2) = (timeline.name(first.id), timeline.name(second.id));
    if shared.is_empty() {
        let votes = |counted: NodeIds| match timeline.nodes_of(counted).as_slice() {
            [] => String::from("no node"),
            names => text::list(names),
        };
        // After an extension the lease can count fewer nodes than its grant did.
        let so = if of_second.is_empty() {
            format!("{l2} did not wait for a vote")
        } else if of_first == first.counted {
            String::from("no node voted for both, so none could refuse")
        } else {
            format!("no node that {l1} still counted voted for {l2}, so none could refuse")
        };
        let (of_first, of_second) = (votes(of_first), votes(of_second));
        return vec![Clause::new(format!(
            "{l1} counted {of_first}, {l2} counted {of_second}: {so}"
        ))];
    }
    let voted = (shared & NodeIds::first(timeline.scenario.cluster.nodes.len())).iter();
    let believed = believed_because(timeline, violation, first, at_ns);
    let executed = |attempt: &Attempt, node| {
        let vote = vote(timeline, attempt.id, node).and_then(|command| command.executed);
        vote.map(|(at, _)| at.event)
    };
    let both = voted.map(|node| {
        // The lease that was granted later may have been the first on this node.
        match (executed(first, node), executed(second, node)) {
            (Some(one), Some(other)) if other < one => {
                one_node(timeline, (second, first), node, "")
            }
            _ => one_node(timeline, (first, second), node, &believed),
        }
    });
    let mut told = grouped(timeline, both);
    let names = text::list(&timeline.nodes_of(shared));
    told.push(Clause::new(format!("so {names} voted for both, one after the other")));
    told
}

/// The two votes of one node, and the end of the earlier lease's key there.
struct TwoVotes {
    node: NodeId,
    granted_ns: Option<u64>,
    ended_ns: Option<u64>,
    due_ns: Option<u64>,
    event: Option<usize>,
    /// Sentence with the placeholders `{granted}`, `{ended}` and `{due}` for the instants.
    sentence: String,
}

/// Builds the clauses. Nodes with the same sentence share one.
fn grouped(timeline: &Timeline<'_>, votes: impl Iterator<Item = TwoVotes>) -> Vec<Clause> {
    let mut groups: Vec<Vec<TwoVotes>> = Vec::new();
    for vote in votes {
        match groups.iter_mut().find(|group| group[0].sentence == vote.sentence) {
            Some(group) => group.push(vote),
            None => groups.push(vec![vote]),
        }
    }
    let clause = |group: Vec<TwoVotes>| {
        let names: Vec<&str> = group.iter().map(|vote| timeline.node_name(vote.node)).collect();
        let span = |of: fn(&TwoVotes) -> Option<u64>| span(group.iter().filter_map(of));
        let sentence = group[0]
            .sentence
            .replace("{granted}", &span(|vote| vote.granted_ns))
            .replace("{ended}", &span(|vote| vote.ended_ns))
            .replace("{due}", &span(|vote| vote.due_ns));
        Clause { text: format!("{} {sentence}", text::list(&names)), event: group[0].event }
    };
    groups.into_iter().map(clause).collect()
}

fn one_node(
    timeline: &Timeline<'_>,
    (first, second): (&Attempt, &Attempt),
    node: NodeId,
    believed: &str,
) -> TwoVotes {
    let (l1, l2) = (timeline.name(first.id), timeline.name(second.id));
    let executed = vote(timeline, second.id, node).and_then(|command| command.executed);
    let granted_ns = executed.map(|(at, _)| at.at_ns);
    let granted = match granted_ns {
        Some(_) => format!("voted for {l2} at {{granted}}"),
        None => format!("voted for {l2}"),
    };
    let key = match granted_ns {
        Some(at_ns) => timeline.key_before(first.id, node, at_ns),
        None => timeline.key_of(first.id, node),
    };
    let (due_ns, ended) = (key.and_then(|key| key.expected_ns), key.and_then(|key| key.ended));
    let sentence = match key.map(|key| (key, key.ended)) {
        None => format!("{granted}; {l1}’s key was never there"),
        Some((_, None)) => format!("{granted}, although {l1}’s key is not known to have ended"),
        Some((key, Some(ended))) if keys_ended::is_early(key, ended) => {
            let because = keys_ended::early(timeline, first, key, ended);
            format!(
                "{granted}, although {l1}’s key was due to expire there at {{due}}; it ended early because {because}"
            )
        }
        Some((_, Some(ended))) => {
            let how = keys_ended::how(ended.cause);
            format!("{granted}, after {l1}’s key had {how} at {{ended}}{believed}")
        }
    };
    let ended_ns = ended.map(|ended| ended.moment.at_ns);
    let event = ended.map(|ended| ended.moment.event);
    TwoVotes { node, granted_ns, ended_ns, due_ns, event, sentence }
}

/// Returns the SET by which `node` voted for `attempt`: it may have refused an earlier one.
fn vote<'t>(timeline: &'t Timeline<'_>, attempt: AttemptId, node: NodeId) -> Option<&'t Command> {
    timeline.commands.iter().find(|command| {
        (command.attempt, command.node, command.op) == (attempt, node, OpKind::Set)
            && command.executed.is_some_and(|(_, answer)| answer == Answer::Yes)
    })
}

/// Explains why a belief outlasted keys that ended on time. Returns an empty text if the lease was
/// not believed at `at_ns`.
fn believed_because(
    timeline: &Timeline<'_>,
    violation: &Violation,
    first: &Attempt,
    at_ns: u64,
) -> String {
    if !first.beliefs.iter().any(|it| (it.from_ns..it.to_ns).contains(&at_ns)) {
        return String::new();
    }
    let client = timeline.client_name(first.id.client);
    let reason = match is_clock_behind(timeline, violation, first) {
        true => slow_clock(timeline, first, at_ns).or_else(|| ignored_stop(timeline, first, at_ns)),
        false => late_delivery(timeline, first),
    };
    format!(", and {client} still believed that it held the lease{}", reason.unwrap_or_default())
}

/// Returns true if the oracle blames the clock of the lease's own client.
fn is_clock_behind(timeline: &Timeline<'_>, violation: &Violation, lease: &Attempt) -> bool {
    let own = Blame::Clock(timeline.scenario.client_host(lease.id.client));
    violation.blamed.iter().any(|cause| cause == own)
}

/// Names the last fault that set the lease's clock back or slowed it by `at_ns`, or else the
/// clock's initial rate.
fn slow_clock(timeline: &Timeline<'_>, lease: &Attempt, at_ns: u64) -> Option<String> {
    let host = timeline.scenario.client_host(lease.id.client);
    let mut windows = faults::all_on(timeline, Family::Clock, host, lease.began.at_ns, at_ns);
    let is_reason = |window: &&FaultWindow| {
        let fault = timeline.scenario.fault(window.fault);
        fault.is_some_and(|fault| slows(&fault.kind, lease.clock))
    };
    if let Some(window) = windows.find(is_reason) {
        return Some(format!(", because {}", faults::because(timeline.scenario, window)));
    }
    let client = timeline.client_name(lease.id.client);
    let is_slow = timeline.scenario.cluster.clocks.get(client).is_some_and(|it| it.rate_ppm < 0);
    let rate = keys_ended::initial_rate(timeline, client).filter(|_| is_slow)?;
    Some(format!(", because its clocks drift by {rate}"))
}

/// Returns true if a fault of this kind makes `clock` of its hosts lose time.
const fn slows(kind: &FaultKind, clock: ClockKind) -> bool {
    match kind {
        FaultKind::ClockJump(by) => by.by.max.0 < 0 && matches!(clock, ClockKind::Wall),
        FaultKind::ClockRate(rate) => rate.ppm < 0,
        FaultKind::ClockSlew(by) => by.by.max.0 < 0,
        _ => false,
    }
}

/// Explains a deadline that the client counted from the delivery of its lease, and not from T1: a
/// stop in between was ignored.
fn late_delivery(timeline: &Timeline<'_>, lease: &Attempt) -> Option<String> {
    let (delivered, deadline_local_ns) = lease.delivered?;
    let latest_local_ns = lease.t1_local_ns.saturating_add(lease.ttl_ns);
    let is_late = deadline_local_ns > latest_local_ns && deadline_local_ns != u64::MAX;
    if is_late { ignored_stop(timeline, lease, delivered.at_ns) } else { None }
}

/// Names the fault that stopped the lease's client between T1 and `to_ns`.
fn ignored_stop(timeline: &Timeline<'_>, lease: &Attempt, to_ns: u64) -> Option<String> {
    let host = timeline.scenario.client_host(lease.id.client);
    let window = faults::on(timeline, Family::Process, host, lease.began.at_ns, to_ns)?;
    let because = faults::because(timeline.scenario, window);
    Some(format!(": {because}, and its lease ignored that time"))
}

/// Explains why two sections overlap.
pub(super) fn sections(
    timeline: &Timeline<'_>,
    violation: &Violation,
    first: &Attempt,
    second: &Attempt,
) -> Vec<Clause> {
    let unheld: Vec<Clause> =
        [first, second].into_iter().filter_map(|it| outside::entrance(timeline, it)).collect();
    if !unheld.is_empty() {
        return unheld;
    }
    let over_ns = first.beliefs.last().map(|belief| belief.to_ns);
    let believed = second.delivered.map(|(at, _)| at);
    if let (Some(over_ns), Some(granted)) = (over_ns, believed)
        && over_ns <= granted.at_ns
    {
        return after_the_lease(timeline, violation, first, second, over_ns);
    }
    let at_ns = believed.map_or(violation.from_ns, |granted| granted.at_ns);
    shared_nodes(timeline, violation, (first, second), at_ns)
}

/// Explains an overlap in which the earlier lease was already over while its holder was in its
/// section.
fn after_the_lease(
    timeline: &Timeline<'_>,
    violation: &Violation,
    first: &Attempt,
    second: &Attempt,
    over_ns: u64,
) -> Vec<Clause> {
    let mut told = end_of_the_lease(timeline, violation, first, over_ns);
    if let Some((granted, _)) = second.delivered {
        let (other, l2) = (timeline.client_name(second.id.client), timeline.name(second.id));
        let at = text::instant(granted.at_ns);
        told.push(Clause::at(granted, format!("{other} was correctly granted {l2} at {at}")));
    }
    told.extend(section_all_the_same(timeline, violation, first));
    told
}

/// Explains why a section went on without its lease.
pub(super) fn exposure(timeline: &Timeline<'_>, violation: &Violation) -> Vec<Clause> {
    let Some(first) = timeline.attempt(violation.first) else { return Vec::new() };
    if let Some(entrance) = outside::entrance(timeline, first) {
        let section = section_all_the_same(timeline, violation, first);
        return [entrance].into_iter().chain(section).collect();
    }
    let ends = first.beliefs.iter().map(|belief| belief.to_ns);
    let over_ns = ends.filter(|&to_ns| to_ns <= violation.from_ns).max();
    let over_ns = over_ns.or_else(|| timeline.deadline_ns(first, violation.from_ns));
    let over_ns = over_ns.unwrap_or(violation.from_ns);
    let mut told = end_of_the_lease(timeline, violation, first, over_ns);
    told.extend(outside::last_commands(timeline, first, over_ns));
    told.extend(section_all_the_same(timeline, violation, first));
    told
}

/// Tells the last check of a lease, the stop that prevented another check, and the end of the
/// lease. If the application is to blame, no stop prevented a check.
fn end_of_the_lease(
    timeline: &Timeline<'_>,
    violation: &Violation,
    lease: &Attempt,
    over_ns: u64,
) -> Vec<Clause> {
    let mut told = Vec::new();
    let (name, client) = (timeline.name(lease.id), timeline.client_name(lease.id.client));
    let mut checks = lease.checks.iter().rev();
    if let Some((check, _)) = checks.find(|(at, alive)| *alive && at.at_ns <= over_ns) {
        let at = text::instant(check.at_ns);
        told.push(Clause::at(
            *check,
            format!("{client} last checked {name} at {at}: it was valid"),
        ));
    }
    let could_check = violation.blamed.iter().any(|cause| cause == Blame::Application);
    if let Some(stop) = stop_before(timeline, lease.id, over_ns).filter(|_| !could_check) {
        let host = timeline.scenario.client_host(lease.id.client);
        let from_ns = stop.from.at_ns;
        let because = match faults::on(timeline, Family::Process, host, from_ns, over_ns) {
            Some(trouble) => faults::because(timeline.scenario, trouble),
            None => format!("{client} was {} from {}", stop.why.word(), text::instant(from_ns)),
        };
        told.push(Clause::at(stop.from, because));
    }
    told.extend(keys_ended::reported(timeline, lease, over_ns));
    let why = match ends_by_release(lease, over_ns) {
        true => format!(": {client} released it"),
        false => outside::end(timeline, lease, over_ns).unwrap_or_default(),
    };
    told.push(Clause::new(format!("{name} was over by {}{why}", text::instant(over_ns))));
    told
}

fn section_all_the_same(
    timeline: &Timeline<'_>,
    violation: &Violation,
    lease: &Attempt,
) -> Option<Clause> {
    let section = lease.sections.iter().find(|it| it.to_ns > violation.from_ns)?;
    let client = timeline.client_name(lease.id.client);
    let (from, to) = (text::instant(section.from_ns), text::instant(section.to_ns));
    Some(Clause::new(format!("{client} was nevertheless in its section from {from} to {to}")))
}

#[cfg(test)]
mod tests;
