//! Lua 5.1 scripts, as Redis runs them.
//!
//! Every thread has one interpreter for each [`Style`], which keeps its compiled functions. No
//! other state of the interpreter survives a run, not even a global. The server keeps the few
//! settings that survive ([`CarriedState`]).

mod arguments;
mod bit;
mod convert;
mod errors;
mod json;
mod library;
mod machine;
mod msgpack;
pub(crate) mod number;
mod sandbox;
mod shebang;
mod shelf;
mod state;
mod structure;
#[cfg(test)]
mod tests;

use crate::resp::{Protocol, Value};

pub use machine::{compile, run};
pub use shebang::{Flags, flags};
pub use state::MEMORY_MAX;

/// The server that a script runs against, as `redis.call` reaches it.
pub trait Caller {
    /// Executes a command for the script, which at this moment speaks `protocol` (`redis.setresp`).
    /// An error is returned as a [`Value::Error`].
    fn call(&mut self, arguments: &[&[u8]], protocol: Protocol) -> Value;

    /// Returns the message for the script's sender if the script must stop now. Called every so
    /// many instructions.
    fn interrupt(&mut self) -> Option<String>;

    /// Returns the state that earlier scripts left; called when the script begins.
    fn left(&self) -> CarriedState {
        CarriedState::default()
    }

    /// Stores the state that the script leaves; called when it has ended.
    fn leave(&mut self, left: CarriedState) {
        let _ = left;
    }

    /// Returns true if the user may execute a command (`redis.acl_check_cmd`); `None` if there is
    /// no such command.
    fn is_allowed(&mut self, arguments: &[&[u8]]) -> Option<bool> {
        let _ = arguments;
        Some(true)
    }
}

/// State that a server keeps from one script to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CarriedState {
    /// State of the random number generator.
    random: u64,
    /// Settings of the JSON encoder and decoder.
    json: json::Settings,
}

impl Default for CarriedState {
    fn default() -> Self {
        Self { random: library::SEED, json: json::Settings::default() }
    }
}

impl CarriedState {
    /// Resets the settings of the interpreter (`SCRIPT FLUSH`). The random number generator is not
    /// part of the interpreter and keeps its state.
    pub(crate) fn renew(&mut self) {
        self.json = json::Settings::default();
    }
}

/// Differences between servers in the behaviour of scripts.
#[derive(Debug, PartialEq, Eq)]
pub struct Style {
    /// True for Valkey: scripts also know the server as `server`, error texts do not name Redis,
    /// and the flags of a script are read before its engine is checked.
    pub is_valkey: bool,
    /// True if an error includes the hash of its script.
    pub names_script: bool,
    /// True if numbers are written with the fewest digits that identify them, instead of 17.
    pub writes_shortest: bool,
    /// Redis version that scripts see.
    pub version: (u8, u8, u8),
    /// The server's own name and version, if it is not Redis.
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

/// SHA-1 of a script's text in hexadecimal, by which servers identify the script.
pub type Sha = [u8; 40];

/// Returns the hash that `word` spells, in any case.
#[must_use]
pub(crate) fn named(word: &[u8]) -> Option<Sha> {
    let mut sha: Sha = word.try_into().ok()?;
    sha.make_ascii_lowercase();
    Some(sha)
}

/// Returns the hash of `text`.
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
