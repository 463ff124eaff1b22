//! `ZADD` and `ZINCRBY`.

use super::super::call::{count, is};
use super::super::{Call, Outcome, Refusal, text};
use super::{double, members, number};
use crate::resp::Value;
use crate::{KeyCommand, Score, SortedSetCommand};

/// Options before the scores.
#[derive(Clone, Copy, Debug, Default)]
struct Options {
    /// `NX`: only new members.
    missing: bool,
    /// `XX`: only existing members.
    present: bool,
    /// `GT`: no lower score.
    greater: bool,
    /// `LT`: no higher score.
    less: bool,
    /// `CH`: counts changed members, too.
    changed: bool,
    /// `INCR`, or `ZINCRBY`.
    increment: bool,
}

impl Options {
    /// Parses the options; returns them with the words after them.
    fn parse<'a>(words: &'a [&'a [u8]], increment: bool) -> (Self, &'a [&'a [u8]]) {
        let mut options = Self { increment, ..Self::default() };
        let mut rest = words;
        while let [option, after @ ..] = rest {
            let place = match () {
                () if is(option, "NX") => &mut options.missing,
                () if is(option, "XX") => &mut options.present,
                () if is(option, "GT") => &mut options.greater,
                () if is(option, "LT") => &mut options.less,
                () if is(option, "CH") => &mut options.changed,
                () if is(option, "INCR") => &mut options.increment,
                () => break,
            };
            *place = true;
            rest = after;
        }
        (options, rest)
    }

    fn check(self, pairs: usize) -> Result<(), Refusal> {
        let Self { missing, present, greater, less, increment, .. } = self;
        if missing && present {
            return Err(Refusal::new("ERR XX and NX options at the same time are not compatible"));
        }
        if (missing && (greater || less)) || (greater && less) {
            return Err(Refusal::new(
                "ERR GT, LT, and/or NX options at the same time are not compatible",
            ));
        }
        if increment && pairs > 1 {
            return Err(Refusal::new("ERR INCR option supports a single increment-element pair"));
        }
        Ok(())
    }

    /// Returns the number that becomes the score of a member with the score `old`; `None` if the
    /// member stays as it is.
    fn decide(self, old: Option<f64>, given: f64) -> Result<Option<f64>, Refusal> {
        let Some(old) = old else { return Ok((!self.present).then_some(given)) };
        if self.missing {
            return Ok(None);
        }
        let new = if self.increment { old + given } else { given };
        if new.is_nan() {
            return Err(Refusal::new("ERR resulting score is not a number (NaN)"));
        }
        let stays = (self.less && new >= old) || (self.greater && new <= old);
        Ok((!stays).then_some(new))
    }
}

pub(super) fn add(call: &mut Call<'_>, increment: bool) -> Outcome {
    let [key, words @ ..] = call.arguments() else { return Err(call.arity()) };
    let (options, words) = Options::parse(words, increment);
    let (pairs, []) = words.as_chunks() else { return Err(text::SYNTAX) };
    if pairs.is_empty() {
        return Err(text::SYNTAX);
    }
    options.check(pairs.len())?;
    let given: Result<Vec<_>, _> = pairs.iter().map(|[score, _]| number(score)).collect();
    let given = given?;
    let stored = members(call)?;
    let mut after = (*stored).clone();
    let (mut new, mut added, mut last) = (Vec::new(), 0, None);
    for (&[_, member], given) in pairs.iter().zip(given) {
        let old = after.score(member);
        last = options.decide(old.map(Score::get), given)?;
        let Some(score) = last.and_then(Score::new) else { continue };
        if old != Some(score) {
            added += usize::from(old.is_none());
            after.set(member, score);
            new.push((score, member));
        }
    }
    let changed = new.len();
    let command = SortedSetCommand::Set { members: &new, is_increment: options.increment };
    call.on(key, KeyCommand::SortedSet(command));
    if options.increment {
        return Ok(last.map_or(Value::Null, |score| double(call, score)));
    }
    Ok(count(if options.changed { changed } else { added }))
}
