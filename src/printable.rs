//! What a server said, made fit to be shown to people.

use std::sync::Arc;

/// The longest text that is kept, in bytes.
const LENGTH_MAX: usize = 200;

/// Servers repeat the arguments of a command that they do not know: names of keys, tokens, and the
/// password, if it is `HELLO`.
const ECHO: &[u8] = b", with args beginning with";

/// `text` in printable characters, without what repeats a command, and without `secret`.
pub(crate) fn printable(text: &[u8], secret: &[u8]) -> Arc<str> {
    let mut end = find(text, ECHO).unwrap_or(text.len());
    let hidden = find(&text[..end], secret).filter(|_| !secret.is_empty());
    end = hidden.unwrap_or(end);
    let mut shown = String::new();
    let mut cut = hidden.is_some();
    for &byte in &text[..end] {
        let escaped = core::ascii::escape_default(byte);
        let plain = byte == b' ' || byte.is_ascii_graphic();
        if shown.len() + escaped.len() > LENGTH_MAX - '…'.len_utf8() {
            cut = true;
            break;
        }
        if plain {
            shown.push(char::from(byte));
        } else {
            shown.extend(escaped.map(char::from));
        }
    }
    if cut {
        shown.push('…');
    }
    shown.into()
}

fn find(text: &[u8], pattern: &[u8]) -> Option<usize> {
    text.windows(pattern.len().max(1)).position(|window| window == pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, secret: &str) -> String {
        printable(text.as_bytes(), secret.as_bytes()).to_string()
    }

    #[test]
    fn a_plain_text_is_left_as_it_is() {
        let text = "NOPERM User 'me' has no permissions to run the \\ 'set' command";
        assert_eq!(shown(text, "secret"), text);
        assert_eq!(shown("", ""), "");
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(shown("ERR \u{1b}[2J\r\n\0é", ""), r"ERR \x1b[2J\r\n\x00\xc3\xa9");
    }

    #[test]
    fn a_long_text_is_cut() {
        for text in ["x".repeat(1_000), "\u{1}".repeat(1_000)] {
            let shown = shown(&text, "");
            assert!((190..=200).contains(&shown.len()) && shown.ends_with('…'), "{shown}");
        }
    }

    #[test]
    fn what_repeats_a_command_or_a_secret_is_hidden() {
        let echo =
            "ERR unknown command `HELLO`, with args beginning with: `3`, `AUTH`, `me`, `secret`";
        assert_eq!(shown(echo, ""), "ERR unknown command `HELLO`");
        assert_eq!(shown("ERR bad password 'secret'!", "secret"), "ERR bad password '…");
    }
}
