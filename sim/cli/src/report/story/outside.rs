//! Sentences about the leases of workers, of which only keys and sections are seen.

use lock_judge::history::{Id, KeyEnd, NodeId, NodeIds, OpKind, Settlement, Writer};
use lock_judge::text;

use super::Clause;
use crate::report::timeline::{Attempt, Command, Key, Moment, Timeline};
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
            format!("{client} entered at {at} with its key on {nodes}: {votes}, {needed} needed")
        }
        _ => {
            let (since, why) = (
                text::instant(ends_ns),
                match is_released(timeline, attempt, entered) {
                    true => "it had deleted them itself",
                    false => "check the elapsed time after the replies",
                },
            );
            format!("{client} entered at {at}, but its keys had been gone since {since}: {why}")
        }
    };
    Some(Clause::at(entered, told))
}

/// Returns true if a client deleted a key of its attempt before it entered.
fn is_released(timeline: &Timeline<'_>, attempt: &Attempt, entered: Moment) -> bool {
    let own = Writer::Attempt(attempt.id);
    let mut keys = timeline.keys.iter().filter(|key| key.writer == own && is_deleted(attempt, key));
    keys.any(|key| key.ended.is_some_and(|it| it.moment.event < entered.event))
}

/// Describes an attempt by which a worker never entered: the masters saw its keys, not its reasons.
/// `None` for an attempt that was entered, and for a client that is no worker.
pub(in crate::report) fn not_entered(timeline: &Timeline<'_>, attempt: &Attempt) -> Option<String> {
    attempt.settled.filter(|(_, how)| timeline.is_served() && *how == Settlement::Cancelled)?;
    let is_own = |key: &&Key| key.writer == Writer::Attempt(attempt.id);
    let mut set = NodeIds::EMPTY;
    timeline.keys.iter().filter(is_own).for_each(|key| set.insert(key.node));
    let (count, total) = (set.count(), timeline.scenario.cluster.nodes.len());
    let told = match timeline.nodes_of(set).as_slice() {
        [] => String::from("not entered: no master set its key"),
        nodes if count as usize * 2 > total => {
            format!("not entered, although {} set its key", text::list(nodes))
        }
        nodes => format!("not entered: only {} set its key", text::list(nodes)),
    };
    let waited = longest_wait(timeline, attempt, u64::MAX).map(|it| format!("; it {it}"));
    Some(told + &waited.unwrap_or_default())
}

/// Tells the node timeout of a worker, as far as its commands show it: the longest time that passed
/// until it went on, before `at_ns` and before it entered, while a reply was missing that it no longer
/// waited for when it sent the next command to that node. A client that asks one node after the
/// other goes on with the next node, one that asks all at once with a release. `None` if no reply
/// was missing.
fn longest_wait(timeline: &Timeline<'_>, attempt: &Attempt, at_ns: u64) -> Option<String> {
    let entered = attempt.delivered.map(|(entered, _)| entered);
    let is_sent = |it: &&Command| it.attempt == attempt.id && it.written.at_ns < at_ns;
    let sent: Vec<&Command> = timeline.commands.iter().filter(is_sent).collect();
    let until_entered = sent.iter().map(|it| it.written);
    let until_entered =
        until_entered.take_while(|it| entered.is_none_or(|entered| it.event < entered.event));
    let steps: Vec<Moment> = until_entered.chain(entered).collect();
    let wait_without = |(place, command): (usize, &&Command)| {
        let mut later = sent.iter().skip(place + 1);
        let given_up = later.find(|it| it.node == command.node)?.written;
        if command.delivered.is_some_and(|at| at.event < given_up.event) {
            return None;
        }
        let later = steps.get(place..)?.windows(2);
        let later = later.filter(|pair| pair[1].event <= given_up.event);
        let wait_ns = later.map(|pair| pair[1].at_ns - pair[0].at_ns).max()?;
        Some((wait_ns, command.node))
    };
    let waits: Vec<(u64, NodeId)> = sent.iter().enumerate().filter_map(wait_without).collect();
    let &(longest_ns, _) = waits.iter().max_by_key(|it| it.0)?;
    let mut nodes = NodeIds::EMPTY;
    waits.iter().filter(|it| it.0 == longest_ns).for_each(|it| nodes.insert(it.1));
    let (nodes, wait) = (text::list(&timeline.nodes_of(nodes)), text::length(longest_ns));
    Some(format!("continued without a reply from {nodes} after {wait}"))
}

/// Explains why the lease of a worker was over by `over_ns`, if it had not been extended until then, by
/// the key without which no majority was left; `None` for another client, and if another client or a
/// fault changed the life of that key.
pub(super) fn end(timeline: &Timeline<'_>, attempt: &Attempt, over_ns: u64) -> Option<String> {
    let is_extended = attempt.extensions.iter().any(|it| it.began.at_ns < over_ns);
    if !timeline.is_served() || is_extended || attempt.ttl_ns == u64::MAX {
        return None;
    }
    let own = |node: NodeId| {
        let is_own = |key: &&Key| key.node == node && key.writer == Writer::Attempt(attempt.id);
        timeline.keys.iter().filter(is_own).rfind(|key| key.set.at_ns < over_ns)
    };
    let keys = NodeId::first(timeline.scenario.cluster.nodes.len()).filter_map(own);
    let mut ends: Vec<(u64, &Key)> =
        keys.filter_map(|key| Some((end_of(attempt, key)?, key))).collect();
    ends.sort_by_key(|(end_ns, _)| core::cmp::Reverse(*end_ns));
    let &(_, key) = ends
        .get(usize::from(attempt.needed).checked_sub(1)?)
        .filter(|(end_ns, _)| *end_ns == over_ns)?;
    let node = timeline.node_name(key.node);
    Some(if is_deleted(attempt, key) {
        let client = timeline.client_name(attempt.id.client);
        format!(": {client} deleted its key on {node} then, and had no majority any more")
    } else {
        let (set, ttl) = (text::instant(key.set.at_ns), text::length(attempt.ttl_ns));
        format!(": its key on {node}, set at {set} for {ttl}, was the last of a majority")
    })
}

/// Returns the instant until which a client may rely on its key: its expiry, or its end by the client
/// itself.
fn end_of(attempt: &Attempt, key: &Key) -> Option<u64> {
    let deleted = key.ended.filter(|_| is_deleted(attempt, key));
    deleted.map(|it| it.moment.at_ns).or(key.expected_ns)
}

/// Returns true if the client of `attempt` deleted the key.
fn is_deleted(attempt: &Attempt, key: &Key) -> bool {
    let is_by_itself =
        |by: Writer| matches!(by, Writer::Attempt(it) if it.client == attempt.id.client);
    key.ended.is_some_and(|it| it.cause == KeyEnd::Command && is_by_itself(it.by))
}

/// Tells the last command of an attempt to each node before `at_ns`, nodes with the same command
/// together, and the kinds of those that followed; `None` if there is none, or the client is no
/// worker.
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
        let (op, nodes) = (words::op(timeline, *op), text::list(&nodes));
        let end = if *is_answered { "" } else { ", unanswered then" };
        format!("{op} to {nodes} by {latest}{end}")
    };
    let told: Vec<String> = groups.iter().map(clause).collect();
    let name = timeline.name(attempt.id);
    let told = (!told.is_empty()).then(|| told.join("; "))?;
    let waited = longest_wait(timeline, attempt, at_ns).map(|it| format!("; it {it}"));
    let (waited, later) = (waited.unwrap_or_default(), later_commands(timeline, attempt, at_ns));
    let until = text::instant(at_ns);
    Some(Clause::new(format!(
        "until {until}, the last command of {name} to each node: {told}{waited}{later}"
    )))
}

/// Tells the first command of each kind that an attempt sent at `at_ns` or later.
fn later_commands(timeline: &Timeline<'_>, attempt: &Attempt, at_ns: u64) -> String {
    let mut kinds: Vec<(OpKind, u64)> = Vec::new();
    let is_later = |it: &&Command| it.attempt == attempt.id && it.written.at_ns >= at_ns;
    for command in timeline.commands.iter().filter(is_later) {
        if kinds.iter().all(|it| it.0 != command.op) {
            kinds.push((command.op, command.written.at_ns));
        }
    }
    let told = kinds.iter().map(|&(op, from_ns)| {
        let (op, from) = (words::op(timeline, op), text::instant(from_ns));
        format!("; later {op} from {from} on")
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Played;
    use crate::report::fixture;
    use crate::report::timeline::KeyEnded;

    /// Commands of an attempt: node, what it asks, when it was sent and when a reply came, in ms.
    type Sent = (u8, OpKind, u64, Option<u64>);

    fn waited(sent: &[Sent], entered_ms: Option<u64>) -> Option<String> {
        let Played { result, kept, .. } = fixture::jump();
        let events = kept.into_iter().next().expect("a history").1;
        let mut timeline = Timeline::new(&result.case.scenario, &events);
        let mut attempt = timeline.leases().next().expect("a lease").clone();
        let moment = |at_ms: u64| Moment { at_ns: at_ms * 1_000_000, event: at_ms as usize };
        attempt.delivered = entered_ms.map(|at_ms| (moment(at_ms), 0));
        let command = |&(node, op, at_ms, reply_ms): &Sent| Command {
            attempt: attempt.id,
            node: NodeId(node),
            op,
            written: moment(at_ms),
            executed: None,
            delivered: reply_ms.map(moment),
        };
        timeline.commands = sent.iter().map(command).collect();
        longest_wait(&timeline, &attempt, u64::MAX)
    }

    #[test]
    fn a_lease_ends_with_the_key_that_breaks_the_majority() {
        let Played { result, kept, .. } = fixture::jump();
        let events = kept.into_iter().next().expect("a history").1;
        let mut scenario = result.case.scenario;
        scenario.clients.iter_mut().for_each(|it| it.subject = String::from("worker"));
        let mut timeline = Timeline::new(&scenario, &events);
        let mut attempt = timeline.leases().next().expect("a lease").clone();
        let moment = |at_ms: u64| Moment { at_ns: at_ms * 1_000_000, event: at_ms as usize };
        let key = |node: u8| Key {
            node: NodeId(node),
            writer: Writer::Attempt(attempt.id),
            set: moment(10 * u64::from(node)),
            ended: None,
            expected_ns: Some((10 * u64::from(node) + 1_000) * 1_000_000),
        };
        timeline.keys = (0..5).map(key).collect();
        (attempt.needed, attempt.ttl_ns) = (3, 1_000_000_000);
        attempt.extensions.clear();
        let told = end(&timeline, &attempt, 1_020_000_000);
        let third = ": its key on C, set at 0.020 s for 1 s, was the last of a majority";
        assert_eq!(told.as_deref(), Some(third));
        assert_eq!(end(&timeline, &attempt, 1_030_000_000), None, "no key ended then");
        let mut again = timeline.keys[2].clone();
        (again.set, again.expected_ns) = (moment(2_000), Some(3_000_000_000));
        timeline.keys.push(again);
        assert_eq!(end(&timeline, &attempt, 1_020_000_000).as_deref(), Some(third), "a later key");
        for node in 2..5 {
            let (cause, by) = (KeyEnd::Command, Writer::Attempt(attempt.id));
            timeline.keys[node].ended = Some(KeyEnded { moment: moment(500), cause, by });
        }
        let deleted = ": c1 deleted its key on C then, and had no majority any more";
        assert_eq!(end(&timeline, &attempt, 500_000_000).as_deref(), Some(deleted));
    }

    #[test]
    fn node_timeout_of_a_client_that_asks_all_nodes_at_once() {
        use OpKind::{Release, Set};
        let sets = [(0, Set, 10, Some(13)), (1, Set, 11, None), (2, Set, 12, None)];
        let releases = [(0, Release, 62, Some(63)), (1, Release, 63, None), (2, Release, 64, None)];
        let told = waited(&[sets, releases].concat(), None);
        assert_eq!(told.as_deref(), Some("continued without a reply from B and C after 50 ms"));
    }

    #[test]
    fn node_timeout_of_a_client_that_asks_one_node_after_the_other() {
        use OpKind::{Release, Set};
        let sets = [(0, Set, 10, None), (1, Set, 60, Some(61)), (2, Set, 62, Some(63))];
        let releases = [(0, Release, 900, None), (1, Release, 950, Some(951))];
        let told = waited(&[&sets[..], &releases].concat(), Some(70));
        assert_eq!(told.as_deref(), Some("continued without a reply from A after 50 ms"));
    }

    #[test]
    fn no_reply_is_missing() {
        use OpKind::{Release, Set};
        let sets = [(0, Set, 10, Some(15)), (1, Set, 11, Some(16)), (2, Set, 12, Some(40))];
        assert_eq!(waited(&sets, Some(41)), None);
        let releases = [(0, Release, 62, Some(63)), (1, Release, 63, Some(64))];
        assert_eq!(waited(&[&sets[..], &releases].concat(), None), None);
    }
}
