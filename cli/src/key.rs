//! Names of locks and of their holders, as bytes and as text.

use core::fmt::{self, Write};
use core::time::Duration;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use clap::builder::{OsStringValueParser, TryMapValueParser, TypedValueParser, ValueParserFactory};
use redlock_client::RESOURCE_BYTES_MAX;

/// Bytes of a token of this project's client.
const TOKEN_BYTES: usize = 20;
/// Bytes of a token that are shown: enough to tell holders apart, too few to release their locks.
const SHOWN_BYTES: usize = 4;
/// Longest text of another library's value that is shown.
const SHOWN_CHARS: usize = 36;

/// Name of a lock, of a length that a lock's name can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key(OsString);

/// Reason why a word is no name of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeyError {
    #[error("the name of a lock is not empty")]
    Empty,
    #[error("the name of a lock has {RESOURCE_BYTES_MAX} bytes at most, and this one has {0}")]
    TooLong(usize),
}

impl Key {
    /// Returns the name that `word` is.
    pub(crate) fn new(word: OsString) -> Result<Self, KeyError> {
        match word.len() {
            0 => Err(KeyError::Empty),
            bytes if bytes > RESOURCE_BYTES_MAX => Err(KeyError::TooLong(bytes)),
            _ => Ok(Self(word)),
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl ValueParserFactory for Key {
    type Parser = TryMapValueParser<OsStringValueParser, fn(OsString) -> Result<Self, KeyError>>;

    fn value_parser() -> Self::Parser {
        OsStringValueParser::new().try_map(Self::new)
    }
}

impl AsRef<OsStr> for Key {
    fn as_ref(&self) -> &OsStr {
        &self.0
    }
}

/// Shows the name as text on one line: what a terminal would obey is escaped.
impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.to_string_lossy().chars().try_for_each(|it| match it.is_control() {
            true => write!(formatter, "{}", it.escape_default()),
            false => formatter.write_char(it),
        })
    }
}

/// Returns a short name for the holder of keys with `value`: the first digits of the token of a
/// client of this project, or else the shortened value.
pub(crate) fn holder(value: &[u8]) -> String {
    let is_text = value.iter().all(|&byte| byte == b' ' || byte.is_ascii_graphic());
    if value.len() != TOKEN_BYTES && is_text {
        let text = String::from_utf8_lossy(value);
        let shown: String = text.chars().take(SHOWN_CHARS).collect();
        let more = if shown.len() < text.len() { "…" } else { "" };
        return format!("\"{shown}{more}\"");
    }
    let shown = value.iter().take(SHOWN_BYTES);
    shown.map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the time left in words.
pub(crate) fn time_left(left: Option<Duration>) -> String {
    match left {
        Some(left) => format!("{:.1}s", left.as_secs_f64()),
        None => String::from("ever: the key never expires"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_a_length_and_no_effect_on_a_terminal() {
        let shown = |word: &str| Key::new(OsString::from(word)).map(|key| key.to_string());
        assert_eq!(shown(""), Err(KeyError::Empty));
        assert_eq!(shown(&"x".repeat(4_097)), Err(KeyError::TooLong(4_097)));
        assert_eq!(shown("kündigung 7").as_deref(), Ok("kündigung 7"));
        assert_eq!(shown("a\n\u{1b}[2J").as_deref(), Ok("a\\n\\u{1b}[2J"));
    }

    #[test]
    fn a_token_is_never_shown_whole() {
        assert_eq!(holder(&[0xab; 20]), "abababab");
        assert_eq!(holder(b"twenty characters!!!"), "7477656e");
        assert_eq!(holder(&[0, 1]), "0001");
    }

    #[test]
    fn a_value_of_another_library_is_shown_as_text() {
        assert_eq!(holder(b"host-7 pid 31"), "\"host-7 pid 31\"");
        assert_eq!(holder(b""), "\"\"");
        assert_eq!(holder(&[b'x'; 40]), format!("\"{}…\"", "x".repeat(36)));
    }
}
