//! The effect of a command on a hash.

use super::Keyspace;
use super::execute::{Done, Turn};
use crate::command::{Change, ErrorReply, HashCommand, Reply};
use crate::integer::parse_integer;
use crate::{Content, Fields, SmallBytes};

impl Keyspace {
    pub(super) fn apply_to_hash(
        &mut self,
        key: &[u8],
        command: HashCommand<'_>,
        turn: Turn,
    ) -> Done {
        let stored = self.stored(key).map(|entry| &entry.value);
        let fields = match stored {
            None => None,
            Some(Content::Hash(fields)) => Some(fields),
            Some(_) => return (Reply::Error(ErrorReply::WrongType), Change::Nothing),
        };
        let of = |field: &[u8]| fields.and_then(|fields| fields.get(field));
        match command {
            HashCommand::Delete { fields: gone } => {
                if gone.iter().all(|field| of(field).is_none()) {
                    return (Reply::Integer(0), Change::Nothing);
                }
                self.edit_hash(key, turn, |fields| {
                    gone.iter().filter(|field| fields.remove(field)).count()
                })
            }
            HashCommand::Increment { field, by } => {
                let Some(old) = of(field).map_or(Some(0), |old| parse_integer(old)) else {
                    return (Reply::Error(ErrorReply::FieldNotAnInteger), Change::Nothing);
                };
                let Some(new) = old.checked_add(by) else {
                    return (Reply::Error(ErrorReply::Overflow), Change::Nothing);
                };
                let (_, change) = self.edit_hash(key, turn, |fields| {
                    fields.set(field, SmallBytes::decimal(new));
                    1
                });
                (Reply::Integer(new), change)
            }
            HashCommand::Set { pairs } => self.edit_hash(key, turn, |fields| {
                let is_new =
                    |[field, value]: &&[&[u8]; 2]| fields.set(field, SmallBytes::new(value));
                pairs.iter().filter(is_new).count()
            }),
            HashCommand::SetMissing { field, .. } if of(field).is_some() => {
                (Reply::Integer(0), Change::Nothing)
            }
            HashCommand::SetMissing { field, value } => self.edit_hash(key, turn, |fields| {
                usize::from(fields.set(field, SmallBytes::new(value)))
            }),
        }
    }

    /// Changes a hash, or a new one if the key does not exist, and replies with the number that
    /// `edit` returns.
    fn edit_hash(
        &mut self,
        key: &[u8],
        turn: Turn,
        edit: impl FnOnce(&mut Fields) -> usize,
    ) -> Done {
        self.edit(key, turn, |fields| Reply::Integer(edit(fields) as i64))
    }
}
