//! The users of a server and their permissions (ACL).

use std::collections::BTreeMap;

use crate::SmallBytes;
use crate::glob::matches;

/// Returns the commands that a rule means (`get`, `client|id`, `@read`); `None` if there are none.
type MeantBy<'a> = &'a dyn Fn(&[u8]) -> Option<Vec<&'static str>>;

const AFTER_ALL_CHANNELS: &str = "Adding a pattern after the * pattern (or the 'allchannels' \
    flag) is not valid and does not have any effect. Try 'resetchannels' to start with an empty \
    list of channels";

/// User of a connection that has not authenticated.
const DEFAULT: &[u8] = b"default";

/// The users of a server. There is always a default user.
#[derive(Clone, Debug)]
pub struct Users {
    users: BTreeMap<SmallBytes, User>,
}

/// Credentials and permissions of a user.
#[derive(Clone, Debug, Default)]
pub(crate) struct User {
    is_on: bool,
    /// No password is required.
    is_open: bool,
    passwords: Vec<SmallBytes>,
    /// All commands are allowed except as stated in `commands`.
    may_all: bool,
    /// Permission for single commands or subcommands; overrides `may_all`.
    commands: BTreeMap<&'static str, bool>,
    /// Patterns of the keys that the user may use.
    patterns: Vec<SmallBytes>,
    /// Patterns of the channels that the user may use.
    channels: Vec<SmallBytes>,
}

impl Default for Users {
    fn default() -> Self {
        let user = User {
            is_on: true,
            is_open: true,
            may_all: true,
            patterns: vec![SmallBytes::new(b"*")],
            channels: vec![SmallBytes::new(b"*")],
            ..User::default()
        };
        Self { users: BTreeMap::from([(SmallBytes::new(DEFAULT), user)]) }
    }
}

impl Users {
    /// Returns true if the default user needs no password.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.users.get(DEFAULT).is_some_and(|user| user.is_open && user.is_on)
    }

    /// Sets the password of the default user; an empty one means that none is required
    /// (`requirepass`).
    pub fn set_password(&mut self, password: &[u8]) {
        let user = self.users.entry(SmallBytes::new(DEFAULT)).or_default();
        user.passwords.clear();
        user.is_open = password.is_empty();
        if !user.is_open {
            user.passwords.push(SmallBytes::new(password));
        }
    }

    /// Changes or creates a user (`ACL SETUSER`); applies all of the rules or none. `meant_by` returns
    /// the names of the commands that a rule means. Returns true if the user may have lost channels.
    ///
    /// # Errors
    ///
    /// The first invalid rule, and the reason.
    pub(crate) fn set<'a>(
        &mut self,
        name: &[u8],
        rules: &[&'a [u8]],
        meant_by: MeantBy<'_>,
    ) -> Result<bool, (&'a [u8], &'static str)> {
        let mut user = self.users.get(name).cloned().unwrap_or_default();
        let had_channels = !user.channels.is_empty();
        for rule in rules {
            user.apply(rule, meant_by).map_err(|why| (*rule, why))?;
        }
        let loses_channels = had_channels && !has_all(&user.channels);
        self.users.insert(SmallBytes::new(name), user);
        Ok(loses_channels)
    }

    /// Removes a user other than the default one; returns true if the user existed.
    pub(crate) fn remove(&mut self, name: &[u8]) -> bool {
        name != DEFAULT && self.users.remove(name).is_some()
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &SmallBytes> {
        self.users.keys()
    }

    /// Returns the user's name if the password is correct.
    pub(crate) fn admit(&self, name: &[u8], password: &[u8]) -> Option<SmallBytes> {
        let user = self.users.get(name).filter(|user| user.is_on)?;
        let right = user.is_open || user.passwords.iter().any(|it| **it == *password);
        right.then(|| SmallBytes::new(name))
    }

    /// Returns the user if there is anything that it may not do.
    pub(crate) fn restricted(&self, name: &[u8]) -> Option<&User> {
        self.users.get(name).filter(|user| !user.may_everything())
    }
}

fn has_all(patterns: &[SmallBytes]) -> bool {
    patterns.iter().any(|it| **it == *b"*")
}

impl User {
    fn may_everything(&self) -> bool {
        let may_all = self.may_all && self.commands.is_empty();
        may_all && has_all(&self.patterns) && has_all(&self.channels)
    }

    /// Returns true if the user may use the command. A subcommand's name includes its command's.
    pub(crate) fn may_use(&self, command: &str) -> bool {
        let container = command.split('|').next().unwrap_or(command);
        let named = self.commands.get(command).or_else(|| self.commands.get(container));
        named.copied().unwrap_or(self.may_all)
    }

    pub(crate) fn may_touch(&self, key: &[u8]) -> bool {
        has_all(&self.patterns) || self.patterns.iter().any(|pattern| matches(pattern, key))
    }

    /// Returns true if the user may publish to the channel and subscribe to it.
    pub(crate) fn may_hear(&self, channel: &[u8]) -> bool {
        has_all(&self.channels) || self.channels.iter().any(|pattern| matches(pattern, channel))
    }

    /// Returns true if the user may subscribe to the pattern, which must be one of the user's own.
    pub(crate) fn may_hear_pattern(&self, pattern: &[u8]) -> bool {
        has_all(&self.channels) || self.channels.iter().any(|own| **own == *pattern)
    }

    fn apply(&mut self, rule: &[u8], meant_by: MeantBy<'_>) -> Result<(), &'static str> {
        let lower = rule.to_ascii_lowercase();
        match (lower.as_slice(), rule) {
            (b"on", _) => self.is_on = true,
            (b"off", _) => self.is_on = false,
            (b"nopass", _) => {
                self.is_open = true;
                self.passwords.clear();
            }
            (b"resetpass", _) => {
                self.is_open = false;
                self.passwords.clear();
            }
            (b"allkeys", _) => self.patterns = vec![SmallBytes::new(b"*")],
            (b"resetkeys", _) => self.patterns.clear(),
            (b"allchannels" | b"&*", _) => self.channels = vec![SmallBytes::new(b"*")],
            (b"resetchannels", _) => self.channels.clear(),
            (_, [b'&', ..]) if has_all(&self.channels) => return Err(AFTER_ALL_CHANNELS),
            (_, [b'&', pattern @ ..]) => self.channels.push(SmallBytes::new(pattern)),
            (b"sanitize-payload" | b"skip-sanitize-payload", _) => {}
            (b"allcommands" | b"+@all", _) => self.set_all(true),
            (b"nocommands" | b"-@all", _) => self.set_all(false),
            (b"reset", _) => *self = Self::default(),
            (_, [b'>', password @ ..]) => {
                self.is_open = false;
                self.passwords.push(SmallBytes::new(password));
            }
            (_, [b'<', password @ ..]) => self.passwords.retain(|it| **it != *password),
            (_, [b'~', pattern @ ..]) => self.patterns.push(SmallBytes::new(pattern)),
            ([sign @ (b'+' | b'-'), subject @ ..], _) => {
                let names = meant_by(subject).ok_or("Unknown command or category name in ACL")?;
                names.into_iter().for_each(|name| self.permit(name, *sign == b'+'));
            }
            _ => return Err("Syntax error"),
        }
        Ok(())
    }

    /// Permits or forbids a command. For a command with subcommands this includes all of these.
    fn permit(&mut self, name: &'static str, may: bool) {
        self.commands
            .retain(|known, _| known.strip_prefix(name).is_none_or(|rest| !rest.starts_with('|')));
        self.commands.insert(name, may);
    }

    fn set_all(&mut self, may: bool) {
        self.may_all = may;
        self.commands.clear();
    }
}
