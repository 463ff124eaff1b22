//! Sentences about the leases of workers, of which only keys and sections are seen.

use lock_judge::history::{Id, NodeId, NodeIds, OpKind, Settlement, Writer};
use lock_judge::text;

use super::Clause;
use crate::report::timeline::{Attempt, Command, Key, Timeline};
use crate::report::words;

/// Explains that a worker entered without a lease; `None` if it had one, or is no worker.
pub(super) fn entrance(timeline: &Timeline<'_>, attempt: &Attempt) -> Option<Clause> {
    let (entered, ends_ns) = attempt.delivered.filter(|_| timeline.is_served())?;
    if ends_ns > entered.at_ns {
        return None;
    }
    let (client, at) = (timeline.client_name(attempt.id.client), text::instant(entered.at_ns));
    let told = match (ends_ns, timeline.nodes_of(attempt.counted).as_slice()) {
        (0, []) => format!("{client} entered at {at} without a key of its own on any node"),
        (0, nodes) => {
            let votes = text::count(nodes.len() as u64, "vote");
            let (nodes, needed) = (text::list(nodes), attempt.needed);
            format!("{client} entered at {at} with the keys of {nodes}: {votes}, {needed} needed")
        }
        _ => format!(
            "{client} entered at {at}, its keys were gone since {}: check the elapsed time after \
             the replies",
            text::instant(ends_ns)
        ),
    };
    Some(Clause::at(entered, told))
}

/// Describes an attempt by which a worker never entered: the masters saw its keys, not its reasons.
/// `None` for an attempt that was entered, and for a client that is no worker.
pub(in crate::report) fn not_entered(timeline: &Timeline<'_>, attempt: &Attempt) -> Option<String> {
    attempt.settled.filter(|(_, how)| timeline.is_served() && *how == Settlement::Cancelled)?;
    let is_own = |key: &&Key| key.writer == Writer::Attempt(attempt.id);
    let mut set = NodeIds::EMPTY;
    timeline.keys.iter().filter(is_own).for_each(|key| set.insert(key.node));
    let (count, total) = (set.count(), timeline.scenario.cluster.nodes.len());
    Some(match timeline.nodes_of(set).as_slice() {
        [] => String::from("not entered: no master set its key"),
        nodes if count as usize * 2 > total => {
            format!("not entered, although {} set its key", text::list(nodes))
        }
        nodes => format!("not entered: only {} set its key", text::list(nodes)),
    })
}

/// Explains when the lease of a worker ends, which never extended it; `None` for another client.
pub(super) fn end(timeline: &Timeline<'_>, attempt: &Attempt) -> Option<String> {
    let is_own = |key: &&Key| key.writer == Writer::Attempt(attempt.id);
    let first_ns = timeline.keys.iter().filter(is_own).map(|key| key.set.at_ns).min()?;
    let is_plain = attempt.extensions.is_empty() && attempt.ttl_ns != u64::MAX;
    (timeline.is_served() && is_plain).then(|| {
        let (first, ttl) = (text::instant(first_ns), text::length(attempt.ttl_ns));
        format!(": its first key was set at {first} for {ttl}, and a lease counts from before that")
    })
}

/// Tells the last command of an attempt to each node before `at_ns`, nodes with the same command
/// together; `None` if there is none, or the client is no worker.
pub(super) fn last_commands(
    timeline: &Timeline<'_>,
    attempt: &Attempt,
    at_ns: u64,
) -> Option<Clause> {
    if !timeline.is_served() {
        return None;
    }
    let mut groups: Vec<(OpKind, bool, Vec<&Command>)> = Vec::new();
    for node in NodeId::first(timeline.scenario.cluster.nodes.len()) {
        let sent = timeline.commands.iter().rev().filter(|it| it.attempt == attempt.id);
        let mut sent = sent.filter(|it| it.node == node && it.written.at_ns < at_ns);
        let Some(last) = sent.next() else { continue };
        let is_answered = last.delivered.is_some_and(|it| it.at_ns <= at_ns);
        match groups.iter_mut().find(|it| (it.0, it.1) == (last.op, is_answered)) {
            Some((_, _, group)) => group.push(last),
            None => groups.push((last.op, is_answered, vec![last])),
        }
    }
    let clause = |(op, is_answered, group): &(OpKind, bool, Vec<&Command>)| {
        let nodes: Vec<&str> = group.iter().map(|it| timeline.node_name(it.node)).collect();
        let times = group.iter().map(|it| it.written.at_ns);
        let latest = text::instant(times.max().unwrap_or_default());
        let (op, nodes) = (words::op(*op), text::list(&nodes));
        let end = if *is_answered { "" } else { ", unanswered" };
        format!("{op} to {nodes} by {latest}{end}")
    };
    let told: Vec<String> = groups.iter().map(clause).collect();
    let name = timeline.name(attempt.id);
    let told = (!told.is_empty()).then(|| told.join("; "))?;
    Some(Clause::new(format!("the last command of {name} to each node: {told}")))
}
