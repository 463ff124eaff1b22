//! Keyspace events of commands.

use super::Call;
use crate::events::{Class, Event};
use crate::{Change, HashCommand, KeyCommand, ListCommand, ListEnd, SetExpiry, SortedSetCommand};

impl Call<'_> {
    /// Publishes the end of a key that the next step of the command will find expired. Only then the
    /// key's readers learn that it has changed.
    pub(super) fn notice_expiry(&mut self, database: u8, key: &[u8]) {
        let wall_ms = self.wall_ms();
        let stored = self.server.databases().get(database).and_then(|keys| keys.stored(key));
        if stored.is_some_and(|entry| entry.is_expired(wall_ms)) {
            let (class, name) = (Class::Expired, "expired");
            self.server.notify(Event { class, name, database, key });
        }
    }

    /// Publishes the change by one step of the command.
    pub(super) fn notice(
        &mut self,
        database: u8,
        key: &[u8],
        command: KeyCommand<'_>,
        change: Change,
    ) {
        let left = match self.name {
            "move" => Some("move_from"),
            "rename" | "renamenx" => Some("rename_from"),
            _ => None,
        };
        // Told together with the event of the new name.
        if let (Change::Deleted, Some(_)) = (change, left) {
            return;
        }
        if let (Change::Set, Some(name)) = (change, left) {
            let (class, database, key) = (Class::Generic, self.session.database(), self.words[1]);
            self.server.notify(Event { class, name, database, key });
        }
        let mut notify = |class, name| {
            self.server.notify(Event { class, name, database, key });
        };
        if let Some((class, name)) = editing(self.name, command) {
            if change != Change::Nothing {
                notify(class, name);
            }
            if change == Change::Deleted {
                notify(Class::Generic, "del");
            }
            return;
        }
        let (class, name) = match change {
            Change::Nothing => return,
            Change::Deleted => (Class::Generic, "del"),
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

/// Returns true if a change by the command `name` is published before those who track the key learn
/// of it. Real servers do the opposite in most commands.
pub(super) fn is_noticed_first(name: &str, command: KeyCommand<'_>) -> bool {
    match command {
        KeyCommand::List(command) => {
            matches!(command, ListCommand::Pop { .. } | ListCommand::Trim { .. })
        }
        KeyCommand::SortedSet(_) => name == "zrem",
        _ => false,
    }
}

/// Returns the event of a change by the command `name` within a value that is not a string.
fn editing(name: &'static str, command: KeyCommand<'_>) -> Option<(Class, &'static str)> {
    Some(match command {
        KeyCommand::Hash(command) => {
            let name = match command {
                HashCommand::Delete { .. } => "hdel",
                HashCommand::Increment { .. } => "hincrby",
                HashCommand::Set { .. } | HashCommand::SetMissing { .. } => "hset",
            };
            (Class::Hash, name)
        }
        KeyCommand::List(command) => {
            let name = match command {
                ListCommand::Insert { .. } => "linsert",
                ListCommand::Pop { end: ListEnd::Head, .. } => "lpop",
                ListCommand::Pop { end: ListEnd::Tail, .. } => "rpop",
                ListCommand::Push { end: ListEnd::Head, .. } => "lpush",
                ListCommand::Push { end: ListEnd::Tail, .. } => "rpush",
                ListCommand::Remove { .. } => "lrem",
                ListCommand::Set { .. } => "lset",
                ListCommand::Trim { .. } => "ltrim",
            };
            (Class::List, name)
        }
        KeyCommand::SortedSet(command) => {
            let name = match command {
                SortedSetCommand::Remove { .. } => name,
                SortedSetCommand::Set { is_increment: true, .. } => "zincr",
                SortedSetCommand::Set { is_increment: false, .. } => "zadd",
            };
            (Class::SortedSet, name)
        }
        _ => return None,
    })
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
