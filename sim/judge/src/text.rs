//! Formats numbers and lists for readers. Uses integer arithmetic only, because pages are compared
//! byte for byte.

/// Formats an instant in seconds, rounded down to the millisecond: `1.102 s`.
pub fn instant(at_ns: u64) -> String {
    let ms = at_ns / 1_000_000;
    format!("{}.{:03} s", ms / 1_000, ms % 1_000)
}

/// Formats an instant in seconds to the nanosecond, in groups of three digits: `1.102 345 678`.
pub fn exact(at_ns: u64) -> String {
    let (s, ns) = (at_ns / 1_000_000_000, at_ns % 1_000_000_000);
    format!("{s}.{:03} {:03} {:03}", ns / 1_000_000, ns / 1_000 % 1_000, ns % 1_000)
}

/// Formats a duration in the largest unit that fits, rounded down to three decimal places.
pub fn length(ns: u64) -> String {
    let (unit, name) = match ns {
        0 => return String::from("0 s"),
        1_000_000_000.. => (1_000_000_000, "s"),
        1_000_000.. => (1_000_000, "ms"),
        1_000.. => (1_000, "µs"),
        _ => (1, "ns"),
    };
    let thousandths = if unit == 1 { 0 } else { ns % unit / (unit / 1_000) };
    format!("{}{} {name}", ns / unit, decimals(thousandths))
}

/// Formats a number of thousandths as a decimal number without trailing zeros: `86.25`.
pub fn thousandths(number: u64) -> String {
    format!("{}{}", number / 1_000, decimals(number % 1_000))
}

/// Formats thousandths as decimals without trailing zeros; empty for 0.
fn decimals(thousandths: u64) -> String {
    if thousandths == 0 {
        return String::new();
    }
    let digits = format!(".{thousandths:03}");
    digits.trim_end_matches('0').to_owned()
}

/// Formats a signed duration: `+10 s`.
pub fn signed(ns: i64) -> String {
    let sign = if ns < 0 { "−" } else { "+" };
    format!("{sign}{}", length(ns.unsigned_abs()))
}

/// Formats a rate in parts per million as a percentage: `+10 %`, `−0.05 %`.
pub fn percent(ppm: i32) -> String {
    let sign = if ppm < 0 { "−" } else { "+" };
    let size = ppm.unsigned_abs();
    let digits = format!("{}.{:04}", size / 10_000, size % 10_000);
    format!("{sign}{} %", digits.trim_end_matches('0').trim_end_matches('.'))
}

/// Joins every number to its unit with a no-break space, so that no line breaks between them.
pub fn tied(text: &str) -> String {
    const UNITS: [&str; 5] = ["s", "ms", "µs", "ns", "%"];
    let mut tied = String::with_capacity(text.len());
    for (nth, word) in text.split(' ').enumerate() {
        let bare = word.trim_end_matches([')', ',', ';', ':', '.']);
        let follows_number = tied.ends_with(|letter: char| letter.is_ascii_digit());
        if nth > 0 {
            tied.push(if follows_number && UNITS.contains(&bare) { '\u{a0}' } else { ' ' });
        }
        tied.push_str(word);
    }
    tied
}

/// Joins items as in a sentence: `a`, `a and b`, `a, b and c`; `none` for an empty list.
pub fn list<S: AsRef<str>>(items: &[S]) -> String {
    match items {
        [] => String::from("none"),
        [one] => one.as_ref().to_owned(),
        [first @ .., last] => {
            let first: Vec<&str> = first.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", first.join(", "), last.as_ref())
        }
    }
}

/// Formats a count with its noun, which takes an `s` unless the count is 1: `1 run`, `2 runs`.
pub fn count(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_keep_their_milliseconds() {
        assert_eq!(instant(1_102_999_999), "1.102 s");
        assert_eq!(exact(1_102_000_005), "1.102 000 005");
    }

    #[test]
    fn lengths_choose_their_unit() {
        let told = [0, 7, 1_500, 2_000_000, 999_999_999, 8_796_000_000].map(length);
        assert_eq!(told, ["0 s", "7 ns", "1.5 µs", "2 ms", "999.999 ms", "8.796 s"]);
        assert_eq!(signed(-90_000_000), "−90 ms");
        assert_eq!([86_250, 1_000, 7].map(thousandths), ["86.25", "1", "0.007"]);
    }

    #[test]
    fn rates_read_as_shares() {
        assert_eq!([percent(100_000), percent(-500)], ["+10 %", "−0.05 %"]);
    }

    #[test]
    fn a_number_stays_with_its_unit() {
        assert_eq!(tied("by +10 s at 1.000 s, so"), "by +10\u{a0}s at 1.000\u{a0}s, so");
    }

    #[test]
    fn lists_read_as_sentences_do() {
        assert_eq!(list(&["A"]), "A");
        assert_eq!(list(&["A", "B", "C"]), "A, B and C");
    }
}
