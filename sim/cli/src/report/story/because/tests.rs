use lock_judge::scenario::Property;

use super::*;
use crate::report::fixture;
use crate::report::timeline::{Extension, Moment};

/// Returns the clauses that `tell` makes of the two leases of the clock jump.
fn told(tell: impl Fn(&Timeline<'_>, &Violation, Attempt, &Attempt) -> Vec<Clause>) -> Vec<String> {
    let played = fixture::jump();
    let timeline = fixture::timeline(&played);
    let violations = played.violations(0);
    let (_, violation) = violations[0];
    assert_eq!(violations[0].0, Property::MutualExclusion);
    let leases: Vec<&Attempt> = timeline.leases().collect();
    let clauses = tell(&timeline, violation, leases[0].clone(), leases[1]);
    clauses.into_iter().map(|it| it.text).collect()
}

#[test]
fn extension_that_counts_a_minority_drops_the_shared_votes() {
    let told = told(|timeline, violation, mut first, second| {
        let moment = Moment { at_ns: 500_000_000, event: 0 };
        let mut counted = NodeIds::EMPTY;
        counted.insert(NodeId(0));
        let (ttl_ns, failed, delivered) = (first.ttl_ns, None, None);
        let extended = Some((moment, counted));
        first.extensions.push(Extension { began: moment, ttl_ns, failed, extended, delivered });
        shared_nodes(timeline, violation, (&first, second), violation.from_ns)
    });
    let nobody = "no node that L1 still counted voted for L2, so none could refuse";
    assert_eq!(told, [format!("L1 counted A, L2 counted C, D and E: {nobody}")]);
}

#[test]
fn lease_is_over_because_of_its_release() {
    let told = told(|timeline, violation, mut first, _| {
        let over_ns = first.beliefs.last().map_or(0, |belief| belief.to_ns);
        first.lost = None;
        end_of_the_lease(timeline, violation, &first, over_ns)
    });
    let told = told.last().map(String::as_str);
    assert_eq!(told, Some("L1 was over by 9.898 s: c1 released it"));
}

#[test]
fn set_that_was_refused_earlier_is_no_vote() {
    let played = fixture::jump();
    let mut timeline = fixture::timeline(&played);
    let second = timeline.leases().nth(1).expect("a second lease").clone();
    let (node, granted) = (NodeId(2), |it: &Command| it.executed.map(|(at, _)| at.at_ns));
    let voted = vote(&timeline, second.id, node).expect("a vote").clone();
    let mut refused = voted.clone();
    refused.executed = voted.executed.map(|(at, _)| (at, Answer::No));
    timeline.commands.insert(0, refused);
    assert_eq!(vote(&timeline, second.id, node).and_then(granted), granted(&voted));
    timeline.commands.retain(|it| it.executed.is_none_or(|(_, answer)| answer == Answer::No));
    assert!(vote(&timeline, second.id, node).is_none());
}
