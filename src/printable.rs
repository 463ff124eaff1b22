//! Converts server texts into printable form.

use std::sync::Arc;

/// Longest text that is kept, in bytes.
const LENGTH_MAX: usize = 200;

/// Bytes of the longest escape, as in `\x1b`.
const LONGEST_ESCAPE: usize = 4;

/// Replacement for hidden text.
const HIDDEN: char = '…';

/// Start of the arguments that servers repeat for an unknown command: key names, tokens, and, for
/// `HELLO`, the password.
const ECHO: &[u8] = b", with args beginning with";

/// Returns `text` in printable characters, without repeated arguments of a command. `…` replaces
/// each of `secrets`, and each of `users` where it is a word of its own: a short user name may be
/// part of ordinary words.
pub(crate) fn printable(text: &[u8], users: &[&[u8]], secrets: &[&[u8]]) -> Arc<str> {
    let text = &text[..find(text, ECHO).unwrap_or(text.len())];
    let mut shown = String::new();
    let mut at = 0;
    while at < text.len() {
        if shown.len() > LENGTH_MAX - LONGEST_ESCAPE - HIDDEN.len_utf8() {
            shown.push(HIDDEN);
            break;
        }
        let is_here = |it: &&&[u8]| !it.is_empty() && text[at..].starts_with(it);
        let secrets = secrets.iter().filter(is_here).map(|secret| secret.len());
        let users = users.iter().filter(|user| is_word(text, at, user)).map(|user| user.len());
        if let Some(length) = secrets.chain(users).max() {
            shown.push(HIDDEN);
            at += length;
            continue;
        }
        if text[at] == b' ' || text[at].is_ascii_graphic() {
            shown.push(char::from(text[at]));
        } else {
            shown.extend(core::ascii::escape_default(text[at]).map(char::from));
        }
        at += 1;
    }
    shown.into()
}

/// Returns true if the word of `text` that begins at `at` is `word`.
fn is_word(text: &[u8], at: usize, word: &[u8]) -> bool {
    let (before, from) = text.split_at(at);
    let rest = from.strip_prefix(word).filter(|_| !word.is_empty());
    let is_outside = |byte: Option<&u8>| !byte.is_some_and(u8::is_ascii_alphanumeric);
    rest.is_some_and(|rest| is_outside(rest.first()) && is_outside(before.last()))
}

fn find(text: &[u8], pattern: &[u8]) -> Option<usize> {
    text.windows(pattern.len()).position(|window| window == pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, secret: &str) -> String {
        printable(text.as_bytes(), &[], &[secret.as_bytes()]).to_string()
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
    fn texts_that_repeat_a_command_or_a_secret_are_hidden() {
        let echo =
            "ERR unknown command `HELLO`, with args beginning with: `3`, `AUTH`, `me`, `secret`";
        assert_eq!(shown(echo, ""), "ERR unknown command `HELLO`");
        assert_eq!(shown("ERR bad password 'secret'!", "secret"), "ERR bad password '…'!");
        assert_eq!(shown("secretsecret", "secret"), "……");
    }

    #[test]
    fn of_two_secrets_the_longer_one_is_hidden() {
        let secrets: [&[u8]; 3] = [b"", b"lock", b"locksmith"];
        let shown = printable(b"NOPERM User locksmith has no permissions", &[], &secrets);
        assert_eq!(&*shown, "NOPERM User … has no permissions");
    }

    #[test]
    fn a_user_is_hidden_where_it_is_a_word() {
        let text = b"has: NOPERM User has has no permissions, phase hash 'has'";
        let shown = printable(text, &[b"has"], &[]);
        assert_eq!(&*shown, "…: NOPERM User … … no permissions, phase hash '…'");
    }
}
