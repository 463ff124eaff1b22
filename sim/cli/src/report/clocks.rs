//! Chart of each clock's offset from true time, drawn with plotters.

use lock_judge::history::{ClockKind, HostId, Segment};
use lock_judge::text;
use plotters::prelude::*;

use super::svg::{Area, PX, Taken, tick_label, width_of};
use super::timeline::Timeline;

/// Smallest offset that is drawn, in nanoseconds. Masters tick in milliseconds, so smaller offsets
/// mean nothing.
const NOTABLE_NS: i64 = 2_000_000;

const SIZE: (u32, u32) = (1080, 210);

/// Font size of the labels, and the distance between two of them.
const FONT: i32 = 12;
const LINE: i32 = 14;

/// Lowest place of a label.
const LOWEST: i32 = SIZE.1 as i32 - 24 - LINE;

/// Colours that are legible on light and on dark backgrounds. Labels tell the lines apart.
const COLOURS: [RGBColor; 4] =
    [RGBColor(196, 78, 28), RGBColor(40, 120, 181), RGBColor(22, 140, 100), RGBColor(150, 90, 170)];

/// An instant and an offset, in nanoseconds.
type Point = (i64, i64);

/// Offset of one clock from true time.
#[derive(Debug, PartialEq, Eq)]
struct Series {
    label: String,
    points: Vec<Point>,
}

/// Draws the chart. Returns `None` if no clock is notably off.
pub(super) fn draw(timeline: &Timeline<'_>) -> Option<String> {
    let series = series(timeline);
    if series.is_empty() {
        return None;
    }
    let mut svg = String::new();
    // Drawing into memory fails only if a label does not fit. Then there is no chart.
    plot(&mut svg, &series).ok()?;
    Some(svg.replacen("<svg ", "<svg class=\"clocks\" role=\"img\" ", 1))
}

/// Returns the clocks that are notably off. Clocks of one host whose offsets no reader could tell
/// apart become one series, and so do the same clocks of several hosts.
fn series(timeline: &Timeline<'_>) -> Vec<Series> {
    let mut found: Vec<(HostId, Vec<ClockKind>, Vec<Point>)> = Vec::new();
    for (&(host, clock), segments) in &timeline.clocks {
        let base = base(timeline, clock, segments);
        let points = points(segments, base, timeline.end_ns);
        if points.iter().all(|(_, offset)| offset.abs() < NOTABLE_NS) {
            continue;
        }
        match found.iter_mut().find(|(of, _, known)| *of == host && are_close(known, &points)) {
            Some((_, kinds, _)) => kinds.push(clock),
            None => found.push((host, vec![clock], points)),
        }
    }
    let mut joined: Vec<(Vec<&str>, Vec<ClockKind>, Vec<Point>)> = Vec::new();
    for (host, kinds, points) in found {
        let name = timeline.host_name(host);
        match joined.iter_mut().find(|(_, of, known)| *of == kinds && are_close(known, &points)) {
            Some((names, ..)) => names.push(name),
            None => joined.push((vec![name], kinds, points)),
        }
    }
    let labelled = joined.into_iter().map(|(names, kinds, points)| {
        let which = match kinds.as_slice() {
            all if all.len() == ClockKind::ALL.len() => String::from("all clocks"),
            kinds => kinds.iter().map(|&it| super::words::clock(it)).collect::<Vec<_>>().join(", "),
        };
        Series { label: format!("{}: {which}", names.join(", ")), points }
    });
    labelled.collect()
}

/// Returns true if two lines change at the same instants and are never notably apart.
fn are_close(one: &[Point], other: &[Point]) -> bool {
    let close = |(one, other): (&Point, &Point)| {
        one.0 == other.0 && one.1.abs_diff(other.1) < NOTABLE_NS.unsigned_abs()
    };
    one.len() == other.len() && one.iter().zip(other).all(close)
}

/// Reading at true time 0 of a healthy clock of this kind. For wall clocks it is the median of all
/// hosts. The other clocks have an arbitrary origin, so it is the clock's own first reading.
fn base(timeline: &Timeline<'_>, clock: ClockKind, own: &[Segment]) -> i128 {
    if clock != ClockKind::Wall {
        return own.first().map_or(0, lead);
    }
    let walls = timeline.clocks.iter().filter(|((_, kind), _)| *kind == ClockKind::Wall);
    let mut first: Vec<i128> = walls.filter_map(|(_, it)| it.first().map(lead)).collect();
    first.sort_unstable();
    first.get(first.len() / 2).copied().unwrap_or(0)
}

fn lead(segment: &Segment) -> i128 {
    i128::from(segment.local_ns) - i128::from(segment.true_ns)
}

fn points(segments: &[Segment], base: i128, end_ns: u64) -> Vec<Point> {
    let mut points = Vec::new();
    for (place, segment) in segments.iter().enumerate() {
        let to_ns = segments.get(place + 1).map_or(end_ns, |next| next.true_ns);
        for at_ns in [segment.true_ns, to_ns.max(segment.true_ns)] {
            let offset = i128::from(segment.local_at(at_ns)) - i128::from(at_ns) - base;
            let far = i128::from(i64::MAX / 4);
            let offset = offset.clamp(-far, far) as i64;
            points.push(((at_ns as i64).min(i64::MAX / 4), offset));
        }
    }
    points
}

fn plot(svg: &mut String, series: &[Series]) -> Result<(), Box<dyn core::error::Error>> {
    let all = || series.iter().flat_map(|it| &it.points);
    let to_ns = all().map(|point| point.0).max().unwrap_or(0).max(1);
    let low = all().map(|point| point.1).min().unwrap_or(0).min(0);
    let high = all().map(|point| point.1).max().unwrap_or(0).max(0);
    let room = ((high - low) / 8).max(1_000_000);

    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    let mut chart = ChartBuilder::on(&root)
        .margin_top(8)
        .margin_right(14)
        .x_label_area_size(24)
        .y_label_area_size(70)
        .build_cartesian_2d(0..to_ns, low - room..high + room)?;
    let grey = RGBColor(128, 128, 128);
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(grey.mix(0.25))
        .axis_style(grey)
        .label_style(("sans-serif", 11).into_font().color(&grey))
        .x_label_formatter(&|at_ns| tick_label(at_ns.unsigned_abs()))
        .y_label_formatter(&|offset| {
            if *offset == 0 { String::from("true") } else { text::signed(*offset) }
        })
        .x_labels(12)
        .y_labels(5)
        .draw()?;
    let mut taken = Taken::default();
    for (place, one) in series.iter().enumerate() {
        let colour = COLOURS[place % COLOURS.len()];
        let style = colour.stroke_width(2);
        chart.draw_series(LineSeries::new(one.points.iter().copied(), style))?;
        // Put the label where the clock is furthest off, or else below or above the labels there.
        let furthest = one.points.iter().max_by_key(|point| point.1.abs());
        let Some(&(at_ns, offset)) = furthest else { continue };
        let at = chart.backend_coord(&(at_ns.min(to_ns / 4 * 3) + to_ns / 100, offset));
        let at = free_place(&mut taken, &one.label, at);
        let font = ("sans-serif", FONT).into_font().color(&colour);
        root.draw(&Text::new(one.label.clone(), at, font))?;
    }
    root.present()?;
    drop(chart);
    Ok(())
}

/// Returns the place nearest to `at` at which the label covers no other, and takes it.
fn free_place(taken: &mut Taken, label: &str, (x, y): (i32, i32)) -> (i32, i32) {
    let lines = (0..i32::try_from(SIZE.1).unwrap_or(0) / LINE).flat_map(|it| [it, -it]);
    let inside = lines.map(|line| y + line * LINE).filter(|y| (0..=LOWEST).contains(y));
    let size = i64::from(FONT) * PX;
    let free = inside.map(|y| (x, y)).find(|&(x, y)| {
        let (x, y) = (i64::from(x) * PX, i64::from(y) * PX);
        taken.take_free(Area { x, y, width: width_of(label, size), height: size })
    });
    free.unwrap_or((x, y))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_moves_away_from_another() {
        let mut taken = Taken::default();
        let mut place = |y| free_place(&mut taken, "c1: wall clock", (700, y)).1;
        assert_eq!([place(100), place(101), place(99)], [100, 115, 85]);
        assert_eq!(place(LOWEST), LOWEST);
        assert_eq!(place(LOWEST), LOWEST - LINE, "not over the axis");
    }

    #[test]
    fn indistinguishable_lines_are_close() {
        let line = [(0, 0), (1_000_000_000, 500_000_000)];
        assert!(are_close(&line, &[(0, 900_000), (1_000_000_000, 501_000_000)]));
        assert!(!are_close(&line, &[(0, 0), (1_000_000_000, 502_000_000)]));
        assert!(!are_close(&line, &[(0, 0), (1_100_000_000, 500_000_000)]));
        assert!(!are_close(&line, &line[..1]));
    }
}
