//! Integers in requests and values.

/// Parses an integer as Redis does: decimal, canonical, with nothing around it.
pub(crate) fn parse_integer(bytes: &[u8]) -> Option<i64> {
    // The longest integer has a sign and nineteen digits.
    let (negative, digits) = match bytes {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [b'0'] => return (!negative).then_some(0),
        [b'1'..=b'9', ..] if digits.len() <= 19 => {}
        _ => return None,
    }
    let mut value: i64 = 0;
    for digit in digits {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit <= 9)?;
        let digit = i64::from(digit);
        value = value.checked_mul(10)?;
        value = if negative { value.checked_sub(digit)? } else { value.checked_add(digit)? };
    }
    Some(value)
}

/// Parses the integer at the beginning of a word as C's `atoi` does: 0 if there is none.
pub(crate) fn leading_integer(word: &[u8]) -> i32 {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let start = word.iter().position(|byte| !is_space(byte)).unwrap_or(word.len());
    let (sign, digits) = match &word[start..] {
        [b'-', digits @ ..] => (-1, digits),
        [b'+', digits @ ..] | digits => (1, digits),
    };
    let digits = digits.iter().map_while(|byte| char::from(*byte).to_digit(10));
    let number = digits.fold(0_i64, |number, digit| {
        number.saturating_mul(10).saturating_add(sign * i64::from(digit))
    });
    // Cut like C's conversion from `long` to `int`.
    number as i32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_leading_integer_ends_at_the_first_other_byte() {
        let words = ["1e3", " 12 ", "-7x", "+5", "", "x", "9223372036854775808", "4294967297"];
        let read = words.map(|word| leading_integer(word.as_bytes()));
        assert_eq!(read, [1, 12, -7, 5, 0, 0, -1, 1]);
    }

    proptest! {
        #[test]
        fn integers_are_read_as_they_are_printed_and_no_otherwise(number: i64, text in "[-+0-9 ]{0,22}") {
            prop_assert_eq!(parse_integer(number.to_string().as_bytes()), Some(number));
            let printed = text.parse::<i64>().ok().filter(|number| number.to_string() == text);
            prop_assert_eq!(parse_integer(text.as_bytes()), printed);
        }
    }
}
