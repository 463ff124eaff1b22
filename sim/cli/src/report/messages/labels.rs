//! Labels of a diagram, and the room that those of one instant need.

use crate::report::svg::{PX, width_of};

/// Distance between lines of text.
const LINE: i64 = 11 * PX;

/// Least horizontal distance between two labels in one line.
const SPACE: i64 = 4 * PX;

/// Lines of labels of one host at one instant. More labels than that are counted.
const MOST: usize = 8;

/// Height of a label beside a line, from the line to the label's baseline.
pub(super) const BESIDE: i64 = 3 * PX;

/// Distance of a fault's label from the fault's line.
const ABOVE: i64 = -8 * PX;

/// Kind of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Begins at its position.
    Right,
    /// Ends at its position.
    Left,
    /// The cross of a lost message, centred.
    Cross,
    /// Name of a fault above the fault's line. Ends at its position.
    Fault,
}

/// A label, and its position relative to the line of its instant.
#[derive(Clone, Debug)]
pub(super) struct Label {
    pub(super) kind: Kind,
    pub(super) at_ns: u64,
    pub(super) x: i64,
    /// From the line of the instant down to the baseline.
    pub(super) down: i64,
    pub(super) text: String,
}

impl Label {
    /// Label beside a line, on the left or on the right of `x`.
    pub(super) fn beside(is_left: bool, at_ns: u64, x: i64, text: String) -> Self {
        let kind = if is_left { Kind::Left } else { Kind::Right };
        Self { kind, at_ns, x, down: BESIDE, text }
    }

    pub(super) fn cross(at_ns: u64, x: i64, down: i64) -> Self {
        Self { kind: Kind::Cross, at_ns, x, down, text: String::from("✕") }
    }

    pub(super) fn fault(at_ns: u64, x: i64, text: String) -> Self {
        Self { kind: Kind::Fault, at_ns, x, down: ABOVE, text }
    }

    /// CSS class.
    pub(super) const fn class(&self) -> &'static str {
        match self.kind {
            Kind::Right => "l",
            Kind::Left => "l end",
            Kind::Cross => "cross",
            Kind::Fault => "fault end",
        }
    }

    fn width(&self) -> i64 {
        let size = match self.kind {
            Kind::Right | Kind::Left => 10,
            Kind::Cross => 12,
            Kind::Fault => 11,
        };
        width_of(&self.text, size * PX)
    }

    pub(super) fn left(&self) -> i64 {
        match self.kind {
            Kind::Right => self.x,
            Kind::Cross => self.x - self.width() / 2,
            Kind::Left | Kind::Fault => self.x - self.width(),
        }
    }

    pub(super) fn right(&self) -> i64 {
        self.left() + self.width()
    }

    fn meets(&self, other: &Self) -> bool {
        (self.down - other.down).abs() < LINE
            && self.left() < other.right() + SPACE
            && other.left() < self.right() + SPACE
    }

    /// Returns true if both would begin at the same place.
    fn shares_place(&self, other: &Self) -> bool {
        (self.kind, self.x, self.down) == (other.kind, other.x, other.down)
    }
}

/// Moves the labels of one instant until none covers another: the names of faults up, the others
/// down. Crosses stay. Labels that are too many for one place are counted instead.
pub(super) fn stack(labels: Vec<Label>) -> Vec<Label> {
    let of = |kind: Kind| move |label: &Label| label.kind == kind;
    let labels = shortened(labels).into_iter();
    let (mut placed, rest): (Vec<_>, Vec<_>) = labels.partition(of(Kind::Cross));
    let (faults, rest): (Vec<_>, Vec<_>) = rest.into_iter().partition(of(Kind::Fault));
    // The lowest name is placed first.
    for mut label in faults.into_iter().rev().chain(rest) {
        while let Some(other) = placed.iter().find(|other| other.meets(&label)) {
            let is_fault = label.kind == Kind::Fault;
            label.down = if is_fault { other.down - LINE } else { other.down + LINE };
        }
        placed.push(label);
    }
    placed
}

/// Removes repeated labels. Replaces the last labels of a place that has too many by their number.
fn shortened(labels: Vec<Label>) -> Vec<Label> {
    let mut kept: Vec<Label> = Vec::new();
    for label in labels {
        if !kept.iter().any(|it| it.shares_place(&label) && it.text == label.text) {
            kept.push(label);
        }
    }
    let all = kept.clone();
    let together = |label: &Label| all.iter().filter(|it| it.shares_place(label)).count();
    let mut short: Vec<Label> = Vec::new();
    for mut label in kept {
        let before = short.iter().filter(|it| it.shares_place(&label)).count();
        let number = together(&label);
        if number > MOST && before == MOST - 1 {
            label.text = format!("and {} more", number - before);
        } else if before >= MOST {
            continue;
        }
        short.push(label);
    }
    short
}

/// Room that labels need above and below the line of their instant, the next line's own labels
/// included.
pub(super) fn room(labels: &[Label]) -> (i64, i64) {
    let above = labels.iter().map(|label| 3 * PX - label.down).max().unwrap_or(0);
    let below = labels.iter().map(|label| label.down + LINE).max().unwrap_or(0);
    (above.max(0), below)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(labels: Vec<Label>) -> Vec<(String, i64)> {
        stack(labels).into_iter().map(|it| (it.text, it.down / PX)).collect()
    }

    fn beside(is_left: bool, x: i64, text: &str) -> Label {
        Label::beside(is_left, 0, x * PX, text.to_owned())
    }

    #[test]
    fn labels_that_would_cover_each_other_stand_below_each_other() {
        let neighbours = vec![
            beside(false, 100, "SET L1 → OK"),
            beside(true, 200, "release c2#1 → 0"),
            beside(false, 300, "SET L1 → OK"),
        ];
        let expected = [("SET L1 → OK", 3), ("release c2#1 → 0", 14), ("SET L1 → OK", 3)];
        assert_eq!(told(neighbours), expected.map(|(text, down)| (text.to_owned(), down)));
    }

    #[test]
    fn a_cross_stays_and_a_fault_moves_up() {
        let fault = |text: &str| Label::fault(0, 500 * PX, text.to_owned());
        let cross = Label::cross(0, 100 * PX, 14 * PX);
        let beside = beside(false, 98, "SET");
        let labels = vec![fault("crash"), fault("pause"), beside, cross.clone(), cross];
        let expected = [("✕", 14), ("pause", -8), ("crash", -19), ("SET", 3)];
        assert_eq!(told(labels.clone()), expected.map(|(text, down)| (text.to_owned(), down)));
        assert_eq!(room(&stack(labels)), (22 * PX, 25 * PX));
    }

    #[test]
    fn a_tall_stack_ends_with_the_number_of_the_others() {
        let many = (0..40).map(|nth| beside(false, 0, &format!("SET c2#{nth}")));
        let told = told(many.chain([beside(false, 0, "SET c2#3")]).collect());
        assert_eq!(told.len(), MOST);
        assert_eq!(told.last(), Some(&(String::from("and 33 more"), 3 + 7 * 11)));
        let few = (0..8).map(|nth| beside(false, 0, &format!("SET c2#{nth}"))).collect();
        assert_eq!(stack(few).last().map(|it| it.text.clone()), Some(String::from("SET c2#7")));
    }
}
