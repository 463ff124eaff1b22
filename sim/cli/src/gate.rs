//! Compares the results of a run with known departures: a gate for changes.
//!
//! A *departure* is something that a case shows against its expectation. Departures that the
//! baseline lists are known, and pass. A new one, one with another verdict or blame than before, and
//! a case that has left the suite do not.

mod baseline;
mod departures;
pub(crate) mod formats;

use lock_judge::text;

pub(crate) use baseline::{Baseline, Known};
pub(crate) use departures::{Departure, departures};

/// A difference between results and baseline.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Change {
    /// A departure that is not known.
    New(Departure),
    /// A known departure that has another verdict or blame now.
    Changed(Departure, Known),
    /// A case of the baseline that was not played.
    Gone(String),
    /// A known departure that is over.
    Mended(Known),
    /// A known departure that was not seen. In real time this does not show that it is over.
    NotSeen(Known),
    /// A case that the baseline does not list.
    Added(String),
}

impl Change {
    /// Returns true for changes that make the gate fail.
    pub(crate) const fn is_red(&self) -> bool {
        matches!(self, Self::New(_) | Self::Changed(..) | Self::Gone(_))
    }
}

impl core::fmt::Display for Change {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::New(departure) => write!(formatter, "NEW      {departure}"),
            Self::Changed(departure, known) => {
                write!(formatter, "CHANGED  {departure}; known was {}", known.departure.verdict())
            }
            Self::Gone(case) => write!(formatter, "GONE     {case}  was not played"),
            Self::Mended(Known { departure, reason, since }) => {
                write!(formatter, "mended   {departure}; known since {since}: {reason}")
            }
            Self::NotSeen(Known { departure, reason, since }) => {
                write!(formatter, "not seen {departure} in this run; known since {since}: {reason}")
            }
            Self::Added(case) => write!(formatter, "added    {case}"),
        }
    }
}

/// Counts the changes that fail: `1 change fails`.
pub(crate) fn failing(red: usize) -> String {
    format!("{} {}", text::count(red as u64, "change"), if red == 1 { "fails" } else { "fail" })
}

/// Compares `found`, the departures of the played `cases`, with `baseline`. Changes that fail come
/// first.
pub(crate) fn compare(baseline: &Baseline, cases: &[String], found: &[Departure]) -> Vec<Change> {
    let mut changes = Vec::new();
    for departure in found {
        match baseline.known.iter().find(|known| known.departure.is_about_the_same(departure)) {
            None => changes.push(Change::New(departure.clone())),
            Some(known) if known.departure != *departure => {
                changes.push(Change::Changed(departure.clone(), known.clone()));
            }
            Some(_) => {}
        }
    }
    let gone = baseline.cases.iter().filter(|case| !cases.contains(case));
    changes.extend(gone.cloned().map(Change::Gone));
    let is_absent = |known: &&Known| {
        cases.contains(&known.departure.case)
            && !found.iter().any(|it| it.is_about_the_same(&known.departure))
    };
    let absent = |known: Known| match known.departure.is_in_real_time() {
        true => Change::NotSeen(known),
        false => Change::Mended(known),
    };
    changes.extend(baseline.known.iter().filter(is_absent).cloned().map(absent));
    let added = cases.iter().filter(|case| !baseline.cases.contains(case));
    changes.extend(added.cloned().map(Change::Added));
    changes.sort_by_key(|change| !change.is_red());
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn departure(case: &str, blame: &[&str]) -> Departure {
        Departure {
            case: case.to_owned(),
            about: String::from("mutual-exclusion"),
            observed: String::from("violated"),
            blame: blame.iter().map(|&it| it.to_owned()).collect(),
        }
    }

    fn baseline() -> Baseline {
        let known = Known {
            departure: departure("a", &["clock(C)"]),
            reason: String::from("no fencing yet"),
            since: "2026-11-23".parse().unwrap(),
        };
        Baseline { cases: ["a", "b"].map(String::from).to_vec(), known: vec![known] }
    }

    fn told(cases: &[&str], found: &[Departure]) -> Vec<(bool, String)> {
        let cases: Vec<_> = cases.iter().map(|&it| it.to_owned()).collect();
        let changes = compare(&baseline(), &cases, found);
        changes.iter().map(|it| (it.is_red(), it.to_string())).collect()
    }

    #[test]
    fn known_departures_pass() {
        assert_eq!(told(&["a", "b"], &[departure("a", &["clock(C)"])]), []);
    }

    #[test]
    fn a_new_departure_another_blame_and_a_lost_case_are_red() {
        let found = [departure("b", &[]), departure("a", &["amnesia(A)"])];
        let red = |text: &str| (true, text.to_owned());
        assert_eq!(
            told(&["a", "b"], &found),
            [
                red("NEW      b  mutual-exclusion violated (none)"),
                red(
                    "CHANGED  a  mutual-exclusion violated (amnesia(A)); known was violated (clock(C))"
                ),
            ]
        );
        assert_eq!(told(&["b"], &[]), [red("GONE     a  was not played")]);
    }

    #[test]
    fn mended_and_added_cases_are_reported_and_pass() {
        let text = "mended   a  mutual-exclusion violated (clock(C)); known since 2026-11-23: no \
                    fencing yet";
        let added = (false, String::from("added    c"));
        assert_eq!(told(&["a", "b", "c"], &[]), [(false, text.to_owned()), added]);
    }

    #[test]
    fn a_departure_may_be_there_unseen_by_a_run_in_real_time() {
        let mut baseline = baseline();
        baseline.known[0].departure.case = String::from("a on serve");
        baseline.cases = vec![String::from("a on serve")];
        let changes = compare(&baseline, &baseline.cases, &[]);
        let text = "not seen a on serve  mutual-exclusion violated (clock(C)) in this run; known since \
                    2026-11-23: no fencing yet";
        assert_eq!(changes.iter().map(Change::to_string).collect::<Vec<_>>(), [text]);
    }
}
