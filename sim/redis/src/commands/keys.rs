//! Commands on keys as such: finding, renaming, copying, deleting.

use super::call::{count, integer, is};
use super::set::{Comparison, digest_of};
use super::{Call, DENY_OOM, Keys, Outcome, READ, Refusal, Spec, WRITE, text};
use crate::glob;
use crate::profile::{Feature, Profile};
use crate::resp::Value;
use crate::server::Touched;
use crate::{Content, Ended, Executed, KeyCommand, Keyspace, Reply, SmallBytes};

pub(super) const COMMANDS: &[Spec] = &[
    Spec::new("copy", -3, WRITE | DENY_OOM, Keys::FirstTwo, copy),
    Spec::new("dbsize", 1, READ, Keys::None, size),
    Spec::new("del", -2, WRITE, Keys::All, |call| each(call, KeyCommand::Del)),
    Spec::new("delex", -2, WRITE, Keys::First, delete_if).where_there_is(Feature::Digests),
    Spec::new("digest", 2, READ, Keys::First, digest).where_there_is(Feature::Digests),
    Spec::new("exists", -2, READ, Keys::All, |call| each(call, KeyCommand::Exists)),
    Spec::new("flushall", -1, WRITE, Keys::None, flush_all),
    Spec::new("flushdb", -1, WRITE, Keys::None, flush_database),
    Spec::new("keys", 2, READ, Keys::None, names),
    Spec::new("move", 3, WRITE, Keys::First, move_key),
    Spec::new("randomkey", 1, READ, Keys::None, some_key),
    Spec::new("rename", 3, WRITE, Keys::FirstTwo, |call| rename(call, true)),
    Spec::new("renamenx", 3, WRITE, Keys::FirstTwo, |call| rename(call, false)),
    Spec::new("scan", -2, READ, Keys::None, scan),
    Spec::new("touch", -2, READ, Keys::All, |call| each(call, KeyCommand::Exists)),
    Spec::new("type", 2, READ, Keys::First, kind),
    Spec::new("unlink", -2, WRITE, Keys::All, |call| each(call, KeyCommand::Del)),
];

/// Executes the command on every key and returns the sum of the integer replies.
fn each(call: &mut Call<'_>, command: KeyCommand<'_>) -> Outcome {
    let done = call.arguments().iter().map(|key| match call.on(key, command) {
        Reply::Integer(number) => number,
        _ => 0,
    });
    Ok(Value::Integer(done.sum()))
}

/// `DELEX`. Checks the number of arguments before the key.
fn delete_if(call: &mut Call<'_>) -> Outcome {
    let (key, name, operand) = match *call.arguments() {
        [key] => return call.answer(key, KeyCommand::Del),
        [key, name, operand] => (key, name, operand),
        _ => return Err(call.arity()),
    };
    let comparison = Comparison::named(name, operand)
        .ok_or(Refusal::new("ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE"))?;
    comparison.check()?;
    let value = call.get(key)?;
    if value.is_none() || !comparison.holds(value.as_deref()) {
        return Ok(Value::Integer(0));
    }
    call.answer(key, KeyCommand::Del)
}

fn digest(call: &mut Call<'_>) -> Outcome {
    let value = call.get(call.arguments()[0])?;
    Ok(value.map_or(Value::Null, |value| Value::bulk(&digest_of(&value))))
}

fn kind(call: &mut Call<'_>) -> Outcome {
    let content = call.content(call.arguments()[0]);
    Ok(Value::simple(content.map_or("none", |content| content.type_name())))
}

fn size(call: &mut Call<'_>) -> Outcome {
    let database = call.server.databases().get(call.session.database());
    Ok(count(database.map_or(0, Keyspace::len)))
}

/// Returns true if the pattern of `KEYS` or `SCAN` selects a key; `*` selects the empty name, too.
fn is_meant(pattern: &[u8], key: &[u8]) -> bool {
    pattern == b"*" || glob::matches(pattern, key)
}

/// Returns the names of the existing keys that match `pattern` and are of the type `kind`, if there
/// is one.
fn matching(call: &Call<'_>, pattern: &[u8], kind: Option<&[u8]>) -> Vec<Value> {
    let Some(database) = call.server.databases().get(call.session.database()) else {
        return Vec::new();
    };
    let wall_ms = call.wall_ms();
    let there = database.iter().filter(|(_, entry)| !entry.is_expired(wall_ms));
    let names = there.filter(|(key, _)| is_meant(pattern, key));
    let names = names.filter(|(_, it)| kind.is_none_or(|kind| is(kind, it.value.type_name())));
    names.map(|(key, _)| Value::Bulk(key.share())).collect()
}

/// Deletes the expired keys that match `pattern`.
fn expire(call: &mut Call<'_>, pattern: &[u8]) {
    let Some(database) = call.server.databases().get(call.session.database()) else { return };
    let wall_ms = call.wall_ms();
    let over = database.iter().filter(|(_, entry)| entry.is_expired(wall_ms));
    let names = over.map(|(key, _)| key).filter(|key| is_meant(pattern, key));
    for name in names.cloned().collect::<Vec<SmallBytes>>() {
        call.exists(&name);
    }
}

fn names(call: &mut Call<'_>) -> Outcome {
    Ok(Value::Array(matching(call, call.arguments()[0], None)))
}

/// Draws a key that is not expired. Takes time in proportion to the number of keys.
fn some_key(call: &mut Call<'_>) -> Outcome {
    let (database, wall_ms) = (call.session.database(), call.wall_ms());
    let mut random = *call.server.random_mut();
    let keys = call.server.databases().get(database);
    let lives = || {
        let entries = keys.into_iter().flat_map(Keyspace::iter);
        entries.filter(move |(_, entry)| !entry.is_expired(wall_ms))
    };
    let count = lives().count();
    let drawn = if count == 0 { None } else { lives().nth(random.below(count)) };
    let value = drawn.map_or(Value::Null, |(key, _)| Value::Bulk(key.share()));
    *call.server.random_mut() = random;
    Ok(value)
}

/// Parses a cursor as `strtoul` does: an empty word is 0, and signs are accepted.
fn cursor_of(word: &[u8], profile: &Profile) -> Option<u64> {
    let mut word = text::until_zero(word);
    if profile.has(Feature::CursorsAreNumbers) {
        if word.is_empty() || integer(word).is_ok_and(|number| number < 0) {
            return None;
        }
        word = word.trim_ascii_start();
    }
    let digits = word.strip_prefix(b"-").or_else(|| word.strip_prefix(b"+")).unwrap_or(word);
    if word.is_empty() {
        return Some(0);
    }
    let digits = core::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
    digits.parse().ok()
}

/// One reply contains all keys; the `COUNT` hint is ignored.
fn scan(call: &mut Call<'_>) -> Outcome {
    let [cursor, options @ ..] = call.arguments() else { return Err(call.arity()) };
    let cursor =
        cursor_of(cursor, call.server.profile()).ok_or(Refusal::new("ERR invalid cursor"))?;
    let (mut pattern, mut kind): (&[u8], _) = (b"*", None);
    let mut rest = options;
    while let [option, value, after @ ..] = rest {
        if is(option, "COUNT") {
            if integer(value)? < 1 {
                return Err(text::SYNTAX);
            }
        } else if is(option, "MATCH") {
            pattern = value;
        } else if is(option, "TYPE") {
            kind = Some(*value);
        } else {
            return Err(text::SYNTAX);
        }
        rest = after;
    }
    if !rest.is_empty() {
        return Err(text::SYNTAX);
    }
    let mut names = Vec::new();
    // The lowest bits of a cursor are a place in the hash table. They are nonzero for a place
    // beyond the start of this small table, so nothing is left to return.
    if cursor.trailing_zeros() >= 32 {
        expire(call, pattern);
        names = matching(call, pattern, kind);
    }
    Ok(Value::Array(vec![Value::bulk(b"0"), Value::Array(names)]))
}

/// Stores a value and its expiry under a key of any database.
fn put(call: &mut Call<'_>, database: u8, key: &[u8], entry: &(Content, Option<u64>)) {
    let (value, expires_wall_ms) = (&entry.0, entry.1);
    call.on_in(database, key, KeyCommand::Put { value, expires_wall_ms });
}

/// Returns the value and the expiry of a key.
fn entry(call: &mut Call<'_>, key: &[u8]) -> Option<(Content, Option<u64>)> {
    let expiry = call.expiry(key)?;
    Some((call.content(key)?, expiry))
}

fn rename(call: &mut Call<'_>, replace: bool) -> Outcome {
    let &[from, to] = call.arguments() else { return Err(call.arity()) };
    let entry = entry(call, from).ok_or(text::NO_SUCH_KEY)?;
    if from == to {
        return Ok(if replace { Value::ok() } else { Value::Integer(0) });
    }
    // Looked up in any case: this ends an expired key before `from` changes, and the pushes tell the
    // order.
    if call.exists(to) && !replace {
        return Ok(Value::Integer(0));
    }
    call.on(from, KeyCommand::Del);
    put(call, call.session.database(), to, &entry);
    Ok(if replace { Value::ok() } else { Value::Integer(1) })
}

/// Parses the number of a database.
pub(super) fn database(call: &Call<'_>, word: &[u8]) -> Result<u8, Refusal> {
    let number = i32::try_from(integer(word)?).map_err(|_| text::NOT_AN_INT)?;
    let known = u8::try_from(number).ok().filter(|number| *number < call.server.database_count());
    known.ok_or(text::DATABASE_RANGE)
}

fn move_key(call: &mut Call<'_>) -> Outcome {
    let &[key, to] = call.arguments() else { return Err(call.arity()) };
    let to = database(call, to)?;
    if to == call.session.database() {
        return Err(Refusal::new("ERR source and destination objects are the same"));
    }
    let Some(entry) = entry(call, key) else { return Ok(Value::Integer(0)) };
    if call.on_in(to, key, KeyCommand::Exists) == Reply::Integer(1) {
        return Ok(Value::Integer(0));
    }
    // In this order the keyspace events come.
    call.on(key, KeyCommand::Del);
    put(call, to, key, &entry);
    Ok(Value::Integer(1))
}

fn copy(call: &mut Call<'_>) -> Outcome {
    let &[from, to, ref options @ ..] = call.arguments() else { return Err(call.arity()) };
    let (mut target, mut replace) = (call.session.database(), false);
    let mut rest = options;
    loop {
        rest = match rest {
            [] => break,
            [option, after @ ..] if is(option, "REPLACE") => {
                replace = true;
                after
            }
            [option, number, after @ ..] if is(option, "DB") => {
                target = database(call, number)?;
                after
            }
            _ => return Err(text::SYNTAX),
        };
    }
    if from == to && target == call.session.database() {
        return Err(Refusal::new("ERR source and destination objects are the same"));
    }
    let Some(entry) = entry(call, from) else { return Ok(Value::Integer(0)) };
    if call.on_in(target, to, KeyCommand::Exists) == Reply::Integer(1) && !replace {
        return Ok(Value::Integer(0));
    }
    put(call, target, to, &entry);
    Ok(Value::Integer(1))
}

fn check_flush(call: &Call<'_>) -> Result<(), Refusal> {
    match *call.arguments() {
        [] => Ok(()),
        [how] if is(how, "SYNC") || is(how, "ASYNC") => Ok(()),
        _ => Err(text::SYNTAX),
    }
}

/// Returns the report of a key that a flush ended.
fn flushed(ended: Ended) -> Touched {
    let (database, key) = (ended.database, ended.key.clone());
    Touched { database, key, executed: Executed::of_end(ended), stored: None }
}

fn flush_all(call: &mut Call<'_>) -> Outcome {
    check_flush(call)?;
    let touched = &mut *call.turn.touched;
    call.server.flush(|ended| touched.push(flushed(ended)));
    Ok(Value::ok())
}

fn flush_database(call: &mut Call<'_>) -> Outcome {
    check_flush(call)?;
    let (database, touched) = (call.session.database(), &mut *call.turn.touched);
    call.server.flush_database(database, |ended| touched.push(flushed(ended)));
    Ok(Value::ok())
}
