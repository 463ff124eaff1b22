//! Stories of the properties that are not about two overlapping intervals.

use lock_judge::history::{AttemptId, EventKind, FencingToken, LostReason, Settlement, Writer};
use lock_judge::oracle::{Blame, LOSS_MARGIN_NS, Violation};
use lock_judge::scenario::Family;
use lock_judge::scenario::Property;
use lock_judge::text;

use super::{Clause, because, outside, stop_before, unsound};
use crate::report::timeline::{Attempt, Key, Moment, Timeline, Write};
use crate::report::{faults, words};

/// Returns the headline, and the clauses that explain it.
pub(super) fn tell(
    timeline: &Timeline<'_>,
    property: Property,
    violation: &Violation,
) -> (String, Vec<Clause>) {
    let at = text::instant(violation.from_ns);
    let until = text::instant(violation.to_ns);
    let first = timeline.name(violation.first);
    let client = timeline.client_name(violation.first.client);
    let resource = timeline.resource_of(violation.first.client);
    let node = violation.node.map_or("a node", |node| timeline.node_name(node));
    match property {
        Property::NoLostUpdate | Property::FencedOrder => {
            resource_writes(timeline, property, violation)
        }
        Property::OwnerOnly => {
            let headline = format!("a command changed another attempt’s key on {node} at {at}");
            (headline, touched(timeline, violation))
        }
        Property::Continuity => (
            format!("{first} was extended at {until} although another lease was granted at {at}"),
            vec![],
        ),
        Property::SoundGrant => unsound::tell(timeline, violation),
        Property::SectionWithinLease => {
            let length = text::length(violation.to_ns.saturating_sub(violation.from_ns));
            let headline = format!(
                "{client} worked on “{resource}” for {length} without a lease (true time {at} to \
                 {until})"
            );
            (headline, because::exposure(timeline, violation))
        }
        Property::Tidy => {
            let headline = format!("{node} still holds a key of {first} at {at}");
            (headline, left_behind(timeline, violation))
        }
        Property::DeadlockFree => {
            let headline = format!(
                "{client} waited for “{resource}” without an excuse from {at} to {until}: no client \
                 was granted it"
            );
            (headline, standing(timeline, violation.to_ns))
        }
        Property::FaultTolerant => late_or_refused(timeline, violation),
        Property::SoundRefusal => {
            (unsound_refusal(timeline, violation), refused(timeline, violation.first))
        }
        Property::SoundLoss => unsound_loss(timeline, violation),
        Property::SoundVotes => unsound_votes(timeline, violation),
        Property::MutualExclusion | Property::ExclusiveSection => {
            (format!("{first} overlaps another lease at {at}"), Vec::new())
        }
    }
}

fn resource_writes(
    timeline: &Timeline<'_>,
    property: Property,
    violation: &Violation,
) -> (String, Vec<Clause>) {
    let at = text::instant(violation.from_ns);
    let applied = |write: &&Write| matches!(write.arrived, Some((_, Ok(_))));
    let mut told = Vec::new();
    let second = violation.second.unwrap_or(violation.first);
    let ids = [violation.first, second];
    if let Some(of_tokens) = unordered_tokens(timeline, ids, violation.from_ns) {
        return of_tokens;
    }
    let mut writes: Vec<&Write> = timeline
        .writes
        .iter()
        .filter(applied)
        .filter(|write| ids.contains(&write.attempt))
        .filter(|write| write.arrived.is_some_and(|(at, _)| at.at_ns <= violation.to_ns))
        .collect();
    writes.sort_by_key(|write| write.arrived.map(|(at, _)| at.event));
    let late = writes.last().map_or(violation.first, |write| write.attempt);
    let is_paused = violation.blamed.iter().any(|cause| cause == Blame::Pause);
    let stop = stop_before(timeline, late, violation.from_ns);
    if let Some(stop) = stop.filter(|_| is_paused) {
        let host = timeline.scenario.client_host(late.client);
        let (from_ns, to_ns) = (stop.from.at_ns, violation.from_ns);
        if let Some(trouble) = faults::on(timeline, Family::Process, host, from_ns, to_ns) {
            let because = faults::because(timeline.scenario, trouble);
            told.push(Clause::at(trouble.began, because));
        }
    }
    told.extend(
        writes.iter().rev().take(4).rev().filter_map(|write| applied_write(timeline, write)),
    );
    let what = match property {
        Property::NoLostUpdate => "computed from an outdated version",
        _ => "after a write of a later lease",
    };
    let client = timeline.client_name(late.client);
    (format!("the resource applied a write of {client} at {at}, {what}"), told)
}

/// Explains two leases whose fencing tokens are in the wrong order, if the second of them was
/// delivered at `at_ns` and the resource applied no write then.
fn unordered_tokens(
    timeline: &Timeline<'_>,
    ids: [AttemptId; 2],
    at_ns: u64,
) -> Option<(String, Vec<Clause>)> {
    let is_then = |moment: Moment| moment.at_ns == at_ns;
    let wrote =
        |it: &Write| ids.contains(&it.attempt) && it.arrived.is_some_and(|it| is_then(it.0));
    let leases = ids.map(|id| timeline.attempt(id));
    let mut delivered = leases.iter().flatten().filter_map(|lease| lease.delivered);
    if timeline.writes.iter().any(wrote) || !delivered.any(|(moment, _)| is_then(moment)) {
        return None;
    }
    let token_of = |lease: &Attempt| {
        let (moment, _) = lease.delivered?;
        let (name, at) = (timeline.name(lease.id), text::instant(moment.at_ns));
        let FencingToken(token) = lease.fencing_token;
        Some(Clause::at(moment, format!("{name} got fencing token {token} at {at}")))
    };
    let told = leases.into_iter().flatten().filter_map(token_of).collect();
    let [one, other] = ids.map(|id| timeline.name(id));
    Some((format!("the fencing tokens of {one} and {other} do not grow"), told))
}

fn applied_write(timeline: &Timeline<'_>, write: &Write) -> Option<Clause> {
    let (moment, Ok(version)) = write.arrived? else { return None };
    let who = timeline.client_name(write.attempt.client);
    let lease = timeline.name(write.attempt);
    let (sent, at) = (text::instant(write.sent.at_ns), text::instant(moment.at_ns));
    let token = match write.fencing_token {
        FencingToken::NONE => String::new(),
        FencingToken(token) => format!(", token {token}"),
    };
    let based_on = match write.based_on.version() {
        None => String::new(),
        Some(version) => format!(", computed from version {version}"),
    };
    let told = format!(
        "{who}’s write under {lease}, sent at {sent}{based_on}{token}, was applied at {at} as \
         version {version}"
    );
    Some(Clause::at(moment, told))
}

fn touched(timeline: &Timeline<'_>, violation: &Violation) -> Vec<Clause> {
    let events = timeline.events.iter().enumerate();
    let mut told = Vec::new();
    for (event, it) in events.filter(|(_, it)| it.at_ns == violation.from_ns) {
        let EventKind::Executed { attempt, node, changed: true, before, op, .. } = it.kind else {
            continue;
        };
        if before == Writer::Nobody || before == Writer::Attempt(attempt) {
            continue;
        }
        told.push(Clause {
            text: format!(
                "the {1} of {0} reached {2} at {3} and changed the key of {4}",
                timeline.name(attempt),
                words::op(timeline, op),
                timeline.node_name(node),
                text::instant(it.at_ns),
                timeline.writer_name(before)
            ),
            event: Some(event),
        });
    }
    told
}

fn left_behind(timeline: &Timeline<'_>, violation: &Violation) -> Vec<Clause> {
    let Some(attempt) = timeline.attempt(violation.first) else { return Vec::new() };
    let mut told = Vec::new();
    if let Some((at, how)) = attempt.settled {
        let when = text::instant(at.at_ns);
        let how = outside::not_entered(timeline, attempt)
            .unwrap_or_else(|| words::settled(how).to_owned());
        let told_how = match how.strip_prefix("failed: ") {
            Some(why) => format!("failed at {when}: {why}"),
            None => format!("was {how} at {when}"),
        };
        told.push(Clause::at(at, format!("the attempt {told_how}")));
    }
    if let Some(at) = attempt.released {
        told.push(Clause::at(at, format!("it was released at {}", text::instant(at.at_ns))));
    }
    let key = violation.node.and_then(|node| timeline.key_of(attempt.id, node));
    told.extend(key.map(|key| life(timeline, key)));
    told
}

/// Tells how long a key was on its node.
fn life(timeline: &Timeline<'_>, key: &Key) -> Clause {
    let (node, since) = (timeline.node_name(key.node), text::instant(key.set.at_ns));
    let end = match key.ended {
        Some(ended) => format!("until {}", text::instant(ended.moment.at_ns)),
        None => String::from("to the end of the run"),
    };
    Clause::at(key.set, format!("its key was on {node} from {since} {end}"))
}

/// Lists the keys that exist at an instant and so prevent a grant.
fn standing(timeline: &Timeline<'_>, at_ns: u64) -> Vec<Clause> {
    let clause = |key: &Key| {
        let (node, whose) = (timeline.node_name(key.node), timeline.writer_name(key.writer));
        let since = text::instant(key.set.at_ns);
        let due = match key.expected_ns {
            Some(due_ns) => format!("due to end at {}", text::instant(due_ns)),
            None => String::from("without an expiry"),
        };
        let of = match key.writer {
            Writer::Attempt(id)
                if timeline.attempt(id).is_some_and(|it| it.delivered.is_some()) =>
            {
                format!(", {}’s lease,", timeline.client_name(id.client))
            }
            _ => String::new(),
        };
        Clause::at(key.set, format!("{node} has held a key of {whose}{of} since {since}, {due}"))
    };
    timeline.keys_at(at_ns).map(clause).collect()
}

fn late_or_refused(timeline: &Timeline<'_>, violation: &Violation) -> (String, Vec<Clause>) {
    let (id, until) = (violation.first, text::instant(violation.to_ns));
    let (name, mut told) = (timeline.name(id), refused(timeline, id));
    if timeline.attempt(id).is_none_or(|attempt| attempt.decided.is_none()) {
        return (format!("{name} should have been granted by {until}, but was not"), told);
    }
    told.extend(unsound::grant(timeline, id));
    (format!("{name} was granted at {until}, but should have been granted earlier"), told)
}

fn unsound_refusal(timeline: &Timeline<'_>, violation: &Violation) -> String {
    let name = timeline.name(violation.first);
    let at = text::instant(violation.to_ns);
    let settled = timeline.attempt(violation.first).and_then(|attempt| attempt.settled);
    match settled {
        Some((settled, Settlement::Split)) if settled.at_ns == violation.to_ns => {
            format!("{name} was refused by a split vote at {at}, but no majority had answered it")
        }
        Some((_, Settlement::Quarantined)) => {
            format!("{name} was refused by quarantine at {at}, but no majority had set its key")
        }
        Some((_, Settlement::Overloaded)) => {
            format!("{name} was refused for commands ahead at {at}, but all its SETs had been sent")
        }
        Some((_, Settlement::Split)) => {
            format!("{name} ended in a split vote, and its client gave up before its last attempt")
        }
        _ => format!("{name} was refused as taken by {at}, but no other attempt justified it"),
    }
}

fn unsound_loss(timeline: &Timeline<'_>, violation: &Violation) -> (String, Vec<Clause>) {
    let name = timeline.name(violation.first);
    let (from, to) = (text::instant(violation.from_ns), text::instant(violation.to_ns));
    let attempt = timeline.attempt(violation.first);
    let lost = attempt.and_then(|attempt| Some((attempt, attempt.lost?.1)));
    let headline = match lost {
        _ if violation.from_ns < violation.to_ns => {
            format!("{name} was lost by {from}, but its client did not report it before {to}")
        }
        None | Some((_, LostReason::KeysGone)) => {
            format!(
                "{name} was reported lost at {to}, but a majority of the nodes had kept its key"
            )
        }
        Some((attempt, _)) if !is_over(timeline, attempt, violation.to_ns) => {
            format!("{name} was reported as over at {to}, before its deadline")
        }
        Some((attempt, reason)) => {
            match (reason, last_extension_failed(attempt, violation.to_ns)) {
                (LostReason::DeadlinePassed, true) => format!(
                    "{name} was over at {to}, but its client did not report that its last extension had failed"
                ),
                (LostReason::KeepAliveFailed, false) => format!(
                    "{name} was over at {to}, and its client reported a failed extension, but its last one had not failed"
                ),
                _ => format!(
                    "{name} was over at {to}, although it was to be kept alive and could be extended"
                ),
            }
        }
    };
    (headline, lives_of(timeline, violation.first))
}

/// Returns true if the lease has reached its deadline by its client's clock.
fn is_over(timeline: &Timeline<'_>, attempt: &Attempt, at_ns: u64) -> bool {
    let reads_ns = unsound::reading(timeline, attempt, at_ns);
    reads_ns.map(|it| it.saturating_add(LOSS_MARGIN_NS)) >= attempt.deadline_local_ns()
}

/// Returns true if the last extension that was settled before `at_ns` failed.
fn last_extension_failed(attempt: &Attempt, at_ns: u64) -> bool {
    let settled = attempt.extensions.iter().rev().find_map(|it| match (it.extended, it.failed) {
        (Some(_), _) => Some(false),
        (None, Some(failed)) => (failed.at_ns < at_ns).then_some(true),
        (None, None) => None,
    });
    settled == Some(true)
}

fn unsound_votes(timeline: &Timeline<'_>, violation: &Violation) -> (String, Vec<Clause>) {
    let name = timeline.name(violation.first);
    let (from, to) = (text::instant(violation.from_ns), text::instant(violation.to_ns));
    let headline = if violation.from_ns == violation.to_ns {
        format!(
            "at {to} the client of {name} reported a node without its key, although the node had kept it"
        )
    } else {
        format!("from {from} to {to} the client of {name} was wrong about which nodes had its key")
    };
    (headline, lives_of(timeline, violation.first))
}

/// Returns a clause for each key of the attempt `id`.
fn lives_of(timeline: &Timeline<'_>, id: AttemptId) -> Vec<Clause> {
    let keys = timeline.keys.iter().filter(|key| key.writer == Writer::Attempt(id));
    keys.map(|key| life(timeline, key)).collect()
}

fn refused(timeline: &Timeline<'_>, id: AttemptId) -> Vec<Clause> {
    let Some(attempt) = timeline.attempt(id) else { return Vec::new() };
    let began = text::instant(attempt.began.at_ns);
    let how = match attempt.settled {
        Some((at, how)) => {
            let how = outside::not_entered(timeline, attempt)
                .unwrap_or_else(|| words::settled(how).to_owned());
            format!("was settled at {}: {how}", text::instant(at.at_ns))
        }
        None => String::from("was never settled"),
    };
    vec![Clause::at(attempt.began, format!("it began at {began} and {how}"))]
}

#[cfg(test)]
mod tests {
    use lock_judge::history::Event;
    use lock_judge::oracle::Blamed;

    use super::*;
    use crate::report::Played;
    use crate::report::fixture;

    /// Returns the headline about the first lease, reported as lost for `reason`, `early_ns` before
    /// its deadline.
    fn lost(early_ns: u64, reason: LostReason) -> String {
        let Played { result, kept, .. } = fixture::jump();
        let mut events: Vec<Event> = kept.into_iter().next().expect("a history").1;
        let first =
            Timeline::new(&result.case.scenario, &events).leases().next().expect("a lease").id;
        let at_ns = 9_898_000_000 - early_ns;
        events.retain(|it| it.at_ns <= at_ns);
        let (blamed, second, node) = (Blamed::NONE, None, None);
        let found = Violation { from_ns: at_ns, to_ns: at_ns, first, second, node, blamed };
        let mut timeline = Timeline::new(&result.case.scenario, &events);
        timeline.attempts[0].lost = Some((Moment { at_ns, event: 0 }, reason));
        unsound_loss(&timeline, &found).0
    }

    #[test]
    fn a_late_grant_is_told_with_its_votes() {
        let Played { result, kept, .. } = fixture::jump();
        let events: Vec<Event> = kept.into_iter().next().expect("a history").1;
        let timeline = Timeline::new(&result.case.scenario, &events);
        let first = timeline.leases().next().expect("a lease").id;
        let (from_ns, to_ns, second, node) = (0, 2_000_000, None, None);
        let found = Violation { from_ns, to_ns, first, second, node, blamed: Blamed::NONE };
        let (headline, told) = late_or_refused(&timeline, &found);
        assert_eq!(headline, "L1 was granted at 0.002 s, but should have been granted earlier");
        let votes = told.last().map(|it| it.text.as_str());
        assert_eq!(votes, Some("L1 counted A, B and C: 3 votes, 3 needed"));
    }

    #[test]
    fn a_failed_attempt_has_its_time_before_the_reason() {
        let Played { result, kept, .. } = fixture::jump();
        let events: Vec<Event> = kept.into_iter().next().expect("a history").1;
        let mut timeline = Timeline::new(&result.case.scenario, &events);
        let first = timeline.leases().next().expect("a lease").id;
        let (at_ns, second, node) = (2_000_000, None, None);
        let found =
            Violation { from_ns: at_ns, to_ns: at_ns, first, second, node, blamed: Blamed::NONE };
        let moment = Moment { at_ns, event: 0 };
        timeline.attempts[0].settled = Some((moment, Settlement::TooFewNodes));
        let told = left_behind(&timeline, &found).remove(0).text;
        assert_eq!(told, "the attempt failed at 0.002 s: no majority of countable votes");
    }

    #[test]
    fn a_loss_before_the_deadline_contradicts_the_keys() {
        let told = "L1 was reported lost at 5.000 s, but a majority of the nodes had kept its key";
        assert_eq!(lost(4_898_000_000, LostReason::KeysGone), told);
    }

    #[test]
    fn a_loss_for_want_of_time_may_contradict_deadline_or_rounds() {
        let told = "L1 was reported as over at 5.000 s, before its deadline";
        assert_eq!(lost(4_898_000_000, LostReason::DeadlinePassed), told);
        let told = "L1 was over at 9.898 s, and its client reported a failed extension, but its last one had not failed";
        assert_eq!(lost(0, LostReason::KeepAliveFailed), told);
    }

    #[test]
    fn a_loss_at_the_deadline_contradicts_the_keep_alive() {
        let told = "L1 was over at 9.898 s, although it was to be kept alive and could be extended";
        assert_eq!(lost(0, LostReason::DeadlinePassed), told);
    }
}
