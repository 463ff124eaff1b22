//! Writes SVG. Lengths are integers in tenths of a pixel, so that a picture has the same bytes
//! everywhere.

use core::fmt::Write as _;

/// One pixel, in the unit of this module.
pub(super) const PX: i64 = 10;

/// A rectangle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    pub(super) x: i64,
    pub(super) y: i64,
    pub(super) width: i64,
    pub(super) height: i64,
}

impl Area {
    /// Area of a text of this font size whose baseline begins at `at`.
    pub(super) fn of_text(text: &str, size: i64, (x, y): (i64, i64)) -> Self {
        Self { x, y: y - size * 8 / 10, width: width_of(text, size), height: size }
    }

    /// Area of a text whose baseline is centred at `at`.
    pub(super) fn of_centred(text: &str, size: i64, (x, y): (i64, i64)) -> Self {
        Self::of_text(text, size, (x - width_of(text, size) / 2, y))
    }

    pub(super) const fn right(&self) -> i64 {
        self.x + self.width
    }

    const fn meets(&self, other: &Self) -> bool {
        self.x < other.right()
            && other.x < self.right()
            && self.y < other.y + other.height
            && other.y < self.y + self.height
    }
}

/// Areas that labels must not cover.
#[derive(Debug, Default)]
pub(super) struct Taken(Vec<Area>);

impl Taken {
    pub(super) fn take(&mut self, area: Area) {
        self.0.push(area);
    }

    /// Takes the area if it is free; returns false if it is not.
    pub(super) fn take_free(&mut self, area: Area) -> bool {
        let is_free = !self.0.iter().any(|it| it.meets(&area));
        if is_free {
            self.take(area);
        }
        is_free
    }

    /// Moves the area right until it is free, and takes it. Returns its new left edge; `None` if
    /// its right edge would be beyond `end`.
    pub(super) fn slide(&mut self, mut area: Area, end: i64) -> Option<i64> {
        while let Some(other) = self.0.iter().find(|it| it.meets(&area)) {
            area.x = other.right() + 2 * PX;
        }
        let fits = area.right() <= end;
        fits.then(|| {
            self.take(area);
            area.x
        })
    }
}

/// A picture under construction.
#[derive(Debug, Default)]
pub(super) struct Svg {
    body: String,
}

impl Svg {
    /// Draws a rectangle. `title` is its tooltip, if not empty.
    pub(super) fn rect(&mut self, class: &str, area: Area, title: &str) {
        let (x, y) = (length(area.x), length(area.y));
        let (width, height) = (length(area.width), length(area.height));
        let shape =
            format!(r#"<rect class="{class}" x="{x}" y="{y}" width="{width}" height="{height}""#);
        self.body.push_str(&shape);
        if title.is_empty() {
            self.body.push_str("/>");
        } else {
            let _ = write!(self.body, "><title>{}</title></rect>", escape(title));
        }
    }

    /// Draws a straight line.
    pub(super) fn line(&mut self, class: &str, from: (i64, i64), to: (i64, i64)) {
        let (x1, y1) = (length(from.0), length(from.1));
        let (x2, y2) = (length(to.0), length(to.1));
        let _ = write!(self.body, r#"<path class="{class}" d="M{x1} {y1}L{x2} {y2}"/>"#);
    }

    /// Draws text whose baseline begins at `at`.
    pub(super) fn text(&mut self, class: &str, at: (i64, i64), text: &str) {
        let (x, y) = (length(at.0), length(at.1));
        let _ =
            write!(self.body, r#"<text class="{class}" x="{x}" y="{y}">{}</text>"#, escape(text));
    }

    /// Returns the finished picture. `class` is its CSS class, and `label` describes it to screen
    /// readers.
    pub(super) fn finish(self, class: &str, size: (i64, i64), label: &str) -> String {
        let (width, height) = (length(size.0), length(size.1));
        format!(
            r#"<svg class="{class}" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="{}">{}</svg>"#,
            escape(label),
            self.body
        )
    }

    /// Returns the shapes drawn so far, for a picture with its own `<svg>` element.
    pub(super) fn into_body(self) -> String {
        self.body
    }
}

fn length(tenths: i64) -> String {
    let sign = if tenths < 0 { "-" } else { "" };
    let size = tenths.unsigned_abs();
    match size % 10 {
        0 => format!("{sign}{}", size / 10),
        tenth => format!("{sign}{}.{tenth}", size / 10),
    }
}

/// Escapes text for XML.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // XML forbids control characters.
            control if control.is_control() => escaped.push('\u{fffd}'),
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// Approximate width of a text of this font size, good enough to keep labels apart: that of the
/// widest of the usual fonts, DejaVu Sans.
pub(super) fn width_of(text: &str, size: i64) -> i64 {
    text.chars().map(percent_of).sum::<i64>() * size / 100
}

/// Width of a letter, in percent of the font size.
const fn percent_of(letter: char) -> i64 {
    match letter {
        'i' | 'j' | 'l' | 'I' | ' ' | ',' | '.' | ':' | '\'' | '’' => 31,
        'f' | 'r' | 't' | '(' | ')' | '-' => 39,
        'c' | 'k' | 's' | 'v' | 'x' | 'y' | 'z' => 58,
        'm' | 'w' | 'M' | 'W' | '%' | '…' => 95,
        '#' | '→' | '✓' | '✗' | '✕' | '+' | '<' | '=' | '>' => 84,
        'A'..='Z' => 70,
        _ => 63,
    }
}

/// A time axis: maps instants in true time to horizontal positions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
    pub(super) left: i64,
    pub(super) right: i64,
}

impl Scale {
    /// Returns the position of an instant. Instants beyond the scale lie on its edge.
    pub(super) fn x(&self, at_ns: u64) -> i64 {
        let at_ns = at_ns.clamp(self.from_ns, self.to_ns);
        let span = i128::from((self.to_ns - self.from_ns).max(1));
        let across = i128::from(at_ns - self.from_ns) * i128::from(self.right - self.left) / span;
        self.left + i64::try_from(across).expect("no further than the right edge")
    }

    /// Returns round instants for the axis; `most` is the maximum number of steps between them.
    pub(super) fn ticks(&self, most: u64) -> Vec<u64> {
        let span = self.to_ns - self.from_ns;
        let mut step = 1u64;
        while span / step > most {
            let lead = step.to_string().starts_with('2');
            let next = if lead { step / 2 * 5 } else { step * 2 };
            step = next;
        }
        let first = self.from_ns.div_ceil(step) * step;
        (0..=most).map(|tick| first + tick * step).take_while(|&tick| tick <= self.to_ns).collect()
    }
}

/// Formats the label of a tick as briefly as possible: `2 s`, `250 ms`.
pub(super) fn tick_label(at_ns: u64) -> String {
    lock_judge::text::length(at_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        let scale = Scale { from_ns: 0, to_ns: 12_300_000_000, left: 0, right: 1_000 };
        let told: Vec<String> = scale.ticks(8).into_iter().map(tick_label).collect();
        assert_eq!(told, ["0 s", "2 s", "4 s", "6 s", "8 s", "10 s", "12 s"]);
        assert_eq!(scale.x(6_150_000_000), 500);
        assert_eq!(scale.x(u64::MAX), 1_000);
    }

    #[test]
    fn a_text_is_as_wide_as_its_letters() {
        // In DejaVu Sans 6.7, 63, 66 and 110 px.
        let texts = ["it", "SET L1 → OK", "holds L1 (C2)", "write L1 ✗ stale token"];
        let told = texts.map(|text| width_of(text, 10 * PX));
        assert_eq!(told, [70, 660, 684, 1148]);
    }

    #[test]
    fn a_label_finds_a_place_of_its_own() {
        let mut taken = Taken::default();
        let area = |x, width| Area { x: x * PX, y: 0, width: width * PX, height: 10 * PX };
        taken.take(area(0, 20));
        assert!(!taken.take_free(area(19, 5)));
        assert!(taken.take_free(area(20, 5)));
        assert_eq!(taken.slide(area(5, 10), 100 * PX), Some(27 * PX));
        assert_eq!(taken.slide(area(5, 10), 48 * PX), None, "it would end at 49");
        let below = Area { y: 10 * PX, ..area(0, 20) };
        assert!(taken.take_free(below));
    }

    #[test]
    fn text_cannot_break_out() {
        assert_eq!(escape("<a b=\"&\">\u{0}"), "&lt;a b=&quot;&amp;&quot;&gt;\u{fffd}");
    }
}
