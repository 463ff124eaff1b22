//! Commands on one key of a type other than string.

use std::collections::VecDeque;

use crate::{Score, SmallBytes};

/// A command on a hash. It replies with an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashCommand<'a> {
    /// `HDEL`: replies with the number of removed fields.
    Delete {
        /// Names of the fields.
        fields: &'a [&'a [u8]],
    },
    /// `HINCRBY`: replies with the new value.
    Increment {
        /// Name of the field.
        field: &'a [u8],
        /// Amount to add.
        by: i64,
    },
    /// `HSET`: replies with the number of new fields.
    Set {
        /// Fields and their values.
        pairs: &'a [[&'a [u8]; 2]],
    },
    /// `HSETNX`: replies with 1 if the field is new.
    SetMissing {
        /// Name of the field.
        field: &'a [u8],
        /// Value to store.
        value: &'a [u8],
    },
}

/// A command on a list. Unless it says otherwise, it replies with an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListCommand<'a> {
    /// `LINSERT`: replies with the new length, -1 if no element equals the pivot, 0 if there is no
    /// such key.
    Insert {
        /// The first element equal to this one gets a new neighbour.
        pivot: &'a [u8],
        /// New element.
        value: &'a [u8],
        /// Side of the pivot on which the element is added.
        side: ListEnd,
    },
    /// `LPOP` and `RPOP`: replies with the number of removed elements.
    Pop {
        /// End at which elements are removed.
        end: ListEnd,
        /// Greatest number of elements to remove; positive.
        count: usize,
    },
    /// `LPUSH`, `RPUSH` and their variants with `X`: replies with the new length.
    Push {
        /// End at which elements are added, one after the other.
        end: ListEnd,
        /// Elements to add, in this order.
        values: &'a [&'a [u8]],
        /// Adds nothing if the key does not exist.
        to_existing: bool,
    },
    /// `LREM`: replies with the number of removed elements.
    Remove {
        /// Greatest number of elements to remove, from the tail if negative; 0 means no limit.
        count: i64,
        /// Elements equal to this one are removed.
        value: &'a [u8],
    },
    /// `LSET`: replies with OK, or with an error if there is no such key or element.
    Set {
        /// Place of the element; from the tail, where -1 is the last one, if negative.
        index: i64,
        /// New element.
        value: &'a [u8],
    },
    /// `LTRIM`: replies with OK.
    Trim {
        /// Place of the first element that stays; from the tail if negative.
        first: i64,
        /// Place of the last element that stays; from the tail if negative.
        last: i64,
    },
}

/// A command on a sorted set. It replies with an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortedSetCommand<'a> {
    /// `ZREM` and its variants: replies with the number of removed members.
    Remove {
        /// Names of the members.
        members: &'a [&'a [u8]],
    },
    /// `ZADD` and `ZINCRBY`: replies with the number of new members.
    Set {
        /// Scores and members, in the order in which they are set.
        members: &'a [(Score, &'a [u8])],
        /// True for `ZINCRBY` and `ZADD` with `INCR`.
        is_increment: bool,
    },
}

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListEnd {
    /// Before the first element.
    Head,
    /// Behind the last element.
    Tail,
}

impl ListEnd {
    /// Returns the element at this end.
    pub(crate) fn element(self, list: &VecDeque<SmallBytes>) -> Option<&SmallBytes> {
        match self {
            Self::Head => list.front(),
            Self::Tail => list.back(),
        }
    }
}
