//! SET, and the options that it shares with GETEX.

use super::call::is;
use super::{Call, Outcome, Refusal, expiry, text};
use crate::profile::{Feature, Profile};
use crate::resp::Value;
use crate::{Change, KeyCommand, SetCondition, SetExpiry, SmallBytes};

/// Returns an unconditional SET without GET.
pub(super) const fn plain(value: &[u8], expiry: SetExpiry) -> KeyCommand<'_> {
    KeyCommand::Set { value, condition: SetCondition::Always, expiry, get: false }
}

/// Options beyond the shared ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extras {
    /// SET: conditions, GET and KEEPTTL.
    Set,
    /// GETEX: PERSIST.
    Getex,
}

/// Condition of a SET.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition<'a> {
    /// `NX`.
    Missing,
    /// `XX`.
    Present,
    /// `IFEQ`, `IFNE`, `IFDEQ`, `IFDNE`.
    Compare(Comparison<'a>),
}

/// Comparison of a key's value with an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Comparison<'a> {
    /// The operand is a digest of the value.
    digest: bool,
    /// The comparison holds if the value differs.
    negated: bool,
    operand: &'a [u8],
}

/// Options after the key and the value.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Options<'a> {
    condition: Option<Condition<'a>>,
    get: bool,
    keep: bool,
    pub(super) persist: bool,
    /// Time argument, and its unit.
    time: Option<(&'a [u8], Unit)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Unit {
    ms: i64,
    absolute: bool,
}

impl Comparison<'_> {
    /// Returns the comparison of this name with `operand`.
    pub(super) fn named<'a>(name: &[u8], operand: &'a [u8]) -> Option<Comparison<'a>> {
        let names = [
            ("IFEQ", false, false),
            ("IFNE", false, true),
            ("IFDEQ", true, false),
            ("IFDNE", true, true),
        ];
        let (_, digest, negated) = names.into_iter().find(|(known, ..)| is(name, known))?;
        Some(Comparison { digest, negated, operand })
    }

    /// Checks the operand.
    ///
    /// # Errors
    ///
    /// If the comparison needs a digest and the operand is none.
    pub(super) fn check(&self) -> Result<(), Refusal> {
        if self.digest
            && (self.operand.len() != 16 || !self.operand.iter().all(u8::is_ascii_hexdigit))
        {
            return Err(Refusal::new("ERR must be exactly 16 hexadecimal characters"));
        }
        Ok(())
    }

    /// Returns true if the comparison holds for a key with this value. A missing key differs from
    /// every operand.
    pub(super) fn holds(&self, value: Option<&[u8]>) -> bool {
        let equal = value.is_some_and(|value| {
            if self.digest {
                digest_of(value).eq_ignore_ascii_case(self.operand)
            } else {
                value == self.operand
            }
        });
        equal != self.negated
    }
}

/// Returns the XXH3-64 of `value` in hexadecimal, as `DIGEST` prints it.
pub(super) fn digest_of(value: &[u8]) -> [u8; 16] {
    let hash = xxhash_rust::xxh3::xxh3_64(value);
    let mut digits = [0; 16];
    for (place, digit) in digits.iter_mut().enumerate() {
        let nibble = (hash >> (60 - 4 * place)) as u32 & 15;
        *digit = char::from_digit(nibble, 16).map_or(0, |digit| digit as u8);
    }
    digits
}

impl<'a> Options<'a> {
    /// Parses the options.
    ///
    /// # Errors
    ///
    /// If an option is unknown or contradicts another.
    pub(super) fn parse(
        words: &'a [&'a [u8]],
        extras: Extras,
        profile: &Profile,
    ) -> Result<Self, Refusal> {
        let mut options = Self::default();
        let mut rest = words;
        while let [word, after @ ..] = rest {
            rest = match options.take(word, after, extras, profile) {
                Some(taken) => &after[taken..],
                None => return Err(text::SYNTAX),
            };
        }
        Ok(options)
    }

    /// Parses one option; returns the number of further words that belong to it.
    fn take(
        &mut self,
        word: &[u8],
        after: &'a [&'a [u8]],
        extras: Extras,
        profile: &Profile,
    ) -> Option<usize> {
        if extras == Extras::Set {
            for (name, condition) in [("NX", Condition::Missing), ("XX", Condition::Present)] {
                if is(word, name) {
                    let fits = self.condition.is_none_or(|other| other == condition);
                    self.condition = Some(condition);
                    return fits.then_some(0);
                }
            }
            if is(word, "GET") {
                self.get = true;
                return Some(0);
            }
            if is(word, "KEEPTTL") {
                self.keep = true;
                return self.time.is_none().then_some(0);
            }
            if let Some(operand) = after.first()
                && let Some(comparison) = Comparison::named(word, operand)
            {
                let known = profile.has(Feature::SetIfEqual)
                    && (profile.has(Feature::Digests)
                        || (!comparison.digest && !comparison.negated));
                let fits = known && self.condition.is_none();
                self.condition = Some(Condition::Compare(comparison));
                return fits.then_some(1);
            }
        } else if is(word, "PERSIST") {
            self.persist = true;
            return self.time.is_none().then_some(0);
        }
        let units =
            [("EX", 1_000, false), ("PX", 1, false), ("EXAT", 1_000, true), ("PXAT", 1, true)];
        let (_, ms, absolute) = units.into_iter().find(|(name, ..)| is(word, name))?;
        let unit = Unit { ms, absolute };
        let fits = self.time.is_none_or(|(_, other)| other == unit) && !self.keep && !self.persist;
        self.time = Some((after.first()?, unit));
        fits.then_some(1)
    }

    /// Returns the instant at which the key is to expire; `name` is the command's name.
    pub(super) fn expiry(&self, wall_ms: u64, name: &str) -> Result<Option<u64>, Refusal> {
        let Some((time, unit)) = self.time else { return Ok(None) };
        let base_ms = if unit.absolute { 0 } else { wall_ms };
        expiry::after(base_ms, time, unit.ms, name).map(Some)
    }
}

pub(super) fn set(call: &mut Call<'_>) -> Outcome {
    let &[key, value, ref options @ ..] = call.arguments() else { return Err(call.arity()) };
    let options = Options::parse(options, Extras::Set, call.server.profile())?;
    let expiry = match options.expiry(call.wall_ms(), call.name)? {
        Some(when) => SetExpiry::At(when),
        None if options.keep => SetExpiry::Keep,
        None => SetExpiry::Never,
    };
    let is_past = call.server.profile().has(Feature::PastDeletes)
        && matches!(expiry, SetExpiry::At(when) if when <= call.wall_ms());
    let condition = match options.condition {
        None => SetCondition::Always,
        Some(Condition::Missing) => SetCondition::Missing,
        Some(Condition::Present) => SetCondition::Present,
        Some(Condition::Compare(comparison)) => {
            let set = if is_past { KeyCommand::Del } else { plain(value, expiry) };
            return set_if(call, comparison, key, set, options.get);
        }
    };
    // The key is missing before and after, so no watcher must see a change.
    if is_past && condition != SetCondition::Present && !call.exists(key) {
        return Ok(if options.get { Value::Null } else { Value::ok() });
    }
    let answer = call.answer(key, KeyCommand::Set { value, condition, expiry, get: options.get });
    if is_past
        && call.turn.touched.last().is_some_and(|it| it.executed.effect.change == Change::Set)
    {
        call.on(key, KeyCommand::Del);
    }
    answer
}

fn set_if(
    call: &mut Call<'_>,
    comparison: Comparison<'_>,
    key: &[u8],
    set: KeyCommand<'_>,
    get: bool,
) -> Outcome {
    comparison.check()?;
    let is_plain = !comparison.digest && !comparison.negated;
    // An owner's extension by a plain SET with IFEQ keeps the key's writer.
    if let (false, KeyCommand::Set { value, expiry: SetExpiry::At(when), .. }) = (get, set)
        && is_plain
        && comparison.operand == value
    {
        let ttl_ms = i64::try_from(when).unwrap_or(i64::MAX) - call.wall_ms() as i64;
        let done = call.answer(key, KeyCommand::CompareAndRetime { value, ttl_ms })?;
        return Ok(if done == Value::Integer(1) { Value::ok() } else { Value::Null });
    }
    let old = call.get(key)?;
    let holds = comparison.holds(old.as_deref());
    if holds {
        call.on(key, set);
    }
    let shared = |old: Option<SmallBytes>| old.map_or(Value::Null, |it| Value::Bulk(it.share()));
    Ok(match (get, holds) {
        (true, _) => shared(old),
        (false, true) => Value::ok(),
        (false, false) => Value::Null,
    })
}
