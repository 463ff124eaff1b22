//! Tests that random plans show the defect of each weaker lock, as `docs/explore.md` says.

use std::collections::BTreeSet;

use lock_judge::scenario::{OURS, subject_names};

use super::draw::{Frame, plan};
use super::{case, findings};
use crate::engine::event;
use crate::search::Engine;

const PAGE: &str = include_str!("../../../docs/explore.md");

/// Seed of the plans.
const SEED: u64 = 1;

/// Returns the names of the findings that a lock shows in a plan.
fn shown(subject: &str, number: u64) -> BTreeSet<String> {
    let frame = Frame { subject: subject.to_owned(), ..Frame::default() };
    let plan = plan(&frame, SEED, number);
    let Ok(mut engine) = event::Engine::new(&case(&plan)) else { return BTreeSet::new() };
    let outcome = engine.run(number, None);
    findings(&plan, Engine::Event, &outcome).iter().map(|it| it.name()).collect()
}

/// A row of the page's table.
struct Row<'a> {
    subject: &'a str,
    finding: &'a str,
    plan: u64,
    /// The lock without the defect; none if it is the lock with a restart guard.
    other: Option<&'a str>,
}

fn rows() -> impl Iterator<Item = Row<'static>> {
    let table = PAGE.split_once("| lock | finding |").expect("the page has the table").1;
    let lines = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    lines.map(|line| {
        let cells: Vec<&str> = line.split('|').map(|it| it.trim().trim_matches('`')).collect();
        let plan = cells[3].parse().unwrap_or_else(|_| panic!("a number of a plan: {line}"));
        let other = Some(cells[4]).filter(|it| *it != "–");
        Row { subject: cells[1], finding: cells[2], plan, other }
    })
}

#[test]
fn the_page_says_which_plan_shows_each_weaker_lock() {
    for Row { subject, finding, plan, other } in rows() {
        assert!(shown(subject, plan).contains(finding), "{subject}: {finding} in plan {plan}");
        let also = other.is_some_and(|other| shown(other, plan).contains(finding));
        assert!(!also, "{other:?} shows {finding} in plan {plan}, too");
    }
    let named: BTreeSet<&str> = rows().map(|row| row.subject).collect();
    for subject in subject_names().filter(|it| *it != OURS) {
        assert!(named.contains(subject), "the page does not have {subject}");
    }
}

#[test]
#[ignore = "prints what the page's table is made from"]
fn prints_what_distinguishes_two_locks() {
    let pair = std::env::var("REDLOCK_PAIR").expect("REDLOCK_PAIR=LOCK,OTHER,PLANS");
    let [subject, other, plans] = pair.split(',').collect::<Vec<_>>()[..] else { panic!("{pair}") };
    let mut seen = BTreeSet::new();
    for number in 0..plans.parse().expect("a number of plans") {
        let others = shown(other, number);
        for finding in shown(subject, number) {
            if !others.contains(&finding) && seen.insert(finding.clone()) {
                println!("{subject} {finding} {number} {other}");
            }
        }
    }
}
