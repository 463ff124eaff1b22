//! Chart of clock drift: how far the clocks of client and master may drift apart, as measured in
//! runs and as computed from the closed form.

use super::picture::frame;
use super::svg::{Area, PX, Svg};

/// Result of the runs with one pair of clock rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Rate by which the holder's clocks were slow, in parts per million.
    pub client_ppm: u32,
    /// Rate by which the master's clocks were fast, in parts per million.
    pub node_ppm: u32,
    /// Number of runs that violated mutual exclusion.
    pub violated: u64,
    /// Number of runs.
    pub runs: u64,
}

const LEFT: i64 = 120 * PX;
const TOP: i64 = 100 * PX;
const CELL: i64 = 26 * PX;

/// Length of the belief in a lease of 10 s: 1 % and 2 ms are given up for drift. Below, the length
/// of the key: masters count in milliseconds, so it may be 1 ms shorter.
const BELIEF_NS: i64 = 10_000_000_000 - 100_000_000 - 2_000_000;
const KEY_NS: i64 = 10_000_000_000 - 1_000_000;

const MILLION: i64 = 1_000_000;

/// Draws the chart as a standalone SVG file. The cells must lie on a grid of equal steps from 0.
#[must_use]
pub fn drift_svg(cells: &[Cell]) -> String {
    let step_ppm = cells.iter().map(|cell| cell.client_ppm).filter(|&ppm| ppm > 0).min();
    let step_ppm = i64::from(step_ppm.unwrap_or(1));
    let most_ppm = cells.iter().map(|it| it.client_ppm.max(it.node_ppm)).max().unwrap_or(0);
    let columns = i64::from(most_ppm) / step_ppm + 1;
    let grid = Grid { step_ppm, columns };
    let mut svg = Svg::default();
    svg.text("title", (20 * PX, 36 * PX), "How far may clocks drift apart?");
    let lead = "A lease of 10 s gives up 1 % and 2 ms. Another client asks just before its end.";
    svg.text("lead", (20 * PX, 58 * PX), lead);
    for cell in cells {
        grid.square(&mut svg, cell);
    }
    grid.boundary(&mut svg);
    grid.axes(&mut svg);
    let bottom = TOP + columns * CELL;
    let key = [
        "green: the beliefs of the two overlap in no run · red: in every run",
        "dashed: in some, by where in its millisecond the master's clock is · line: the closed form",
    ];
    svg.text("what", (20 * PX, bottom + 62 * PX), key[0]);
    svg.text("what", (20 * PX, bottom + 80 * PX), key[1]);
    let title = "Which drift of a holder's and of a master's clocks a lease covers";
    let size = (LEFT + columns * CELL + 230 * PX, bottom + 98 * PX);
    frame(title, &svg.into_body(), size)
}

#[derive(Clone, Copy)]
struct Grid {
    step_ppm: i64,
    columns: i64,
}

impl Grid {
    /// Distance from the grid's origin to the middle of the square of a rate: to the right for the
    /// client, upwards for the master.
    fn along(self, ppm: i64) -> i64 {
        CELL / 2 + ppm * CELL / self.step_ppm
    }

    fn square(self, svg: &mut Svg, cell: &Cell) {
        let x = LEFT + self.along(i64::from(cell.client_ppm)) - CELL / 2;
        let up = self.along(i64::from(cell.node_ppm)) + CELL / 2;
        let y = TOP + self.columns * CELL - up;
        let class = match cell.violated {
            0 => "good",
            violated if violated == cell.runs => "bad",
            _ => "none",
        };
        let area = Area { x: x + PX, y: y + PX, width: CELL - 2 * PX, height: CELL - 2 * PX };
        let told = format!(
            "client {} slow, master {} fast: {} of {} runs overlap",
            percent(i64::from(cell.client_ppm)),
            percent(i64::from(cell.node_ppm)),
            cell.violated,
            cell.runs
        );
        svg.rect(class, area, &told);
    }

    /// Highest rate of the master, in parts per million, that is still safe with `client_ppm`.
    fn covered_ppm(client_ppm: i64) -> i64 {
        // (1 + ρi) = (TTL − 1 ms)(1 − ρc) / (TTL(1 − f) − pad)
        let scaled = i128::from(KEY_NS) * i128::from(MILLION - client_ppm) / i128::from(BELIEF_NS);
        scaled as i64 - MILLION
    }

    /// Draws the closed form, point by point, within the grid.
    fn boundary(self, svg: &mut Svg) {
        let most_ppm = (self.columns - 1) * self.step_ppm;
        let point = |client_ppm: i64| {
            let node_ppm = Self::covered_ppm(client_ppm);
            let y = TOP + self.columns * CELL - self.along(node_ppm);
            (0..=most_ppm).contains(&node_ppm).then_some((LEFT + self.along(client_ppm), y))
        };
        let points: Vec<_> = (0..=most_ppm).step_by(100).filter_map(point).collect();
        for pair in points.windows(2) {
            svg.line("flip", pair[0], pair[1]);
        }
    }

    fn axes(self, svg: &mut Svg) {
        let bottom = TOP + self.columns * CELL;
        for step in (0..self.columns).step_by(5) {
            let label = percent(step * self.step_ppm);
            let middle = self.along(step * self.step_ppm);
            svg.text("step", (LEFT + middle, bottom + 16 * PX), &label);
            svg.text("step", (LEFT - 28 * PX, bottom - middle + 4 * PX), &label);
        }
        let right = LEFT + self.columns * CELL;
        svg.text(
            "phase",
            (LEFT + self.columns * CELL / 2, bottom + 38 * PX),
            "holder's clocks slow by",
        );
        svg.text("what", (20 * PX, TOP - 12 * PX), "master's clocks fast by");
        for (place, line) in
            ["above the line", "the key is gone", "before the holder", "stops believing"]
                .into_iter()
                .enumerate()
        {
            let y = TOP + (40 + 18 * place as i64) * PX;
            svg.text("what", (right + 20 * PX, y), line);
        }
    }
}

/// Formats a rate as in `0.5 %`.
fn percent(ppm: i64) -> String {
    format!("{}.{} %", ppm / 10_000, ppm % 10_000 / 1_000)
}
