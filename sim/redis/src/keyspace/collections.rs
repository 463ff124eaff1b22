//! Changes of values with parts: hashes, lists and sorted sets.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Keyspace;
use super::execute::{Done, Turn};
use crate::command::{Change, Reply};
use crate::{Content, Fields, Members, SmallBytes};

/// A value that is deleted with its last part.
pub(super) trait Collection: Clone + Default {
    /// Returns the parts of a value of this type; `None` for any other type.
    fn of(content: &mut Content) -> Option<&mut Arc<Self>>;

    /// Returns the value with these parts; `None` if there are none.
    fn left(parts: Arc<Self>) -> Option<Content>;
}

impl Collection for Fields {
    fn of(content: &mut Content) -> Option<&mut Arc<Self>> {
        if let Content::Hash(fields) = content { Some(fields) } else { None }
    }

    fn left(parts: Arc<Self>) -> Option<Content> {
        (!parts.is_empty()).then_some(Content::Hash(parts))
    }
}

impl Collection for Members {
    fn of(content: &mut Content) -> Option<&mut Arc<Self>> {
        if let Content::SortedSet(members) = content { Some(members) } else { None }
    }

    fn left(parts: Arc<Self>) -> Option<Content> {
        (!parts.is_empty()).then_some(Content::SortedSet(parts))
    }
}

impl Collection for VecDeque<SmallBytes> {
    fn of(content: &mut Content) -> Option<&mut Arc<Self>> {
        if let Content::List(elements) = content { Some(elements) } else { None }
    }

    fn left(parts: Arc<Self>) -> Option<Content> {
        (!parts.is_empty()).then_some(Content::List(parts))
    }
}

impl Keyspace {
    /// Changes the parts of a key of this type, or of a new one if the key does not exist. The key is
    /// deleted if no part is left.
    pub(super) fn edit<T: Collection>(
        &mut self,
        key: &[u8],
        turn: Turn,
        edit: impl FnOnce(&mut T) -> Reply,
    ) -> Done {
        let stored = self.entries.get_mut(key);
        let expires_wall_ms = stored.as_ref().and_then(|entry| entry.expires_wall_ms);
        let mut parts =
            stored.and_then(|it| T::of(&mut it.value)).map_or_else(Arc::default, core::mem::take);
        let reply = edit(Arc::make_mut(&mut parts));
        match T::left(parts) {
            Some(content) => {
                self.write(key, content, expires_wall_ms, turn.writer);
                (reply, Change::Set)
            }
            None => {
                self.remove(key);
                (reply, Change::Deleted)
            }
        }
    }
}
