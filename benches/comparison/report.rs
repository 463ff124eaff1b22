//! Rounds, medians and the table at the end.

use core::fmt;

/// Values of one figure over several rounds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rounds(Vec<f64>);

impl Rounds {
    pub(crate) fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    pub(crate) fn median(&self) -> f64 {
        quantile(&self.sorted(), 0.5)
    }

    pub(crate) fn most(&self) -> f64 {
        quantile(&self.sorted(), 1.0)
    }

    fn sorted(&self) -> Vec<f64> {
        let mut values = self.0.clone();
        values.sort_by(f64::total_cmp);
        values
    }
}

/// Writes the median, and the range in brackets.
impl fmt::Display for Rounds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = self.sorted();
        let (Some(&least), Some(&most)) = (values.first(), values.last()) else {
            return formatter.write_str("–");
        };
        let (least, most) = (rounded(least), rounded(most));
        write!(formatter, "{} ({least}–{most})", rounded(self.median()))
    }
}

/// Returns the value below which `share` of the sorted `values` lie.
pub(crate) fn quantile(values: &[f64], share: f64) -> f64 {
    let Some(last) = values.len().checked_sub(1) else {
        return f64::NAN;
    };
    values[(last as f64 * share).round() as usize]
}

/// Formats three significant digits.
pub(crate) fn rounded(value: f64) -> String {
    match value.abs() {
        it if it >= 100.0 => format!("{value:.0}"),
        it if it >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// One figure: its value for each client, and the demand on it, if any.
struct Row {
    figure: String,
    ours: String,
    peer: String,
    raw: String,
    demand: Option<Demand>,
}

/// Required value of a figure.
pub(crate) struct Demand {
    words: String,
    reached: String,
    met: bool,
    gate: bool,
}

impl Demand {
    pub(crate) fn at_least(words: &str, reached: f64, least: f64) -> Self {
        Self::new(format!("≥ {} {words}", rounded(least)), reached, reached >= least)
    }

    pub(crate) fn at_most(words: &str, reached: f64, most: f64) -> Self {
        Self::new(format!("≤ {} {words}", rounded(most)), reached, reached <= most)
    }

    fn new(words: String, reached: f64, met: bool) -> Self {
        Self { words, reached: rounded(reached), met, gate: false }
    }

    /// Makes the program fail if the demand is missed.
    pub(crate) fn gate(self) -> Self {
        Self { gate: true, ..self }
    }
}

/// All figures, in the order of measuring.
#[derive(Default)]
pub(crate) struct Report(Vec<Row>);

impl Report {
    /// Adds a figure of ours, the peer and the bound.
    pub(crate) fn row(&mut self, figure: impl Into<String>, [ours, peer, raw]: [String; 3]) {
        self.0.push(Row { figure: figure.into(), ours, peer, raw, demand: None });
    }

    /// Adds a line that says whether a figure meets its demand.
    pub(crate) fn demand(&mut self, figure: impl Into<String>, demand: Demand) {
        let nothing = String::new;
        let ours = demand.reached.clone();
        let (figure, peer, raw) = (figure.into(), nothing(), nothing());
        self.0.push(Row { figure, ours, peer, raw, demand: Some(demand) });
    }

    pub(crate) fn is_gate_missed(&self) -> bool {
        self.0.iter().filter_map(|row| row.demand.as_ref()).any(|it| it.gate && !it.met)
    }

    pub(crate) fn print(&self) {
        println!("\nMedian (range) of the rounds:\n");
        println!("| figure | ours | rslock | raw | required | met |");
        println!("| --- | --- | --- | --- | --- | --- |");
        for Row { figure, ours, peer, raw, demand } in &self.0 {
            let (required, met) = match demand {
                Some(it) if it.gate => (format!("{} (gate)", it.words), verdict(it.met)),
                Some(it) => (it.words.clone(), verdict(it.met)),
                None => (String::new(), ""),
            };
            println!("| {figure} | {ours} | {peer} | {raw} | {required} | {met} |");
        }
    }
}

fn verdict(met: bool) -> &'static str {
    if met { "yes" } else { "**no**" }
}

/// Prints the description of a part, before its rounds.
pub(crate) fn heading(part: &str, what: &str) {
    println!("\n## {part}\n{what}");
}
