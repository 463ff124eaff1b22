//! Chart of the debate of 2016: the effect on the lock and on the resource of a pause before each
//! step of an acquisition.

use lock_judge::scenario::{At, AttemptStep, Case, Checks, Property};
use redlock_sim::search::{CaseResult, Observed};

use super::svg::{Area, PX, Svg, escape};

/// Subject of a row, and the place where it is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Row {
    /// The specification to the letter: sections of `redlock-literal`.
    Literal,
    /// This project's client: its sections.
    Ours,
    /// Any client: order of the writes at a resource that checks fencing tokens.
    Fenced,
}

/// Effect of a pause before one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Row of the cell.
    pub row: Row,
    /// Step before which the pause begins.
    pub point: AttemptStep,
    /// Node of the step, if the step concerns one.
    pub node: Option<String>,
    /// True if some seed violated the property.
    pub violated: bool,
}

/// The steps in order, for nodes that reply in the order of their names. C's reply completes the
/// majority, so the replies of D and E arrive after the section has begun.
const COLUMNS: [(&str, AttemptStep, Option<&str>); 12] = [
    ("T1", AttemptStep::T1, None),
    ("write", AttemptStep::Write, None),
    ("execute", AttemptStep::Execute, None),
    ("reply A", AttemptStep::Reply, Some("A")),
    ("reply B", AttemptStep::Reply, Some("B")),
    ("reply C", AttemptStep::Reply, Some("C")),
    ("T2", AttemptStep::T2, None),
    ("deliver", AttemptStep::Deliver, None),
    ("look", AttemptStep::Check, None),
    ("enter", AttemptStep::Enter, None),
    ("reply D", AttemptStep::Reply, Some("D")),
    ("reply E", AttemptStep::Reply, Some("E")),
];

/// Headings above the columns, with the number of columns under each.
const PHASES: [(&str, i64); 4] =
    [("ask the masters", 6), ("decide", 1), ("use the lease", 3), ("in the section", 2)];

const ROWS: [(Row, &str, &str); 3] = [
    (Row::Literal, "the literal algorithm", "two in the section?"),
    (Row::Ours, "this client", "two in the section?"),
    (Row::Fenced, "literal, with tokens", "a stale write at the resource?"),
];

/// Returns the cells for the cases of the scenarios in `scenarios`. The step is that of the first
/// enabled fault that begins at a point. The row follows from what the resource checks and from the
/// subject of the first client.
#[must_use]
pub fn cells(results: &[CaseResult], scenarios: &[&str]) -> Vec<Cell> {
    let named = results.iter().filter(|it| scenarios.contains(&it.case.scenario.name.as_str()));
    named.filter_map(cell).collect()
}

fn cell(result: &CaseResult) -> Option<Cell> {
    let (point, node) = point(&result.case)?;
    let scenario = &result.case.scenario;
    let (row, judged) = match (scenario.store.checks, scenario.clients.first()?.subject.as_str()) {
        (Checks::Nothing, "redlock") => (Row::Ours, &[Property::ExclusiveSection][..]),
        (Checks::Nothing, "redlock-literal") => (Row::Literal, &[Property::ExclusiveSection][..]),
        (Checks::Nothing, _) => return None,
        _ => (Row::Fenced, &[Property::NoLostUpdate, Property::FencedOrder][..]),
    };
    let bad = [Observed::Violated, Observed::Sometimes];
    let asked = result.properties.iter().filter(|it| judged.contains(&it.property));
    let violated = asked.into_iter().any(|it| bad.contains(&it.observed));
    Some(Cell { row, point, node, violated })
}

fn point(case: &Case) -> Option<(AttemptStep, Option<String>)> {
    let mut enabled = case.scenario.faults.iter().filter(|fault| fault.enabled);
    enabled.find_map(|fault| match &fault.at {
        At::Point(at) => Some((at.before, at.node.clone())),
        At::Time(_) => None,
    })
}

const LEFT: i64 = 232 * PX;
const CELL: i64 = 64 * PX;
const ROW: i64 = 60 * PX;
const TOP: i64 = 128 * PX;
const WIDTH: i64 = LEFT + COLUMNS.len() as i64 * CELL + 20 * PX;

/// Draws the chart as a standalone SVG file. Steps without a cell are left empty.
#[must_use]
pub fn sweep_svg(cells: &[Cell]) -> String {
    let mut svg = Svg::default();
    svg.text(
        "title",
        (20 * PX, 36 * PX),
        "Before which step may a client pause for longer than its lease?",
    );
    let lead = "In each column the first client is stopped for 12 s (TTL 10 s) just before that \
                step, while a second client takes the lock.";
    svg.text("lead", (20 * PX, 58 * PX), lead);
    headings(&mut svg);
    for (nth, (row, name, what)) in ROWS.iter().enumerate() {
        let top = TOP + ROW * nth as i64;
        svg.text("name", (20 * PX, top + 26 * PX), name);
        svg.text("what", (20 * PX, top + 43 * PX), what);
        let mut before = None;
        for (column, (_, point, node)) in COLUMNS.iter().enumerate() {
            let x = LEFT + CELL * column as i64;
            let verdict = verdict(cells, *row, *point, *node);
            square(&mut svg, x, top, verdict);
            if before == Some(false) && verdict == Some(true) {
                svg.line("flip", (x, top), (x, top + ROW));
            }
            before = verdict.or(before);
        }
    }
    let bottom = TOP + ROW * ROWS.len() as i64;
    let key = "✓ no harm in any run · ✗ violated · – no such step · ┃ where the verdict flips";
    svg.text("what", (20 * PX, bottom + 28 * PX), key);
    let title = "A pause before each step of an acquisition: the literal algorithm, this client, and a \
                 resource that checks fencing tokens";
    frame(title, &svg.into_body(), (WIDTH, bottom + 46 * PX))
}

/// Returns true if any cell of this square was violated; `None` if there is no such cell.
fn verdict(cells: &[Cell], row: Row, point: AttemptStep, node: Option<&str>) -> Option<bool> {
    let known = cells.iter().filter(|cell| cell.row == row && cell.point == point);
    let of_node = known.filter(|cell| node.is_none() || cell.node.as_deref() == node);
    of_node.map(|cell| cell.violated).reduce(|one, other| one || other)
}

fn headings(svg: &mut Svg) {
    let mut x = LEFT;
    for (phase, columns) in PHASES {
        let width = CELL * columns;
        svg.text("phase", (x + width / 2, 88 * PX), phase);
        svg.line("rule", (x + 4 * PX, 95 * PX), (x + width - 4 * PX, 95 * PX));
        x += width;
    }
    for (nth, (name, ..)) in COLUMNS.iter().enumerate() {
        svg.text("step", (LEFT + CELL * nth as i64 + CELL / 2, 115 * PX), name);
    }
}

fn square(svg: &mut Svg, x: i64, y: i64, verdict: Option<bool>) {
    let (class, glyph, word) = match verdict {
        Some(true) => ("bad", "✗", "violated"),
        Some(false) => ("good", "✓", "no harm"),
        None => ("none", "–", ""),
    };
    let area = Area { x: x + 3 * PX, y: y + 3 * PX, width: CELL - 6 * PX, height: ROW - 6 * PX };
    svg.rect(class, area, "");
    svg.text(&format!("glyph {class}"), (x + CELL / 2, y + 30 * PX), glyph);
    svg.text(&format!("word {class}"), (x + CELL / 2, y + 47 * PX), word);
}

/// Wraps `body` into a standalone SVG file with background, style and `title`.
pub(super) fn frame(title: &str, body: &str, (width, height): (i64, i64)) -> String {
    let (width, height) = (width / PX, height / PX);
    let title = escape(title);
    let style = include_str!("picture.css").trim_end();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" role=\"img\"><title>{title}</title>\
         <style>{style}</style><rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>\
         {body}</svg>\n"
    )
}
