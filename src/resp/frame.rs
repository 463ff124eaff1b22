//! Encodes commands as arrays of bulk strings, which every version of the protocol accepts.

use bytes::BufMut;

/// Largest number of digits of a 64-bit number.
const DIGITS_MAX: usize = 20;

/// A number in decimal digits.
pub(super) struct Decimal {
    digits: [u8; DIGITS_MAX],
    first: usize,
}

impl Decimal {
    pub(super) fn new(number: u64) -> Self {
        let mut digits = [0; DIGITS_MAX];
        let first = put_digits(&mut digits, number);
        Self { digits, first }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.digits[self.first..]
    }
}

/// Appends a command. It does not use the library's encoder, which computes logarithms to find
/// lengths: no operation is more frequent.
pub(crate) fn write(buffer: &mut impl BufMut, arguments: &[&[u8]]) {
    header(buffer, b'*', arguments.len());
    for argument in arguments {
        header(buffer, b'$', argument.len());
        buffer.put_slice(argument);
        buffer.put_slice(b"\r\n");
    }
}

/// Appends `kind`, `length` and a line break, in one piece: most pieces of a command are headers.
fn header(buffer: &mut impl BufMut, kind: u8, length: usize) {
    let mut line = [0; 1 + DIGITS_MAX + 2];
    let (head, line_break) = line.split_at_mut(1 + DIGITS_MAX);
    line_break.copy_from_slice(b"\r\n");
    let first = put_digits(head, length as u64) - 1;
    head[first] = kind;
    buffer.put_slice(&line[first..]);
}

/// Writes `number` in decimal digits to the end of `digits`. Returns the place of the first digit.
fn put_digits(digits: &mut [u8], mut number: u64) -> usize {
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return first;
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use proptest::prelude::*;
    use redis_protocol::resp2::encode::extend_encode_borrowed;
    use redis_protocol::resp2::types::BorrowedFrame;

    use super::*;

    #[test]
    fn numbers_are_written_as_they_are_read() {
        for number in [0, 1, 9, 10, 99, 100, 12_345, u64::MAX] {
            assert_eq!(Decimal::new(number).as_bytes(), number.to_string().as_bytes());
        }
    }

    proptest! {
        #[test]
        fn a_command_is_what_the_library_makes_of_it(
            arguments in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..7),
        ) {
            let arguments: Vec<&[u8]> = arguments.iter().map(|it| &it[..]).collect();
            let (mut ours, mut theirs) = (BytesMut::from("before"), BytesMut::from("before"));
            write(&mut ours, &arguments);
            let frames: Vec<_> =
                arguments.iter().map(|argument| BorrowedFrame::BulkString(argument)).collect();
            extend_encode_borrowed(&mut theirs, &BorrowedFrame::Array(&frames), false).unwrap();
            prop_assert_eq!(ours, theirs);
        }
    }
}
