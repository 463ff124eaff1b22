//! The effect of a command on a list.

use core::ops::Range;
use std::collections::VecDeque;

use super::Keyspace;
use super::execute::{Done, Turn};
use crate::command::{Change, ErrorReply, ListCommand, ListEnd, Reply};
use crate::{Content, SmallBytes};

type List = VecDeque<SmallBytes>;

impl Keyspace {
    pub(super) fn apply_to_list(
        &mut self,
        key: &[u8],
        command: ListCommand<'_>,
        turn: Turn,
    ) -> Done {
        let reply = match self.stored(key).map(|entry| &entry.value) {
            None => reply_without_list(command),
            Some(Content::List(_)) => None,
            Some(_) => Some(Reply::Error(ErrorReply::WrongType)),
        };
        match reply {
            Some(reply) => (reply, Change::Nothing),
            None => self.change_list(key, command, turn),
        }
    }

    fn change_list(&mut self, key: &[u8], command: ListCommand<'_>, turn: Turn) -> Done {
        let unchanged = |reply| (reply, Change::Nothing);
        let list = match self.stored(key).map(|entry| &entry.value) {
            Some(Content::List(list)) => Some(list),
            _ => None,
        };
        let length = list.map_or(0, |list| list.len());
        match command {
            ListCommand::Insert { pivot, value, side } => {
                let place = list.and_then(|list| list.iter().position(|it| **it == *pivot));
                let Some(place) = place else { return unchanged(Reply::Integer(-1)) };
                self.edit(key, turn, |list: &mut List| {
                    let place = if side == ListEnd::Head { place } else { place + 1 };
                    list.insert(place, SmallBytes::new(value));
                    Reply::Integer(list.len() as i64)
                })
            }
            ListCommand::Push { end, values, .. } => self.edit(key, turn, |list: &mut List| {
                push(list, end, values);
                Reply::Integer(list.len() as i64)
            }),
            ListCommand::Pop { end, count } => {
                let count = count.min(length);
                self.edit(key, turn, |list: &mut List| {
                    match end {
                        ListEnd::Head => drop(list.drain(..count)),
                        ListEnd::Tail => list.truncate(length - count),
                    }
                    Reply::Integer(count as i64)
                })
            }
            ListCommand::Remove { value, .. }
                if list.into_iter().flat_map(|list| list.iter()).all(|it| **it != *value) =>
            {
                unchanged(Reply::Integer(0))
            }
            ListCommand::Remove { count, value } => self.edit(key, turn, |list: &mut List| {
                Reply::Integer(remove(list, count, value) as i64)
            }),
            ListCommand::Set { index, value } => match place(index, length) {
                Some(place) => self.edit(key, turn, |list: &mut List| {
                    list[place] = SmallBytes::new(value);
                    Reply::Ok
                }),
                None => unchanged(Reply::Error(ErrorReply::IndexRange)),
            },
            ListCommand::Trim { first, last } => self.edit(key, turn, |list: &mut List| {
                let Range { start, end } = part(first, last, length);
                list.truncate(end);
                list.drain(..start);
                Reply::Ok
            }),
        }
    }
}

/// Returns the reply to a command on a missing list; `None` if the command creates the list.
const fn reply_without_list(command: ListCommand<'_>) -> Option<Reply> {
    match command {
        ListCommand::Push { to_existing: false, .. } => None,
        ListCommand::Push { to_existing: true, .. }
        | ListCommand::Insert { .. }
        | ListCommand::Pop { .. }
        | ListCommand::Remove { .. } => Some(Reply::Integer(0)),
        ListCommand::Set { .. } => Some(Reply::Error(ErrorReply::NoSuchKey)),
        ListCommand::Trim { .. } => Some(Reply::Ok),
    }
}

fn push(list: &mut List, end: ListEnd, values: &[&[u8]]) {
    for value in values {
        match end {
            ListEnd::Head => list.push_front(SmallBytes::new(value)),
            ListEnd::Tail => list.push_back(SmallBytes::new(value)),
        }
    }
}

/// Removes elements that equal `value`, from one end; see [`ListCommand::Remove`]. Returns the number
/// of removed elements.
fn remove(list: &mut List, count: i64, value: &[u8]) -> usize {
    let before = list.len();
    let mut left = if count == 0 { u64::MAX } else { count.unsigned_abs() };
    let mut stays = |element: &SmallBytes| {
        let goes = left > 0 && **element == *value;
        left -= u64::from(goes);
        !goes
    };
    if count < 0 {
        let kept: List = list.drain(..).rev().filter(|element| stays(element)).collect();
        list.extend(kept.into_iter().rev());
    } else {
        list.retain(stays);
    }
    before - list.len()
}

/// Returns the place in a list of `length` elements; a negative index counts from the tail, where -1
/// is the last element.
pub(crate) fn place(index: i64, length: usize) -> Option<usize> {
    let index = if index < 0 { index.checked_add(length as i64)? } else { index };
    usize::try_from(index).ok().filter(|place| *place < length)
}

/// Returns the places from `first` to `last` in a list of `length` elements; negative indices count
/// from the tail. What is beyond the list is cut.
pub(crate) fn part(first: i64, last: i64, length: usize) -> Range<usize> {
    let from_start = |at: i64| if at < 0 { at.saturating_add(length as i64) } else { at };
    let start = usize::try_from(from_start(first)).unwrap_or(0);
    let end = usize::try_from(from_start(last).saturating_add(1)).unwrap_or(0).min(length);
    if start >= end { 0..0 } else { start..end }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> List {
        text.split(' ').map(|word| SmallBytes::new(word.as_bytes())).collect()
    }

    #[test]
    fn elements_are_removed_from_the_end_that_the_sign_names() {
        for (count, removed, left) in
            [(0, 3, "b"), (1, 1, "b a a"), (2, 2, "b a"), (-1, 1, "a b a"), (-9, 3, "b")]
        {
            let mut elements = list("a b a a");
            assert_eq!(remove(&mut elements, count, b"a"), removed, "{count}");
            assert_eq!(elements, list(left), "{count}");
        }
        assert_eq!(remove(&mut list("a"), i64::MIN, b"a"), 1);
    }

    #[test]
    fn places_count_from_either_end() {
        let cases = [(0, Some(0)), (2, Some(2)), (3, None), (-1, Some(2)), (-3, Some(0))];
        for (index, expected) in cases {
            assert_eq!(place(index, 3), expected, "{index}");
        }
        assert_eq!((place(-4, 3), place(i64::MIN, 3), place(i64::MAX, 3)), (None, None, None));
    }

    #[test]
    fn parts_are_cut_at_the_ends() {
        for (first, last, expected) in [
            (0, -1, 0..3),
            (1, 1, 1..2),
            (-2, 9, 1..3),
            (2, 1, 0..0),
            (3, 9, 0..0),
            (i64::MIN, i64::MAX, 0..3),
            (0, i64::MIN, 0..0),
        ] {
            assert_eq!(part(first, last, 3), expected, "{first} {last}");
        }
    }
}
