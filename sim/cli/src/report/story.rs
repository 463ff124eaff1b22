//! The story of a run in words: the holder and the time of each lease, the node on which a key
//! ended early, and the fault that caused it.

use lock_judge::history::{AttemptId, ClientId, Settlement, Writer};
use lock_judge::oracle::{Blame, Violation};
use lock_judge::scenario::Property;
use lock_judge::text;

use super::timeline::{Absence, AbsenceKind, Attempt, Extension, FaultWindow, Moment, Timeline};
use super::words;

mod because;
mod continuity;
mod keys_ended;
mod other;
pub(super) mod outside;
mod unsound;

/// A sentence, and the index of the event it describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Clause {
    pub(super) text: String,
    pub(super) event: Option<usize>,
}

impl Clause {
    fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), event: None }
    }

    pub(super) fn as_above() -> Self {
        Self::new("as above")
    }

    fn at(moment: Moment, text: impl Into<String>) -> Self {
        Self { text: text.into(), event: Some(moment.event) }
    }
}

/// The story of a violation.
#[derive(Clone, Debug)]
pub(super) struct Story {
    /// Names the violation in one sentence.
    pub(super) headline: String,
    /// "Let": introduces the leases involved.
    pub(super) lets: Vec<Clause>,
    /// "Then": the consequences and their causes.
    pub(super) then: Vec<Clause>,
    /// The conclusion: the assumptions that were broken.
    pub(super) therefore: String,
}

/// Tells the violation of `property` in the run of `timeline`.
pub(super) fn of_violation(
    timeline: &Timeline<'_>,
    property: Property,
    violation: &Violation,
) -> Story {
    let timeline = &*timeline.as_of(violation.from_ns);
    let mut pair: Vec<&Attempt> = Vec::new();
    for id in [Some(violation.first), violation.second].into_iter().flatten() {
        pair.extend(timeline.attempt(id));
    }
    let lets = pair.iter().map(|attempt| introduce(timeline, attempt)).collect();
    let (headline, then) = match (property, pair.as_slice()) {
        (Property::MutualExclusion, [first, second]) => {
            let told =
                because::shared_nodes(timeline, violation, (first, second), violation.from_ns);
            (held(timeline, violation, "both held"), told)
        }
        (Property::ExclusiveSection, [first, second]) => (
            held(timeline, violation, "were both in a critical section on"),
            because::sections(timeline, violation, first, second),
        ),
        (Property::Continuity, [first, second]) => {
            continuity::tell(timeline, violation, first, second)
        }
        _ => other::tell(timeline, property, violation),
    };
    Story { headline, lets, then, therefore: therefore(timeline, property, violation) }
}

fn held(timeline: &Timeline<'_>, violation: &Violation, verb: &str) -> String {
    let second = violation.second.unwrap_or(violation.first);
    let (one, other) =
        (timeline.client_name(violation.first.client), timeline.client_name(second.client));
    let who = if one == other {
        format!("{one}, under two leases,")
    } else {
        format!("{one} and {other}")
    };
    let length = text::length(violation.to_ns.saturating_sub(violation.from_ns));
    let (from, to) = (text::instant(violation.from_ns), text::instant(violation.to_ns));
    let resource = timeline.resource_of(violation.first.client);
    format!("{who} {verb} “{resource}” for {length} (true time {from} to {to})")
}

/// Introduces an attempt: `L1 = c1's lease, by the votes of A, B and C; believed from 0.002 s to 9.898 s;
/// …`.
fn introduce(timeline: &Timeline<'_>, attempt: &Attempt) -> Clause {
    let client = timeline.client_name(attempt.id.client);
    let name = timeline.name(attempt.id);
    let Some((delivered, _)) = attempt.delivered else {
        let how = attempt.settled.map_or("never settled", |(_, how)| words::settled(how));
        let seen = outside::not_entered(timeline, attempt);
        let how = seen.as_deref().unwrap_or(how);
        let from = text::instant(attempt.began.at_ns);
        return Clause::at(attempt.began, format!("{name}, begun at {from}: {how}"));
    };
    let mut told = format!("{name} = {client}’s lease");
    let process = timeline.scenario.client(attempt.id.client).and_then(|it| it.task_of.as_ref());
    if let Some(process) = process {
        told += &format!(" ({client} is a task of {process})");
    }
    if !attempt.counted.is_empty() {
        told += &format!(", by the votes of {}", text::list(&timeline.nodes_of(attempt.counted)));
    }
    let spans = attempt.beliefs.iter().map(|belief| {
        let (from, to) = (text::instant(belief.from_ns), text::instant(belief.to_ns));
        let end = if ends_by_release(attempt, belief.to_ns) { " (released)" } else { "" };
        format!("from {from} to {to}{end}")
    });
    match spans.collect::<Vec<_>>().as_slice() {
        spans @ [_, ..] => told += &format!("; believed {}", text::list(spans)),
        _ if attempt.released.is_some_and(|released| released.at_ns == delivered.at_ns) => {
            told += &format!("; released at once, at {}", text::instant(delivered.at_ns));
            return Clause::at(delivered, told);
        }
        _ if timeline.is_served() => {
            told += &format!("; entered at {}, without a lease", text::instant(delivered.at_ns))
        }
        _ => {
            told += &format!("; already over when delivered, at {}", text::instant(delivered.at_ns))
        }
    }
    told += &arithmetic(timeline, attempt);
    told += &extensions(attempt);
    Clause::at(delivered, told)
}

/// Summarises the extensions: `; extended 3 times, last at 12.003 s; 1 extension failed`.
fn extensions(attempt: &Attempt) -> String {
    let mut told = String::new();
    // From outside, only the longer life of the keys is seen.
    let done_at = |it: &Extension| it.extended.map(|it| it.0).or(it.delivered.map(|it| it.0));
    let done: Vec<Moment> = attempt.extensions.iter().filter_map(done_at).collect();
    if let Some(last) = done.last() {
        let times = if done.len() == 1 { "once" } else { "last" };
        let count = match done.len() {
            1 => String::new(),
            count => format!("{count} times, "),
        };
        told += &format!("; extended {count}{times} at {}", text::instant(last.at_ns));
    }
    let failed: Vec<Moment> = attempt.extensions.iter().filter_map(|it| it.failed).collect();
    if let Some(first) = failed.first() {
        let (count, at) = (failed.len() as u64, text::instant(first.at_ns));
        let from = if count == 1 { "at" } else { "the first at" };
        told += &format!("; {} failed, {from} {at}", text::count(count, "extension"));
    }
    if let Some((first, why)) = attempt.refusals.first() {
        let (count, at) = (attempt.refusals.len() as u64, text::instant(first.at_ns));
        let from = if count == 1 { "at" } else { "the first at" };
        let (extensions, why) = (text::count(count, "extension"), words::refusal(*why));
        told += &format!("; {extensions} not begun, {from} {at}: {why}");
    }
    told
}

/// Tells the first and the last of `times`; an empty text if there are none.
fn span(times: impl Iterator<Item = u64> + Clone) -> String {
    let first = times.clone().min().map_or_else(String::new, text::instant);
    let last = times.max().map_or_else(String::new, text::instant);
    if first == last { first } else { format!("{first} to {last}") }
}

/// Returns true if the caller's release ended a belief at `to_ns`, not its deadline or loss.
fn ends_by_release(attempt: &Attempt, to_ns: u64) -> bool {
    let is_lost = attempt.lost.is_some_and(|(lost, _)| lost.at_ns <= to_ns);
    let mut grants = attempt.earlier.iter().copied().chain([attempt.grant()]);
    let is_released = grants.any(|it| it.released.is_some_and(|released| released.at_ns == to_ns));
    !is_lost && is_released
}

/// Explains the validity of a lease at T2:
/// `; valid for 9.896 s at T2 (TTL 10 s − 2 ms elapsed − 102 ms for drift)`.
fn arithmetic(timeline: &Timeline<'_>, attempt: &Attempt) -> String {
    if timeline.is_served() {
        return first_ttl(timeline, attempt);
    }
    if attempt.ttl_ns == u64::MAX {
        return String::from("; no expiry");
    }
    let ttl = text::length(attempt.ttl_ns);
    if attempt.delivered.is_some_and(|(_, deadline_local_ns)| deadline_local_ns == u64::MAX) {
        return format!("; TTL {ttl}");
    }
    let drift = match attempt.drift_ns {
        0 => String::new(),
        ns => format!(" − {} for drift", text::length(ns)),
    };
    let Some((decided, t2_local_ns)) = attempt.decided else {
        return format!("; TTL {ttl}{drift}");
    };
    let elapsed_ns = t2_local_ns.saturating_sub(attempt.t1_local_ns);
    let elapsed = text::length(elapsed_ns);
    let left_ns = attempt.ttl_ns.saturating_sub(elapsed_ns).saturating_sub(attempt.drift_ns);
    let valid = match left_ns {
        0 => String::from("not valid"),
        ns => format!("valid for {}", text::length(ns)),
    };
    let elapsed_true_ns = decided.at_ns.saturating_sub(attempt.began.at_ns);
    let clock = match elapsed_true_ns.abs_diff(elapsed_ns) {
        0..1_000_000 => String::new(),
        _ => format!(" by {}’s clock", timeline.client_name(attempt.id.client)),
    };
    format!("; {valid} at T2{clock} (TTL {ttl} − {elapsed} elapsed{drift})")
}

/// Returns the TTL that a lease's first key was set with: seen from outside, nothing else is known
/// of its validity. Returns an empty text if no key was set.
fn first_ttl(timeline: &Timeline<'_>, attempt: &Attempt) -> String {
    let own = Writer::Attempt(attempt.id);
    match attempt.ttl_ns {
        _ if timeline.keys.iter().all(|key| key.writer != own) => String::new(),
        u64::MAX => String::from("; first key set without an expiry"),
        ns => format!("; TTL {}", text::length(ns)),
    }
}

/// Returns true if settings can violate the property: a TTL shorter than a round trip prevents every
/// grant.
const fn is_of_settings(property: Property) -> bool {
    matches!(property, Property::DeadlockFree | Property::FaultTolerant)
}

/// Returns what is wrong if no assumption is to blame.
pub(super) fn at_fault(timeline: &Timeline<'_>, property: Property) -> &'static str {
    if timeline.is_served() {
        // A worker's own pauses are not seen from outside.
        "a worker’s lock client is wrong, or a worker was stopped before it entered"
    } else if is_of_settings(property) {
        "the lock client or its settings are wrong"
    } else {
        "the lock client is wrong"
    }
}

fn therefore(timeline: &Timeline<'_>, property: Property, violation: &Violation) -> String {
    if violation.blamed.is_none() {
        let broken =
            if timeline.is_served() { "fault of the scenario" } else { "broken assumption" };
        return format!("No {broken} explains it: {}.", at_fault(timeline, property));
    }
    let names = violation.blamed.names(timeline.scenario);
    let broken: Vec<String> = violation
        .blamed
        .iter()
        .zip(&names)
        .map(|(blame, name)| format!("{} ({name})", assumption(timeline, blame)))
        .collect();
    let assumptions = if broken.len() == 1 { "assumption" } else { "assumptions" };
    format!("Broken {assumptions}: {}.", text::list(&broken))
}

/// Returns the assumption that `blame` breaks.
fn assumption(timeline: &Timeline<'_>, blame: Blame) -> String {
    match blame {
        Blame::Amnesia(host) => {
            format!("{} keeps the keys that it acknowledged", timeline.host_name(host))
        }
        Blame::Application => String::from(
            "the application checks the lease before it uses it, and stops when the lease is over",
        ),
        Blame::Clock(host) => {
            format!("{}’s clock keeps time within the drift allowance", timeline.host_name(host))
        }
        Blame::DelayedWrite => String::from("a write arrives before its lease ends"),
        Blame::Membership => String::from("all clients have the same list of nodes"),
        Blame::Operator => String::from("no operator deletes or changes keys"),
        Blame::Pause => String::from(
            "no process is stopped between its last check of the lease and its last use of it",
        ),
        Blame::Randomness => String::from("every client draws random numbers of its own"),
    }
}

/// Tells the events of a run without a violation: faults, leases and refused attempts.
pub(super) fn of_run(timeline: &Timeline<'_>) -> Vec<Clause> {
    const LEASES_MAX: usize = 6;
    let mut told = faults(timeline);
    let leases = timeline.leases().count();
    for attempt in timeline.leases().take(LEASES_MAX) {
        let mut clause = introduce(timeline, attempt);
        clause.text += &ending(timeline, attempt);
        told.push(clause);
    }
    if leases > LEASES_MAX {
        told.push(Clause::new(format!("Further leases: {}.", leases - LEASES_MAX)));
    }
    told.extend(refusals(timeline));
    told
}

/// Returns one clause for each fault, however often it began.
fn faults(timeline: &Timeline<'_>) -> Vec<Clause> {
    let mut told: Vec<(&FaultWindow, &FaultWindow, u64)> = Vec::new();
    for window in &timeline.fault_windows {
        match told.iter_mut().find(|(first, ..)| first.fault == window.fault) {
            Some((_, last, more)) => (*last, *more) = (window, *more + 1),
            None => told.push((window, window, 0)),
        }
    }
    let clause = |(first, last, more): (&FaultWindow, &FaultWindow, u64)| {
        let because = capital(&super::faults::because(timeline.scenario, first));
        let last = text::instant(last.began.at_ns);
        let again = match more {
            0 => String::new(),
            1 => format!("; once more at {last}"),
            _ => format!("; {more} times more, the last at {last}"),
        };
        Clause::at(first.began, format!("{because}{again}."))
    };
    told.into_iter().map(clause).collect()
}

fn ending(timeline: &Timeline<'_>, attempt: &Attempt) -> String {
    let client = timeline.client_name(attempt.id.client);
    match (attempt.released, attempt.lost) {
        (Some(released), Some((lost, _))) if lost.at_ns <= released.at_ns => {
            format!("; {client} learnt at {} that it was over.", text::instant(lost.at_ns))
        }
        (Some(released), _) if ends_with(attempt, released.at_ns) => String::from("."),
        (Some(released), _) => format!("; released at {}.", text::instant(released.at_ns)),
        (None, Some((lost, _))) => {
            format!("; {client} learnt at {} that it was over.", text::instant(lost.at_ns))
        }
        (None, None) => String::from("."),
    }
}

/// Returns true if the introduction already names `at_ns` as the end of the lease.
fn ends_with(attempt: &Attempt, at_ns: u64) -> bool {
    attempt.delivered.is_some_and(|(delivered, _)| delivered.at_ns == at_ns)
        || attempt.beliefs.last().is_some_and(|belief| belief.to_ns == at_ns)
}

/// Returns one clause for each client and each reason for which attempts of the client failed.
fn refusals(timeline: &Timeline<'_>) -> Vec<Clause> {
    let mut told: Vec<(ClientId, Settlement, Moment, u64)> = Vec::new();
    for attempt in &timeline.attempts {
        let Some((at, how)) = attempt.settled.filter(|(_, how)| *how != Settlement::Granted) else {
            continue;
        };
        match told.iter_mut().find(|it| (it.0, it.1) == (attempt.id.client, how)) {
            Some(known) => known.3 += 1,
            None => told.push((attempt.id.client, how, at, 1)),
        }
    }
    let clause = |(client, how, at, times): (ClientId, Settlement, Moment, u64)| {
        let name = timeline.client_name(client);
        let attempts = text::count(times, "attempt");
        let from = if times == 1 { "at" } else { "the first at" };
        let first = text::instant(at.at_ns);
        let how = match how {
            Settlement::Cancelled if timeline.is_served() => "not entered",
            how => words::settled(how),
        };
        Clause::at(at, format!("{attempts} of {name}, {from} {first}: {how}."))
    };
    told.into_iter().map(clause).collect()
}

fn capital(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// Returns the last stop of the client that began at or before `at_ns`.
fn stop_before<'t>(timeline: &'t Timeline<'_>, id: AttemptId, at_ns: u64) -> Option<&'t Absence> {
    let host = timeline.scenario.client_host(id.client);
    timeline.absences.iter().rev().find(|away| {
        let stopped = matches!(away.why, AbsenceKind::Stopped | AbsenceKind::Suspended);
        stopped && away.host == host && away.from.at_ns <= at_ns
    })
}

#[cfg(test)]
mod tests;
