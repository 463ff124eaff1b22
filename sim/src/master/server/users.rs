//! Who may speak to a server.

use crate::master::SmallBytes;

/// The users of a server.
#[derive(Clone, Debug, Default)]
pub struct Users {
    /// What the default user must say; empty: nothing.
    password: SmallBytes,
}

impl Users {
    /// Whether nobody is asked.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.password.is_empty()
    }

    /// The password of the default user (`requirepass`).
    #[must_use]
    pub fn password(&self) -> &[u8] {
        &self.password
    }

    /// From now on the default user must say so.
    pub fn set_password(&mut self, password: &[u8]) {
        self.password = SmallBytes::new(password);
    }

    /// The name of the user, if the password is right.
    pub(in crate::master) fn admit(&self, user: &[u8], password: &[u8]) -> Option<SmallBytes> {
        let right = user == b"default" && (self.is_open() || password == &*self.password);
        right.then(|| SmallBytes::new(user))
    }
}
