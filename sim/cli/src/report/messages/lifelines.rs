//! State of the hosts along their lifelines: beliefs, keys, absences and faults.

use lock_judge::history::{Id, KeyEnd, Writer};

use super::{PX, STEP, Sheet, WIDTH};
use crate::report::svg::Area;
use crate::report::timeline::{Attempt, Timeline};

/// Returns the instants in `from_ns..=to_ns` at which something other than a message happens.
pub(super) fn instants(timeline: &Timeline<'_>, from_ns: u64, to_ns: u64) -> Vec<u64> {
    let mut found = Vec::new();
    for attempt in timeline.leases() {
        found.extend(attempt.beliefs.iter().flat_map(|it| [it.from_ns, it.to_ns]));
        found.extend(attempt.sections.iter().flat_map(|it| [it.from_ns, it.to_ns]));
        found.extend(settled_extensions(attempt).map(|(at_ns, _)| at_ns));
    }
    found.extend(timeline.keys.iter().filter_map(|key| Some(key.ended?.moment.at_ns)));
    for away in &timeline.absences {
        found.extend([away.from.at_ns, away.to.map_or(to_ns, |to| to.at_ns)]);
    }
    for trouble in &timeline.fault_windows {
        found.extend([trouble.began.at_ns, trouble.ended.map_or(to_ns, |to| to.at_ns)]);
    }
    found.retain(|at_ns| (from_ns..=to_ns).contains(at_ns));
    found
}

pub(super) fn draw(sheet: &mut Sheet<'_, '_>) {
    fault_windows(sheet);
    keys(sheet);
    leases(sheet);
    absences(sheet);
}

/// Draws a bar along a lifeline, unless it lies outside the diagram.
fn bar(sheet: &mut Sheet<'_, '_>, class: &str, at: (i64, i64), span: (u64, u64), title: &str) {
    let (x, width) = at;
    let (from_ns, to_ns) = span;
    if to_ns < sheet.rows.begin_ns() || from_ns > sheet.rows.end_ns() {
        return;
    }
    let (from, to) = (sheet.rows.y(from_ns), sheet.rows.y(to_ns));
    let area = Area { x: x - width / 2, y: from, width, height: (to - from).max(2 * PX) };
    sheet.svg.rect(class, area, title);
}

fn fault_windows(sheet: &mut Sheet<'_, '_>) {
    let timeline = sheet.timeline;
    for trouble in &timeline.fault_windows {
        let Some(fault) = timeline.scenario.fault(trouble.fault) else { continue };
        let begun = (trouble.began.at_ns, format!("{}: {}", fault.id, fault.kind.summary()));
        let lasted = trouble.ended.filter(|ended| ended.at_ns > trouble.began.at_ns);
        let ended = lasted.map(|at| (at.at_ns, format!("{} ends", fault.id)));
        for (at_ns, label) in [Some(begun), ended].into_iter().flatten() {
            if at_ns < sheet.rows.begin_ns() || at_ns > sheet.rows.end_ns() {
                continue;
            }
            let y = sheet.rows.y(at_ns);
            sheet.svg.line("fault", (72 * PX, y), (WIDTH, y));
            sheet.label("fault end", (WIDTH, y - 3 * PX), label);
        }
    }
}

fn keys(sheet: &mut Sheet<'_, '_>) {
    let timeline = sheet.timeline;
    for key in &timeline.keys {
        let x = sheet.x(key.node.first_host());
        let class = match key.writer {
            Writer::Attempt(id) => timeline.lease_place(id).map(|place| format!("o{}", place % 6)),
            Writer::Nobody | Writer::Operator => None,
        };
        let class = format!("bar {}", class.as_deref().unwrap_or("stray"));
        let title = format!("key of {}", timeline.writer_name(key.writer));
        let to_ns = key.ended.map_or(u64::MAX, |ended| ended.moment.at_ns);
        bar(sheet, &class, (x, 6 * PX), (key.set.at_ns, to_ns), &title);
        let Some(ended) = key.ended.filter(|ended| ended.cause != KeyEnd::Command) else {
            continue;
        };
        let at_ns = ended.moment.at_ns;
        if (sheet.rows.begin_ns()..=sheet.rows.end_ns()).contains(&at_ns) {
            let word = match ended.cause {
                KeyEnd::Expired => "expires",
                KeyEnd::Evicted => "evicted",
                KeyEnd::Flushed => "flushed",
                KeyEnd::FailedOver => "left behind",
                KeyEnd::Restarted | KeyEnd::Command => "forgotten",
            };
            sheet.svg.text("l", (x + 6 * PX, sheet.rows.y(at_ns) + 3 * PX), &format!("✕ {word}"));
        }
    }
}

fn leases(sheet: &mut Sheet<'_, '_>) {
    let timeline = sheet.timeline;
    let left = timeline.clients().len().div_ceil(2);
    for attempt in timeline.leases().filter(|attempt| timeline.is_drawn(attempt.id)) {
        let x = sheet.x(timeline.scenario.client_host(attempt.id.client));
        let is_left = attempt.id.client.index() < left;
        let (class, aside) = if is_left { ("l end", -9 * PX) } else { ("l", 9 * PX) };
        let name = timeline.name(attempt.id);
        let colour = timeline.lease_place(attempt.id).unwrap_or(0) % 6;
        for (nth, belief) in attempt.beliefs.iter().enumerate() {
            let title = format!("believes {name}");
            let span = (belief.from_ns, belief.to_ns);
            bar(sheet, &format!("bar o{colour}"), (x, 12 * PX), span, &title);
            let begins = if nth == 0 { "holds" } else { "again holds" };
            for (at_ns, word) in [(belief.from_ns, begins), (belief.to_ns, "end of belief in")] {
                if (sheet.rows.begin_ns()..=sheet.rows.end_ns()).contains(&at_ns) {
                    let y = sheet.rows.y(at_ns) + 3 * PX;
                    sheet.label(class, (x + aside, y), format!("{word} {name}"));
                }
            }
        }
        for (at_ns, word) in settled_extensions(attempt) {
            if (sheet.rows.begin_ns()..=sheet.rows.end_ns()).contains(&at_ns) {
                let y = sheet.rows.y(at_ns) + 3 * PX;
                sheet.label(class, (x + aside, y), format!("{word} {name}"));
            }
        }
        for section in &attempt.sections {
            let span = (section.from_ns, section.to_ns);
            bar(sheet, &format!("section o{colour}"), (x, 5 * PX), span, "critical section");
        }
    }
}

/// Returns the time of each extension that took effect or failed, with the word for it.
fn settled_extensions(attempt: &Attempt) -> impl Iterator<Item = (u64, &'static str)> + '_ {
    attempt.extensions.iter().filter_map(|round| match (round.delivered, round.failed) {
        (Some((at, _)), _) => Some((at.at_ns, "extends")),
        (None, Some(at)) => Some((at.at_ns, "cannot extend")),
        (None, None) => None,
    })
}

fn absences(sheet: &mut Sheet<'_, '_>) {
    let timeline = sheet.timeline;
    for away in &timeline.absences {
        let x = sheet.x(away.host);
        let to_ns = away.to.map_or(u64::MAX, |to| to.at_ns);
        let word = away.why.word();
        bar(sheet, "away", (x, 18 * PX), (away.from.at_ns, to_ns), word);
        if (sheet.rows.begin_ns()..=sheet.rows.end_ns()).contains(&away.from.at_ns) {
            let y = sheet.rows.y(away.from.at_ns) + STEP - 3 * PX;
            sheet.label("l end", (x - 12 * PX, y), word.to_owned());
        }
    }
}
