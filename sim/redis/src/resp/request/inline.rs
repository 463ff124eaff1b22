//! Inline requests, as people type them: words on a line, quoted where necessary.

use bytes::Bytes;

use super::Request;

/// Splits `line` into words; returns `None` if a quote is not closed, or if a quote is closed
/// within a word and `quotes_join` is false.
///
/// Between double quotes `\n \r \t \b \a \xHH` have the same meaning as in C and a backslash makes
/// any other byte literal; between single quotes `\'` is the only escape.
pub(crate) fn words(line: &[u8], quotes_join: bool) -> Option<Request> {
    let mut words = Request::new();
    let mut rest = line;
    loop {
        rest = rest.trim_ascii_start();
        // Vertical tab: the one white space that Redis knows and the standard library does not.
        while let [0x0B, after @ ..] = rest {
            rest = after.trim_ascii_start();
        }
        if rest.is_empty() {
            return Some(words);
        }
        let mut word = Vec::new();
        rest = take_word(rest, quotes_join, &mut word)?;
        words.push(Bytes::from(word));
    }
}

/// Appends the word at the beginning of `rest` to `word`; returns the bytes after it.
fn take_word<'a>(mut rest: &'a [u8], quotes_join: bool, word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            [] => return Some(rest),
            [b' ' | b'\n' | b'\r' | b'\t', after @ ..] => return Some(after),
            [quote @ (b'"' | b'\''), after @ ..] => {
                rest = take_quoted(*quote, after, word)?;
                if !quotes_join {
                    // The closing quote must end the word.
                    let ends = rest.first().is_none_or(|&byte| is_space(byte));
                    return ends.then_some(rest);
                }
            }
            [byte, after @ ..] => {
                word.push(*byte);
                rest = after;
            }
        }
    }
}

fn take_quoted<'a>(quote: u8, mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        let (byte, after) = match rest {
            [] => return None,
            [byte, after @ ..] if *byte == quote => return Some(after),
            [b'\\', b'\'', after @ ..] if quote == b'\'' => (b'\'', after),
            [b'\\', b'x', high, low, after @ ..]
                if quote == b'"' && high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                (digit(*high) << 4 | digit(*low), after)
            }
            [b'\\', escaped, after @ ..] if quote == b'"' => (unescape(*escaped), after),
            [byte, after @ ..] => (*byte, after),
        };
        word.push(byte);
        rest = after;
    }
}

fn digit(hexadecimal: u8) -> u8 {
    char::from(hexadecimal).to_digit(16).map_or(0, |value| value as u8)
}

fn unescape(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        other => other,
    }
}

fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0B
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str) -> Option<Vec<String>> {
        told(words(line.as_bytes(), false))
    }

    fn told(words: Option<Request>) -> Option<Vec<String>> {
        Some(words?.iter().map(|word| word.escape_ascii().to_string()).collect())
    }

    #[test]
    fn quotes_join_words_where_they_may() {
        for (line, word) in
            [(r#""a"b"#, "ab"), ("'a'\"b\"", "ab"), (r#"a"b c"d"#, "ab cd"), ("''x", "x")]
        {
            assert_eq!(told(words(line.as_bytes(), true)), Some(vec![word.into()]), "{line}");
        }
        assert_eq!(words(b"\"a\"'b", true), None);
    }

    #[test]
    fn words_are_separated_by_any_white_space() {
        assert_eq!(split(" SET \t k\x0b\x0cv "), Some(vec!["SET".into(), r"k\x0b\x0cv".into()]));
        assert_eq!(split(" \x0b \x0c"), Some(vec![]));
        assert_eq!(split(""), Some(vec![]));
    }

    #[test]
    fn quotes_keep_spaces_and_escapes_are_those_of_c() {
        let line = r#""a b" 'c d' "\x41\n\q\"" 'it\'s\n' "\xZZ" x"y" """#;
        let expected = ["a b", "c d", r#"A\nq\""#, r"it\'s\\n", "xZZ", "xy", ""];
        assert_eq!(split(line), Some(expected.map(String::from).to_vec()));
    }

    #[test]
    fn a_quote_must_be_closed_at_the_end_of_a_word() {
        for line in [r#""a"#, "'a", r#""a"b"#, "'a'b", r#"a"b"c"#, r#""a\"#, r#""\x4"#] {
            assert_eq!(split(line), None, "{line}");
        }
    }
}
