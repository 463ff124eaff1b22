//! Durations as people write them: `500ms`, `30s`, `1h30m`.

use core::time::Duration;

use crate::settings::TEN_YEARS;

/// Reason why a text is no duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DurationError {
    /// Not one or more whole numbers, each with a unit.
    #[error("expected a number with a unit (ms, s, m, h or d), as in `500ms`, `30s` or `1h30m`")]
    Malformed,
    /// Longer than ten years, which is taken for a mistake.
    #[error("longer than ten years")]
    TooLong,
}

/// Parses one or more whole numbers, each with its unit (`ms`, `s`, `m`, `h` or `d`), as in `1h30m`.
/// `0` needs no unit.
///
/// # Errors
///
/// If `text` has another form, or the duration is longer than ten years.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let (mut total, mut rest) = (Duration::ZERO, text);
    loop {
        let (number, tail) = split(rest, |c| c.is_ascii_digit());
        let (unit, tail) = split(tail, |c| c.is_ascii_alphabetic());
        let unit_ms: u64 = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(DurationError::Malformed),
        };
        if number.is_empty() {
            return Err(DurationError::Malformed);
        }
        let ms = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit_ms));
        let part = Duration::from_millis(ms.ok_or(DurationError::TooLong)?);
        total = total.saturating_add(part);
        if total > TEN_YEARS {
            return Err(DurationError::TooLong);
        }
        if tail.is_empty() {
            return Ok(total);
        }
        rest = tail;
    }
}

/// Splits `text` behind the longest prefix of characters that `belong`.
fn split(text: &str, belong: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belong(c)).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units() {
        let ms = |ms| Ok(Duration::from_millis(ms));
        assert_eq!(parse_duration("0"), ms(0));
        assert_eq!(parse_duration("0s"), ms(0));
        assert_eq!(parse_duration("500ms"), ms(500));
        assert_eq!(parse_duration("30s"), ms(30_000));
        assert_eq!(parse_duration("1h30m"), ms(5_400_000));
        assert_eq!(parse_duration("1d1ms"), ms(86_400_001));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "30", "s", "-1s", "1.5s", "30 s", "30s ", "5 minutes", "1s2", "１s"] {
            assert_eq!(parse_duration(text), Err(DurationError::Malformed), "{text:?}");
        }
        for text in ["3654d", "99999999999999999999s", "18446744073709551615h"] {
            assert_eq!(parse_duration(text), Err(DurationError::TooLong), "{text:?}");
        }
    }
}
