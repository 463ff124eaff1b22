//! The rows of the clients: belief, sections, attempts, writes.

use lock_judge::history::ClientId;
use lock_judge::text;

use super::{CLIENT_ROW, Gantt, LEFT, RIGHT, WIDTH, colour};
use crate::report::story::outside;
use crate::report::svg::{Area, PX};
use crate::report::timeline::{Attempt, Interval};
use crate::report::words;

const BAR_TOP: i64 = 6 * PX;
const BAR: i64 = 28 * PX;
const SECTION_TOP: i64 = 22 * PX;
const SECTION: i64 = 9 * PX;

/// Draws the times when a client was stopped, behind everything else.
pub(super) fn absences(gantt: &mut Gantt<'_, '_>) {
    for client in gantt.timeline.clients() {
        let top = gantt.clients_top + i64::from(client.0) * CLIENT_ROW;
        let host = gantt.timeline.scenario.client_host(client);
        gantt.absences(host, top + BAR_TOP - 3 * PX, BAR + 18 * PX);
    }
}

pub(super) fn draw(gantt: &mut Gantt<'_, '_>) {
    for client in gantt.timeline.clients() {
        let top = gantt.clients_top + i64::from(client.0) * CLIENT_ROW;
        let scenario = gantt.timeline.scenario;
        let task_of = scenario.client(client).and_then(|it| it.task_of.as_deref());
        let name = match task_of {
            Some(process) => format!("{} ({process})", gantt.timeline.client_name(client)),
            None => gantt.timeline.client_name(client).to_owned(),
        };
        gantt.svg.text("row", (0, top + BAR_TOP + 18 * PX), &name);
        if let Some(resource) = scenario.resource_among_several(client) {
            gantt.svg.text("label", (0, top + BAR_TOP + 32 * PX), resource);
        }
        gantt.svg.line(
            "rule",
            (LEFT, top + CLIENT_ROW - 2 * PX),
            (RIGHT, top + CLIENT_ROW - 2 * PX),
        );
        let timeline = gantt.timeline;
        for attempt in timeline.attempts.iter().filter(|it| it.id.client == client) {
            if attempt.delivered.is_some() {
                lease(gantt, attempt, top);
            }
        }
        refusals(gantt, client, top);
        for write in timeline.writes.iter().filter(|it| it.attempt.client == client) {
            let x = gantt.scale.x(write.sent.at_ns);
            gantt.svg.line("write", (x, top + BAR_TOP + BAR), (x, top + BAR_TOP + BAR + 9 * PX));
            let at = (x, top + BAR_TOP + BAR + 19 * PX);
            gantt.svg.text("mark", at, "w");
            gantt.taken.take(Area::of_centred("w", 10 * PX, at));
        }
        names(gantt, client, top);
        let host = scenario.client_host(client);
        gantt.absence_labels(host, top + BAR_TOP + BAR + 12 * PX);
    }
}

fn lease(gantt: &mut Gantt<'_, '_>, attempt: &Attempt, top: i64) {
    let place = gantt.timeline.lease_place(attempt.id).unwrap_or(0);
    let colour = colour(place);
    let name = gantt.timeline.name(attempt.id);
    for belief in &attempt.beliefs {
        let told = format!("{name} believed {}", span(belief));
        let area = bar(gantt, belief, top + BAR_TOP, BAR);
        gantt.svg.rect(&format!("bar {colour}"), area, &told);
    }
    margin(gantt, attempt, top, &colour);
    extensions(gantt, attempt, top);
    refused_extensions(gantt, attempt, top);
    for section in &attempt.sections {
        let told = format!("critical section under {name} {}", span(section));
        let area = bar(gantt, section, top + SECTION_TOP, SECTION);
        gantt.svg.rect(&format!("section {colour}"), area, &told);
    }
}

/// Names the leases of a client: each inside its bar, or else beside or below it if there is room.
fn names(gantt: &mut Gantt<'_, '_>, client: ClientId, top: i64) {
    let timeline = gantt.timeline;
    let own = timeline.leases().filter(|it| it.id.client == client && it.delivered.is_some());
    let first = own.filter_map(|it| Some((timeline.name(it.id), *it.beliefs.first()?)));
    let mut narrow = Vec::new();
    let mut bars = Vec::new();
    for (name, belief) in first {
        let area = bar(gantt, &belief, top + BAR_TOP, BAR);
        let at = (area.x + 5 * PX, area.y + 12 * PX);
        let long = format!("{name}  {}", span(&belief));
        let inside = [&long, &name].into_iter().find(|label| {
            let own = Area::of_text(label, 11 * PX, at);
            own.right() + 3 * PX < area.right() && gantt.taken.take_free(own)
        });
        match inside {
            Some(label) => gantt.svg.text("label", at, label),
            None => narrow.push((area, name.clone())),
        }
        bars.push(area);
    }
    bars.into_iter().for_each(|area| gantt.taken.take(area));
    for (area, name) in narrow {
        let beside = (area.right() + 3 * PX, area.y + 12 * PX);
        let below = (area.x, area.y + BAR + 12 * PX);
        let free = [beside, below].into_iter().find(|&at| {
            let own = Area::of_text(&name, 11 * PX, at);
            let spaced = Area { width: own.width + 3 * PX, ..own };
            own.right() <= WIDTH && gantt.taken.take_free(spaced)
        });
        if let Some(at) = free {
            gantt.svg.text("label", at, &name);
        }
    }
}

/// Draws the allowance for drift of a lease that ran out: from its deadline to the end of its TTL.
fn margin(gantt: &mut Gantt<'_, '_>, attempt: &Attempt, top: i64, colour: &str) {
    let timeline = gantt.timeline;
    let Some(deadline_ns) = timeline.deadline_ns(attempt, u64::MAX) else { return };
    let ran_out = attempt.beliefs.last().is_some_and(|belief| belief.to_ns >= deadline_ns);
    let last = attempt.extensions.iter().rev().find(|it| it.delivered.is_some());
    let (began, ttl_ns) = last.map_or((attempt.began, attempt.ttl_ns), |it| (it.began, it.ttl_ns));
    let due_ns = began.at_ns.saturating_add(ttl_ns);
    let allowance_ns = due_ns.saturating_sub(deadline_ns);
    let is_of_the_clock = allowance_ns > attempt.drift_ns.saturating_mul(2);
    if attempt.ttl_ns == u64::MAX || !ran_out || allowance_ns == 0 || is_of_the_clock {
        return;
    }
    let length = text::length(allowance_ns);
    let told = format!("allowance for drift, from the deadline to the end of the TTL: {length}");
    let allowance = Interval { from_ns: deadline_ns, to_ns: due_ns };
    let area = bar(gantt, &allowance, top + BAR_TOP, BAR);
    gantt.svg.rect(&format!("margin {colour}"), area, &told);
}

/// Draws a line where each extension took effect, or a small one where it failed.
fn extensions(gantt: &mut Gantt<'_, '_>, attempt: &Attempt, top: i64) {
    let name = gantt.timeline.name(attempt.id);
    let (upper, lower) = (top + BAR_TOP, top + BAR_TOP + BAR);
    for (nth, round) in attempt.extensions.iter().enumerate() {
        let begun = text::instant(round.began.at_ns);
        let (at, class, what) = match (round.delivered, round.extended, round.failed) {
            (Some((at, _)), _, _) => (at, "extended", "took effect"),
            (None, Some((at, _)), _) => (at, "extended", "succeeded after its caller was gone"),
            (None, None, Some(at)) => (at, "unextended", "failed"),
            (None, None, None) => continue,
        };
        let x = gantt.scale.x(at.at_ns);
        let when = text::instant(at.at_ns);
        let told = format!("extension {} of {name}, begun at {begun}, {what} at {when}", nth + 1);
        let y = if class == "extended" { upper } else { lower - 9 * PX };
        gantt.svg.rect(class, Area { x: x - PX, y, width: 2 * PX, height: lower - y }, &told);
    }
}

/// Draws a small line, as for a failed extension, where the client refused to begin an extension.
fn refused_extensions(gantt: &mut Gantt<'_, '_>, attempt: &Attempt, top: i64) {
    let name = gantt.timeline.name(attempt.id);
    let y = top + BAR_TOP + BAR - 9 * PX;
    for (at, why) in &attempt.refusals {
        let (x, when) = (gantt.scale.x(at.at_ns), text::instant(at.at_ns));
        let why = words::refusal(*why);
        let told = format!("extension of {name} refused by the client at {when}: {why}");
        gantt.svg.rect("unextended", Area { x: x - PX, y, width: 2 * PX, height: 9 * PX }, &told);
    }
}

/// Draws a small square for each failed attempt. Skips those too close to the square before.
fn refusals(gantt: &mut Gantt<'_, '_>, client: ClientId, top: i64) {
    let timeline = gantt.timeline;
    let mut taken = i64::MIN;
    for attempt in timeline.attempts.iter().filter(|it| it.id.client == client) {
        let Some((at, how)) = attempt.settled.filter(|_| attempt.delivered.is_none()) else {
            continue;
        };
        let x = gantt.scale.x(at.at_ns);
        if x < taken + 7 * PX {
            continue;
        }
        taken = x;
        let seen = outside::not_entered(gantt.timeline, attempt);
        let how = seen.as_deref().unwrap_or(words::settled(how));
        let told = format!("attempt {} {how}", attempt.id.number);
        let area =
            Area { x: x - 2 * PX, y: top + BAR_TOP + 32 * PX, width: 5 * PX, height: 5 * PX };
        gantt.svg.rect("refused", area, &told);
        gantt.taken.take(area);
    }
}

fn bar(gantt: &Gantt<'_, '_>, interval: &Interval, y: i64, height: i64) -> Area {
    let (from, to) = (gantt.scale.x(interval.from_ns), gantt.scale.x(interval.to_ns));
    Area { x: from, y, width: (to - from).max(15), height }
}

fn span(interval: &Interval) -> String {
    format!("{} to {}", text::instant(interval.from_ns), text::instant(interval.to_ns))
}

#[cfg(test)]
mod tests {
    use crate::report::{fixture, gantt};

    #[test]
    fn short_leases_are_named_where_there_is_room() {
        let played = fixture::crowded();
        let timeline = fixture::timeline(&played);
        let drawn = gantt::draw(&timeline, None, None);
        let is_named = |name: &str| drawn.contains(&format!(">{name}</text>"));
        let named: Vec<u8> = (1..=21).filter(|nth| is_named(&format!("L{nth}"))).collect();
        assert_eq!(named, [1, 3, 5, 7, 9, 11, 14, 17, 20, 21]);
        assert!(is_named("A killed"), "{drawn}");
    }
}
