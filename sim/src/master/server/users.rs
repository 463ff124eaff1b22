//! Who may speak to a server, and what about.

use std::collections::BTreeMap;

use crate::master::SmallBytes;
use crate::master::glob::matches;

/// Who speaks if nobody says so.
const DEFAULT: &[u8] = b"default";

/// The users of a server. There is always a default one.
#[derive(Clone, Debug)]
pub struct Users {
    users: BTreeMap<SmallBytes, User>,
}

/// What a user must say, and what he may do.
#[derive(Clone, Debug, Default)]
pub(in crate::master) struct User {
    is_on: bool,
    /// He need not say anything.
    is_open: bool,
    passwords: Vec<SmallBytes>,
    /// He may use every command that is not named below.
    may_all: bool,
    /// Whether he may use a command, or one subcommand of it.
    commands: BTreeMap<String, bool>,
    /// Which keys he may use.
    patterns: Vec<SmallBytes>,
}

impl Default for Users {
    fn default() -> Self {
        let user = User {
            is_on: true,
            is_open: true,
            may_all: true,
            patterns: vec![SmallBytes::new(b"*")],
            ..User::default()
        };
        Self { users: BTreeMap::from([(SmallBytes::new(DEFAULT), user)]) }
    }
}

impl Users {
    /// Whether the default user need not say anything.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.users.get(DEFAULT).is_some_and(|user| user.is_open && user.is_on)
    }

    /// From now on the default user must say this; nothing if it is empty (`requirepass`).
    pub fn set_password(&mut self, password: &[u8]) {
        let user = self.users.entry(SmallBytes::new(DEFAULT)).or_default();
        user.passwords.clear();
        user.is_open = password.is_empty();
        if !user.is_open {
            user.passwords.push(SmallBytes::new(password));
        }
    }

    /// Changes what a user may do, or makes one (`ACL SETUSER`): all of the rules or none. `is_command`
    /// says which commands there are.
    ///
    /// # Errors
    ///
    /// The rule that says nothing, and why.
    pub(in crate::master) fn set<'a>(
        &mut self,
        name: &[u8],
        rules: &[&'a [u8]],
        is_command: fn(&str) -> bool,
    ) -> Result<(), (&'a [u8], &'static str)> {
        let mut user = self.users.get(name).cloned().unwrap_or_default();
        for rule in rules {
            user.apply(rule, is_command).map_err(|why| (*rule, why))?;
        }
        self.users.insert(SmallBytes::new(name), user);
        Ok(())
    }

    /// Whether there was such a user, who is not the default one.
    pub(in crate::master) fn remove(&mut self, name: &[u8]) -> bool {
        name != DEFAULT && self.users.remove(name).is_some()
    }

    pub(in crate::master) fn names(&self) -> impl Iterator<Item = &SmallBytes> {
        self.users.keys()
    }

    /// The name of the user, if the password is right.
    pub(in crate::master) fn admit(&self, name: &[u8], password: &[u8]) -> Option<SmallBytes> {
        let user = self.users.get(name).filter(|user| user.is_on)?;
        let right = user.is_open || user.passwords.iter().any(|it| **it == *password);
        right.then(|| SmallBytes::new(name))
    }

    /// What this user may do; nothing is left to say of one that may do everything.
    pub(in crate::master) fn restricted(&self, name: &[u8]) -> Option<&User> {
        self.users.get(name).filter(|user| !user.may_everything())
    }
}

impl User {
    fn may_everything(&self) -> bool {
        self.may_all && self.commands.is_empty() && self.patterns.iter().any(|it| **it == *b"*")
    }

    /// Whether he may use the command, whose subcommands have its name before theirs.
    pub(in crate::master) fn may_use(&self, command: &str) -> bool {
        let container = command.split('|').next().unwrap_or(command);
        let named = self.commands.get(command).or_else(|| self.commands.get(container));
        named.copied().unwrap_or(self.may_all)
    }

    pub(in crate::master) fn may_touch(&self, key: &[u8]) -> bool {
        self.patterns.iter().any(|pattern| matches(pattern, key))
    }

    fn apply(&mut self, rule: &[u8], is_command: fn(&str) -> bool) -> Result<(), &'static str> {
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
            // Nothing is published.
            (
                b"allchannels" | b"resetchannels" | b"sanitize-payload" | b"skip-sanitize-payload",
                _,
            )
            | (_, [b'&', ..]) => {}
            (b"allcommands" | b"+@all", _) => self.set_all(true),
            (b"nocommands" | b"-@all", _) => self.set_all(false),
            (b"reset", _) => *self = Self::default(),
            (_, [b'>', password @ ..]) => {
                self.is_open = false;
                self.passwords.push(SmallBytes::new(password));
            }
            (_, [b'<', password @ ..]) => self.passwords.retain(|it| **it != *password),
            (_, [b'~', pattern @ ..]) => self.patterns.push(SmallBytes::new(pattern)),
            ([sign @ (b'+' | b'-'), name @ ..], _) => {
                let name = core::str::from_utf8(name).ok().filter(|name| is_command(name));
                let name = name.ok_or("Unknown command or category name in ACL")?;
                // A rule about a command is about its subcommands, too.
                let within = format!("{name}|");
                self.commands.retain(|known, _| !known.starts_with(&within));
                self.commands.insert(name.to_owned(), *sign == b'+');
            }
            _ => return Err("Syntax error"),
        }
        Ok(())
    }

    fn set_all(&mut self, may: bool) {
        self.may_all = may;
        self.commands.clear();
    }
}
