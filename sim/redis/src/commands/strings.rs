//! String commands: reading, setting, counting.

use super::call::{count, integer};
use super::set::{Extras, Options, plain, set};
use super::{Call, DENY_OOM, Keys, Outcome, READ, Refusal, Spec, WRITE, text};
use crate::profile::Feature;
use crate::resp::Value;
use crate::{KeyCommand, SetCondition, SetExpiry, SmallBytes};

/// Greatest length of a value, in bytes (`proto-max-bulk-len`).
const VALUE_MAX: usize = 512 * 1_024 * 1_024;

pub(super) const COMMANDS: &[Spec] = &[
    Spec::new("append", 3, WRITE | DENY_OOM, Keys::First, append),
    Spec::new("decr", 2, WRITE | DENY_OOM, Keys::First, |call| increment(call, -1)),
    Spec::new("decrby", 3, WRITE | DENY_OOM, Keys::First, decrement_by),
    Spec::new("delifeq", 3, WRITE, Keys::First, delete_if_equal)
        .where_there_is(Feature::DeleteIfEqual),
    Spec::new("get", 2, READ, Keys::First, |call| {
        call.answer(call.arguments()[0], KeyCommand::Get)
    }),
    Spec::new("getdel", 2, WRITE, Keys::First, get_and_delete),
    Spec::new("getex", -2, WRITE, Keys::First, get_and_retime),
    Spec::new("getrange", 4, READ, Keys::First, part),
    Spec::new("getset", 3, WRITE | DENY_OOM, Keys::First, get_and_set),
    Spec::new("incr", 2, WRITE | DENY_OOM, Keys::First, |call| increment(call, 1)),
    Spec::new("incrby", 3, WRITE | DENY_OOM, Keys::First, increment_by),
    Spec::new("mget", -2, READ, Keys::All, get_many),
    Spec::new("mset", -3, WRITE | DENY_OOM, Keys::EveryOther, set_many),
    Spec::new("msetnx", -3, WRITE | DENY_OOM, Keys::EveryOther, set_many_missing),
    Spec::new("psetex", 4, WRITE | DENY_OOM, Keys::First, |call| set_expiring(call, 1)),
    Spec::new("set", -3, WRITE | DENY_OOM, Keys::First, set),
    Spec::new("setex", 4, WRITE | DENY_OOM, Keys::First, |call| set_expiring(call, 1_000)),
    Spec::new("setnx", 3, WRITE | DENY_OOM, Keys::First, set_missing),
    Spec::new("strlen", 2, READ, Keys::First, length),
];

fn append(call: &mut Call<'_>) -> Outcome {
    let &[key, more] = call.arguments() else { return Err(call.arity()) };
    let old = call.get(key)?.unwrap_or_else(|| SmallBytes::new(b""));
    if old.len() + more.len() > VALUE_MAX {
        return Err(text::TOO_LONG);
    }
    let value = [&*old, more].concat();
    call.on(key, plain(&value, SetExpiry::Keep));
    Ok(count(value.len()))
}

fn increment(call: &mut Call<'_>, by: i64) -> Outcome {
    call.answer(call.arguments()[0], KeyCommand::IncrBy { by })
}

fn increment_by(call: &mut Call<'_>) -> Outcome {
    let by = integer(call.arguments()[1])?;
    increment(call, by)
}

fn decrement_by(call: &mut Call<'_>) -> Outcome {
    let by = integer(call.arguments()[1])?;
    let by = by.checked_neg().ok_or(Refusal::new("ERR decrement would overflow"))?;
    increment(call, by)
}

fn delete_if_equal(call: &mut Call<'_>) -> Outcome {
    let &[key, value] = call.arguments() else { return Err(call.arity()) };
    call.answer(key, KeyCommand::CompareAndDelete { value })
}

fn get_and_delete(call: &mut Call<'_>) -> Outcome {
    let key = call.arguments()[0];
    let Some(value) = call.get(key)? else { return Ok(Value::Null) };
    call.on(key, KeyCommand::Del);
    Ok(Value::Bulk(value.share()))
}

fn get_and_retime(call: &mut Call<'_>) -> Outcome {
    let (key, options) = (call.arguments()[0], &call.arguments()[1..]);
    let options = Options::parse(options, Extras::Getex, call.server.profile())?;
    if call.server.profile().has(Feature::GetexTimeFirst) {
        options.expiry(call.wall_ms(), call.name)?;
    }
    let Some(value) = call.get(key)? else { return Ok(Value::Null) };
    match options.expiry(call.wall_ms(), call.name)? {
        Some(when) => {
            // A relative expiry is never in the past.
            let condition = crate::ExpireCondition::Always;
            let when_ms = i64::try_from(when).unwrap_or(i64::MAX);
            call.on(key, KeyCommand::ExpireAt { when_ms, condition });
        }
        None if options.persist => drop(call.on(key, KeyCommand::Persist)),
        None => {}
    }
    Ok(Value::Bulk(value.share()))
}

fn get_and_set(call: &mut Call<'_>) -> Outcome {
    let &[key, value] = call.arguments() else { return Err(call.arity()) };
    let (condition, expiry) = (SetCondition::Always, SetExpiry::Never);
    call.answer(key, KeyCommand::Set { value, condition, expiry, get: true })
}

fn get_many(call: &mut Call<'_>) -> Outcome {
    let values = call.arguments().iter().map(|key| {
        // A value of another type counts as missing.
        let value = call.get(key).ok().flatten();
        value.map_or(Value::Null, |value| Value::Bulk(value.share()))
    });
    Ok(Value::Array(values.collect()))
}

/// Returns the key-value pairs of `MSET`.
fn pairs<'a>(call: &Call<'a>) -> Result<&'a [[&'a [u8]; 2]], Refusal> {
    match call.arguments().as_chunks() {
        (pairs, []) => Ok(pairs),
        _ => Err(call.arity()),
    }
}

fn set_many(call: &mut Call<'_>) -> Outcome {
    for [key, value] in pairs(call)? {
        call.on(key, plain(value, SetExpiry::Never));
    }
    Ok(Value::ok())
}

fn set_many_missing(call: &mut Call<'_>) -> Outcome {
    let pairs = pairs(call)?;
    if pairs.iter().any(|[key, _]| call.exists(key)) {
        return Ok(Value::Integer(0));
    }
    set_many(call)?;
    Ok(Value::Integer(1))
}

fn set_expiring(call: &mut Call<'_>, unit_ms: i64) -> Outcome {
    let &[key, time, value] = call.arguments() else { return Err(call.arity()) };
    let expiry = super::expiry::after(call.wall_ms(), time, unit_ms, call.name)?;
    call.answer(key, plain(value, SetExpiry::At(expiry)))
}

fn set_missing(call: &mut Call<'_>) -> Outcome {
    let &[key, value] = call.arguments() else { return Err(call.arity()) };
    call.answer(key, KeyCommand::Setnx { value })
}

/// Returns a part of a value. Negative positions count from the end; a part that reaches beyond the value
/// is cut.
fn part(call: &mut Call<'_>) -> Outcome {
    let &[key, first, last] = call.arguments() else { return Err(call.arity()) };
    let (first, last) = (integer(first)?, integer(last)?);
    let value = call.get(key)?.unwrap_or_else(|| SmallBytes::new(b""));
    let length = value.len() as i64;
    let is_backwards = first < 0 && last < 0 && first > last;
    let from_start = |at: i64| if at < 0 { at.saturating_add(length).max(0) } else { at };
    let (first, last) = (from_start(first), from_start(last).min(length - 1));
    let part = match (usize::try_from(first), usize::try_from(last)) {
        (Ok(first), Ok(last)) if !is_backwards => value.get(first..=last).unwrap_or_default(),
        _ => b"",
    };
    Ok(Value::Bulk(bytes::Bytes::copy_from_slice(part)))
}

fn length(call: &mut Call<'_>) -> Outcome {
    let value = call.get(call.arguments()[0])?;
    Ok(count(value.map_or(0, |value| value.len())))
}
