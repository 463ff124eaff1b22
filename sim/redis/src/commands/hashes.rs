//! Hash commands.

use std::sync::Arc;

use super::call::{count, integer};
use super::{Call, DENY_OOM, Keys, Outcome, READ, REPLIES_FIRST, Refusal, Spec, WRITE};
use crate::resp::Value;
use crate::{Content, ErrorReply, Fields, HashCommand, KeyCommand, SmallBytes};

const ADD: u16 = WRITE | DENY_OOM | REPLIES_FIRST;

pub(super) const COMMANDS: &[Spec] = &[
    Spec::new("hdel", -3, WRITE, Keys::First, delete),
    Spec::new("hexists", 3, READ, Keys::First, exists),
    Spec::new("hget", 3, READ, Keys::First, get),
    Spec::new("hgetall", 2, READ, Keys::First, get_all),
    Spec::new("hincrby", 4, ADD, Keys::First, increment),
    Spec::new("hkeys", 2, READ, Keys::First, |call| list(call, |(field, _)| field)),
    Spec::new("hlen", 2, READ, Keys::First, length),
    Spec::new("hmget", -3, READ, Keys::First, get_many),
    Spec::new("hmset", -4, ADD, Keys::First, |call| set(call).map(|_| Value::ok())),
    Spec::new("hset", -4, ADD, Keys::First, set),
    Spec::new("hsetnx", 4, ADD, Keys::First, set_missing),
    Spec::new("hstrlen", 3, READ, Keys::First, value_length),
    Spec::new("hvals", 2, READ, Keys::First, |call| list(call, |(_, value)| value)),
];

/// Returns the hash that the first argument names; an empty one if there is no such key.
fn hash(call: &mut Call<'_>) -> Result<Arc<Fields>, Refusal> {
    match call.content(call.arguments()[0]) {
        None => Ok(Arc::default()),
        Some(Content::Hash(fields)) => Ok(fields),
        Some(_) => Err(Refusal::new(ErrorReply::WrongType.text())),
    }
}

fn on_hash(call: &mut Call<'_>, command: HashCommand<'_>) -> Outcome {
    call.answer(call.arguments()[0], KeyCommand::Hash(command))
}

fn bulk(value: Option<&SmallBytes>) -> Value {
    value.map_or(Value::Null, |value| Value::Bulk(value.share()))
}

fn delete(call: &mut Call<'_>) -> Outcome {
    on_hash(call, HashCommand::Delete { fields: &call.arguments()[1..] })
}

fn exists(call: &mut Call<'_>) -> Outcome {
    let is_there = hash(call)?.get(call.arguments()[1]).is_some();
    Ok(Value::Integer(i64::from(is_there)))
}

fn get(call: &mut Call<'_>) -> Outcome {
    Ok(bulk(hash(call)?.get(call.arguments()[1])))
}

fn get_all(call: &mut Call<'_>) -> Outcome {
    let fields = hash(call)?;
    let pair = |(field, value): (&SmallBytes, &SmallBytes)| (bulk(Some(field)), bulk(Some(value)));
    Ok(Value::Map(fields.iter().map(pair).collect()))
}

fn get_many(call: &mut Call<'_>) -> Outcome {
    let fields = hash(call)?;
    let values = call.arguments()[1..].iter().map(|field| bulk(fields.get(field)));
    Ok(Value::Array(values.collect()))
}

fn increment(call: &mut Call<'_>) -> Outcome {
    let &[_, field, by] = call.arguments() else { return Err(call.arity()) };
    on_hash(call, HashCommand::Increment { field, by: integer(by)? })
}

fn length(call: &mut Call<'_>) -> Outcome {
    Ok(count(hash(call)?.len()))
}

fn list(
    call: &mut Call<'_>,
    part: for<'a> fn((&'a SmallBytes, &'a SmallBytes)) -> &'a SmallBytes,
) -> Outcome {
    let fields = hash(call)?;
    Ok(Value::Array(fields.iter().map(|field| bulk(Some(part(field)))).collect()))
}

fn set(call: &mut Call<'_>) -> Outcome {
    match call.arguments()[1..].as_chunks() {
        (pairs, []) => on_hash(call, HashCommand::Set { pairs }),
        _ => Err(call.arity()),
    }
}

fn set_missing(call: &mut Call<'_>) -> Outcome {
    let &[_, field, value] = call.arguments() else { return Err(call.arity()) };
    on_hash(call, HashCommand::SetMissing { field, value })
}

fn value_length(call: &mut Call<'_>) -> Outcome {
    Ok(count(hash(call)?.get(call.arguments()[1]).map_or(0, |value| value.len())))
}
