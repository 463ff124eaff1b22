//! The commands, as a table: what each is called, how many arguments it takes, when it is refused,
//! and what it does.

mod admin;
mod call;
mod client;
mod connection;
mod dispatch;
mod execution;
mod expiry;
mod info;
mod keys;
mod scripting;
mod set;
mod strings;
mod text;
mod transactions;

use std::sync::LazyLock;

pub(in crate::master) use call::{Call, Ending, Outcome};

use super::keyspace::parse_integer;
use super::profile::Feature;
use super::refusal::Refusal;
use super::server::Server;

/// What a command does.
type Run = fn(&mut Call<'_>) -> Outcome;

/// A command, or a subcommand of one.
#[derive(Debug)]
pub(in crate::master) struct Spec {
    /// Its name in lower case; subcommands have that of their command before them: `client|id`.
    pub(in crate::master) name: &'static str,
    /// How many words a request has, its name among them; so many at least if negative.
    arity: i8,
    flags: u16,
    /// Which of the words are keys.
    keys: Keys,
    /// What a server must have for it to be known.
    pub(in crate::master) feature: Feature,
    run: Run,
    /// The second word is the name of one of these.
    subcommands: &'static [Self],
}

/// Which words of a request are keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keys {
    /// None of them, or they say so themselves.
    None,
    /// The first argument.
    First,
    /// The second argument, behind the name of a subcommand.
    Second,
    /// The first two.
    FirstTwo,
    /// All arguments.
    All,
    /// Every other argument.
    EveryOther,
    /// As many as the second argument says, behind it.
    Counted,
}

/// It may change keys.
const WRITE: u16 = 1;
/// It may need memory.
const DENY_OOM: u16 = 2;
/// Scripts may not use it.
const NO_SCRIPT: u16 = 4;
/// It is executed while the server loads its data.
const LOADING: u16 = 8;
/// Who has not said who he is may use it.
const NO_AUTH: u16 = 16;
/// It is executed while a script runs too long.
const BUSY: u16 = 32;
/// It is executed even between MULTI and EXEC.
const AT_ONCE: u16 = 64;
/// It is executed by a replica that has lost its master.
const STALE: u16 = 128;
/// It is refused between MULTI and EXEC where transactions may not contain such.
const NO_MULTI: u16 = 256;
/// Scripts may not use it where there is no [`Feature::WaitInScripts`].
const NO_SCRIPT_WAITS: u16 = 512;
/// It reads its keys and changes none: tracking connections are registered for them.
const READ: u16 = 1_024;

impl Keys {
    /// Those of a request.
    fn of<'a>(self, words: &'a [&'a [u8]]) -> Box<dyn Iterator<Item = &'a [u8]> + 'a> {
        let arguments = words[1..].iter().copied();
        match self {
            Self::None => Box::new(core::iter::empty()),
            Self::First => Box::new(arguments.take(1)),
            Self::Second => Box::new(arguments.skip(1).take(1)),
            Self::FirstTwo => Box::new(arguments.take(2)),
            Self::All => Box::new(arguments),
            Self::EveryOther => Box::new(arguments.step_by(2)),
            Self::Counted => {
                let count = words.get(2).and_then(|word| parse_integer(word)).unwrap_or(0);
                Box::new(arguments.skip(2).take(usize::try_from(count).unwrap_or(0)))
            }
        }
    }
}

impl Spec {
    const fn new(name: &'static str, arity: i8, flags: u16, keys: Keys, run: Run) -> Self {
        Self { name, arity, flags, keys, feature: Feature::Always, run, subcommands: &[] }
    }

    /// A command that is nothing without a subcommand.
    const fn container(name: &'static str, subcommands: &'static [Self]) -> Self {
        let spec = Self::new(name, -2, 0, Keys::None, dispatch::unreachable_container);
        Self { subcommands, ..spec }
    }

    /// A command that does without a subcommand, too.
    const fn group(name: &'static str, flags: u16, subcommands: &'static [Self], run: Run) -> Self {
        Self { subcommands, ..Self::new(name, -1, flags, Keys::None, run) }
    }

    const fn where_there_is(self, feature: Feature) -> Self {
        Self { feature, ..self }
    }

    pub(in crate::master) fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    fn takes(&self, words: usize) -> bool {
        let arity = usize::from(self.arity.unsigned_abs());
        if self.arity < 0 { words >= arity } else { words == arity }
    }
}

impl Server {
    /// From now on it does not know the command, as after `rename-command NAME ""`; whether there
    /// was one.
    pub fn lack(&mut self, command: &str) -> bool {
        let found = find(command.as_bytes());
        self.lacking.extend(found.map(|spec| spec.name));
        found.is_some()
    }

    /// Whether it has the command.
    pub(in crate::master) fn has(&self, command: &Spec) -> bool {
        self.profile().has(command.feature) && !self.lacking.contains(command.name)
    }
}

/// All of them, by name.
static SORTED: LazyLock<Vec<&'static Spec>> = LazyLock::new(|| {
    let tables = [
        admin::COMMANDS,
        client::COMMANDS,
        connection::COMMANDS,
        expiry::COMMANDS,
        info::COMMANDS,
        keys::COMMANDS,
        scripting::COMMANDS,
        strings::COMMANDS,
        transactions::COMMANDS,
    ];
    let mut specs: Vec<_> = tables.into_iter().flatten().collect();
    specs.sort_unstable_by_key(|spec| spec.name);
    assert!(specs.is_sorted_by(|a, b| a.name < b.name), "every name is there once");
    specs
});

/// The longest name of a command.
const NAME_MAX: usize = 16;

/// The command of this name, in whatever case.
pub(in crate::master) fn find(name: &[u8]) -> Option<&'static Spec> {
    let mut lower = [0; NAME_MAX];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    let place = SORTED.binary_search_by(|spec| spec.name.as_bytes().cmp(lower)).ok()?;
    Some(SORTED[place])
}

/// Whether there is a command of this name, or a subcommand (`client|id`).
pub(in crate::master) fn is_command(name: &str) -> bool {
    let container = name.split('|').next().and_then(|name| find(name.as_bytes()));
    let mut subcommands = container.iter().flat_map(|spec| spec.subcommands);
    container.is_some_and(|spec| spec.name == name) || subcommands.any(|spec| spec.name == name)
}

#[cfg(test)]
mod tests;
