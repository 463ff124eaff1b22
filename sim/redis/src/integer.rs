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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn integers_are_read_as_they_are_printed_and_no_otherwise(number: i64, text in "[-+0-9 ]{0,22}") {
            prop_assert_eq!(parse_integer(number.to_string().as_bytes()), Some(number));
            let printed = text.parse::<i64>().ok().filter(|number| number.to_string() == text);
            prop_assert_eq!(parse_integer(text.as_bytes()), printed);
        }
    }
}
