//! List commands that do not wait.

use std::collections::VecDeque;
use std::sync::Arc;

use super::call::{count, integer, is};
use super::{Call, DENY_OOM, Keys, Outcome, READ, REPLIES_FIRST, Refusal, Spec, WRITE, text};
use crate::keyspace::{part, place};
use crate::resp::Value;
use crate::{Content, ErrorReply, KeyCommand, ListCommand, ListEnd, SmallBytes};

const ADD: u16 = WRITE | DENY_OOM | REPLIES_FIRST;
const POP: u16 = WRITE | REPLIES_FIRST;

pub(super) const COMMANDS: &[Spec] = &[
    Spec::new("lindex", 3, READ, Keys::First, element),
    Spec::new("linsert", 5, WRITE | DENY_OOM, Keys::First, insert),
    Spec::new("llen", 2, READ, Keys::First, length),
    Spec::new("lmove", 5, WRITE | DENY_OOM, Keys::FirstTwo, move_between),
    Spec::new("lpop", -2, POP, Keys::First, |call| pop(call, ListEnd::Head)),
    Spec::new("lpush", -3, ADD, Keys::First, |call| push(call, ListEnd::Head, false)),
    Spec::new("lpushx", -3, ADD, Keys::First, |call| push(call, ListEnd::Head, true)),
    Spec::new("lrange", 4, READ, Keys::First, elements),
    Spec::new("lrem", 4, WRITE, Keys::First, remove),
    Spec::new("lset", 4, ADD, Keys::First, set),
    Spec::new("ltrim", 4, WRITE, Keys::First, trim),
    Spec::new("rpop", -2, POP, Keys::First, |call| pop(call, ListEnd::Tail)),
    Spec::new("rpoplpush", 3, WRITE | DENY_OOM, Keys::FirstTwo, |call| {
        move_element(call, ListEnd::Tail, ListEnd::Head)
    }),
    Spec::new("rpush", -3, ADD, Keys::First, |call| push(call, ListEnd::Tail, false)),
    Spec::new("rpushx", -3, ADD, Keys::First, |call| push(call, ListEnd::Tail, true)),
];

/// Returns the list that a key holds; `None` if there is no such key.
pub(super) fn list(
    call: &mut Call<'_>,
    key: &[u8],
) -> Result<Option<Arc<VecDeque<SmallBytes>>>, Refusal> {
    match call.content(key) {
        None => Ok(None),
        Some(Content::List(list)) => Ok(Some(list)),
        Some(_) => Err(Refusal::new(ErrorReply::WrongType.text())),
    }
}

/// Removes the element at one end of the list that a key holds, and returns it; `None` if there is no
/// such key.
pub(super) fn pop_one(
    call: &mut Call<'_>,
    key: &[u8],
    end: ListEnd,
) -> Result<Option<SmallBytes>, Refusal> {
    let list = list(call, key)?;
    let element = list.as_ref().and_then(|list| end.element(list));
    let Some(element) = element.cloned() else { return Ok(None) };
    drop(list);
    call.on(key, KeyCommand::List(ListCommand::Pop { end, count: 1 }));
    Ok(Some(element))
}

/// Parses an end of a list, or a side of an element.
fn end_named(word: &[u8], head: &str, tail: &str) -> Result<ListEnd, Refusal> {
    match () {
        () if is(word, head) => Ok(ListEnd::Head),
        () if is(word, tail) => Ok(ListEnd::Tail),
        () => Err(text::SYNTAX),
    }
}

fn bulk(value: &SmallBytes) -> Value {
    Value::Bulk(value.share())
}

fn element(call: &mut Call<'_>) -> Outcome {
    let &[key, index] = call.arguments() else { return Err(call.arity()) };
    let Some(list) = list(call, key)? else { return Ok(Value::Null) };
    let place = place(integer(index)?, list.len());
    Ok(place.and_then(|place| list.get(place)).map_or(Value::Null, bulk))
}

fn elements(call: &mut Call<'_>) -> Outcome {
    let &[key, first, last] = call.arguments() else { return Err(call.arity()) };
    let (first, last) = (integer(first)?, integer(last)?);
    let list = list(call, key)?.unwrap_or_default();
    Ok(Value::Array(list.range(part(first, last, list.len())).map(bulk).collect()))
}

fn insert(call: &mut Call<'_>) -> Outcome {
    let &[key, side, pivot, value] = call.arguments() else { return Err(call.arity()) };
    let side = end_named(side, "BEFORE", "AFTER")?;
    call.answer(key, KeyCommand::List(ListCommand::Insert { pivot, value, side }))
}

fn length(call: &mut Call<'_>) -> Outcome {
    let key = call.arguments()[0];
    Ok(count(list(call, key)?.map_or(0, |list| list.len())))
}

/// `LMOVE`. Parses the ends before it looks up the keys.
fn move_between(call: &mut Call<'_>) -> Outcome {
    let &[_, _, from, to] = call.arguments() else { return Err(call.arity()) };
    let (from, to) = (end_named(from, "LEFT", "RIGHT")?, end_named(to, "LEFT", "RIGHT")?);
    move_element(call, from, to)
}

/// Moves an element from the first list to the second one, which may be the same.
fn move_element(call: &mut Call<'_>, from: ListEnd, to: ListEnd) -> Outcome {
    let (source, target) = (call.arguments()[0], call.arguments()[1]);
    let stored = list(call, source)?;
    let element = stored.as_ref().and_then(|list| from.element(list)).cloned();
    let Some(element) = element else { return Ok(Value::Null) };
    drop(stored);
    list(call, target)?;
    let (values, to_existing) = ([&*element], false);
    // Real servers publish the events in this order. It moves an element within a list, too: the
    // copy is an equal one.
    let push = ListCommand::Push { end: to, values: &values, to_existing };
    call.on(target, KeyCommand::List(push));
    call.on(source, KeyCommand::List(ListCommand::Pop { end: from, count: 1 }));
    Ok(bulk(&element))
}

fn pop(call: &mut Call<'_>, end: ListEnd) -> Outcome {
    let (key, wanted) = match *call.arguments() {
        [key] => return Ok(pop_one(call, key, end)?.as_ref().map_or(Value::Null, bulk)),
        [key, wanted] => (key, wanted),
        _ => return Err(call.arity()),
    };
    let wanted = integer(wanted).ok().and_then(|wanted| usize::try_from(wanted).ok());
    let wanted = wanted.ok_or(Refusal::new("ERR value is out of range, must be positive"))?;
    let Some(list) = list(call, key)? else { return Ok(Value::NullArray) };
    let elements: Vec<_> = match end {
        ListEnd::Head => list.iter().take(wanted).map(bulk).collect(),
        ListEnd::Tail => list.iter().rev().take(wanted).map(bulk).collect(),
    };
    drop(list);
    if wanted > 0 {
        call.on(key, KeyCommand::List(ListCommand::Pop { end, count: wanted }));
    }
    Ok(Value::Array(elements))
}

fn push(call: &mut Call<'_>, end: ListEnd, to_existing: bool) -> Outcome {
    let [key, values @ ..] = call.arguments() else { return Err(call.arity()) };
    call.answer(key, KeyCommand::List(ListCommand::Push { end, values, to_existing }))
}

fn remove(call: &mut Call<'_>) -> Outcome {
    let &[key, count, value] = call.arguments() else { return Err(call.arity()) };
    call.answer(key, KeyCommand::List(ListCommand::Remove { count: integer(count)?, value }))
}

/// Looks up the key before it parses the index.
fn set(call: &mut Call<'_>) -> Outcome {
    let &[key, index, value] = call.arguments() else { return Err(call.arity()) };
    let is_there = list(call, key)?.is_some();
    let index = if is_there { integer(index)? } else { 0 };
    call.answer(key, KeyCommand::List(ListCommand::Set { index, value }))
}

fn trim(call: &mut Call<'_>) -> Outcome {
    let &[key, first, last] = call.arguments() else { return Err(call.arity()) };
    let (first, last) = (integer(first)?, integer(last)?);
    call.answer(key, KeyCommand::List(ListCommand::Trim { first, last }))
}
