//! Keyspace events of commands.

use super::Call;
use crate::events::{Class, Event};
use crate::{Change, Executed, KeyCommand, SetExpiry};

impl Call<'_> {
    /// Publishes the events of one step of the command.
    pub(super) fn notice(
        &mut self,
        database: u8,
        key: &[u8],
        command: KeyCommand<'_>,
        executed: &Executed,
    ) {
        let mut notify = |class, name| {
            self.server.notify(Event { class, name, database, key });
        };
        if executed.expired.is_some() {
            notify(Class::Expired, "expired");
        }
        let (class, name) = match executed.effect.change {
            Change::Nothing => return,
            Change::Deleted => (Class::Generic, deletion(self.name)),
            Change::Retimed => match command {
                KeyCommand::CompareAndRetime { .. } => (Class::String, "set"),
                KeyCommand::Persist => (Class::Generic, "persist"),
                _ => (Class::Generic, "expire"),
            },
            Change::Set => setting(self.name),
        };
        notify(class, name);
        let expires = match command {
            KeyCommand::CompareAndRetime { .. } => true,
            KeyCommand::Set { expiry: SetExpiry::At(_) | SetExpiry::Px(_), .. } => name == "set",
            _ => false,
        };
        if expires {
            notify(Class::Generic, "expire");
        }
    }
}

/// Returns the event of a key that the command `name` deletes.
fn deletion(name: &str) -> &'static str {
    match name {
        "move" => "move_from",
        "rename" | "renamenx" => "rename_from",
        _ => "del",
    }
}

/// Returns the event of a value that the command `name` stores.
fn setting(name: &str) -> (Class, &'static str) {
    match name {
        "append" => (Class::String, "append"),
        "copy" => (Class::Generic, "copy_to"),
        "decr" | "decrby" | "incr" | "incrby" => (Class::String, "incrby"),
        "move" => (Class::Generic, "move_to"),
        "rename" | "renamenx" => (Class::Generic, "rename_to"),
        _ => (Class::String, "set"),
    }
}
