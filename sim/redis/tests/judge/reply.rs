//! Replies as this test reads them: a separate parser that shares no code with the masters.

use std::fmt::Write;

/// A parsed reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// An aggregate: type byte and count as received, and the elements.
    Many(Vec<u8>, Vec<Reply>),
    /// Any other reply: type byte and content.
    One(u8, Vec<u8>),
}

/// Parses the reply at the start of `bytes`. Returns the reply and its length, or `None` if it is
/// incomplete.
pub(crate) fn parse(bytes: &[u8]) -> Option<(Reply, usize)> {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    let (&mark, text) = bytes[..end].split_first()?;
    let mut at = end + 2;
    let count = || std::str::from_utf8(text).ok().and_then(|text| text.parse::<i64>().ok());
    match mark {
        b'$' | b'=' | b'!' => match count().and_then(|length| usize::try_from(length).ok()) {
            None => Some((Reply::One(mark, text.to_vec()), at)),
            Some(length) => {
                let content = bytes.get(at..at + length)?;
                bytes.get(at + length..at + length + 2)?;
                Some((Reply::One(mark, content.to_vec()), at + length + 2))
            }
        },
        b'*' | b'~' | b'>' | b'%' | b'|' => {
            let pairs = usize::from(mark == b'%' || mark == b'|') + 1;
            let count = usize::try_from(count()?).unwrap_or(0) * pairs;
            let mut replies = Vec::new();
            for _ in 0..count {
                let (reply, length) = parse(&bytes[at..])?;
                replies.push(reply);
                at += length;
            }
            Some((Reply::Many(bytes[..end].to_vec(), replies), at))
        }
        _ => Some((Reply::One(mark, text.to_vec()), at)),
    }
}

/// Returns the time in microseconds if `reply` looks like a reply to `TIME`.
pub(crate) fn time_us(reply: &Reply) -> Option<i64> {
    let Reply::Many(_, parts) = reply else { return None };
    let [Reply::One(b'$', seconds), Reply::One(b'$', micros)] = parts.as_slice() else {
        return None;
    };
    // Only a Unix time of these years has ten digits of seconds.
    if seconds.len() != 10 || micros.len() > 6 {
        return None;
    }
    integer(seconds)?.checked_mul(1_000_000)?.checked_add(integer(micros)?)
}

fn integer(digits: &[u8]) -> Option<i64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Returns true if `reply` could lie between two others: each of its parts equals that of one of
/// them, or is a number between theirs.
pub(crate) fn is_between(reply: &Reply, one: &Reply, other: &Reply) -> bool {
    if let (Some(at), Some(a), Some(b)) = (time_us(reply), time_us(one), time_us(other)) {
        return a.min(b) <= at && at <= a.max(b);
    }
    match (reply, one, other) {
        (Reply::Many(mark, all), Reply::Many(one_mark, ones), Reply::Many(other_mark, others)) => {
            let counts = all.len() == ones.len() && all.len() == others.len();
            let marks = mark == one_mark && mark == other_mark;
            let mut each = all.iter().zip(ones.iter().zip(others));
            marks && counts && each.all(|(reply, (one, other))| is_between(reply, one, other))
        }
        _ if reply == one || reply == other => true,
        (Reply::One(mark, text), Reply::One(a_mark, a), Reply::One(b_mark, b)) => {
            let numbers = (integer(text), integer(a), integer(b));
            let (Some(text), Some(a), Some(b)) = numbers else { return false };
            mark == a_mark && mark == b_mark && a.min(b) <= text && text <= a.max(b)
        }
        _ => false,
    }
}

/// Escapes `bytes` into one readable line. [`unescaped`] reverses it.
pub(crate) fn escaped(bytes: &[u8]) -> String {
    let mut text = String::new();
    for &byte in bytes {
        match byte {
            b'\r' => text.push_str("\\r"),
            b'\n' => text.push_str("\\n"),
            b'\\' => text.push_str("\\\\"),
            b' '..=b'~' => text.push(byte as char),
            _ => write!(text, "\\x{byte:02x}").expect("strings take everything"),
        }
    }
    text
}

/// Returns the bytes that `text` stands for, with the usual meaning of `\r`, `\n`, `\\` and `\xNN`.
pub(crate) fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(b'r') => bytes.push(b'\r'),
            Some(b'n') => bytes.push(b'\n'),
            Some(b'x') => {
                let digits = [rest.next(), rest.next()].map(|digit| digit.expect("two digits"));
                let digits = std::str::from_utf8(&digits).expect("two digits");
                bytes.push(u8::from_str_radix(digits, 16).expect("two digits"));
            }
            Some(other) => bytes.push(other),
            None => bytes.push(b'\\'),
        }
    }
    bytes
}
