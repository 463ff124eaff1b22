//! The command table: name, number of arguments, conditions of refusal and implementation of each
//! command.

mod admin;
mod blocking;
mod call;
mod channels;
mod client;
mod connection;
mod dispatch;
mod execution;
mod expiry;
mod facts;
mod hashes;
mod info;
mod introspection;
mod keys;
mod lists;
mod notices;
mod scripting;
mod set;
mod sorted_sets;
mod strings;
mod text;
mod transactions;

use std::sync::LazyLock;

pub(crate) use call::{Call, Ending, Outcome};

use crate::integer::leading_integer;
use crate::profile::Feature;
use crate::refusal::Refusal;
use crate::server::Server;

/// Implementation of a command.
type Run = fn(&mut Call<'_>) -> Outcome;

/// A command or a subcommand.
#[derive(Debug)]
pub(crate) struct Spec {
    /// Name in lower case; a subcommand's includes its command's name: `client|id`.
    pub(crate) name: &'static str,
    /// Number of words of a request, including the name; a negative number is a minimum.
    arity: i8,
    flags: u16,
    /// Words that are keys.
    keys: Keys,
    /// Words that are channels which the user must be allowed to use.
    channels: Channels,
    /// Feature that a server must have to know the command.
    pub(crate) feature: Feature,
    run: Run,
    /// Subcommands, selected by the second word.
    subcommands: &'static [Self],
}

/// Position of the keys among the words of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keys {
    /// No keys, or the command handles its keys itself.
    None,
    /// First argument.
    First,
    /// Second argument, after the name of a subcommand.
    Second,
    /// First two arguments.
    FirstTwo,
    /// All arguments.
    All,
    /// All arguments but the last.
    AllButLast,
    /// Every other argument.
    EveryOther,
    /// As many as the second argument says, following it.
    Counted,
}

/// Position of the channels among the words of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Channels {
    /// No channels.
    None,
    /// First argument.
    First,
    /// All arguments.
    All,
    /// All arguments are patterns.
    Patterns,
    /// Arguments of a command that ends subscriptions, which everybody may do.
    Left,
}

/// May change keys.
const WRITE: u16 = 1;
/// May need memory.
const DENY_OOM: u16 = 2;
/// Forbidden in scripts.
const NO_SCRIPT: u16 = 4;
/// Allowed while the server loads its data.
const LOADING: u16 = 8;
/// Allowed before AUTH.
const NO_AUTH: u16 = 16;
/// Allowed while a script runs too long.
const BUSY: u16 = 32;
/// Executed at once even between MULTI and EXEC.
const AT_ONCE: u16 = 64;
/// Allowed on a replica that has lost its master.
const STALE: u16 = 128;
/// Refused between MULTI and EXEC.
const NO_MULTI: u16 = 256;
/// Forbidden in scripts on servers without [`Feature::WaitInScripts`].
const NO_SCRIPT_WAITS: u16 = 512;
/// Reads its keys and changes none: tracking connections are registered for these keys.
const READ: u16 = 1_024;
/// Changes no key but is forbidden in read-only scripts: real servers send it to replicas.
const MAY_REPLICATE: u16 = 2_048;
/// Allowed on a connection of protocol version 2 that is subscribed to something.
const SUBSCRIBER: u16 = 4_096;
/// Replies before it publishes its keyspace events: a connection that hears its own gets them behind
/// the reply.
const REPLIES_FIRST: u16 = 8_192;

impl Keys {
    /// Returns the keys of a request.
    fn of<'a>(self, words: &'a [&'a [u8]]) -> Box<dyn Iterator<Item = &'a [u8]> + 'a> {
        let arguments = words[1..].iter().copied();
        match self {
            Self::None => Box::new(core::iter::empty()),
            Self::First => Box::new(arguments.take(1)),
            Self::Second => Box::new(arguments.skip(1).take(1)),
            Self::FirstTwo => Box::new(arguments.take(2)),
            Self::All => Box::new(arguments),
            Self::AllButLast => Box::new(arguments.take(words.len().saturating_sub(2))),
            Self::EveryOther => Box::new(arguments.step_by(2)),
            Self::Counted => {
                let count = words.get(2).map_or(0, |word| leading_integer(word));
                let count = usize::try_from(count).unwrap_or(0);
                // A request with fewer words than keys is invalid and names no key.
                let is_whole = words.len().saturating_sub(3) >= count;
                Box::new(arguments.skip(2).take(if is_whole { count } else { 0 }))
            }
        }
    }

    /// Returns the first key, the last key (from the end if negative) and the step between keys;
    /// zeros if no fixed words are keys.
    const fn range(self) -> [i64; 3] {
        match self {
            Self::None | Self::Counted => [0, 0, 0],
            Self::First => [1, 1, 1],
            Self::Second => [2, 2, 1],
            Self::FirstTwo => [1, 2, 1],
            Self::All => [1, -1, 1],
            Self::AllButLast => [1, -2, 1],
            Self::EveryOther => [1, -1, 2],
        }
    }
}

impl Spec {
    const fn new(name: &'static str, arity: i8, flags: u16, keys: Keys, run: Run) -> Self {
        let (channels, feature) = (Channels::None, Feature::Always);
        Self { name, arity, flags, keys, channels, feature, run, subcommands: &[] }
    }

    /// Returns a command that requires a subcommand.
    const fn container(name: &'static str, subcommands: &'static [Self]) -> Self {
        let spec = Self::new(name, -2, 0, Keys::None, dispatch::unreachable_container);
        Self { subcommands, ..spec }
    }

    /// Returns a command whose subcommand is optional.
    const fn group(name: &'static str, flags: u16, subcommands: &'static [Self], run: Run) -> Self {
        Self { subcommands, ..Self::new(name, -1, flags, Keys::None, run) }
    }

    const fn on(self, channels: Channels) -> Self {
        Self { channels, ..self }
    }

    const fn where_there_is(self, feature: Feature) -> Self {
        Self { feature, ..self }
    }

    pub(crate) fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Returns true if `word`, the second one of a request, selects this subcommand.
    fn is_selected_by(&self, word: &[u8]) -> bool {
        let short = self.name.split_once('|').map(|(_, short)| short);
        short.is_some_and(|short| word.eq_ignore_ascii_case(short.as_bytes()))
    }

    fn takes(&self, words: usize) -> bool {
        let arity = usize::from(self.arity.unsigned_abs());
        if self.arity < 0 { words >= arity } else { words == arity }
    }
}

impl Server {
    /// Removes the command from this server, as `rename-command NAME ""` does. Returns false if
    /// there is no such command.
    pub fn lack(&mut self, command: &str) -> bool {
        let found = find(command.as_bytes());
        self.lacking.extend(found.map(|spec| spec.name));
        found.is_some()
    }

    /// Returns true if this server has the command.
    pub(crate) fn has(&self, command: &Spec) -> bool {
        self.profile().has(command.feature) && !self.lacking.contains(command.name)
    }
}

/// All commands, sorted by name.
static SORTED: LazyLock<Vec<&'static Spec>> = LazyLock::new(|| {
    let tables = [
        admin::COMMANDS,
        blocking::COMMANDS,
        channels::COMMANDS,
        client::COMMANDS,
        connection::COMMANDS,
        expiry::COMMANDS,
        hashes::COMMANDS,
        info::COMMANDS,
        introspection::COMMANDS,
        keys::COMMANDS,
        lists::COMMANDS,
        scripting::COMMANDS,
        sorted_sets::COMMANDS,
        strings::COMMANDS,
        transactions::COMMANDS,
    ];
    let mut specs: Vec<_> = tables.into_iter().flatten().collect();
    specs.sort_unstable_by_key(|spec| spec.name);
    assert!(specs.is_sorted_by(|a, b| a.name < b.name), "every name is there once");
    specs
});

/// Use of a request's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyUse {
    /// The request only reads its keys.
    Reads,
    /// The request may change its keys.
    Writes,
}

/// Returns the keys that a request names, and their use. `words` are the words of the request, the
/// name first. `None` for a request of no known command, and for one that neither reads nor writes
/// keys.
#[must_use]
pub fn keys_of<'a>(words: &'a [&'a [u8]]) -> Option<(KeyUse, Vec<&'a [u8]>)> {
    let spec = find(words.first()?)?;
    let selected = |it: &&Spec| words.get(1).is_some_and(|word| it.is_selected_by(word));
    let spec = spec.subcommands.iter().find(selected).unwrap_or(spec);
    let used = match () {
        () if spec.has(WRITE) => KeyUse::Writes,
        () if spec.has(READ) => KeyUse::Reads,
        () => return None,
    };
    Some((used, spec.keys.of(words).collect()))
}

/// Greatest length of a command's name.
const NAME_MAX: usize = 16;

/// Finds the command of this name; case does not matter.
pub(crate) fn find(name: &[u8]) -> Option<&'static Spec> {
    let mut lower = [0; NAME_MAX];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    let place = SORTED.binary_search_by(|spec| spec.name.as_bytes().cmp(lower)).ok()?;
    Some(SORTED[place])
}

#[cfg(test)]
mod tests;
