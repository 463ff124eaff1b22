//! Sorted set commands.

mod add;
mod ranges;

use std::sync::Arc;

use super::call::count;
use super::{Call, DENY_OOM, Keys, Outcome, READ, REPLIES_FIRST, Refusal, Spec, WRITE};
use crate::resp::Value;
use crate::script::number::{general, leading, shortest};
use crate::{Content, ErrorReply, KeyCommand, Members, SortedSetCommand};

const ADD: u16 = WRITE | DENY_OOM | REPLIES_FIRST;

pub(super) const COMMANDS: &[Spec] = &[
    Spec::new("zadd", -4, ADD, Keys::First, |call| add::add(call, false)),
    Spec::new("zcard", 2, READ, Keys::First, length),
    Spec::new("zcount", 4, READ, Keys::First, ranges::count_scores),
    Spec::new("zincrby", 4, ADD, Keys::First, |call| add::add(call, true)),
    Spec::new("zrange", -4, READ, Keys::First, |call| ranges::range(call, false)),
    Spec::new("zrangebyscore", -4, READ, Keys::First, |call| ranges::range(call, true)),
    Spec::new("zrank", 3, READ, Keys::First, |call| rank(call, false)),
    Spec::new("zrem", -3, WRITE, Keys::First, |call| remove(call, &call.arguments()[1..])),
    Spec::new("zremrangebyrank", 4, WRITE, Keys::First, ranges::remove_places),
    Spec::new("zremrangebyscore", 4, WRITE, Keys::First, ranges::remove_scores),
    Spec::new("zrevrank", 3, READ, Keys::First, |call| rank(call, true)),
    Spec::new("zscore", 3, READ, Keys::First, score),
];

/// Returns the sorted set that the first argument names; an empty one if there is no such key.
fn members(call: &mut Call<'_>) -> Result<Arc<Members>, Refusal> {
    match call.content(call.arguments()[0]) {
        None => Ok(Arc::default()),
        Some(Content::SortedSet(members)) => Ok(members),
        Some(_) => Err(Refusal::new(ErrorReply::WrongType.text())),
    }
}

fn remove(call: &mut Call<'_>, members: &[&[u8]]) -> Outcome {
    let command = SortedSetCommand::Remove { members };
    call.answer(call.arguments()[0], KeyCommand::SortedSet(command))
}

/// Returns a number as a reply.
fn double(call: &Call<'_>, number: f64) -> Value {
    let is_shortest = call.server.profile().style.writes_shortest;
    Value::Double(if is_shortest { shortest(number) } else { general(number, 17) })
}

/// Parses a score as real servers do: one that is out of the range of numbers is none.
fn number(word: &[u8]) -> Result<f64, Refusal> {
    let invalid = Refusal::new("ERR value is not a valid float");
    let Some((number, length)) = leading(word) else { return Err(invalid) };
    let mantissa = word.split(|byte| byte.eq_ignore_ascii_case(&b'e')).next().unwrap_or(word);
    let is_cut = match number {
        0.0 => mantissa.iter().any(|byte| (b'1'..=b'9').contains(byte)),
        _ => number.is_infinite() && !word.iter().any(|byte| byte.eq_ignore_ascii_case(&b'n')),
    };
    if length < word.len() || number.is_nan() || is_cut { Err(invalid) } else { Ok(number) }
}

fn length(call: &mut Call<'_>) -> Outcome {
    Ok(count(members(call)?.len()))
}

fn score(call: &mut Call<'_>) -> Outcome {
    let score = members(call)?.score(call.arguments()[1]);
    Ok(score.map_or(Value::Null, |score| double(call, score.get())))
}

/// Returns the place of a member, from the end if `is_reverse`.
fn rank(call: &mut Call<'_>, is_reverse: bool) -> Outcome {
    let (set, member) = (members(call)?, call.arguments()[1]);
    let place = set.iter().position(|(_, it)| **it == *member);
    let place = place.map(|place| if is_reverse { set.len() - 1 - place } else { place });
    Ok(place.map_or(Value::Null, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded from Redis 7.0.15.
    #[test]
    fn a_score_is_a_number_within_the_range_of_numbers() {
        for (word, expected) in [
            ("-0", Some(0.0)),
            ("0e5", Some(0.0)),
            (".5", Some(0.5)),
            ("5.", Some(5.0)),
            ("0x10", Some(16.0)),
            ("+inf", Some(f64::INFINITY)),
            ("-Infinity", Some(f64::NEG_INFINITY)),
            ("1e400", None),
            ("1e-400", None),
            ("nan", None),
            (" 1", None),
            ("1 ", None),
            ("", None),
            ("x", None),
        ] {
            assert_eq!(number(word.as_bytes()).ok(), expected, "{word}");
        }
    }
}
