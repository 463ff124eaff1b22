use super::*;
use crate::report::fixture;

const MS: u64 = 1_000_000;

/// Returns the expected end of the second client's key on C, in ms, if `change` is applied to each
/// event of the failover.
fn expected_ms(change: impl Fn(&mut Event)) -> Option<u64> {
    let mut played = fixture::failover();
    played.kept[0].1.iter_mut().for_each(change);
    let timeline = read(&played.result.case.scenario, &played.kept[0].1);
    let second = timeline.leases().nth(1)?.id;
    timeline.key_of(second, NodeId(2))?.expected_ns.map(|it| it / MS)
}

#[test]
fn key_ends_when_its_node_says() {
    assert_eq!(expected_ms(|_| ()), Some(11_101));
    let shorter = |event: &mut Event| {
        if let EventKind::Executed { expires_wall_ms, .. } = &mut event.kind {
            *expires_wall_ms = expires_wall_ms.saturating_sub(4_000);
        }
    };
    assert_eq!(expected_ms(shorter), Some(7_101), "the client’s last TTL does not matter");
}

#[test]
fn clock_of_the_promoted_replica_measures_its_keys() {
    let ahead = |event: &mut Event| match &mut event.kind {
        EventKind::Clock { host: HostId(9), local_ns, .. } => *local_ns += 5_000 * MS,
        EventKind::Executed { node: NodeId(2), expires_wall_ms, .. } => {
            *expires_wall_ms = expires_wall_ms.saturating_add(5_000);
        }
        _ => {}
    };
    assert_eq!(expected_ms(ahead), Some(11_101));
}

/// The end of a key is that of its own lock's key, and nothing else on the node ends.
#[test]
fn keys_of_two_locks_are_told_apart() {
    let mut played = fixture::failover();
    let scenario = &mut played.result.case.scenario;
    scenario.lock.further_resources.push(String::from("other"));
    scenario.clients[1].resource = Some(String::from("other"));
    let timeline = read(&played.result.case.scenario, &played.kept[0].1);
    let [first, second] = [0, 1].map(|place| timeline.leases().nth(place).unwrap().id);
    assert_eq!(timeline.scenario.resource_among_several(second.client), Some("other"));
    assert_ne!(first.client, second.client);
    for key in timeline.keys.iter().filter(|key| key.writer == Writer::Attempt(first)) {
        let by = key.ended.map(|ended| ended.by);
        assert_ne!(by, Some(Writer::Attempt(second)));
    }
}

#[test]
fn the_last_grant_by_an_instant_is_told() {
    let mut played = fixture::failover();
    let events = &mut played.kept[0].1;
    let is_grant = |it: &&Event| {
        matches!(it.kind, EventKind::GrantDecided { .. } | EventKind::GrantDelivered { .. })
    };
    let mut again: Vec<Event> = events.iter().filter(is_grant).take(2).cloned().collect();
    let (first_ns, last_ns) = (again[1].at_ns, events.last().expect("events").at_ns);
    again.iter_mut().for_each(|it| it.at_ns = last_ns);
    events.extend(again);
    let timeline = read(&played.result.case.scenario, &played.kept[0].1);
    let delivered_ns = |at_ns: u64| {
        let timeline = timeline.as_of(at_ns);
        let lease = timeline.leases().next().expect("a lease");
        lease.delivered.expect("it was delivered").0.at_ns
    };
    assert_eq!([0, last_ns - 1].map(delivered_ns), [first_ns; 2]);
    assert_eq!(delivered_ns(last_ns), last_ns);
}

/// A worker enters by one attempt, leaves, and enters by it again.
#[test]
fn each_grant_of_an_attempt_has_its_own_beliefs() {
    let mut played = fixture::failover();
    let events = &mut played.kept[0].1;
    let is_grant = |it: &&Event| {
        matches!(it.kind, EventKind::GrantDecided { .. } | EventKind::GrantDelivered { .. })
    };
    let mut again: Vec<Event> = events.iter().filter(is_grant).take(2).cloned().collect();
    let EventKind::GrantDelivered { attempt, .. } = again[1].kind else { panic!("a grant") };
    let entered_ns = again[1].at_ns;
    again.iter_mut().for_each(|it| it.at_ns = entered_ns + 2 * MS);
    let released = |at_ns| Event { at_ns, kind: EventKind::ReleaseCalled { attempt } };
    let place = events.iter().position(|it| it.at_ns > entered_ns).expect("more events");
    let story = [vec![released(entered_ns + MS)], again, vec![released(entered_ns + 3 * MS)]];
    events.splice(place..place, story.concat());
    let timeline = read(&played.result.case.scenario, &played.kept[0].1);
    let belief = |from: u64| Interval {
        from_ns: entered_ns + from * MS,
        to_ns: entered_ns + (from + 1) * MS,
    };
    assert_eq!(timeline.attempt(attempt).unwrap().beliefs, [belief(0), belief(2)]);
}

/// A vote that comes after the grant makes a worker's lease longer, but is no extension.
#[test]
fn a_deadline_without_an_extension_prolongs_a_belief() {
    let played = fixture::failover();
    let is_delivered = |it: &&Event| matches!(it.kind, EventKind::GrantDelivered { .. });
    let grant = *played.kept[0].1.iter().find(is_delivered).expect("a grant");
    let EventKind::GrantDelivered { attempt, clock, deadline_local_ns, .. } = grant.kind else {
        panic!("a grant")
    };
    let ends_ns = |later_ns: u64| {
        let mut events = played.kept[0].1.clone();
        let place = events.iter().position(|it| *it == grant).expect("the grant") + 1;
        let deadline_local_ns = deadline_local_ns + later_ns;
        let kind = EventKind::ExtensionDelivered { attempt, clock, deadline_local_ns };
        events.retain(|it| !matches!(it.kind, EventKind::ReleaseCalled { .. }));
        events.insert(place, Event { at_ns: grant.at_ns, kind });
        let timeline = read(&played.result.case.scenario, &events);
        let lease = timeline.attempt(attempt).unwrap();
        assert_eq!(lease.extensions.len(), 0);
        lease.beliefs.last().unwrap().to_ns
    };
    assert_eq!(ends_ns(5 * MS), ends_ns(0) + 5 * MS);
}
