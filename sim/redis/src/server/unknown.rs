//! Commands that no simulated server knows, as clients sent them.

use std::collections::BTreeMap;

use super::Server;
use crate::commands;

/// Maximum number of different commands that are noted until they are taken.
const COMMANDS_MAX: usize = 16;
/// Maximum length of a noted name; a longer one is cut.
const NAME_MAX: usize = 32;

/// A command that no simulated server knows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnknownCommand {
    /// Its name in upper case, with escapes for bytes that are no printable ASCII.
    pub name: String,
    /// True if a script called it.
    pub in_script: bool,
}

impl Server {
    /// Notes a refused command if no profile has it. A command that another version has is refused by a
    /// real server, too.
    pub(crate) fn note_unknown(&mut self, name: &[u8], in_script: bool) {
        if commands::find(name).is_some() {
            return;
        }
        let name = name[..name.len().min(NAME_MAX)].to_ascii_uppercase();
        let command = UnknownCommand { name: name.escape_ascii().to_string(), in_script };
        if self.unknown.len() < COMMANDS_MAX || self.unknown.contains_key(&command) {
            *self.unknown.entry(command).or_default() += 1;
        }
    }

    /// Takes the commands that were refused since the last call because no simulated server knows them,
    /// each with the number of its calls.
    pub fn take_unknown(&mut self) -> BTreeMap<UnknownCommand, u64> {
        core::mem::take(&mut self.unknown)
    }
}
