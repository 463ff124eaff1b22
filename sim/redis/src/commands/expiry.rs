//! Commands about expiry.

use super::call::{integer, is};
use super::{Call, Keys, Outcome, READ, Refusal, Spec, WRITE, text};
use crate::resp::Value;
use crate::{ExpireCondition, KeyCommand};

pub(super) const COMMANDS: &[Spec] = &[
    Spec::new("expire", -3, WRITE, Keys::First, |call| expire(call, 1_000, false)),
    Spec::new("expireat", -3, WRITE, Keys::First, |call| expire(call, 1_000, true)),
    Spec::new("expiretime", 2, READ, Keys::First, |call| expire_time(call, 1_000)),
    Spec::new("persist", 2, WRITE, Keys::First, |call| {
        call.answer(call.arguments()[0], KeyCommand::Persist)
    }),
    Spec::new("pexpire", -3, WRITE, Keys::First, |call| expire(call, 1, false)),
    Spec::new("pexpireat", -3, WRITE, Keys::First, |call| expire(call, 1, true)),
    Spec::new("pexpiretime", 2, READ, Keys::First, |call| expire_time(call, 1)),
    Spec::new("pttl", 2, READ, Keys::First, |call| time_to_live(call, 1)),
    Spec::new("ttl", 2, READ, Keys::First, |call| time_to_live(call, 1_000)),
];

/// Returns the instant `time` units after `base_ms` as the expiry of a key being set. It must not
/// be before the clock's origin, and `time` must be positive. `name` is the command's name.
pub(super) fn after(base_ms: u64, time: &[u8], unit_ms: i64, name: &str) -> Result<u64, Refusal> {
    let time = integer(time)?;
    let base_ms = i64::try_from(base_ms).ok();
    let when = Some(time).filter(|time| *time > 0).and_then(|time| time.checked_mul(unit_ms));
    let when = when.and_then(|ms| ms.checked_add(base_ms?));
    when.and_then(|when| u64::try_from(when).ok()).ok_or_else(|| text::invalid_expiry(name))
}

/// Parses the options first, then the time, and looks up the key last.
fn expire(call: &mut Call<'_>, unit_ms: i64, absolute: bool) -> Outcome {
    let &[key, time, ref options @ ..] = call.arguments() else { return Err(call.arity()) };
    let condition = condition(options)?;
    let base_ms = if absolute { 0 } else { call.wall_ms() as i64 };
    let when_ms = integer(time)?.checked_mul(unit_ms).and_then(|ms| ms.checked_add(base_ms));
    let when_ms = when_ms.ok_or_else(|| text::invalid_expiry(call.name))?;
    call.answer(key, KeyCommand::ExpireAt { when_ms, condition })
}

fn condition(options: &[&[u8]]) -> Result<ExpireCondition, Refusal> {
    let names = ["NX", "XX", "GT", "LT"];
    let mut given = [false; 4];
    for option in options {
        let place = names.iter().position(|name| is(option, name));
        given[place.ok_or_else(|| text::around("ERR Unsupported option ", option, ""))?] = true;
    }
    match given {
        [true, xx, gt, lt] if xx || gt || lt => {
            Err(Refusal::new("ERR NX and XX, GT or LT options at the same time are not compatible"))
        }
        [_, _, true, true] => {
            Err(Refusal::new("ERR GT and LT options at the same time are not compatible"))
        }
        [true, ..] => Ok(ExpireCondition::Unset),
        [_, _, true, _] => Ok(ExpireCondition::Later),
        [_, true, _, true] => Ok(ExpireCondition::SetAndSooner),
        [_, _, _, true] => Ok(ExpireCondition::Sooner),
        [_, true, ..] => Ok(ExpireCondition::Set),
        [false, false, false, false] => Ok(ExpireCondition::Always),
    }
}

/// Replies for a missing key and for a key without expiry.
const MISSING: i64 = -2;
const NO_EXPIRY: i64 = -1;

/// Converts to the unit, rounding halves up.
fn in_units(ms: u64, unit_ms: u64) -> i64 {
    ((ms + unit_ms / 2) / unit_ms) as i64
}

fn time_to_live(call: &mut Call<'_>, unit_ms: u64) -> Outcome {
    let answer = call.answer(call.arguments()[0], KeyCommand::Pttl)?;
    Ok(match answer {
        Value::Integer(ms @ 0..) => Value::Integer(in_units(ms as u64, unit_ms)),
        other => other,
    })
}

fn expire_time(call: &mut Call<'_>, unit_ms: u64) -> Outcome {
    let when = match call.expiry(call.arguments()[0]) {
        None => MISSING,
        Some(None) => NO_EXPIRY,
        Some(Some(when)) => in_units(when, unit_ms),
    };
    Ok(Value::Integer(when))
}
