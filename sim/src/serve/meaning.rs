//! What a request is to the lock, read from its words.

use bytes::Bytes;

use crate::master::script::{Sha, sha_of};

/// A request about the lock's key.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Meaning<'a> {
    /// Whether it can do more than look.
    pub(super) changes: bool,
    /// Whether it asks for the lock.
    pub(super) votes: bool,
    /// The name of the script that it is: it asks for the lock if it is the one by which its value
    /// came first.
    pub(super) script: Option<Sha>,
    /// What it can hold or compare.
    pub(super) values: &'a [Bytes],
    /// The value that it would set, or compare with.
    pub(super) token: Option<&'a Bytes>,
}

/// Commands that look at a key, and do nothing to it.
const LOOKS: [&[u8]; 7] = [b"GET", b"EXISTS", b"TTL", b"PTTL", b"PEXPIRETIME", b"STRLEN", b"TYPE"];

/// Commands that do something to keys among their arguments.
const CHANGES: [&[u8]; 17] = [
    b"APPEND",
    b"COPY",
    b"DECR",
    b"DECRBY",
    b"DEL",
    b"UNLINK",
    b"EXPIRE",
    b"PEXPIRE",
    b"EXPIREAT",
    b"PEXPIREAT",
    b"PERSIST",
    b"GETDEL",
    b"GETEX",
    b"INCR",
    b"INCRBY",
    b"RENAME",
    b"RENAMENX",
];

/// Whether `key` is what a client calls the lock on `resource`: its name, perhaps behind a prefix
/// of the client's own.
pub(super) fn is_key(key: &[u8], resource: &[u8]) -> bool {
    let Some(prefix) = key.strip_suffix(resource) else { return false };
    prefix.last().is_none_or(|last| !last.is_ascii_alphanumeric())
}

/// What `request` is to the lock on `resource`; `None` if nothing.
pub(super) fn of<'a>(request: &'a [Bytes], resource: &[u8]) -> Option<Meaning<'a>> {
    let (name, arguments) = request.split_first()?;
    let is = |other: &[u8]| name.eq_ignore_ascii_case(other);
    let about = |key: &Bytes| is_key(key, resource);
    let is_script = is(b"EVAL") || is(b"EVALSHA") || is(b"FCALL");
    if is_script {
        let count: usize = core::str::from_utf8(arguments.get(1)?).ok()?.parse().ok()?;
        let keys = arguments.get(2..2_usize.checked_add(count)?)?;
        keys.iter().find(|&key| about(key))?;
        let values = &arguments[2 + count..];
        let token = values.iter().find(|it| !is_number(it)).or(values.first());
        let script = if is(b"EVAL") { sha_of(&arguments[0]) } else { named(&arguments[0]) };
        let script = Some(script);
        return Some(Meaning { changes: true, votes: false, script, values, token });
    }
    let first = arguments.first()?;
    let value_at = match () {
        () if is(b"SET") || is(b"SETNX") || is(b"GETSET") => Some(1).filter(|_| about(first)),
        () if is(b"SETEX") || is(b"PSETEX") => Some(2).filter(|_| about(first)),
        () if is(b"MSET") || is(b"MSETNX") => {
            arguments.iter().step_by(2).position(about).map(|pair| 2 * pair + 1)
        }
        () => None,
    };
    if let Some(place) = value_at {
        let token = Some(arguments.get(place)?);
        let compares = arguments.iter().any(|it| it.eq_ignore_ascii_case(b"IFEQ"));
        let values = &arguments[place..=place];
        let votes = !compares;
        return Some(Meaning { changes: true, votes, script: None, values, token });
    }
    let changes = CHANGES.iter().any(|it| is(it)) || is(b"DELEX");
    let looks = LOOKS.iter().any(|it| is(it));
    if !(changes || looks) || !arguments.iter().any(about) {
        return None;
    }
    let (votes, script, values, token) = (false, None, &arguments[1..], None);
    Some(Meaning { changes, votes, script, values, token })
}

/// Whether the answer to `request` is the value that was there, whatever the request did.
pub(super) fn shows_what_was_there(request: &[Bytes]) -> bool {
    let is_set = request.first().is_some_and(|name| name.eq_ignore_ascii_case(b"SET"));
    is_set && request.iter().skip(3).any(|option| option.eq_ignore_ascii_case(b"GET"))
}

/// The script of this name.
fn named(word: &Bytes) -> Sha {
    word.to_ascii_lowercase().try_into().unwrap_or_else(|_| sha_of(word))
}

/// The name that a connection gives itself by `request`, if it does.
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

fn is_number(bytes: &Bytes) -> bool {
    !bytes.is_empty() && bytes.iter().all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(line: &str) -> Vec<Bytes> {
        line.split(' ').map(|word| Bytes::copy_from_slice(word.as_bytes())).collect()
    }

    #[test]
    fn a_set_is_a_vote_by_its_value() {
        let asked = request("set res abc NX PX 100");
        let meaning = of(&asked, b"res").unwrap();
        assert!(meaning.votes && meaning.token.unwrap() == "abc");
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
        assert_eq!(of(&request("EVALSHA 1234 0 res abc"), b"res"), None);
        assert_eq!(of(&request("EVALSHA 1234 9 res abc"), b"res"), None);
    }

    #[test]
    fn a_key_may_have_a_prefix_and_not_merely_the_same_end() {
        assert!(is_key(b"redlock:res", b"res") && is_key(b"res", b"res"));
        assert!(!is_key(b"stores", b"res") && !is_key(b"res:counter", b"res"));
    }

    #[test]
    fn who_looks_changes_nothing() {
        assert!(!of(&request("GET res"), b"res").unwrap().changes);
        assert!(of(&request("DEL other res"), b"res").unwrap().changes);
        assert_eq!(of(&request("ECHO res"), b"res"), None);
    }

    #[test]
    fn a_key_may_be_set_among_others() {
        let asked = request("MSET other res res token");
        let meaning = of(&asked, b"res").unwrap();
        assert!(meaning.votes && meaning.token.unwrap() == "token");
        assert_eq!(of(&request("MSET other res"), b"res"), None);
        assert!(of(&request("RENAME other res"), b"res").unwrap().changes);
    }

    #[test]
    fn a_connection_is_named_in_two_ways() {
        assert_eq!(name(&request("client setname c1")).unwrap(), "c1");
        assert_eq!(name(&request("HELLO 3 SETNAME c1")).unwrap(), "c1");
        assert_eq!(name(&request("CLIENT GETNAME")), None);
    }
}
