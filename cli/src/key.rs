//! Names of locks and of their holders, as bytes and as text.

use core::time::Duration;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Bytes of a token of this project's client.
const TOKEN_BYTES: usize = 20;
/// Bytes of a token that are shown: enough to tell holders apart, too few to release their locks.
const SHOWN_BYTES: usize = 4;
/// Longest text of another library's value that is shown.
const SHOWN_CHARS: usize = 36;

/// Returns the bytes of a lock's name.
pub(crate) fn bytes(key: &OsStr) -> &[u8] {
    key.as_bytes()
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
