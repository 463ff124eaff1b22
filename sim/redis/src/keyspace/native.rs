//! Scripts on one key, in Rust.

use super::Keyspace;
use super::execute::Turn;
use crate::command::{Change, KeyCommand, Reply};

/// One key, as a native script reads and changes it ([`Keyspace::run`]).
#[derive(Debug)]
pub struct NativeKey<'a> {
    keyspace: &'a mut Keyspace,
    key: &'a [u8],
    turn: Turn,
    /// Last change by the script.
    change: Change,
}

impl<'a> NativeKey<'a> {
    pub(super) fn new(keyspace: &'a mut Keyspace, key: &'a [u8], turn: Turn) -> Self {
        Self { keyspace, key, turn, change: Change::Nothing }
    }

    /// Returns the value of the key; `None` if it does not exist or is not a string.
    #[must_use]
    pub fn value(&self) -> Option<&[u8]> {
        self.keyspace.stored(self.key).and_then(|entry| Some(&**entry.value.as_string()?))
    }

    /// Executes a command on the key.
    pub fn execute(&mut self, command: KeyCommand<'_>) -> Reply {
        let (reply, change) = self.keyspace.apply(self.key, command, self.turn);
        if change != Change::Nothing {
            self.change = change;
        }
        reply
    }

    pub(super) fn change(&self) -> Change {
        self.change
    }
}
