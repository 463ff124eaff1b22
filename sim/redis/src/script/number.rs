//! Numbers as C and real servers write them, and as C reads them.

/// Formats a number like `%.{digits}g` in C.
pub(crate) fn general(number: f64, digits: usize) -> String {
    if !number.is_finite() {
        return not_finite(number);
    }
    let scientific = format!("{number:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').expect("an exponent");
    let exponent: i32 = exponent.parse().expect("a number");
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", without_zeros(mantissa), exponent.unsigned_abs());
    }
    let decimals = usize::try_from(digits as i32 - 1 - exponent).expect("not negative");
    without_zeros(&format!("{number:.decimals$}")).to_owned()
}

/// Returns the shortest text that reads as the same number, in the format of Grisu2's reference.
pub(crate) fn shortest(number: f64) -> String {
    if !number.is_finite() {
        return not_finite(number);
    }
    if number == 0.0 {
        return String::from(if number.is_sign_negative() { "-0" } else { "0" });
    }
    let scientific = format!("{:e}", number.abs());
    let (mantissa, exponent) = scientific.split_once('e').expect("an exponent");
    let exponent: i32 = exponent.parse().expect("a number");
    let digits = mantissa.replace('.', "");
    let count = digits.len() as i32;
    let trailing = exponent - count + 1;
    let sign = if number < 0.0 { "-" } else { "" };
    if trailing >= 0 && exponent < count + 7 {
        return format!("{sign}{digits}{}", "0".repeat(trailing as usize));
    }
    if trailing < 0 && (trailing > -7 || exponent.abs() < 4) {
        return match usize::try_from(count + trailing) {
            Ok(whole) if whole > 0 => format!("{sign}{}.{}", &digits[..whole], &digits[whole..]),
            _ => format!("{sign}0.{}{digits}", "0".repeat((-trailing - count) as usize)),
        };
    }
    let (first, rest) = digits.split_at(1);
    let point = if rest.is_empty() { "" } else { "." };
    let exponent_sign = if exponent < 0 { '-' } else { '+' };
    format!("{sign}{first}{point}{rest}e{exponent_sign}{}", exponent.unsigned_abs())
}

/// Returns the integer part as an x86 cast does: a number that does not fit becomes the least
/// integer.
pub(super) fn truncate(number: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&number) { number as i64 } else { i64::MIN }
}

/// Parses the number at the beginning of `text` like `strtod`; returns it with its length.
pub(crate) fn leading(text: &[u8]) -> Option<(f64, usize)> {
    let sign = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    let negate = |number: f64| if text[0] == b'-' { -number } else { number };
    let rest = &text[sign..];
    for (word, value) in [("infinity", f64::INFINITY), ("inf", f64::INFINITY), ("nan", f64::NAN)] {
        if rest.get(..word.len()).is_some_and(|it| it.eq_ignore_ascii_case(word.as_bytes())) {
            return Some((negate(value), sign + word.len()));
        }
    }
    let count = |bytes: &[u8], is_digit: fn(&u8) -> bool| {
        bytes.iter().take_while(|byte| is_digit(byte)).count()
    };
    let is_hexadecimal = rest.get(..2).is_some_and(|it| it.eq_ignore_ascii_case(b"0x"));
    let digits = if is_hexadecimal { count(&rest[2..], u8::is_ascii_hexdigit) } else { 0 };
    if digits > 0 {
        let digit = |number: f64, byte: &u8| {
            number * 16.0 + f64::from((*byte as char).to_digit(16).unwrap_or(0))
        };
        let value = rest[2..2 + digits].iter().fold(0.0, digit);
        return Some((negate(value), sign + 2 + digits));
    }
    let mut length = count(rest, u8::is_ascii_digit);
    let mut digits = length;
    if rest.get(length) == Some(&b'.') {
        let decimals = count(&rest[length + 1..], u8::is_ascii_digit);
        digits += decimals;
        length += 1 + decimals;
    }
    if digits == 0 {
        return None;
    }
    if matches!(rest.get(length), Some(b'e' | b'E')) {
        let signed = usize::from(matches!(rest.get(length + 1), Some(b'-' | b'+')));
        let exponent = count(&rest[length + 1 + signed..], u8::is_ascii_digit);
        if exponent > 0 {
            length += 1 + signed + exponent;
        }
    }
    let number: f64 = core::str::from_utf8(&rest[..length]).ok()?.parse().ok()?;
    Some((negate(number), sign + length))
}

/// Parses all of `text` as a number, with or without white space around it.
pub(super) fn parse(text: &[u8]) -> Option<f64> {
    let text = text.trim_ascii();
    leading(text).filter(|(_, length)| *length == text.len()).map(|(number, _)| number)
}

fn not_finite(number: f64) -> String {
    let sign = if number.is_sign_negative() { "-" } else { "" };
    format!("{sign}{}", if number.is_nan() { "nan" } else { "inf" })
}

fn without_zeros(decimal: &str) -> &str {
    if decimal.contains('.') {
        decimal.trim_end_matches('0').trim_end_matches('.')
    } else {
        decimal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_c_does_with_17_digits() {
        for (number, expected) in [
            (0.1, "0.10000000000000001"),
            (1_000.0, "1000"),
            (1e15, "1000000000000000"),
            (1e17, "1e+17"),
            (1e-5, "1.0000000000000001e-05"),
            (1e300, "1.0000000000000001e+300"),
            (-0.0, "-0"),
            (f64::NEG_INFINITY, "-inf"),
            (123_456_789.123, "123456789.123"),
        ] {
            assert_eq!(general(number, 17), expected);
        }
        assert_eq!(general(core::f64::consts::PI, 14), "3.1415926535898");
    }

    #[test]
    fn the_shortest_number_has_an_exponent_where_it_saves_much() {
        for (number, expected) in [
            (0.1, "0.1"),
            (1e-5, "0.00001"),
            (1e-7, "1e-7"),
            (1e19, "1e+19"),
            (1e300, "1e+300"),
            (1.5, "1.5"),
            (-1.25e-10, "-1.25e-10"),
            (1234.5678, "1234.5678"),
        ] {
            assert_eq!(shortest(number), expected);
        }
    }

    #[test]
    fn numbers_beyond_64_bits_become_the_least_integer() {
        assert_eq!(truncate(3.99), 3);
        assert_eq!(truncate(-3.99), -3);
        for number in [1e20, -1e20, f64::NAN, 9_223_372_036_854_775_808.0] {
            assert_eq!(truncate(number), i64::MIN);
        }
    }
}
