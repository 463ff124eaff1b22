//! Vertical positions of the instants, and of the gaps between them.

use lock_judge::text;

use super::labels::{self, Label};
use super::select::Flight;
use crate::report::svg::PX;

/// Top of the first row.
pub(super) const TOP: i64 = 34 * PX;

/// Smallest distance between two rows.
pub(super) const STEP: i64 = 14 * PX;

const GAP: i64 = 24 * PX;
const QUIET_NS: u64 = 100_000_000;

/// A row for each instant, high enough for its labels.
#[derive(Debug)]
pub(super) struct Rows {
    pub(super) instants: Vec<(u64, i64)>,
    pub(super) gaps: Vec<(i64, String)>,
    /// The labels with their final positions, in the order of the rows.
    pub(super) labels: Vec<Label>,
    pub(super) bottom: i64,
}

impl Rows {
    /// `instants` are ascending, and include those of all `labels`. `left_out` is in the order of
    /// sending.
    pub(super) fn new(instants: &[u64], left_out: &[Flight<'_>], mut labels: Vec<Label>) -> Self {
        labels.sort_by_key(|label| label.at_ns);
        let mut rows =
            Self { instants: Vec::new(), gaps: Vec::new(), labels: Vec::new(), bottom: 0 };
        let mut y = TOP + STEP;
        let mut previous: Option<u64> = None;
        for &at_ns in instants {
            if let Some(label) = previous.and_then(|from_ns| gap(from_ns, at_ns, left_out)) {
                rows.gaps.push((y + 4 * PX, label));
                y += GAP;
            }
            let later = labels.split_off(labels.partition_point(|label| label.at_ns <= at_ns));
            let own = labels::stack(core::mem::replace(&mut labels, later));
            let (above, below) = labels::room(&own);
            rows.instants.push((at_ns, y + above));
            rows.labels.extend(own);
            y += above + below.max(STEP);
            previous = Some(at_ns);
        }
        rows.bottom = y;
        rows
    }

    pub(super) fn begin_ns(&self) -> u64 {
        self.instants.first().map_or(0, |(at_ns, _)| *at_ns)
    }

    pub(super) fn end_ns(&self) -> u64 {
        self.instants.last().map_or(0, |(at_ns, _)| *at_ns)
    }

    /// Returns the vertical position of an instant. Instants outside the diagram lie on its edge.
    pub(super) fn y(&self, at_ns: u64) -> i64 {
        if at_ns < self.begin_ns() {
            return TOP;
        }
        let next = self.instants.partition_point(|(instant, _)| *instant <= at_ns);
        if at_ns > self.end_ns() { self.bottom } else { self.instants[next - 1].1 }
    }
}

/// Returns the label of the gap between two successive instants, if there is one.
fn gap(from_ns: u64, to_ns: u64, left_out: &[Flight<'_>]) -> Option<String> {
    let before = |at_ns: u64| left_out.partition_point(|flight| flight.sent_ns < at_ns);
    let omitted = before(to_ns) - before(from_ns);
    if omitted > 0 {
        let messages = text::count(omitted as u64, "message");
        return Some(format!("⋮ {messages} not drawn"));
    }
    let quiet_ns = to_ns - from_ns;
    let quiet = text::length(quiet_ns / 1_000_000 * 1_000_000);
    (quiet_ns > QUIET_NS).then(|| format!("⋮ {quiet}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_as_high_as_its_labels() {
        let label = |at_ns, nth: u64| Label::beside(false, at_ns, 0, format!("SET c2#{nth}"));
        let labels = (0..5).map(|nth| label(1, nth)).chain([label(2, 9)]).collect();
        let rows = Rows::new(&[1, 2, 3], &[], labels);
        let y: Vec<i64> = rows.instants.iter().map(|(_, y)| (*y - TOP - STEP) / PX).collect();
        assert_eq!(y, [0, 5 * 11 + 3, 5 * 11 + 3 + 14]);
    }

    #[test]
    fn a_fault_is_named_between_two_rows() {
        let fault = Label::fault(2, 0, String::from("crash"));
        let rows = Rows::new(&[1, 2], &[], vec![fault]);
        assert_eq!(rows.y(2) - rows.y(1), STEP + 11 * PX);
    }
}
