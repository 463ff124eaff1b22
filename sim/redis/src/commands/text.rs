//! Error texts as Redis words them.

pub(super) use crate::bytes::until_zero;

use crate::integer::parse_integer;
use crate::refusal::Refusal;

pub(super) const NOT_AN_INTEGER: Refusal =
    Refusal::new("ERR value is not an integer or out of range");
pub(super) const NOT_AN_INT: Refusal =
    Refusal::new("ERR value is out of range, value must between -2147483648 and 2147483647");
pub(super) const SYNTAX: Refusal = Refusal::new("ERR syntax error");
pub(super) const NO_SUCH_KEY: Refusal = Refusal::new("ERR no such key");
pub(super) const DATABASE_RANGE: Refusal = Refusal::new("ERR DB index is out of range");
pub(super) const WRONG_PASSWORD: Refusal =
    Refusal::new("WRONGPASS invalid username-password pair or user is disabled.");
pub(super) const NO_AUTHENTICATION: Refusal = Refusal::new("NOAUTH Authentication required.");
pub(super) const OUT_OF_MEMORY: Refusal =
    Refusal::new("OOM command not allowed when used memory > 'maxmemory'.");
pub(super) const MASTER_DOWN: Refusal = Refusal::new(
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
);
pub(super) const TOO_LONG: Refusal =
    Refusal::new("ERR string exceeds maximum allowed size (proto-max-bulk-len)");

/// Greatest number of bytes of a request that an error repeats.
const QUOTED_MAX: usize = 128;

/// Returns at most `most` bytes of a C string.
fn quoted(bytes: &[u8], most: usize) -> &[u8] {
    let bytes = until_zero(bytes);
    &bytes[..bytes.len().min(most)]
}

pub(super) fn arity(name: &str) -> Refusal {
    Refusal::of(format!("ERR wrong number of arguments for '{name}' command"))
}

/// Returns the error for a refused EXEC, which has ended the transaction.
pub(super) fn aborted(Refusal(why): &Refusal) -> Refusal {
    let why = why.strip_prefix(b"ERR ").unwrap_or(why);
    Refusal::of([b"EXECABORT Transaction discarded because of: ", why].concat())
}

pub(super) fn invalid_expiry(name: &str) -> Refusal {
    Refusal::of(format!("ERR invalid expire time in '{name}' command"))
}

/// Concatenates `before`, the client's words and `after`.
pub(super) fn around(before: &str, said: &[u8], after: &str) -> Refusal {
    Refusal::of([before.as_bytes(), until_zero(said), after.as_bytes()].concat())
}

pub(super) fn unknown_command(words: &[&[u8]]) -> Refusal {
    let mut text = b"ERR unknown command '".to_vec();
    text.extend_from_slice(quoted(words[0], QUOTED_MAX));
    text.extend_from_slice(b"', with args beginning with: ");
    let mut arguments = Vec::new();
    for word in &words[1..] {
        let Some(left @ 1..) = QUOTED_MAX.checked_sub(arguments.len()) else { break };
        arguments.push(b'\'');
        arguments.extend_from_slice(quoted(word, left));
        arguments.extend_from_slice(b"' ");
    }
    text.extend_from_slice(&arguments);
    Refusal::of(text)
}

pub(super) fn unknown_subcommand(container: &str, subcommand: &[u8]) -> Refusal {
    let after = format!("'. Try {} HELP.", container.to_ascii_uppercase());
    around("ERR unknown subcommand '", quoted(subcommand, QUOTED_MAX), &after)
}

/// Returns the error for a subcommand with the wrong number of arguments that the table of commands
/// cannot tell.
pub(super) fn subcommand_arity(container: &str, subcommand: &[u8]) -> Refusal {
    let after = format!("'. Try {} HELP.", container.to_ascii_uppercase());
    let before = "ERR unknown subcommand or wrong number of arguments for '";
    around(before, quoted(subcommand, QUOTED_MAX), &after)
}

/// Returns the error for a command that a subscribed connection of protocol version 2 may not send.
pub(super) fn subscriber(name: &str) -> Refusal {
    Refusal::of(format!(
        "ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET \
         are allowed in this context"
    ))
}

/// Parses a timeout in milliseconds. With `now_ms`, rejects a timeout that ends beyond the clock's
/// range.
pub(super) fn timeout(word: &[u8], now_ms: Option<u64>) -> Result<i64, Refusal> {
    let latest = now_ms.map_or(i64::MAX, |now_ms| i64::MAX - now_ms as i64);
    match parse_integer(word) {
        None => Err(Refusal::new("ERR timeout is not an integer or out of range")),
        Some(..0) => Err(Refusal::new("ERR timeout is negative")),
        Some(timeout) if timeout > latest => Err(Refusal::new("ERR timeout is out of range")),
        Some(timeout) => Ok(timeout),
    }
}
