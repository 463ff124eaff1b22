//! Scripts: Lua 5.1 as Redis lets it loose.
//!
//! Every thread has one machine for each [`Style`], which keeps the functions that it compiled.
//! Nothing else survives a run, not a global: what scripts leave ([`Left`]) is the server's to know.

mod arguments;
mod bit;
mod convert;
mod errors;
mod json;
mod library;
mod machine;
mod msgpack;
#[cfg(test)]
mod native_tests;
mod number;
mod sandbox;
mod shebang;
mod shelf;
mod state;
mod structure;
#[cfg(test)]
mod tests;

use super::resp::{Protocol, Value};

pub use machine::{compile, run};
pub use shebang::{Flags, flags};
pub use state::MEMORY_MAX;

/// What a script runs against: the server, as `redis.call` reaches it.
pub trait Caller {
    /// Executes a command for the script, which speaks `protocol` at the moment (`redis.setresp`).
    /// An error is a [`Value::Error`].
    fn call(&mut self, arguments: &[&[u8]], protocol: Protocol) -> Value;

    /// Whether the script must stop now, and what to tell whoever sent it: asked every so many
    /// instructions.
    fn interrupt(&mut self) -> Option<String>;

    /// What earlier scripts left, when the script begins.
    fn left(&self) -> Left {
        Left::default()
    }

    /// What it leaves when it has ended.
    fn leave(&mut self, left: Left) {
        let _ = left;
    }

    /// Whether the user may execute a command (`redis.acl_check_cmd`); `None`: there is none.
    fn is_allowed(&mut self, arguments: &[&[u8]]) -> Option<bool> {
        let _ = arguments;
        Some(true)
    }
}

/// What a server keeps from one script to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// Where the generator of random numbers stands.
    random: u64,
    /// How JSON is written and read.
    json: json::Settings,
}

impl Default for Left {
    fn default() -> Self {
        Self { random: library::SEED, json: json::Settings::default() }
    }
}

impl Left {
    /// The interpreter is a new one (`SCRIPT FLUSH`); the numbers are not its own.
    pub(in crate::master) fn renew(&mut self) {
        self.json = json::Settings::default();
    }
}

/// In what the scripts of servers differ.
#[derive(Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether scripts know the server as `server`, too, errors leave out its name, and numbers are
    /// written as short as they can be told apart: Valkey.
    pub is_valkey: bool,
    /// Whether an error says the hash of its script.
    pub names_script: bool,
    /// Whether numbers are written as short as they can be told from others, not with 17 digits.
    pub writes_shortest: bool,
    /// The version of Redis that scripts are told.
    pub version: (u8, u8, u8),
    /// The server's own name and version, where that is not Redis.
    pub own: Option<(&'static str, (u8, u8, u8))>,
}

/// Redis 7.0.
pub const REDIS_7_0: Style = Style {
    is_valkey: false,
    names_script: true,
    writes_shortest: false,
    version: (7, 0, 15),
    own: None,
};

/// Valkey 9.
pub const VALKEY_9: Style = Style {
    is_valkey: true,
    names_script: false,
    writes_shortest: true,
    version: (7, 2, 4),
    own: Some(("valkey", (9, 1, 2))),
};

/// The hexadecimal SHA-1 of a script's text, by which servers know it.
pub type Sha = [u8; 40];

/// The name that `word` says, in whatever case.
#[must_use]
pub(in crate::master) fn named(word: &[u8]) -> Option<Sha> {
    let mut sha: Sha = word.try_into().ok()?;
    sha.make_ascii_lowercase();
    Some(sha)
}

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
