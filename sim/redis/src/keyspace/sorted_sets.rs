//! The effect of a command on a sorted set.

use super::Keyspace;
use super::execute::{Done, Turn};
use crate::command::{Change, ErrorReply, Reply, SortedSetCommand};
use crate::{Content, Members};

impl Keyspace {
    pub(super) fn apply_to_sorted_set(
        &mut self,
        key: &[u8],
        command: SortedSetCommand<'_>,
        turn: Turn,
    ) -> Done {
        let members = match self.stored(key).map(|entry| &entry.value) {
            None => None,
            Some(Content::SortedSet(members)) => Some(members),
            Some(_) => return (Reply::Error(ErrorReply::WrongType), Change::Nothing),
        };
        let is_there = |member: &[u8]| members.is_some_and(|it| it.score(member).is_some());
        match command {
            SortedSetCommand::Set { members: [], .. } => (Reply::Integer(0), Change::Nothing),
            SortedSetCommand::Set { members: new, .. } => {
                let added = new.iter().filter(|(_, member)| !is_there(member)).count();
                self.edit_sorted_set(key, turn, |members| {
                    new.iter().for_each(|(score, member)| members.set(member, *score));
                    added
                })
            }
            SortedSetCommand::Remove { members: gone }
                if !gone.iter().any(|member| is_there(member)) =>
            {
                (Reply::Integer(0), Change::Nothing)
            }
            SortedSetCommand::Remove { members: gone } => {
                self.edit_sorted_set(key, turn, |members| {
                    gone.iter().filter(|member| members.remove(member)).count()
                })
            }
        }
    }

    /// Changes a sorted set, or a new one if the key does not exist, and replies with the number
    /// that `edit` returns.
    fn edit_sorted_set(
        &mut self,
        key: &[u8],
        turn: Turn,
        edit: impl FnOnce(&mut Members) -> usize,
    ) -> Done {
        self.edit(key, turn, |members| Reply::Integer(edit(members) as i64))
    }
}
