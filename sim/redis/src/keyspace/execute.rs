//! The effect of a command on its key, after an expired key has been removed.

use super::{Entry, Keyspace};
use crate::command::{
    Change, ErrorReply, ExpireCondition, KeyCommand, Reply, SetCondition, SetExpiry,
};
use crate::integer::parse_integer;
use crate::{Content, SmallBytes, Writer};

/// Context of one command: its time and its writer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub(super) wall_ms: u64,
    pub(super) writer: Writer,
}

/// Reply to a command, and its change.
pub(super) type Done = (Reply, Change);

impl Keyspace {
    pub(super) fn apply(&mut self, key: &[u8], command: KeyCommand<'_>, turn: Turn) -> Done {
        let unchanged = |reply| (reply, Change::Nothing);
        match command {
            KeyCommand::CompareAndDelete { value } => match self.holds(key, value) {
                Ok(true) => self.delete(key),
                Ok(false) => unchanged(Reply::Integer(0)),
                Err(error) => unchanged(Reply::Error(error)),
            },
            KeyCommand::CompareAndRetime { value, ttl_ms } => {
                match expiry_after(turn.wall_ms, Some(ttl_ms)) {
                    None => unchanged(Reply::Error(ErrorReply::SetRange)),
                    Some(when) => match self.holds(key, value) {
                        Ok(true) => self.retime(key, when, ExpireCondition::Always, turn),
                        Ok(false) => unchanged(Reply::Integer(0)),
                        Err(error) => unchanged(Reply::Error(error)),
                    },
                }
            }
            KeyCommand::Del => self.delete(key),
            KeyCommand::Exists => {
                unchanged(Reply::Integer(i64::from(self.entries.get(key).is_some())))
            }
            KeyCommand::Expire { seconds, condition } => {
                match expiry_after(turn.wall_ms, seconds.checked_mul(1_000)) {
                    None => unchanged(Reply::Error(ErrorReply::ExpireRange)),
                    Some(when) => self.retime(key, when, condition, turn),
                }
            }
            KeyCommand::ExpireAt { when_ms, condition } => {
                let when = u64::try_from(when_ms).unwrap_or(0);
                self.retime(key, when, condition, turn)
            }
            KeyCommand::Get => unchanged(shown(self.entries.get(key))),
            KeyCommand::Hash(command) => self.apply_to_hash(key, command, turn),
            KeyCommand::Incr => self.increment(key, 1, turn),
            KeyCommand::IncrBy { by } => self.increment(key, by, turn),
            KeyCommand::List(command) => self.apply_to_list(key, command, turn),
            KeyCommand::Persist => self.persist(key),
            KeyCommand::Pexpire { ms, condition } => match expiry_after(turn.wall_ms, Some(ms)) {
                None => unchanged(Reply::Error(ErrorReply::PexpireRange)),
                Some(when) => self.retime(key, when, condition, turn),
            },
            KeyCommand::Pttl => unchanged(Reply::Integer(self.time_to_live(key, turn))),
            KeyCommand::Put { value, expires_wall_ms } => {
                self.write(key, value.clone(), expires_wall_ms, turn.writer);
                (Reply::Ok, Change::Set)
            }
            KeyCommand::Set { value, condition, expiry, get } => {
                self.set(key, value, (condition, expiry, get), turn)
            }
            KeyCommand::Setnx { value } => {
                let how = (SetCondition::Missing, SetExpiry::Never, false);
                let (_, change) = self.set(key, value, how, turn);
                (Reply::Integer(i64::from(change == Change::Set)), change)
            }
            KeyCommand::SortedSet(command) => self.apply_to_sorted_set(key, command, turn),
        }
    }

    /// Returns true if the key is a string that equals `value`.
    fn holds(&self, key: &[u8], value: &[u8]) -> Result<bool, ErrorReply> {
        let Some(entry) = self.entries.get(key) else { return Ok(false) };
        let stored = entry.value.as_string().ok_or(ErrorReply::WrongType)?;
        Ok(**stored == *value)
    }

    fn delete(&mut self, key: &[u8]) -> Done {
        match self.remove(key) {
            Some(_) => (Reply::Integer(1), Change::Deleted),
            None => (Reply::Integer(0), Change::Nothing),
        }
    }

    /// Validates the expiry before the condition: a `PX 0` that fails `NX` is an error. With `get` the
    /// reply is the old value, whether or not it is replaced.
    fn set(
        &mut self,
        key: &[u8],
        value: &[u8],
        (condition, expiry, get): (SetCondition, SetExpiry, bool),
        turn: Turn,
    ) -> Done {
        let old = self.entries.get(key);
        let told = get.then(|| shown(old));
        let expires_wall_ms = match expiry {
            SetExpiry::At(when) => Some(when),
            SetExpiry::Keep => old.and_then(|old| old.expires_wall_ms),
            SetExpiry::Never => None,
            SetExpiry::Px(ms) => match expiry_after(turn.wall_ms, Some(ms)) {
                Some(when) if ms > 0 => Some(when),
                _ => return (Reply::Error(ErrorReply::SetRange), Change::Nothing),
            },
        };
        if matches!(told, Some(Reply::Error(_))) {
            return (told.unwrap_or(Reply::Nil), Change::Nothing);
        }
        let lost = match condition {
            SetCondition::Always => false,
            SetCondition::Missing => old.is_some(),
            SetCondition::Present => old.is_none(),
        };
        if lost {
            return (told.unwrap_or(Reply::Nil), Change::Nothing);
        }
        self.write(key, SmallBytes::new(value).into(), expires_wall_ms, turn.writer);
        (told.unwrap_or(Reply::Ok), Change::Set)
    }

    fn increment(&mut self, key: &[u8], by: i64, turn: Turn) -> Done {
        let (old, expires_wall_ms) = match self.entries.get(key) {
            Some(entry) => match entry.value.as_string() {
                Some(old) => (parse_integer(old), entry.expires_wall_ms),
                None => return (Reply::Error(ErrorReply::WrongType), Change::Nothing),
            },
            None => (Some(0), None),
        };
        let Some(old) = old else {
            return (Reply::Error(ErrorReply::NotAnInteger), Change::Nothing);
        };
        let Some(new) = old.checked_add(by) else {
            return (Reply::Error(ErrorReply::Overflow), Change::Nothing);
        };
        self.write(key, SmallBytes::decimal(new).into(), expires_wall_ms, turn.writer);
        (Reply::Integer(new), Change::Set)
    }

    pub(super) fn write(
        &mut self,
        key: &[u8],
        value: Content,
        expires_wall_ms: Option<u64>,
        writer: Writer,
    ) {
        assert_ne!(writer, Writer::Nobody, "a key is made by somebody");
        self.put(key, Entry { value, expires_wall_ms, writer });
    }

    fn persist(&mut self, key: &[u8]) -> Done {
        if self.entries.get(key).is_none_or(|entry| entry.expires_wall_ms.is_none()) {
            return (Reply::Integer(0), Change::Nothing);
        }
        self.move_expiry(key, None);
        (Reply::Integer(1), Change::Retimed)
    }

    /// Moves the expiry to `when`. An expiry that is not in the future deletes the key, which
    /// counts as success.
    fn retime(&mut self, key: &[u8], when: u64, condition: ExpireCondition, turn: Turn) -> Done {
        let Some(entry) = self.entries.get(key) else {
            return (Reply::Integer(0), Change::Nothing);
        };
        let old = entry.expires_wall_ms;
        let holds = match condition {
            ExpireCondition::Always => true,
            ExpireCondition::Later => old.is_some_and(|old| when > old),
            ExpireCondition::Sooner => old.is_none_or(|old| when < old),
            ExpireCondition::Unset => old.is_none(),
            ExpireCondition::Set => old.is_some(),
            ExpireCondition::SetAndSooner => old.is_some_and(|old| when < old),
        };
        if !holds {
            return (Reply::Integer(0), Change::Nothing);
        }
        if when <= turn.wall_ms {
            return self.delete(key);
        }
        self.move_expiry(key, Some(when));
        (Reply::Integer(1), Change::Retimed)
    }

    fn time_to_live(&self, key: &[u8], turn: Turn) -> i64 {
        const MISSING: i64 = -2;
        const NO_EXPIRY: i64 = -1;
        let Some(entry) = self.entries.get(key) else {
            return MISSING;
        };
        // The expiry fits into `i64` and is not before now, or the key would count as absent.
        entry.expires_wall_ms.map_or(NO_EXPIRY, |when| (when - turn.wall_ms) as i64)
    }
}

/// Returns the reply that shows a key's value.
fn shown(entry: Option<&Entry>) -> Reply {
    let Some(entry) = entry else { return Reply::Nil };
    let value = entry.value.as_string();
    value.map_or(Reply::Error(ErrorReply::WrongType), |value| Reply::Bulk(value.clone()))
}

/// Returns the instant `ms` after `wall_ms`, clamped to the clock's origin; `None` if it does not
/// fit into the `i64` of Redis.
fn expiry_after(wall_ms: u64, ms: Option<i64>) -> Option<u64> {
    let when = i64::try_from(wall_ms).ok()?.checked_add(ms?)?;
    Some(u64::try_from(when).unwrap_or(0))
}
