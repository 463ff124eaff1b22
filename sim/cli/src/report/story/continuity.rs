//! Explains why an extended lease was not exclusive throughout: another lease was granted in
//! between.

use lock_judge::history::{NodeId, NodeIds};
use lock_judge::oracle::Violation;
use lock_judge::text;

use super::{Clause, because};
use crate::report::timeline::{Attempt, Moment, Timeline};

/// Returns the headline, and the clauses that explain it.
pub(super) fn tell(
    timeline: &Timeline<'_>,
    violation: &Violation,
    first: &Attempt,
    second: &Attempt,
) -> (String, Vec<Clause>) {
    let (l1, l2) = (timeline.name(first.id), timeline.name(second.id));
    let (one, other) =
        (timeline.client_name(first.id.client), timeline.client_name(second.id.client));
    let (at, until) = (text::instant(violation.from_ns), text::instant(violation.to_ns));
    let resource = timeline.resource_of(violation.first.client);
    let headline = format!(
        "{one} continued {l1} on “{resource}” at {until} as if it had never lost it, although {other} \
         was granted {l2} at {at}"
    );
    let mut told = Vec::new();
    let over = first.beliefs.iter().rev().find(|belief| belief.to_ns <= violation.from_ns);
    if let Some(over) = over {
        told.push(Clause::new(format!("{l1} was over at {}", text::instant(over.to_ns))));
    }
    told.extend(because::shared_nodes(timeline, violation, (first, second), violation.from_ns));
    if let Some(released) = second.released.filter(|it| it.at_ns <= violation.to_ns) {
        let at = text::instant(released.at_ns);
        told.push(Clause::at(released, format!("{other} released {l2} at {at}")));
    }
    let round = first
        .extensions
        .iter()
        .find(|it| it.extended.is_some_and(|(at, _)| at.at_ns == violation.to_ns));
    if let Some(round) = round
        && let Some((settled, counted)) = round.extended
    {
        let begun = text::instant(round.began.at_ns);
        let nodes = match timeline.nodes_of(counted).as_slice() {
            [] => String::from("no node"),
            names => text::list(names),
        };
        let told_of = format!(
            "{one} nevertheless extended {l1}: T1 at {begun}, decided at {until}, counting {nodes}"
        );
        told.push(Clause::at(round.began, told_of));
        told.extend(made_again(timeline, first, settled, counted));
    }
    (headline, told)
}

/// Names the keys that an extension counted although they were set after the grant.
pub(super) fn made_again(
    timeline: &Timeline<'_>,
    attempt: &Attempt,
    settled: Moment,
    counted: NodeIds,
) -> Option<Clause> {
    let (granted, _) = attempt.decided?;
    let nodes = counted & NodeIds::first(timeline.scenario.cluster.nodes.len());
    let young = nodes.iter().filter_map(|node| {
        let key = timeline.key_of(attempt.id, node)?;
        (granted.at_ns..=settled.at_ns).contains(&key.set.at_ns).then_some((node, key.set))
    });
    let young: Vec<(NodeId, Moment)> = young.filter(|(_, set)| set.at_ns > granted.at_ns).collect();
    let (_, last) = young.last()?;
    let names: Vec<&str> = young.iter().map(|&(node, _)| timeline.node_name(node)).collect();
    let (names, at) = (text::list(&names), text::instant(last.at_ns));
    let told = format!("the keys on {names} were set after the grant, the last at {at}");
    Some(Clause::at(*last, told))
}
