//! The picture of the exchange of 2016: a pause that begins before each step of an acquisition, and
//! what becomes of the lock and of the resource.

use super::svg::{Area, PX, Svg, escape};
use crate::scenario::{At, Case, Checks, Point, Property};
use crate::search::{CaseResult, Observed};

/// Who is asked, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Row {
    /// The specification to the letter: the sections of `redlock-literal`.
    Literal,
    /// This project's client: its sections.
    Ours,
    /// Whatever the client: the order of the writes at a resource that checks fencing tokens.
    Fenced,
}

/// What becomes of a pause that begins before one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Who is asked.
    pub row: Row,
    /// The step.
    pub point: Point,
    /// Whether the property was violated by any seed.
    pub violated: bool,
}

const POINTS: [(Point, &str); 8] = [
    (Point::T1, "T1"),
    (Point::Write, "write"),
    (Point::Execute, "execute"),
    (Point::Reply, "reply"),
    (Point::T2, "T2"),
    (Point::Deliver, "deliver"),
    (Point::Look, "look"),
    (Point::Enter, "enter"),
];

const ROWS: [(Row, &str, &str); 3] = [
    (Row::Literal, "redlock-literal", "sections, the specification to the letter"),
    (Row::Ours, "redlock", "sections, this client"),
    (Row::Fenced, "with fencing", "writes, at the resource"),
];

/// The cells that the cases of the scenarios named `scenarios` amount to. The step comes from the
/// first fault that begins at a point, the row from what the resource checks and from the subject
/// of the first client.
#[must_use]
pub fn cells(results: &[CaseResult], scenarios: &[&str]) -> Vec<Cell> {
    let named = results.iter().filter(|it| scenarios.contains(&it.case.scenario.name.as_str()));
    named.filter_map(cell).collect()
}

fn cell(result: &CaseResult) -> Option<Cell> {
    let point = point(&result.case)?;
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
    Some(Cell { row, point, violated })
}

fn point(case: &Case) -> Option<Point> {
    let enabled = case.scenario.faults.iter().filter(|fault| fault.enabled);
    let points = enabled.filter_map(|fault| match &fault.at {
        At::Point(point) => Some(point.before),
        At::Time(_) => None,
    });
    points.into_iter().next()
}

const WIDTH: i64 = 940 * PX;
const LEFT: i64 = 246 * PX;
const CELL: i64 = 84 * PX;
const ROW: i64 = 62 * PX;
const TOP: i64 = 128 * PX;

/// The picture as a file of its own; steps without a cell are left empty.
#[must_use]
pub fn sweep_svg(cells: &[Cell]) -> String {
    let mut svg = Svg::default();
    svg.text("title", (20 * PX, 36 * PX), "Where may a long pause begin, and nothing goes wrong?");
    let lead = "A holder is stopped for longer than the TTL, just before the step named above each column.";
    svg.text("lead", (20 * PX, 58 * PX), lead);
    let steps = "ask the masters";
    svg.text("phase", (LEFT + CELL * 2, 88 * PX), steps);
    svg.line("rule", (LEFT + 6 * PX, 94 * PX), (LEFT + CELL * 4 - 6 * PX, 94 * PX));
    svg.text("phase", (LEFT + CELL * 6, 88 * PX), "use the lease");
    svg.line("rule", (LEFT + CELL * 4 + 6 * PX, 94 * PX), (LEFT + CELL * 8 - 6 * PX, 94 * PX));
    for (nth, (_, name)) in POINTS.iter().enumerate() {
        let middle = LEFT + CELL * nth as i64 + CELL / 2;
        svg.text("step", (middle, 114 * PX), name);
    }
    for (nth, (row, name, what)) in ROWS.iter().enumerate() {
        let top = TOP + ROW * nth as i64;
        svg.text("name", (20 * PX, top + 25 * PX), name);
        svg.text("what", (20 * PX, top + 43 * PX), what);
        for (column, (point, _)) in POINTS.iter().enumerate() {
            let known = cells.iter().filter(|it| it.row == *row && it.point == *point);
            let verdict = known.map(|it| it.violated).reduce(|one, other| one || other);
            square(&mut svg, LEFT + CELL * column as i64, top, verdict);
        }
    }
    let bottom = TOP + ROW * ROWS.len() as i64;
    let key = "✓ never two at once, no write out of order    ✗ violated    – not played";
    svg.text("what", (20 * PX, bottom + 30 * PX), key);
    frame(&svg.into_body(), bottom + 48 * PX)
}

fn square(svg: &mut Svg, x: i64, y: i64, verdict: Option<bool>) {
    let (class, glyph, word) = match verdict {
        Some(true) => ("bad", "✗", "violated"),
        Some(false) => ("good", "✓", "ok"),
        None => ("none", "–", ""),
    };
    let area = Area { x: x + 3 * PX, y: y + 3 * PX, width: CELL - 6 * PX, height: ROW - 6 * PX };
    svg.rect(class, area, "");
    svg.text(&format!("glyph {class}"), (x + CELL / 2, y + 30 * PX), glyph);
    svg.text(&format!("word {class}"), (x + CELL / 2, y + 47 * PX), word);
}

fn frame(body: &str, height: i64) -> String {
    let (width, height) = (WIDTH / PX, height / PX);
    let title = escape(
        "A pause before each step of an acquisition: the literal algorithm, this client, and a \
         resource that checks fencing tokens",
    );
    let style = include_str!("picture.css").trim_end();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" role=\"img\"><title>{title}</title>\
         <style>{style}</style><rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>\
         {body}</svg>\n"
    )
}
