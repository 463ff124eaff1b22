//! Computes the intervals in which a client believes that it holds a lease.

use lock_judge::history::Segment;

use super::{AbsenceKind, Attempt, Interval, Timeline};

const TRUE_TIME: Segment = Segment { true_ns: 0, local_ns: 0, rate_ppb: 0 };

/// Returns the intervals before `end_ns` in which the client of `attempt` believes in its last grant.
pub(super) fn of(timeline: &Timeline<'_>, attempt: &Attempt, end_ns: u64) -> Vec<Interval> {
    let Some((delivered, _)) = attempt.delivered else { return Vec::new() };
    let host = timeline.scenario.client_host(attempt.id.client);
    let death = timeline.absences.iter().find(|away| {
        let dead = matches!(away.why, AbsenceKind::Killed | AbsenceKind::PowerLost);
        dead && away.host == host && away.from.event > delivered.event
    });
    let lost = attempt.lost.map(|(at, _)| at);
    let ends = [attempt.released, lost, death.map(|away| away.from)];
    let until_ns = ends.iter().flatten().map(|moment| moment.at_ns).min().unwrap_or(end_ns);
    let mut deadlines: Vec<(u64, u64)> = Vec::new();
    for &(at_ns, deadline_local_ns) in &attempt.deadlines {
        let known = deadlines.last().map_or(0, |known| known.1);
        if at_ns >= delivered.at_ns {
            deadlines.push((at_ns, deadline_local_ns.max(known)));
        }
    }
    growing(timeline.clock_of(attempt), &deadlines, until_ns)
}

/// Returns the intervals of `from_ns..until_ns` in which a clock that follows `segments` reads less
/// than `deadline_local_ns`. There is more than one interval if the clock is set back across the
/// deadline.
pub(super) fn beliefs(
    segments: &[Segment],
    from_ns: u64,
    until_ns: u64,
    deadline_local_ns: u64,
) -> Vec<Interval> {
    let whole = Interval { from_ns, to_ns: until_ns };
    if deadline_local_ns == u64::MAX {
        return vec![whole];
    }
    // A clock without events runs true.
    let segments = if segments.is_empty() { &[TRUE_TIME][..] } else { segments };
    let mut found: Vec<Interval> = Vec::new();
    for (place, segment) in segments.iter().enumerate() {
        let next_ns = segments.get(place + 1).map_or(u64::MAX, |next| next.true_ns);
        let begin = segment.true_ns.max(from_ns);
        let end = segment.true_at(deadline_local_ns).unwrap_or(u64::MAX).min(next_ns).min(until_ns);
        if begin >= end {
            continue;
        }
        match found.last_mut() {
            Some(last) if last.to_ns == begin => last.to_ns = end,
            _ => found.push(Interval { from_ns: begin, to_ns: end }),
        }
    }
    found
}

/// Like [`beliefs`], for a lease that is extended: each of `deadlines` is an instant and the
/// deadline that applies from then on.
pub(super) fn growing(
    segments: &[Segment],
    deadlines: &[(u64, u64)],
    until_ns: u64,
) -> Vec<Interval> {
    let mut found: Vec<Interval> = Vec::new();
    for (place, &(from_ns, deadline_local_ns)) in deadlines.iter().enumerate() {
        let next_ns = deadlines.get(place + 1).map_or(u64::MAX, |next| next.0);
        for piece in beliefs(segments, from_ns, until_ns.min(next_ns), deadline_local_ns) {
            match found.last_mut() {
                Some(last) if last.to_ns == piece.from_ns => last.to_ns = piece.to_ns,
                _ => found.push(piece),
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(from_ns: u64, to_ns: u64) -> Interval {
        Interval { from_ns, to_ns }
    }

    const TRUE: Segment = Segment { true_ns: 0, local_ns: 1_000, rate_ppb: 0 };

    #[test]
    fn a_true_clock_ends_belief_at_the_deadline() {
        assert_eq!(beliefs(&[TRUE], 20, 900, 1_500), [interval(20, 500)]);
    }

    #[test]
    fn a_release_ends_it_earlier() {
        assert_eq!(beliefs(&[TRUE], 20, 90, 1_500), [interval(20, 90)]);
    }

    #[test]
    fn a_clock_set_back_prolongs_it() {
        let back = Segment { true_ns: 100, local_ns: 1_000, rate_ppb: 0 };
        assert_eq!(beliefs(&[TRUE, back], 20, 9_000, 1_500), [interval(20, 600)]);
    }

    #[test]
    fn a_clock_set_back_after_the_deadline_revives_it() {
        let back = Segment { true_ns: 700, local_ns: 1_400, rate_ppb: 0 };
        let told = beliefs(&[TRUE, back], 20, 9_000, 1_500);
        assert_eq!(told, [interval(20, 500), interval(700, 800)]);
    }

    #[test]
    fn an_extension_prolongs_it_and_one_that_comes_late_revives_it() {
        let told = growing(&[TRUE], &[(20, 1_500), (100, 1_600)], 9_000);
        assert_eq!(told, [interval(20, 600)]);
        let told = growing(&[TRUE], &[(20, 1_500), (550, 1_700)], 9_000);
        assert_eq!(told, [interval(20, 500), interval(550, 700)]);
    }

    #[test]
    fn a_lease_that_is_over_when_it_comes_is_never_believed() {
        assert_eq!(beliefs(&[TRUE], 600, 9_000, 1_500), []);
    }
}
