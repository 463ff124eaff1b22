//! State of the hosts along their lifelines: beliefs, keys, absences and faults.

use lock_judge::history::{KeyEnd, Writer};

use super::columns::{Columns, LEFT};
use super::labels::Label;
use super::{PX, STEP, Sheet};
use crate::report::svg::Area;
use crate::report::timeline::{Attempt, Key, Timeline};

/// Returns the instants in the window at which something other than a message happens.
pub(super) fn instants(timeline: &Timeline<'_>, (from_ns, to_ns): (u64, u64)) -> Vec<u64> {
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

/// Returns the labels of everything but the messages.
pub(super) fn labels(
    timeline: &Timeline<'_>,
    columns: &Columns,
    (from_ns, to_ns): (u64, u64),
) -> Vec<Label> {
    let mut labels = fault_labels(timeline, columns);
    labels.extend(timeline.keys.iter().filter_map(|key| key_label(columns, key)));
    let leases = timeline.leases().filter(|attempt| timeline.is_drawn(attempt.id));
    labels.extend(leases.flat_map(|attempt| lease_labels(timeline, columns, attempt)));
    labels.extend(timeline.absences.iter().filter_map(|away| {
        let x = columns.x(away.host)? - 12 * PX;
        let label = Label::beside(true, away.from.at_ns, x, away.why.word().to_owned());
        Some(Label { down: STEP - 3 * PX, ..label })
    }));
    labels.retain(|label| (from_ns..=to_ns).contains(&label.at_ns));
    labels
}

fn fault_labels(timeline: &Timeline<'_>, columns: &Columns) -> Vec<Label> {
    let mut labels = Vec::new();
    for trouble in &timeline.fault_windows {
        let Some(fault) = timeline.scenario.fault(trouble.fault) else { continue };
        let begun = format!("{}: {}", fault.id, fault.kind.summary());
        labels.push(Label::fault(trouble.began.at_ns, columns.width, begun));
        if let Some(ended) = trouble.ended.filter(|ended| ended.at_ns > trouble.began.at_ns) {
            let label = format!("{} ends", fault.id);
            labels.push(Label::fault(ended.at_ns, columns.width, label));
        }
    }
    labels
}

/// Returns the label of the end of a key, unless a command ended it.
fn key_label(columns: &Columns, key: &Key) -> Option<Label> {
    let ended = key.ended?;
    let word = match ended.cause {
        KeyEnd::Command => return None,
        KeyEnd::Expired => "expires",
        KeyEnd::Evicted => "evicted",
        KeyEnd::Flushed => "flushed",
        KeyEnd::FailedOver => "left behind",
        KeyEnd::Restarted => "forgotten",
    };
    let x = columns.x(key.node.first_host())? + 6 * PX;
    Some(Label::beside(false, ended.moment.at_ns, x, format!("✕ {word}")))
}

fn lease_labels(timeline: &Timeline<'_>, columns: &Columns, attempt: &Attempt) -> Vec<Label> {
    let host = timeline.scenario.client_host(attempt.id.client);
    let Some(x) = columns.x(host) else { return Vec::new() };
    let is_left = columns.is_left(host);
    let aside = if is_left { -9 * PX } else { 9 * PX };
    let mut told = Vec::new();
    for (nth, belief) in attempt.beliefs.iter().enumerate() {
        let begins = if nth == 0 { "holds" } else { "again holds" };
        told.extend([(belief.from_ns, begins), (belief.to_ns, "end of belief in")]);
    }
    told.extend(settled_extensions(attempt));
    let name = timeline.name(attempt.id);
    let label = |(at_ns, word)| Label::beside(is_left, at_ns, x + aside, format!("{word} {name}"));
    told.into_iter().map(label).collect()
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
    let window = sheet.rows.begin_ns()..=sheet.rows.end_ns();
    for trouble in &sheet.timeline.fault_windows {
        if sheet.timeline.scenario.fault(trouble.fault).is_none() {
            continue;
        }
        let ended = trouble.ended.filter(|ended| ended.at_ns > trouble.began.at_ns);
        for at in [Some(trouble.began), ended].into_iter().flatten() {
            if window.contains(&at.at_ns) {
                let y = sheet.rows.y(at.at_ns);
                sheet.svg.line("fault", (LEFT, y), (sheet.columns.width, y));
            }
        }
    }
}

fn keys(sheet: &mut Sheet<'_, '_>) {
    let timeline = sheet.timeline;
    for key in &timeline.keys {
        let Some(x) = sheet.columns.x(key.node.first_host()) else { continue };
        let class = match key.writer {
            Writer::Attempt(id) => timeline.lease_place(id).map(|place| format!("o{}", place % 6)),
            Writer::Nobody | Writer::Operator => None,
        };
        let class = format!("bar {}", class.as_deref().unwrap_or("stray"));
        let title = format!("key of {}", timeline.writer_name(key.writer));
        let to_ns = key.ended.map_or(u64::MAX, |ended| ended.moment.at_ns);
        bar(sheet, &class, (x, 6 * PX), (key.set.at_ns, to_ns), &title);
    }
}

fn leases(sheet: &mut Sheet<'_, '_>) {
    let timeline = sheet.timeline;
    for attempt in timeline.leases().filter(|attempt| timeline.is_drawn(attempt.id)) {
        let host = timeline.scenario.client_host(attempt.id.client);
        let Some(x) = sheet.columns.x(host) else { continue };
        let title = format!("believes {}", timeline.name(attempt.id));
        let colour = timeline.lease_place(attempt.id).unwrap_or(0) % 6;
        for belief in &attempt.beliefs {
            let span = (belief.from_ns, belief.to_ns);
            bar(sheet, &format!("bar o{colour}"), (x, 12 * PX), span, &title);
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
    for away in &sheet.timeline.absences {
        let Some(x) = sheet.columns.x(away.host) else { continue };
        let to_ns = away.to.map_or(u64::MAX, |to| to.at_ns);
        bar(sheet, "away", (x, 18 * PX), (away.from.at_ns, to_ns), away.why.word());
    }
}
