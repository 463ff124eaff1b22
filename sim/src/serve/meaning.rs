//! The meaning of a request for the lock, read from its arguments.

use bytes::Bytes;

use lock_judge::history::OpKind;
use redis_sim::script::{Sha, sha_of};
use redis_sim::{Content, KeyUse, SmallBytes, keys_of};

/// A request about the lock's key.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Meaning<'a> {
    /// The lock's key, as the request names it.
    pub(super) key: &'a [u8],
    /// True if the request can do more than read.
    pub(super) changes: bool,
    /// Purpose of the request; `None` for scripts.
    pub(super) op: Option<OpKind>,
    /// Hash of the script, if the request runs one. The request asks for the lock if its value
    /// first arrived in this script.
    pub(super) script: Option<Sha>,
    /// Text of the script, if the request carries it.
    pub(super) text: Option<&'a Bytes>,
    /// The arguments that the request can store or compare.
    pub(super) values: &'a [Bytes],
    /// The value that the request would set, or compare with.
    pub(super) token: Option<&'a Bytes>,
}

/// Returns true if `key` is a client's key for the lock on `resource`: its name, perhaps after a
/// prefix of the client's own.
pub(super) fn is_key(key: &[u8], resource: &[u8]) -> bool {
    let Some(prefix) = key.strip_suffix(resource) else { return false };
    prefix.last().is_none_or(|last| !last.is_ascii_alphanumeric())
}

/// Returns the meaning of `request` for the lock whose key `is_key` knows; `None` if the request is
/// not about the lock.
pub(super) fn of<'a>(request: &'a [Bytes], is_key: impl Fn(&[u8]) -> bool) -> Option<Meaning<'a>> {
    let (name, arguments) = request.split_first()?;
    let is = |other: &[u8]| name.eq_ignore_ascii_case(other);
    let about = |key: &Bytes| is_key(key);
    let is_script = is(b"EVAL") || is(b"EVALSHA") || is(b"FCALL");
    if is_script {
        let count: usize = core::str::from_utf8(arguments.get(1)?).ok()?.parse().ok()?;
        let keys = arguments.get(2..2_usize.checked_add(count)?)?;
        let values = &arguments[2 + count..];
        // A script may be told the key's name among its other arguments.
        let key = keys.iter().chain(values).find(|&key| about(key))?;
        let token = token_of(values.iter().filter(|it| *it != key));
        let text = is(b"EVAL").then_some(&arguments[0]);
        let script = Some(text.map_or_else(|| named(&arguments[0]), |text| sha_of(text)));
        return Some(Meaning { key, changes: true, op: None, script, text, values, token });
    }
    let first = arguments.first()?;
    let value_at = match () {
        () if is(b"SET") || is(b"SETNX") || is(b"GETSET") => Some(1).filter(|_| about(first)),
        () if is(b"HSET") || is(b"HSETNX") || is(b"HMSET") => {
            let counts = arguments.get(2).is_some_and(|it| is_number(it));
            Some(if counts { 1 } else { 2 }).filter(|_| about(first))
        }
        () if is(b"HINCRBY") && arguments.get(2).is_some_and(|it| is_number(it)) => {
            Some(1).filter(|_| about(first))
        }
        () if is(b"SETEX") || is(b"PSETEX") => Some(2).filter(|_| about(first)),
        () if is(b"MSET") || is(b"MSETNX") => {
            arguments.iter().step_by(2).position(about).map(|pair| 2 * pair + 1)
        }
        () => None,
    };
    if let Some(place) = value_at {
        let token = Some(arguments.get(place)?);
        let compares = arguments.iter().any(|it| it.eq_ignore_ascii_case(b"IFEQ"));
        let values = if compares { &arguments[place..] } else { &arguments[place..=place] };
        let is_pair = is(b"MSET") || is(b"MSETNX");
        let key = if is_pair { &arguments[place - 1] } else { first };
        let op = Some(if compares { OpKind::Extend } else { OpKind::Set });
        return Some(Meaning { key, changes: true, op, script: None, text: None, values, token });
    }
    let words: Vec<&[u8]> = request.iter().map(AsRef::as_ref).collect();
    let (used, keys) = keys_of(&words)?;
    let named = keys.into_iter().find(|key| is_key(key))?;
    let key = arguments.iter().find(|it| *it == named)?;
    let changes = used == KeyUse::Writes;
    let op = match () {
        () if !changes => OpKind::Get,
        () if RETIMING.iter().any(|other| is(other)) => OpKind::Extend,
        () => OpKind::Release,
    };
    let (script, text, values, token) = (None, None, &arguments[1..], None);
    Some(Meaning { key, changes, op: Some(op), script, text, values, token })
}

/// Commands that change a key's expiry and nothing else.
const RETIMING: [&[u8]; 6] =
    [b"EXPIRE", b"EXPIREAT", b"GETEX", b"PERSIST", b"PEXPIRE", b"PEXPIREAT"];

/// Returns the purpose of a script that does not ask for the lock, by the commands in its text.
pub(super) fn purpose(text: &[u8]) -> OpKind {
    let text = text.to_ascii_lowercase();
    let calls = |name: &[u8]| {
        let mut words = text.windows(name.len() + 1);
        words.any(|it| matches!(it[0], b'\'' | b'"') && &it[1..] == name)
    };
    let deletes = calls(b"del") || calls(b"unlink");
    let retimes = calls(b"expire") || calls(b"pexpire");
    if retimes && !deletes { OpKind::Extend } else { OpKind::Release }
}

/// Returns the part of a key's value that names its owner: a string, or the field of a hash that counts
/// the owner's entries, or any other value in a hash. `None` for a hash with several fields and for a
/// list or a sorted set, which may have several owners.
pub(super) fn owner_in(content: &Content) -> Option<&SmallBytes> {
    let fields = match content {
        Content::String(value) => return Some(value),
        Content::Hash(fields) if fields.len() == 1 => fields,
        Content::Hash(_) | Content::List(_) | Content::SortedSet(_) => return None,
    };
    let (field, value) = fields.iter().next()?;
    Some(if is_number(value) { field } else { value })
}

/// Returns the script that a request loads, if any.
pub(super) fn loaded(request: &[Bytes]) -> Option<&Bytes> {
    let [script, load, text] = request else { return None };
    let is_load = script.eq_ignore_ascii_case(b"SCRIPT") && load.eq_ignore_ascii_case(b"LOAD");
    is_load.then_some(text)
}

/// Returns the script that `request` runs, and its arguments behind the keys.
pub(super) fn arguments(request: &[Bytes]) -> Option<(Sha, &[Bytes])> {
    let [name, script, count, rest @ ..] = request else { return None };
    let is = |other: &[u8]| name.eq_ignore_ascii_case(other);
    let count: usize = core::str::from_utf8(count).ok()?.parse().ok()?;
    let script = match () {
        () if is(b"EVAL") => sha_of(script),
        () if is(b"EVALSHA") || is(b"FCALL") => named(script),
        () => return None,
    };
    Some((script, rest.get(count..)?))
}

/// Returns true if `word` is a part of `value` between its punctuation.
pub(super) fn has_word(value: &[u8], word: &[u8]) -> bool {
    let ends = |at: Option<&u8>| at.is_none_or(|it| !it.is_ascii_alphanumeric());
    let is_at = |at: usize| {
        let before = at.checked_sub(1).and_then(|it| value.get(it));
        ends(before) && ends(value.get(at + word.len()))
    };
    let mut places = value.windows(word.len().max(1)).enumerate();
    !word.is_empty() && places.any(|(at, part)| part == word && is_at(at))
}

/// Returns true if the reply to `request` is the previous value, whether or not the request
/// succeeded.
pub(super) fn shows_what_was_there(request: &[Bytes]) -> bool {
    let is_set = request.first().is_some_and(|name| name.eq_ignore_ascii_case(b"SET"));
    is_set && request.iter().skip(3).any(|option| option.eq_ignore_ascii_case(b"GET"))
}

/// Returns the script hash that `word` gives.
fn named(word: &Bytes) -> Sha {
    word.to_ascii_lowercase().try_into().unwrap_or_else(|_| sha_of(word))
}

/// Returns true if clients send `request` before or along with their name.
pub(super) fn is_handshake(request: &[Bytes]) -> bool {
    const COMMANDS: [&[u8]; 5] = [b"AUTH", b"CLIENT", b"HELLO", b"PING", b"SELECT"];
    let name = request.first();
    name.is_some_and(|name| COMMANDS.iter().any(|it| name.eq_ignore_ascii_case(it)))
}

/// Returns the name that a connection gives itself by `request`, if any.
pub(super) fn name(request: &[Bytes]) -> Option<&Bytes> {
    let is = |place: usize, word: &[u8]| {
        request.get(place).is_some_and(|it: &Bytes| it.eq_ignore_ascii_case(word))
    };
    if is(0, b"CLIENT") && is(1, b"SETNAME") {
        return request.get(2);
    }
    let place = request.iter().position(|it| it.eq_ignore_ascii_case(b"SETNAME"))?;
    if is(0, b"HELLO") { request.get(place + 1) } else { None }
}

/// Returns the likely value among a script's arguments, as long as no master has stored one. If all of
/// them are numbers, it is the longest: it is random, and the others are times.
fn token_of<'a>(values: impl Iterator<Item = &'a Bytes> + Clone) -> Option<&'a Bytes> {
    let text = values.clone().find(|it| !is_number(it));
    text.or_else(|| values.reduce(|one, other| if other.len() > one.len() { other } else { one }))
}

fn is_number(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<'a>(request: &'a [Bytes], resource: &[u8]) -> Option<Meaning<'a>> {
        super::of(request, |key| is_key(key, resource))
    }

    fn request(line: &str) -> Vec<Bytes> {
        line.split(' ').map(|word| Bytes::copy_from_slice(word.as_bytes())).collect()
    }

    #[test]
    fn a_set_is_a_vote_by_its_value() {
        let asked = request("set res abc NX PX 100");
        let meaning = of(&asked, b"res").unwrap();
        assert!(meaning.op == Some(OpKind::Set) && meaning.token.unwrap() == "abc");
        assert_eq!(of(&asked, b"other"), None);
    }

    #[test]
    fn a_set_with_get_is_answered_by_the_old_value() {
        assert!(shows_what_was_there(&request("set res abc NX PX 100 get")));
        assert!(!shows_what_was_there(&request("SET res GET NX PX 100")));
        assert!(!shows_what_was_there(&request("GET res")));
    }

    #[test]
    fn a_script_is_about_the_keys_that_it_is_given() {
        let asked = request("EVALSHA 1234 1 redlock:res 30000 abc");
        assert_eq!(of(&asked, b"res").unwrap().token.unwrap(), "abc");
        assert_eq!(of(&request("EVALSHA 1234 0 other abc"), b"res"), None);
        let told = request("EVALSHA 1234 0 res abc");
        let meaning = of(&told, b"res").unwrap();
        assert!(meaning.key == b"res" && meaning.token.unwrap() == "abc");
        assert_eq!(of(&request("EVALSHA 1234 9 res abc"), b"res"), None);
    }

    #[test]
    fn the_value_among_numbers_is_the_longest() {
        for line in ["EVAL text 1 res 1500 4611686018427387904", "EVAL text 1 res 12345 1500"] {
            let asked = request(line);
            let longest = asked[4..].iter().max_by_key(|it| it.len());
            assert_eq!(of(&asked, b"res").unwrap().token, longest);
        }
    }

    #[test]
    fn a_key_may_have_a_prefix_and_not_merely_the_same_end() {
        assert!(is_key(b"redlock:res", b"res") && is_key(b"res", b"res"));
        assert!(!is_key(b"stores", b"res") && !is_key(b"res:counter", b"res"));
    }

    #[test]
    fn a_read_changes_nothing() {
        assert!(!of(&request("GET res"), b"res").unwrap().changes);
        assert!(of(&request("DEL other res"), b"res").unwrap().changes);
        assert_eq!(of(&request("ECHO res"), b"res"), None);
    }

    #[test]
    fn a_release_by_a_plain_command_belongs_to_its_value() {
        let asked = request("DELIFEQ res abc");
        let meaning = of(&asked, b"res").unwrap();
        assert!(meaning.op == Some(OpKind::Release) && meaning.values.contains(&asked[2]));
        assert!(of(&request("DELEX res IFEQ abc"), b"res").unwrap().changes);
        assert_eq!(of(&request("APPEND other res"), b"res"), None);
    }

    #[test]
    fn a_key_may_be_set_among_others() {
        let asked = request("MSET other res res token");
        let meaning = of(&asked, b"res").unwrap();
        assert!(meaning.op == Some(OpKind::Set) && meaning.token.unwrap() == "token");
        assert_eq!(of(&request("MSET other res"), b"res"), None);
        assert!(of(&request("RENAME other res"), b"res").unwrap().changes);
    }

    #[test]
    fn the_purpose_of_a_request_follows_from_its_commands() {
        for (words, op) in [
            ("PEXPIRE res 100", OpKind::Extend),
            ("SET res abc IFEQ abc PX 100", OpKind::Extend),
            ("UNLINK res", OpKind::Release),
            ("GET res", OpKind::Get),
        ] {
            assert_eq!(of(&request(words), b"res").unwrap().op, Some(op), "{words}");
        }
        let unlock = b"if redis.call('get',KEYS[1])==ARGV[1] then redis.call(\"DEL\",KEYS[1]) end";
        assert_eq!(purpose(unlock), OpKind::Release);
        assert_eq!(purpose(b"return redis.call(\"pexpire\", KEYS[1], ARGV[2])"), OpKind::Extend);
        let load = request("script load text");
        assert_eq!(loaded(&load).unwrap(), "text");
        assert_eq!(loaded(&request("SCRIPT FLUSH")), None);
    }

    #[test]
    fn a_hash_is_set_by_the_field_that_counts_or_by_the_value() {
        for (line, token) in [
            ("HSETNX res owner abc", "abc"),
            ("HSET res abc 1", "abc"),
            ("HINCRBY res abc 1", "abc"),
        ] {
            let asked = request(line);
            let meaning = of(&asked, b"res").unwrap();
            assert!(meaning.op == Some(OpKind::Set) && meaning.token.unwrap() == token, "{line}");
        }
        for line in ["HINCRBY res abc -1", "HDEL res abc", "HSET res"] {
            assert!(of(&request(line), b"res").is_none_or(|it| it.op == Some(OpKind::Release)));
        }
    }

    #[test]
    fn a_connection_is_named_in_two_ways() {
        assert_eq!(name(&request("client setname c1")).unwrap(), "c1");
        assert_eq!(name(&request("HELLO 3 SETNAME c1")).unwrap(), "c1");
        assert_eq!(name(&request("CLIENT GETNAME")), None);
    }
}
