//! Changes of a server's configuration and users, which end with its process.

use super::{Config, Server, Users};
use crate::events::Events;

/// Configuration and users of a process when it started, as in its configuration file.
#[derive(Clone, Debug)]
pub(super) struct AtStart {
    config: Config,
    users: Users,
}

impl Server {
    /// Sets a known parameter to a valid value (`CONFIG SET`).
    pub(crate) fn configure(&mut self, name: &'static str, value: String) {
        self.keep_start();
        if name == "requirepass" {
            self.users.set_password(value.as_bytes());
        }
        self.config.set(name, value);
        self.apply_settings();
    }

    /// Returns the users for a change by a command (`ACL`).
    pub(crate) fn changed_users(&mut self) -> &mut Users {
        self.keep_start();
        &mut self.users
    }

    /// Restores the configuration and the users of the start: a new process reads them again.
    pub(super) fn reread_settings(&mut self) {
        if let Some(start) = self.at_start.take() {
            (self.config, self.users) = (start.config, start.users);
            self.apply_settings();
        }
    }

    fn keep_start(&mut self) {
        let Self { config, users, .. } = self;
        self.at_start.get_or_insert_with(|| {
            Box::new(AtStart { config: config.clone(), users: users.clone() })
        });
    }

    /// Applies the parameters that the keys of the process depend on.
    fn apply_settings(&mut self) {
        let Self { config, master, .. } = self;
        self.memory_max = config.get("maxmemory").parse().unwrap_or(0);
        let keys_max = config.get("tracking-table-max-keys").parse();
        master.tracked.set_keys_max(keys_max.unwrap_or(usize::MAX));
        master.events = Events::parse(config.get("notify-keyspace-events")).unwrap_or_default();
    }
}
