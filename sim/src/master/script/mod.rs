//! Scripts: Lua 5.1 as Redis lets it loose.

use super::resp::{Protocol, Value};

/// What a script runs against: the server, as `redis.call` reaches it.
pub trait Caller {
    /// Executes a command for the script, which speaks `protocol` at the moment (`redis.setresp`).
    /// An error is a [`Value::Error`].
    fn call(&mut self, arguments: &[&[u8]], protocol: Protocol) -> Value;

    /// Whether the script must stop now, and what to tell whoever sent it: asked every so many
    /// instructions.
    fn interrupt(&mut self) -> Option<String>;
}

/// The hexadecimal SHA-1 of a script's text, by which servers know it.
pub type Sha = [u8; 40];

/// The name of `text`.
#[must_use]
pub fn sha_of(text: &[u8]) -> Sha {
    use sha1::{Digest, Sha1};
    let mut sha = [0; 40];
    for (pair, byte) in sha.chunks_exact_mut(2).zip(Sha1::digest(text)) {
        let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).map_or(0, |it| it as u8);
        pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
    }
    sha
}
