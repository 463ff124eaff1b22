//! Changes and results in the formats of CI systems.

use core::fmt::Write;

use lock_judge::text;
use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};
use serde_json::{Value, json};

use super::departures::{name, of_case};
use super::{Change, Departure};
use crate::report::Results;

/// Returns the changes as a JSON object: `met`, and `changes` with their `kind`.
pub(crate) fn json(changes: &[Change]) -> String {
    let about = |kind: &str, it: &Departure| {
        json!({ "kind": kind, "case": it.case, "about": it.about, "observed": it.observed,
                "blame": it.blame })
    };
    let of_case = |kind: &str, case: &str| json!({ "kind": kind, "case": case });
    let entry = |change: &Change| match change {
        Change::New(departure) => about("new", departure),
        Change::Changed(departure, known) => {
            let mut entry = about("changed", departure);
            entry["known"] = json!({ "observed": known.departure.observed,
                                     "blame": known.departure.blame });
            entry
        }
        Change::Gone(case) => of_case("gone", case),
        Change::Mended(known) => about("mended", &known.departure),
        Change::NotSeen(known) => about("not-seen", &known.departure),
        Change::Added(case) => of_case("added", case),
    };
    let changes_listed: Vec<Value> = changes.iter().map(entry).collect();
    let met = !changes.iter().any(Change::is_red);
    format!("{:#}", json!({ "met": met, "changes": changes_listed }))
}

/// Returns the numbers of cases and of known departures: `1 case, 2 known departures`.
pub(crate) fn counts(cases: usize, known: usize) -> String {
    let departures = text::count(known as u64, "known departure");
    format!("{}, {departures}", text::count(cases as u64, "case"))
}

/// Returns the changes, and a table of all departures, in Markdown.
pub(crate) fn markdown(changes: &[Change], found: &[Departure], cases: usize) -> String {
    let red = changes.iter().filter(|change| change.is_red()).count();
    let mut page = format!(
        "### redlock-sim: {}, {}, {}\n",
        text::count(cases as u64, "case"),
        text::count(found.len() as u64, "departure"),
        super::failing(red)
    );
    if !changes.is_empty() {
        page += "\n| change | fails |\n| --- | --- |\n";
    }
    for change in changes {
        let fails = if change.is_red() { "yes" } else { "no" };
        let _ = writeln!(page, "| {} | {fails} |", cell(&change.to_string()));
    }
    if !found.is_empty() {
        page += "\n| case | about | observed |\n| --- | --- | --- |\n";
    }
    for departure in found {
        let row = [&departure.case, &departure.about, &departure.verdict()].map(|it| cell(it));
        let _ = writeln!(page, "| {} |", row.join(" | "));
    }
    page
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// Returns one annotation of a GitHub workflow for each change.
pub(crate) fn github(changes: &[Change]) -> String {
    let mut text = String::new();
    for change in changes {
        let level = if change.is_red() { "error" } else { "notice" };
        let message = change.to_string();
        let message = message.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
        let _ = writeln!(text, "::{level} title=redlock-sim::{message}");
    }
    text
}

/// Returns all cases as JUnit XML: a suite for each scenario. A case with a change that does not
/// pass has failed; a case that was not played is an error.
pub(crate) fn junit(results: &Results, changes: &[Change]) -> String {
    let mut suites: Vec<TestSuite> = Vec::new();
    for case in &results.cases {
        // Where each seed is a result of its own, the change may be that of another seed.
        let own = of_case(case);
        let fails = |change: &&Change| match change {
            Change::New(departure) | Change::Changed(departure, _) => {
                own.iter().any(|it| it.is_about_the_same(departure))
            }
            Change::Gone(_) | Change::Mended(_) | Change::NotSeen(_) | Change::Added(_) => false,
        };
        let red: Vec<String> = changes.iter().filter(fails).map(Change::to_string).collect();
        let status = if red.is_empty() {
            TestCaseStatus::success()
        } else {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_message(red.join("; "));
            status
        };
        let mut test = TestCase::new(format!("{}, seeds {}", name(case), case.seeds), status);
        let known = own.len().saturating_sub(red.len());
        if known > 0 {
            test.set_system_out(text::count(known as u64, "known departure"));
        }
        if suites.iter().all(|suite| suite.name.as_str() != case.scenario) {
            suites.push(TestSuite::new(case.scenario.clone()));
        }
        let suite = suites.iter_mut().find(|suite| suite.name.as_str() == case.scenario);
        suite.expect("it was added").add_test_case(test);
    }
    let gone: Vec<&String> = changes
        .iter()
        .filter_map(|it| if let Change::Gone(case) = it { Some(case) } else { None })
        .collect();
    if !gone.is_empty() {
        let mut suite = TestSuite::new("not played");
        for case in gone {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
            status.set_message("the case was not played");
            suite.add_test_case(TestCase::new(case.clone(), status));
        }
        suites.push(suite);
    }
    let mut report = quick_junit::Report::new("redlock-sim");
    report.add_test_suites(suites);
    report.to_string().expect("names and messages can always be written")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_one_are_singular() {
        assert_eq!(counts(1, 1), "1 case, 1 known departure");
        assert_eq!(counts(2, 0), "2 cases, 0 known departures");
        assert_eq!(
            markdown(&[], &[], 1),
            "### redlock-sim: 1 case, 0 departures, 0 changes fail\n"
        );
    }
}
