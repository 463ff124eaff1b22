//! Explains why a grant or an extension was unsound: each condition of the property that failed, with
//! its figures.

use lock_judge::history::{Answer, AttemptId, EventKind, NodeIds, OpKind};
use lock_judge::oracle::Violation;
use lock_judge::scenario::Span;
use lock_judge::text;

use super::continuity::made_again;
use super::{Clause, outside};
use crate::report::timeline::{Attempt, Command, Extension, Moment, Timeline};
use crate::report::words;

/// Returns the headline, and the clauses that explain it.
pub(super) fn tell(timeline: &Timeline<'_>, violation: &Violation) -> (String, Vec<Clause>) {
    let at = text::instant(violation.from_ns);
    let client = timeline.client_name(violation.first.client);
    let resource = timeline.resource_of(violation.first.client);
    if let Some(told) = shortened(timeline, violation) {
        let headline =
            format!("{client} shortened the life of its own key of “{resource}” at {at}");
        return (headline, vec![told]);
    }
    let extended = extension(timeline, violation);
    let what = if extended.is_some() { "extension" } else { "grant" };
    let headline = format!("{client}’s {what} of “{resource}” at {at} was unsound");
    (headline, extended.unwrap_or_else(|| grant(timeline, violation.first)))
}

/// Explains that a node executed an extending command so late that the key then ends before its lease;
/// `None` if the violation is about something else.
fn shortened(timeline: &Timeline<'_>, violation: &Violation) -> Option<Clause> {
    let attempt = timeline.attempt(violation.first)?;
    let is_meant = |it: &&Command| {
        it.attempt == attempt.id
            && it.op == OpKind::Extend
            && it.executed.is_some_and(|(at, _)| at.at_ns == violation.from_ns)
    };
    let settles = |round: &Extension| {
        round.extended.is_some_and(|(settled, _)| settled.at_ns == violation.from_ns)
    };
    let command = timeline.commands.iter().find(is_meant)?;
    let (executed, _) = command.executed?;
    if attempt.extensions.iter().any(settles) {
        return None;
    }
    let (node, name) = (timeline.node_name(command.node), timeline.name(attempt.id));
    let [written, at] = [command.written, executed].map(|it| text::instant(it.at_ns));
    let believed = timeline.deadline_ns(attempt, timeline.end_ns).map(text::instant)?;
    let told = format!(
        "an extend of {name}, written at {written}, was executed by {node} at {at}: it leaves the key \
         less time than {name}, which lasts until {believed}"
    );
    Some(Clause::at(executed, told))
}

/// Tells which votes the grant of `id` counted, and what is unsound about it.
pub(super) fn grant(timeline: &Timeline<'_>, id: AttemptId) -> Vec<Clause> {
    let Some(attempt) = timeline.attempt(id) else { return Vec::new() };
    let name = timeline.name(id);
    let counted = nodes_or_none(timeline, attempt.counted);
    let votes = text::count(attempt.counted.count().into(), "vote");
    let told = format!("{name} counted {counted}: {votes}, {} needed", attempt.needed);
    let counted = Clause::at(attempt.began, told);
    let Some((decided, _)) = attempt.decided else { return vec![counted] };
    if timeline.is_served() {
        let mut told = vec![outside::entrance(timeline, attempt).unwrap_or(counted)];
        told.extend(outside::last_commands(timeline, attempt, decided.at_ns));
        return told;
    }
    let mut told = vec![counted];
    told.extend(unconfirmed(timeline, attempt, decided));
    told.extend(written_early(timeline, attempt));
    told.extend(over(timeline, attempt, decided));
    told
}

fn nodes_or_none(timeline: &Timeline<'_>, nodes: NodeIds) -> String {
    match timeline.nodes_of(nodes).as_slice() {
        [] => String::from("no node"),
        names => text::list(names),
    }
}

/// Names the confirmed votes, if they are too few although enough nodes were counted.
fn unconfirmed(timeline: &Timeline<'_>, attempt: &Attempt, decided: Moment) -> Option<Clause> {
    let is_vote = |it: &&Command| {
        it.attempt == attempt.id
            && matches!(
                (it.op, it.executed),
                (OpKind::Set, Some((_, Answer::Yes))) | (OpKind::GetSet, Some(_))
            )
            && it.delivered.is_some_and(|at| at.event < decided.event)
    };
    let mut confirmed = NodeIds::EMPTY;
    timeline.commands.iter().filter(is_vote).for_each(|it| confirmed.insert(it.node));
    let votes = confirmed.count();
    if votes >= u32::from(attempt.needed) || confirmed == attempt.counted {
        return None;
    }
    let nodes = nodes_or_none(timeline, confirmed);
    let (votes, at) = (text::count(votes.into(), "vote"), text::instant(decided.at_ns));
    let only = if confirmed.is_empty() { "" } else { "only " };
    let told =
        format!("when it was granted, at {at}, {only}{nodes} had confirmed its SET: {votes}");
    Some(Clause::at(decided, told))
}

/// Names the first command, if it was written before T1 was read.
fn written_early(timeline: &Timeline<'_>, attempt: &Attempt) -> Option<Clause> {
    let is_early =
        |it: &&Command| it.attempt == attempt.id && it.written.event < attempt.began.event;
    let first = timeline.commands.iter().find(is_early)?;
    let (op, node) = (words::op(timeline, first.op), timeline.node_name(first.node));
    let [written, t1] = [first.written, attempt.began].map(|it| text::instant(it.at_ns));
    let told = format!("its {op} was written to {node} at {written}, before T1 was read at {t1}");
    Some(Clause::at(first.written, told))
}

/// Compares the deadline with T1, the TTL and the client's clock, if the lease was over when it was
/// granted, or lasts for too long.
fn over(timeline: &Timeline<'_>, attempt: &Attempt, decided: Moment) -> Option<Clause> {
    let EventKind::GrantDecided { t2_local_ns, deadline_local_ns, .. } =
        timeline.events.get(decided.event)?.kind
    else {
        return None;
    };
    let since_t1 = |local_ns: u64| text::length(local_ns.saturating_sub(attempt.t1_local_ns));
    let (ttl, drift) = (text::length(attempt.ttl_ns), text::length(attempt.drift_ns));
    let elapsed_ns = t2_local_ns.saturating_sub(attempt.t1_local_ns);
    let told = if attempt.ttl_ns <= elapsed_ns.saturating_add(attempt.drift_ns) {
        let elapsed = text::length(elapsed_ns);
        format!(
            "at T2 the lease had no validity left: TTL {ttl} − {elapsed} elapsed − {drift} for \
             drift is not positive"
        )
    } else if let Some(now_local_ns) = reading(timeline, attempt, decided.at_ns)
        .map(|reading| reading.max(t2_local_ns))
        .filter(|&reading| reading >= deadline_local_ns)
    {
        let (end, now) = (since_t1(deadline_local_ns), since_t1(now_local_ns));
        format!("it was over when it was granted: it ends {end} after T1, and {now} had passed")
    } else {
        let longest_ns = attempt.t1_local_ns.saturating_add(attempt.ttl_ns);
        let longest_ns = longest_ns.saturating_sub(attempt.drift_ns);
        if attempt.ttl_ns == u64::MAX || deadline_local_ns <= longest_ns {
            return None;
        }
        let end = since_t1(deadline_local_ns);
        format!("it ends {end} after T1, later than TTL {ttl} − {drift} for drift")
    };
    Some(Clause::at(decided, told))
}

/// Returns the reading of the attempt's clock at `at_ns`.
pub(super) fn reading(timeline: &Timeline<'_>, attempt: &Attempt, at_ns: u64) -> Option<u64> {
    let segment = timeline.clock_of(attempt).iter().rfind(|it| it.true_ns <= at_ns)?;
    Some(segment.local_at(at_ns))
}

/// Explains an extension; `None` if the violation is about a grant.
fn extension(timeline: &Timeline<'_>, violation: &Violation) -> Option<Vec<Clause>> {
    let attempt = timeline.attempt(violation.first)?;
    let is_meant =
        |round: &&Extension| round.extended.is_some_and(|(at, _)| at.at_ns == violation.from_ns);
    let round = attempt.extensions.iter().find(is_meant)?;
    let (settled, counted) = round.extended?;
    let votes = text::count(counted.count().into(), "vote");
    let nodes = nodes_or_none(timeline, counted);
    let (begun, needed) = (text::instant(round.began.at_ns), attempt.needed);
    let told =
        format!("the extension’s T1 was {begun}; it counted {nodes}: {votes}, {needed} needed");
    let mut clauses = vec![Clause::at(round.began, told)];
    let over = attempt.beliefs.iter().rfind(|it| it.to_ns <= settled.at_ns);
    if let Some(over) = over {
        let (over, at) = (text::instant(over.to_ns), text::instant(settled.at_ns));
        let told =
            format!("the lease was over at {over}, before the extension was decided at {at}");
        clauses.push(Clause::at(settled, told));
    }
    clauses.extend(too_long(timeline, attempt, round, settled));
    clauses.extend(made_again(timeline, attempt, settled, counted));
    Some(clauses)
}

/// Compares the new deadline with T1 and the TTL of the extension, if the lease lasts for too long.
fn too_long(
    timeline: &Timeline<'_>,
    attempt: &Attempt,
    round: &Extension,
    settled: Moment,
) -> Option<Clause> {
    let kind = |moment: Moment| timeline.events.get(moment.event).map(|event| event.kind);
    let (
        Some(EventKind::ExtensionBegan { t1_local_ns, ttl_ns, .. }),
        Some(EventKind::ExtensionSettled { deadline_local_ns, .. }),
    ) = (kind(round.began), kind(settled))
    else {
        return None;
    };
    // A client that allows for no drift in a grant allows for none in an extension.
    let drift_ns = match attempt.drift_ns {
        0 => 0,
        _ => timeline.scenario.lock.drift.of(Span(ttl_ns)).0,
    };
    let lasts_ns = deadline_local_ns.saturating_sub(t1_local_ns);
    if lasts_ns.saturating_add(drift_ns) <= ttl_ns {
        return None;
    }
    let [end, ttl, drift] = [lasts_ns, ttl_ns, drift_ns].map(text::length);
    let told = format!(
        "the lease then ends {end} after the extension’s T1, later than TTL {ttl} − {drift} for drift"
    );
    Some(Clause::at(settled, told))
}

#[cfg(test)]
mod tests {
    use lock_judge::history::{Event, NodeId};

    use super::*;
    use crate::report::Played;
    use crate::report::fixture;

    /// Returns the clauses about the first lease of a run whose events were changed.
    fn told(change: impl Fn(&mut EventKind)) -> String {
        let Played { result, kept, .. } = fixture::jump();
        let mut events: Vec<Event> = kept.into_iter().next().expect("a history").1;
        events.iter_mut().for_each(|event| change(&mut event.kind));
        let timeline = Timeline::new(&result.case.scenario, &events);
        let first = timeline.leases().next().expect("a lease").id;
        let clauses = grant(&timeline, first);
        clauses.into_iter().map(|it| it.text).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn sound_grant_has_its_votes_alone() {
        assert_eq!(told(|_| ()), "L1 counted A, B and C: 3 votes, 3 needed");
    }

    #[test]
    fn votes_that_no_node_confirmed_are_named() {
        let told = told(|kind| match kind {
            EventKind::Delivered { node, .. } if *node == NodeId(2) => *kind = EventKind::Ended,
            _ => {}
        });
        let unconfirmed =
            "when it was granted, at 0.002 s, only A and B had confirmed its SET: 2 votes";
        assert_eq!(told, format!("L1 counted A, B and C: 3 votes, 3 needed\n{unconfirmed}"));
    }

    #[test]
    fn deadlines_are_compared_with_the_clock() {
        let end = |by_ns: i64| {
            let told = told(move |kind| {
                if let EventKind::GrantDecided { deadline_local_ns, .. } = kind {
                    *deadline_local_ns = deadline_local_ns.saturating_add_signed(by_ns);
                }
            });
            told.lines().nth(1).map(str::to_owned)
        };
        let over = "it was over when it was granted: it ends 1 ms after T1, and 2 ms had passed";
        assert_eq!(end(-9_897_000_000).as_deref(), Some(over));
        let late = "it ends 9.9 s after T1, later than TTL 10 s − 102 ms for drift";
        assert_eq!(end(2_000_000).as_deref(), Some(late));
    }

    #[test]
    fn an_extension_is_compared_with_its_own_ttl() {
        let Played { result, kept, .. } = fixture::jump();
        let mut events: Vec<Event> = kept.into_iter().next().expect("a history").1;
        let timeline = Timeline::new(&result.case.scenario, &events);
        let attempt = timeline.leases().next().expect("a lease").id;
        let round = lock_judge::ids::RoundId(1);
        let (extended, counted) = (true, NodeIds::first(3));
        let (at_ns, t1_local_ns, ttl_ns) = (5_000_000_000, 5_000_000_000, 10_000_000_000);
        for (by_ns, is_told) in [(9_898_000_000, false), (9_898_000_001, true)] {
            let deadline_local_ns = t1_local_ns + by_ns;
            let place = events.iter().position(|it| it.at_ns > at_ns).expect("later events");
            let began = EventKind::ExtensionBegan { attempt, round, t1_local_ns, ttl_ns };
            let settled = EventKind::ExtensionSettled {
                attempt,
                round,
                extended,
                counted,
                deadline_local_ns,
            };
            events.splice(place..place, [began, settled].map(|kind| Event { at_ns, kind }));
            let timeline = Timeline::new(&result.case.scenario, &events);
            let attempt = timeline.attempt(attempt).expect("an attempt");
            let round = attempt.extensions.last().expect("an extension");
            let (settled, _) = round.extended.expect("a success");
            let told = too_long(&timeline, attempt, round, settled).map(|it| it.text);
            let late = "the lease then ends 9.898 s after the extension’s T1, later than TTL 10 s − 102 ms for drift";
            assert_eq!(told.as_deref(), is_told.then_some(late));
            events.drain(place..place + 2);
        }
    }
}
