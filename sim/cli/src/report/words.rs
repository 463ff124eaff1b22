//! Descriptions of events, for the table of a page.

use lock_judge::history::{
    Answer, ClientId, ClockKind, Event, EventKind, FaultId, KeyEnd, LostReason, NodeId, NodeIds,
    OpKind, Refusal, Settlement, Writer,
};
use lock_judge::text;

use super::story::outside;
use super::timeline::Timeline;

/// Name of a command in pictures.
pub(super) fn op(timeline: &Timeline<'_>, op: OpKind) -> &'static str {
    match op {
        // `serve` records the effect: a SET without NX, or any other command that sets the key anew.
        OpKind::GetSet if timeline.is_served() => "overwrite",
        OpKind::Expire => "EXPIRE",
        OpKind::Extend => "extend",
        OpKind::Get | OpKind::Read => "GET",
        OpKind::GetSet => "GETSET",
        OpKind::Introduce => "INFO",
        OpKind::Release => "release",
        OpKind::Delete => "DEL",
        OpKind::Set => "SET",
        OpKind::Look | OpKind::TimeLeft => "PTTL",
        OpKind::Wait => "WAIT",
    }
}

/// Name of a reply, given the command it replies to.
pub(super) fn answer(timeline: &Timeline<'_>, command: OpKind, answer: Answer) -> &'static str {
    match (command, answer) {
        (_, Answer::Error) => "error",
        (OpKind::GetSet, _) if timeline.is_served() => "OK",
        (OpKind::Set, Answer::Yes) => "OK",
        (OpKind::Set, Answer::No) => "nil",
        (OpKind::Introduce, Answer::Yes) => "info",
        // A time, or a negative number if there is none: histories do not record which.
        (OpKind::Look | OpKind::TimeLeft, Answer::Yes) => "answered",
        (OpKind::Get | OpKind::GetSet | OpKind::Read, Answer::Yes) => "own",
        (OpKind::Get | OpKind::GetSet | OpKind::Read, Answer::No) => "not own",
        (_, Answer::Yes) => "1",
        (_, Answer::No) => "0",
    }
}

const fn key_end(cause: KeyEnd) -> &'static str {
    match cause {
        KeyEnd::Command => "deleted",
        KeyEnd::Evicted => "evicted",
        KeyEnd::Expired => "expired",
        KeyEnd::FailedOver => "left behind by a failover",
        KeyEnd::Flushed => "flushed",
        KeyEnd::Restarted => "lost in a restart",
    }
}

/// Describes why an extension was not begun.
pub(super) const fn refusal(why: Refusal) -> &'static str {
    match why {
        Refusal::Busy => "another extension is under way",
        Refusal::Lost => "the lease is over",
        Refusal::TooLong => "the TTL exceeds the longest allowed",
        Refusal::TooMany => "the limit of extensions is reached",
        Refusal::Unsupported => "this lock has no extensions",
        Refusal::WouldShorten => "the lease would not end later",
    }
}

/// Name of a clock.
pub(super) const fn clock(clock: ClockKind) -> &'static str {
    match clock {
        ClockKind::Boot => "boot clock",
        ClockKind::Monotonic => "monotonic clock",
        ClockKind::Wall => "wall clock",
    }
}

/// Returns the host of an event, and a description of the event.
pub(super) fn describe(timeline: &Timeline<'_>, event: &Event) -> (String, String) {
    let node = |node: NodeId| timeline.node_name(node).to_owned();
    let host = |host| timeline.host_name(host).to_owned();
    match event.kind {
        EventKind::Clock { host: whose, clock: kind, rate_ppb, .. } => {
            let runs = match rate_ppb {
                0 => String::from("runs true"),
                -1_000_000_000 => String::from("stands still"),
                rate => format!("drifts by {}", text::percent(rate / 1_000)),
            };
            (host(whose), format!("{}: new reading or rate from here; it {runs}", clock(kind)))
        }
        EventKind::NodeUp { node: it, incarnation } => {
            (node(it), format!("up, incarnation {incarnation}"))
        }
        EventKind::NodeDown { node: it, power } => (node(it), down(power)),
        EventKind::NodeStalled { node: it } => (node(it), String::from("stalled")),
        EventKind::NodeUnstalled { node: it } => (node(it), String::from("executes again")),
        EventKind::FailedOver { node: it, host: to } => {
            (node(it), format!("{} is its master from here", host(to)))
        }
        EventKind::Stopped { host: it, suspended } => {
            (host(it), String::from(if suspended { "suspended" } else { "stopped" }))
        }
        EventKind::Continued { host: it } => (host(it), String::from("continues")),
        EventKind::Killed { host: it, power } => (host(it), down(power)),
        EventKind::KeyReturned { node: it, writer, .. } => {
            (node(it), format!("the key of {} is there again", timeline.writer_name(writer)))
        }
        EventKind::KeyEnded { node: it, writer, cause, by, .. } => {
            let by = match by {
                Writer::Nobody => String::new(),
                by => format!(" by {}", timeline.writer_name(by)),
            };
            let whose = timeline.writer_name(writer);
            (node(it), format!("the key of {whose} ended: {}{by}", key_end(cause)))
        }
        EventKind::FaultBegan { fault } => {
            let effect = timeline.scenario.fault(fault).map(|known| known.kind.summary());
            let effect = effect.map(|effect| format!(": {effect}")).unwrap_or_default();
            (String::from("—"), format!("{} began{effect}", fault_name(timeline, fault)))
        }
        EventKind::FaultEnded { fault } => {
            (String::from("—"), format!("{} ended", fault_name(timeline, fault)))
        }
        EventKind::Healed { .. } => {
            (String::from("—"), String::from("every fault that has an end has ended"))
        }
        EventKind::Ended => (String::from("—"), String::from("the run is over")),
        EventKind::Executed { node: it, attempt, op: command, answer: told, after, .. } => {
            let whose = timeline.name(attempt);
            let key = match after {
                _ if command == OpKind::Introduce => String::new(),
                Writer::Nobody => String::from("; no key now"),
                after => format!("; key of {}", timeline.writer_name(after)),
            };
            let (command, told) = (op(timeline, command), answer(timeline, command, told));
            (node(it), format!("executes {command} of {whose} → {told}{key}"))
        }
        of_client => of_attempt(timeline, of_client),
    }
}

fn down(power: bool) -> String {
    String::from(if power { "loses power" } else { "killed" })
}

fn fault_name(timeline: &Timeline<'_>, fault: FaultId) -> String {
    match timeline.scenario.fault(fault) {
        Some(known) => format!("fault “{}”", known.id),
        None => format!("fault {fault}"),
    }
}

fn of_attempt(timeline: &Timeline<'_>, kind: EventKind) -> (String, String) {
    let client = |client: ClientId| timeline.client_name(client).to_owned();
    let node = |node: NodeId| timeline.node_name(node);
    match kind {
        EventKind::Eligible { client: whose, node: it, from_local_ns } => {
            let told = match from_local_ns {
                0 => format!("counts {}’s votes", node(it)),
                u64::MAX => format!("never counts {}’s votes", node(it)),
                _ => format!("keeps {} in quarantine", node(it)),
            };
            (client(whose), told)
        }
        EventKind::GaveUp { client: whose } => (client(whose), String::from("gives up: no lease")),
        // Seen from outside, neither T1 nor the TTL that the client assumes is known.
        EventKind::AttemptBegan { attempt, .. } if timeline.is_served() => {
            let told = format!("attempt {} is first seen", attempt.number);
            (client(attempt.client), told)
        }
        EventKind::AttemptBegan { attempt, ttl_ns, .. } => {
            let ttl = match ttl_ns {
                u64::MAX => String::from("no expiry"),
                ns => format!("TTL {}", text::length(ns)),
            };
            let told = format!("attempt {} begins: T1, {ttl}", attempt.number);
            (client(attempt.client), told)
        }
        EventKind::Written { attempt, node: it, op: command, .. } => {
            let (command, whose) = (op(timeline, command), timeline.name(attempt));
            (client(attempt.client), format!("writes {command} of {whose} to {}", node(it)))
        }
        EventKind::Delivered { attempt, node: it, op: command, answer: told, .. } => {
            let (command, told) = (op(timeline, command), answer(timeline, command, told));
            let (from, whose) = (node(it), timeline.name(attempt));
            (
                client(attempt.client),
                format!("receives {told} from {from} for {command} of {whose}"),
            )
        }
        EventKind::AttemptSettled { attempt, outcome } => {
            let settled_attempt = timeline.attempt(attempt);
            let seen = settled_attempt.and_then(|it| outside::not_entered(timeline, it));
            let how = seen.as_deref().unwrap_or(settled(outcome));
            let told = format!("attempt {}: {how}", attempt.number);
            (client(attempt.client), told)
        }
        EventKind::GrantDecided { attempt, counted, .. } => {
            let nodes = text::list(&timeline.nodes_of(counted));
            let told = format!("decides: {} granted, counting {nodes}", timeline.name(attempt));
            (client(attempt.client), told)
        }
        EventKind::GrantDelivered { attempt, .. } => {
            (client(attempt.client), format!("holds {}", timeline.name(attempt)))
        }
        EventKind::ReleaseCalled { attempt } => {
            (client(attempt.client), format!("releases {}", timeline.name(attempt)))
        }
        EventKind::LostDelivered { attempt, reason } => {
            let (lease, why) = (timeline.name(attempt), lost(reason));
            (client(attempt.client), format!("learns that {lease} is over: {why}"))
        }
        other => of_extension(timeline, other),
    }
}

fn of_extension(timeline: &Timeline<'_>, kind: EventKind) -> (String, String) {
    let client = |client: ClientId| timeline.client_name(client).to_owned();
    match kind {
        EventKind::ExtensionBegan { attempt, round, .. } if timeline.is_served() => {
            let whose = timeline.name(attempt);
            (client(attempt.client), format!("extension {round} of {whose} has a majority"))
        }
        EventKind::ExtensionBegan { attempt, round, ttl_ns, .. } => {
            let (whose, ttl) = (timeline.name(attempt), text::length(ttl_ns));
            (client(attempt.client), format!("extension {round} of {whose} begins: T1, TTL {ttl}"))
        }
        EventKind::ExtensionRefused { attempt, ttl_ns, why } => {
            let (whose, ttl) = (timeline.name(attempt), text::length(ttl_ns));
            let told = format!("begins no extension of {whose} to TTL {ttl}: {}", refusal(why));
            (client(attempt.client), told)
        }
        EventKind::ExtensionSettled { attempt, round, extended, counted, .. } => {
            let nodes = text::list(&timeline.nodes_of(counted));
            let what = if extended { format!("done, counting {nodes}") } else { "failed".into() };
            let whose = timeline.name(attempt);
            (client(attempt.client), format!("extension {round} of {whose}: {what}"))
        }
        EventKind::ExtensionDelivered { attempt, .. } => {
            (client(attempt.client), format!("holds the extended {}", timeline.name(attempt)))
        }
        other => of_section(timeline, other),
    }
}

fn of_section(timeline: &Timeline<'_>, kind: EventKind) -> (String, String) {
    let client = |client: ClientId| timeline.client_name(client).to_owned();
    let store = || String::from("store");
    match kind {
        EventKind::Checked { attempt, alive } => {
            let told = if alive { "valid" } else { "over" };
            (client(attempt.client), format!("checks {}: {told}", timeline.name(attempt)))
        }
        EventKind::VotesChanged { attempt, confirmed, possible } => {
            let on = |nodes: NodeIds| match nodes.is_empty() {
                true => String::from("no node"),
                false => text::list(&timeline.nodes_of(nodes)),
            };
            let whose = timeline.name(attempt);
            let (sure, perhaps) = (on(confirmed), on(possible - confirmed));
            let told = format!(
                "votes of {whose}: confirmed on {sure}; unconfirmed but possible on {perhaps}"
            );
            (client(attempt.client), told)
        }
        EventKind::SectionEntered { attempt } => {
            (client(attempt.client), format!("enters its section under {}", timeline.name(attempt)))
        }
        EventKind::SectionLeft { attempt } => {
            (client(attempt.client), format!("leaves its section under {}", timeline.name(attempt)))
        }
        EventKind::ReadDone { attempt, version } => {
            (client(attempt.client), format!("has read version {version}"))
        }
        EventKind::WriteSent { attempt, write, .. } => {
            let told = format!("sends write {write} under {}", timeline.name(attempt));
            (client(attempt.client), told)
        }
        EventKind::WriteApplied { attempt, write, version, .. } => {
            let whose = timeline.name(attempt);
            (store(), format!("applies write {write} of {whose} as version {version}"))
        }
        EventKind::WriteRejected { attempt, write, why } => {
            let whose = timeline.name(attempt);
            (store(), format!("refuses write {write} of {whose}: {}", why.as_str()))
        }
        _ => (String::new(), String::new()),
    }
}

/// Describes the reason for the end of a lease.
const fn lost(why: LostReason) -> &'static str {
    match why {
        LostReason::Closed => "the client was closed",
        LostReason::DeadlinePassed => "its deadline is reached",
        LostReason::KeepAliveEnded => "its keep-alive limit is reached",
        LostReason::KeepAliveFailed => "too few nodes confirmed its last extension",
        LostReason::KeysGone => "too many nodes lost the key",
    }
}

/// Describes the outcome of an attempt.
pub(super) const fn settled(how: Settlement) -> &'static str {
    match how {
        Settlement::Cancelled => "cancelled by its caller",
        Settlement::Granted => "granted",
        Settlement::Overloaded => "failed: commands of the same client were ahead",
        Settlement::Quarantined => "failed: too many nodes were in quarantine",
        Settlement::Split => "failed: the votes were split",
        Settlement::Taken => "failed: taken by another attempt",
        Settlement::TooFewNodes => "failed: no majority of countable votes",
        Settlement::TooSlow => "failed: too little validity was left at T2",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    #[test]
    fn a_served_command_that_replaces_a_key_is_an_overwrite() {
        let mut played = fixture::jump();
        let words = |timeline: &Timeline<'_>| {
            let of = OpKind::GetSet;
            [op(timeline, of), answer(timeline, of, Answer::Yes)]
        };
        assert_eq!(words(&fixture::timeline(&played)), ["GETSET", "own"]);
        let clients = &mut played.result.case.scenario.clients;
        clients.iter_mut().for_each(|it| it.subject = String::from("worker"));
        assert_eq!(words(&fixture::timeline(&played)), ["overwrite", "OK"]);
    }
}
