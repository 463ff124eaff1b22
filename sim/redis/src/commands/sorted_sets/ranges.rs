//! Parts of a sorted set: by place, and by score.

use super::super::call::{count, integer, is};
use super::super::{Call, Outcome, Refusal, text};
use super::{double, leading, members, remove};
use crate::keyspace::part;
use crate::resp::{Protocol, Value};
use crate::{Members, Score, SmallBytes};

/// A bound of scores.
#[derive(Clone, Copy, Debug)]
struct Bound {
    number: f64,
    is_excluded: bool,
}

/// Scores between two bounds.
#[derive(Clone, Copy, Debug)]
struct Scores {
    least: Bound,
    most: Bound,
}

impl Bound {
    /// Parses a bound; a leading parenthesis excludes it. Real servers take an empty word for zero
    /// and let spaces precede the number.
    fn parse(word: &[u8]) -> Option<Self> {
        let word = text::until_zero(word);
        let (is_excluded, word) = match word.strip_prefix(b"(") {
            Some(word) => (true, word),
            None => (false, word),
        };
        if word.is_empty() {
            return Some(Self { number: 0.0, is_excluded });
        }
        let word = word.trim_ascii_start();
        let (number, length) = leading(word)?;
        (length == word.len() && !number.is_nan()).then_some(Self { number, is_excluded })
    }
}

impl Scores {
    fn parse(least: &[u8], most: &[u8]) -> Result<Self, Refusal> {
        let bounds = Bound::parse(least).zip(Bound::parse(most));
        let (least, most) = bounds.ok_or(Refusal::new("ERR min or max is not a float"))?;
        Ok(Self { least, most })
    }

    fn contain(&self, score: Score) -> bool {
        let (Self { least, most }, score) = (self, score.get());
        let is_enough =
            if least.is_excluded { score > least.number } else { score >= least.number };
        is_enough && if most.is_excluded { score < most.number } else { score <= most.number }
    }
}

/// Options of `ZRANGE` and `ZRANGEBYSCORE`.
#[derive(Clone, Copy, Debug, Default)]
struct Options {
    with_scores: bool,
    is_reverse: bool,
    by_score: bool,
    /// Number of members to leave out, and greatest number to return; -1 means no limit.
    limit: Option<(i64, i64)>,
}

impl Options {
    /// Parses the options. `by_score` is true for a command that always selects by score.
    fn parse(words: &[&[u8]], by_score: bool) -> Result<Self, Refusal> {
        let mut options = Self { by_score, ..Self::default() };
        let mut rest = words;
        while let [option, after @ ..] = rest {
            rest = after;
            if is(option, "WITHSCORES") {
                options.with_scores = true;
            } else if let (true, [skipped, most, after @ ..]) = (is(option, "LIMIT"), after) {
                options.limit = Some((integer(skipped)?, integer(most)?));
                rest = after;
            } else if is(option, "REV") && !by_score && !options.is_reverse {
                options.is_reverse = true;
            } else if is(option, "BYSCORE") && !options.by_score {
                options.by_score = true;
            } else if is(option, "BYLEX") && !options.by_score {
                return Err(Refusal::new("ERR BYLEX of ZRANGE is not simulated"));
            } else {
                return Err(text::SYNTAX);
            }
        }
        if options.limit.is_some_and(|(_, most)| most != -1) && !options.by_score {
            return Err(Refusal::new(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or \
                 BYLEX",
            ));
        }
        Ok(options)
    }
}

pub(super) fn range(call: &mut Call<'_>, by_score: bool) -> Outcome {
    let &[_, first, last, ref options @ ..] = call.arguments() else { return Err(call.arity()) };
    let options = Options::parse(options, by_score)?;
    let found = if options.by_score {
        let (least, most) = if options.is_reverse { (last, first) } else { (first, last) };
        let scores = Scores::parse(least, most)?;
        let set = members(call)?;
        let found = set.iter().filter(|(score, _)| scores.contain(*score)).cloned();
        let found: Vec<_> =
            if options.is_reverse { found.rev().collect() } else { found.collect() };
        limited(found, options.limit)
    } else {
        let (first, last) = (integer(first)?, integer(last)?);
        let set = members(call)?;
        let places = part(first, last, set.len());
        let all = set.iter().cloned();
        let all: Vec<_> = if options.is_reverse { all.rev().collect() } else { all.collect() };
        all[places].to_vec()
    };
    Ok(shown(call, &found, options.with_scores))
}

/// Leaves out members, as `LIMIT` says. A negative number of members to leave out leaves none.
fn limited(found: Vec<(Score, SmallBytes)>, limit: Option<(i64, i64)>) -> Vec<(Score, SmallBytes)> {
    let (skipped, most) = limit.unwrap_or((0, -1));
    let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    found.into_iter().skip(skipped).take(most).collect()
}

/// Returns members as a reply. With scores, version 3 has a pair for each member.
fn shown(call: &Call<'_>, found: &[(Score, SmallBytes)], with_scores: bool) -> Value {
    let has_pairs = call.session.protocol() == Protocol::Resp3;
    let values = found.iter().flat_map(|(score, member)| {
        let member = Value::Bulk(member.share());
        match (with_scores, has_pairs) {
            (false, _) => vec![member],
            (true, false) => vec![member, double(call, score.get())],
            (true, true) => vec![Value::Array(vec![member, double(call, score.get())])],
        }
    });
    Value::Array(values.collect())
}

pub(super) fn count_scores(call: &mut Call<'_>) -> Outcome {
    let scores = Scores::parse(call.arguments()[1], call.arguments()[2])?;
    let set = members(call)?;
    Ok(count(set.iter().filter(|(score, _)| scores.contain(*score)).count()))
}

pub(super) fn remove_scores(call: &mut Call<'_>) -> Outcome {
    let scores = Scores::parse(call.arguments()[1], call.arguments()[2])?;
    let set = members(call)?;
    remove_all(call, &set, |score, _| scores.contain(score))
}

pub(super) fn remove_places(call: &mut Call<'_>) -> Outcome {
    let (first, last) = (integer(call.arguments()[1])?, integer(call.arguments()[2])?);
    let set = members(call)?;
    let places = part(first, last, set.len());
    remove_all(call, &set, |_, place| places.contains(&place))
}

/// Removes the members whose score and place `is_meant` selects.
fn remove_all(
    call: &mut Call<'_>,
    set: &Members,
    is_meant: impl Fn(Score, usize) -> bool,
) -> Outcome {
    let meant = set.iter().enumerate().filter(|(place, (score, _))| is_meant(*score, *place));
    let gone: Vec<&[u8]> = meant.map(|(_, (_, member))| &**member).collect();
    remove(call, &gone)
}
