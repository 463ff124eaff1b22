//! Selection of the messages that a diagram shows.

use lock_judge::history::{AttemptId, HostId, OpKind, Writer};
use lock_judge::oracle::Violation;
use lock_judge::scenario::Property;

use crate::report::timeline::{Command, Timeline, Write};
use crate::report::words;

/// A request from a client to a master or to the resource, and its reply.
#[derive(Clone, Debug)]
pub(in crate::report) struct Flight<'t> {
    pub(super) attempt: AttemptId,
    pub(super) client: HostId,
    pub(super) server: HostId,
    request: Request<'t>,
    pub(super) sent_ns: u64,
    pub(super) arrived_ns: Option<u64>,
    /// `None` for a request without a reply, `Some(None)` for a reply that never arrived.
    pub(super) answered_ns: Option<Option<u64>>,
    pub(super) is_late: bool,
}

#[derive(Clone, Copy, Debug)]
enum Request<'t> {
    Command(&'t Command),
    Write(&'t Write),
}

impl Flight<'_> {
    /// Returns the instants at which the diagram needs a row for this message.
    pub(super) fn instants(&self) -> impl Iterator<Item = u64> + use<> {
        [Some(self.sent_ns), self.arrived_ns, self.answered_ns.flatten()].into_iter().flatten()
    }

    fn is_set(&self) -> bool {
        matches!(self.request, Request::Command(Command { op: OpKind::Set | OpKind::GetSet, .. }))
    }

    /// Describes the request and its answer in a few words.
    pub(super) fn label(&self, timeline: &Timeline<'_>) -> String {
        let (what, answer) = match self.request {
            Request::Command(command) => {
                let answer =
                    command.executed.map(|(_, told)| words::answer(timeline, command.op, told));
                let answer = answer.map_or_else(String::new, |answer| format!(" → {answer}"));
                (words::op(timeline, command.op), answer)
            }
            Request::Write(write) => ("write", verdict(write)),
        };
        format!("{what} {}{answer}", short(timeline, self.attempt))
    }
}

/// Returns every message, in the order of sending.
pub(super) fn flights<'t>(timeline: &'t Timeline<'_>) -> Vec<Flight<'t>> {
    let commands = timeline.commands.iter().filter(|it| timeline.is_drawn(it.attempt));
    let mut flights: Vec<Flight<'_>> = commands.map(|it| command(timeline, it)).collect();
    flights.extend(timeline.writes.iter().map(|it| write(timeline, it)));
    flights.sort_by_key(|flight| flight.sent_ns);
    flights
}

fn command<'t>(timeline: &Timeline<'_>, command: &'t Command) -> Flight<'t> {
    let timeout_ns = timeline.scenario.lock.node_timeout.0;
    let answered_ns = command.delivered.map(|at| at.at_ns);
    Flight {
        attempt: command.attempt,
        client: timeline.scenario.client_host(command.attempt.client),
        server: command.node.first_host(),
        request: Request::Command(command),
        sent_ns: command.written.at_ns,
        arrived_ns: command.executed.map(|(at, _)| at.at_ns),
        answered_ns: Some(answered_ns),
        is_late: answered_ns.is_some_and(|at_ns| at_ns - command.written.at_ns > timeout_ns),
    }
}

fn write<'t>(timeline: &Timeline<'_>, write: &'t Write) -> Flight<'t> {
    Flight {
        attempt: write.attempt,
        client: timeline.scenario.client_host(write.attempt.client),
        server: timeline.scenario.store_host(),
        request: Request::Write(write),
        sent_ns: write.sent.at_ns,
        arrived_ns: write.arrived.map(|(at, _)| at.at_ns),
        answered_ns: None,
        is_late: false,
    }
}

fn verdict(write: &Write) -> String {
    match write.arrived {
        Some((_, Ok(version))) => format!(" ✓ version {version}"),
        Some((_, Err(why))) => format!(" ✗ {}", why.as_str()),
        None => String::new(),
    }
}

/// Short name of an attempt: `L1` for a lease, `c2#3` for a failed attempt.
fn short(timeline: &Timeline<'_>, id: AttemptId) -> String {
    match timeline.lease_place(id) {
        Some(place) => format!("L{}", place + 1),
        None if id.number == 0 => timeline.client_name(id.client).to_owned(),
        None => format!("{}#{}", timeline.client_name(id.client), id.number),
    }
}

/// Returns the attempts that a violation is about.
fn attempts_of(
    timeline: &Timeline<'_>,
    (property, violation): (Property, &Violation),
) -> Vec<AttemptId> {
    let pair = [Some(violation.first), violation.second].into_iter().flatten();
    let mut attempts: Vec<AttemptId> = pair.collect();
    // The client of the only attempt waits for the owners of these keys.
    if property == Property::DeadlockFree {
        attempts.extend(timeline.keys_at(violation.to_ns).filter_map(|key| match key.writer {
            Writer::Attempt(id) => Some(id),
            Writer::Nobody | Writer::Operator => None,
        }));
    }
    attempts
}

/// Splits the messages into at most `most` to draw, and the rest. Prefers the SETs of the attempts
/// that the violation is about, then other messages of these attempts; among equals, those sent
/// nearest to its beginning. Without a violation, prefers the first two leases and the earliest
/// messages.
pub(super) fn choose<'t>(
    timeline: &Timeline<'_>,
    flights: Vec<Flight<'t>>,
    violation: Option<(Property, &Violation)>,
    most: usize,
) -> (Vec<Flight<'t>>, Vec<Flight<'t>>) {
    let focus: Vec<AttemptId> = match violation {
        Some(violation) => attempts_of(timeline, violation),
        None => timeline.leases().take(2).map(|attempt| attempt.id).collect(),
    };
    let around_ns = violation.map_or(0, |(_, violation)| violation.from_ns);
    let mut places: Vec<usize> = (0..flights.len()).collect();
    places.sort_by_key(|&place| {
        let flight = &flights[place];
        let is_in_focus = focus.contains(&flight.attempt);
        let is_set = is_in_focus && flight.is_set();
        (!is_set, !is_in_focus, flight.sent_ns.abs_diff(around_ns), place)
    });
    places.truncate(most);
    places.sort_unstable();

    let mut drawn = Vec::with_capacity(places.len());
    let mut left_out = Vec::new();
    for (place, flight) in flights.into_iter().enumerate() {
        let chosen = places.binary_search(&place).is_ok();
        if chosen { &mut drawn } else { &mut left_out }.push(flight);
    }
    (drawn, left_out)
}

#[cfg(test)]
mod tests {
    use lock_judge::history::{AttemptId, ClientId};
    use lock_judge::oracle::Blamed;

    use super::*;
    use crate::report::fixture;

    #[test]
    fn a_client_that_waits_is_drawn_with_the_owner_of_the_keys() {
        let played = fixture::crowded();
        let timeline = fixture::timeline(&played);
        let [waiting, owner] =
            [0, 1].map(|client| AttemptId { client: ClientId(client), number: 1 });
        let violation = Violation {
            from_ns: 200_000_000,
            to_ns: 5_000_000_000,
            first: waiting,
            second: None,
            node: None,
            blamed: Blamed::NONE,
        };
        let drawn = |property| {
            let all = flights(&timeline);
            choose(&timeline, all, Some((property, &violation)), 10).0
        };
        let sets = |flights: &[Flight<'_>], id| {
            flights.iter().filter(|it| it.attempt == id && it.is_set()).count()
        };
        let of_deadlock = drawn(Property::DeadlockFree);
        assert_eq!([waiting, owner].map(|id| sets(&of_deadlock, id)), [5, 5]);
        assert_eq!(sets(&drawn(Property::FaultTolerant), owner), 0);
    }
}
