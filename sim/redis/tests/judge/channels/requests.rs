//! Random requests about channels, and about keys whose changes are events.

use crate::dice::Dice;
use crate::round::{Form, Word};
use crate::words::in_some_case;

/// Generator of one kind of request.
type Make = fn(&mut Dice) -> Vec<Word>;

const CHANNELS: [&str; 7] = [
    "wake:a",
    "wake:b",
    "",
    "other",
    "__keyspace@0__:a",
    "__keyevent@0__:del",
    "\u{1}a channel of more than twenty-two bytes\r\n",
];
const PATTERNS: [&str; 7] =
    ["wake:*", "wake:[ab]", "*", "nothing?", "__key*__:*", "__keyspace@?__:a", "wake:a"];
const KEYS: [&str; 3] = ["a", "b", "c"];
const LISTS: [&str; 3] = ["l", "m", "n"];

/// A timeout that passes within a step, in seconds.
const SHORT: &str = "0.002";

const KINDS: [(usize, Make); 25] = [
    (14, |dice| several(dice, "SUBSCRIBE", &CHANNELS)),
    (8, |dice| several(dice, "PSUBSCRIBE", &PATTERNS)),
    (6, |dice| several(dice, "SSUBSCRIBE", &CHANNELS)),
    (8, |dice| several(dice, "UNSUBSCRIBE", &CHANNELS)),
    (6, |dice| several(dice, "PUNSUBSCRIBE", &PATTERNS)),
    (4, |dice| several(dice, "SUNSUBSCRIBE", &CHANNELS)),
    (30, publish),
    (6, |dice| several(dice, "PING", &["hello", ""])),
    (6, shown),
    (14, version),
    (6, |dice| one(dice, "RESET")),
    (10, |dice| one(dice, "MULTI")),
    (12, |dice| one(dice, "EXEC")),
    (2, |dice| one(dice, "DISCARD")),
    (10, script),
    (30, keyed),
    (50, listed),
    (16, waiting),
    (6, hashed),
    (10, sorted),
    (8, settings),
    (14, operator),
    (3, rights),
    (24, tracking),
    (3, |dice| one(dice, "QUIT")),
];

/// Draws a request.
pub(super) fn draw(dice: &mut Dice) -> Form {
    let make = dice.weighted(&KINDS);
    Form::Array(make(dice))
}

/// Draws a request of the operator, who is not subscribed to anything. Redis 7.0.15 dies if a
/// connection takes its own channels away; and some commands reply to their own connection before
/// they publish an event.
fn operator(dice: &mut Dice) -> Vec<Word> {
    let (key, list, other) = (dice.pick(&KEYS), dice.pick(&LISTS), dice.pick(&LISTS));
    let words: &[&str] = match dice.below(16) {
        0 => &["CONFIG", "SET", "notify-keyspace-events", ""],
        1..=3 => &["CONFIG", "SET", "notify-keyspace-events", "KEA"],
        4 => &["CONFIG", "SET", "notify-keyspace-events", "Kg"],
        5 => &["CONFIG", "SET", "notify-keyspace-events", "E$x"],
        6 => &["CONFIG", "GET", "notify-keyspace-events"],
        7 => &["CONFIG", "SET", "notify-keyspace-events", "Kq"],
        8 => &["EXPIRE", key, "100"],
        9 => &["GETSET", key, "m"],
        10 => &["SET", key, "m", "GET", "EX", "100"],
        11 => &["GETDEL", key],
        12 => &["GETEX", key, "EX", "100"],
        13 => &["LMOVE", list, other, "LEFT", "RIGHT"],
        14 => &["RPOPLPUSH", list, other],
        _ => &["GETEX", key, "PERSIST"],
    };
    phrase(dice, words)
}

/// Draws a request of the operator about the user `judge`.
fn rights(dice: &mut Dice) -> Vec<Word> {
    match dice.below(4) {
        0 => phrase(dice, &["ACL", "SETUSER", "judge", "resetchannels", "&wake:*", "&__key*"]),
        _ => {
            let rule = dice.pick(&["&wake:a", "&other", "allchannels", "resetchannels", "&*"]);
            phrase(dice, &["ACL", "SETUSER", "judge", rule])
        }
    }
}

/// Puts the number of a connection into a request.
pub(super) fn with_id(form: Form, id: u64) -> Form {
    let Form::Array(words) = form else { return form };
    let is_place = |word: &Word| matches!(word, Word::Is(text) if *text == b"{id}"[..]);
    let words = words.into_iter().map(|it| match is_place(&it) {
        true => Word::text(&id.to_string()),
        false => it,
    });
    Form::Array(words.collect())
}

/// Returns true for a request of the operator.
pub(super) fn is_operators(form: &Form) -> bool {
    let name = form.name().0;
    let names = ["ACL", "CONFIG", "EXPIRE", "GETDEL", "GETEX", "GETSET", "LMOVE", "RPOPLPUSH"];
    let shows = matches!(form, Form::Array(words) if words.len() > 3)
        && name == b"SET"
        && form.told().contains("\"GET\"");
    shows || names.iter().any(|it| it.as_bytes() == name)
}

/// Returns true for a request that must be sent alone: it may close a connection, and what the
/// requests sent with it cause may be lost.
pub(super) fn is_alone(form: &Form) -> bool {
    is_operators(form) || matches!(form.name().0.as_slice(), b"QUIT" | b"CLIENT")
}

fn phrase(dice: &mut Dice, words: &[&str]) -> Vec<Word> {
    let name = in_some_case(dice, words[0]);
    std::iter::once(name).chain(words[1..].iter().map(|word| Word::text(word))).collect()
}

fn one(dice: &mut Dice, name: &str) -> Vec<Word> {
    let mut words = phrase(dice, &[name]);
    if dice.once_in(30) {
        words.push(Word::text("x"));
    }
    words
}

fn several(dice: &mut Dice, name: &str, arguments: &[&str]) -> Vec<Word> {
    let mut words = phrase(dice, &[name]);
    let count = dice.weighted(&[(3, 0), (8, 1), (4, 2), (2, 3)]);
    words.extend((0..count).map(|_| Word::text(dice.pick(arguments))));
    words
}

fn publish(dice: &mut Dice) -> Vec<Word> {
    let name = dice.pick(&["PUBLISH", "PUBLISH", "PUBLISH", "SPUBLISH"]);
    let mut words = phrase(dice, &[name]);
    words.push(Word::text(dice.pick(&CHANNELS)));
    if !dice.once_in(20) {
        words.push(Word::text(dice.pick(&[
            "m",
            "",
            "0",
            "a message of more than twenty-two bytes",
        ])));
    }
    words
}

fn shown(dice: &mut Dice) -> Vec<Word> {
    let (channel, pattern) = (dice.pick(&CHANNELS), dice.pick(&["wake:a", "othe?", "none"]));
    match dice.below(7) {
        0 => phrase(dice, &["PUBSUB", "NUMSUB", channel, "wake:a"]),
        1 => phrase(dice, &["PUBSUB", "SHARDNUMSUB", channel]),
        2 => phrase(dice, &["PUBSUB", "NUMPAT"]),
        3 => phrase(dice, &["PUBSUB", "CHANNELS", pattern]),
        4 => phrase(dice, &["PUBSUB", "SHARDCHANNELS", pattern]),
        5 => phrase(dice, &["PUBSUB", "CHANNELS", pattern, "x"]),
        _ => phrase(dice, &["PUBSUB", "NOSUCH", channel]),
    }
}

fn version(dice: &mut Dice) -> Vec<Word> {
    let version = dice.pick(&["3", "3", "3", "2"]);
    phrase(dice, &["HELLO", version])
}

fn script(dice: &mut Dice) -> Vec<Word> {
    let text = dice.pick(&[
        "return redis.call('publish', KEYS[1], ARGV[1])",
        "return {redis.call('spublish', KEYS[1], 'x'), redis.pcall('publish', KEYS[1], ARGV[1])}",
        "if redis.call('get', 'a') == ARGV[1] then redis.call('del', 'a') \
         return redis.call('publish', KEYS[1], ARGV[1]) end return 0",
        "redis.call('set', 'a', ARGV[1], 'nx') redis.call('publish', KEYS[1], 'x') \
         return redis.call('subscribe', KEYS[1])",
        "return redis.call('pubsub', 'numsub', KEYS[1])",
        "redis.setresp(3) redis.call('publish', KEYS[1], 'y') return redis.call('ping')",
        "redis.call('set', 'b', '1') redis.call('incr', 'b') redis.call('expire', 'b', 100) \
         return redis.call('del', 'a', 'b')",
    ]);
    let name = dice.pick(&["EVAL", "EVAL", "EVAL", "EVAL_RO"]);
    let channel = dice.pick(&CHANNELS);
    phrase(dice, &[name, text, "1", channel, "m"])
}

fn keyed(dice: &mut Dice) -> Vec<Word> {
    let (key, other) = (dice.pick(&KEYS), dice.pick(&KEYS));
    let words: &[&str] = match dice.below(20) {
        0 => &["SET", key, "m"],
        1 => &["SET", key, "m", "NX", "PX", "100000"],
        2 => &["DEL", key, other],
        3 => &["GET", key],
        4 => &["SET", key, "7", "XX"],
        5 => &["INCR", key],
        6 => &["DECRBY", key, "3"],
        7 => &["APPEND", key, "1"],
        8 => &["MSET", key, "1", other, "2"],
        9 => &["RENAME", key, other],
        10 => &["COPY", key, other, "REPLACE"],
        11 => &["MOVE", key, "1"],
        12 => &["PERSIST", key],
        13 => &["SETEX", key, "100", "1"],
        14 => &["SETNX", key, "m"],
        15 => &["MSETNX", key, "1", other, "2"],
        // Gone when the next command looks.
        16 => &["SET", key, "1", "PXAT", "5"],
        17 => &["PEXPIREAT", key, "5"],
        18 => &["FLUSHALL"],
        _ => &["GET", other],
    };
    phrase(dice, words)
}

/// Draws a request about lists for which connections wait.
fn listed(dice: &mut Dice) -> Vec<Word> {
    let (list, other) = (dice.pick(&LISTS), dice.pick(&LISTS));
    let words: &[&str] = match dice.below(23) {
        0..=3 => &["LPUSH", list, "1", "2"],
        4..=7 => &["RPUSH", list, "1"],
        8 => &["RPUSHX", list, "3", "1"],
        9 => &["LPOP", list],
        10 => &["RPOP", list, "2"],
        11 => &["LRANGE", list, "0", "-1"],
        12 => &["LREM", list, "1", "1"],
        13 => &["LTRIM", list, "1", "-1"],
        14 => &["LSET", list, "0", "9"],
        15 => &["RENAME", list, other],
        16 => &["COPY", list, other, "REPLACE"],
        17 => &["DEL", list, other],
        18 => &["SET", list, "x"],
        19 => &["EVAL", LISTED, "2", list, other],
        20 => &["EVAL", GONE, "1", list],
        21 => &["LINSERT", list, "BEFORE", "1", "2"],
        _ => &["CLIENT", "UNBLOCK", "{id}", "ERROR"],
    };
    phrase(dice, words)
}

const LISTED: &str = "redis.call('del', KEYS[1], KEYS[2]) redis.call('rpush', KEYS[2], 'x', 'y') \
                      return redis.call('lpush', KEYS[1], 'z')";
const GONE: &str = "redis.call('del', KEYS[1]) redis.call('rpush', KEYS[1], 'x') \
                    redis.call('lpop', KEYS[1]) return redis.pcall('blpop', KEYS[1], 0)";

/// Draws a request that may wait.
fn waiting(dice: &mut Dice) -> Vec<Word> {
    let name = dice.pick(&["BLPOP", "BRPOP"]);
    let mut words = phrase(dice, &[name]);
    words.extend((0..1 + dice.below(3)).map(|_| Word::text(dice.pick(&LISTS))));
    words.push(Word::text(dice.pick(&["0", "1000", "0", "1e3", SHORT, "x", "-1"])));
    words
}

fn hashed(dice: &mut Dice) -> Vec<Word> {
    let words: &[&str] = match dice.below(6) {
        0 => &["HSET", "h", "f", "1", "g", "2"],
        1 => &["HSETNX", "h", "f", "3"],
        2 => &["HINCRBY", "h", "f", "2"],
        3 => &["HDEL", "h", "f"],
        4 => &["HDEL", "h", "f", "g"],
        _ => &["HGETALL", "h"],
    };
    phrase(dice, words)
}

fn sorted(dice: &mut Dice) -> Vec<Word> {
    let words: &[&str] = match dice.below(10) {
        0 | 1 => &["ZADD", "z", "1", "a", "2", "b"],
        2 => &["ZADD", "z", "NX", "3", "a"],
        3 => &["ZADD", "z", "INCR", "1", "c"],
        4 => &["ZINCRBY", "z", "2", "a"],
        5 => &["ZREM", "z", "a", "b", "c"],
        6 => &["ZREM", "z", "a"],
        7 => &["ZREMRANGEBYSCORE", "z", "-inf", "1"],
        8 => &["ZREMRANGEBYRANK", "z", "0", "-1"],
        _ => &["ZRANGE", "z", "0", "-1", "WITHSCORES"],
    };
    phrase(dice, words)
}

/// Returns true for a request that may wait.
pub(super) fn waits(form: &Form) -> bool {
    matches!(form.name().0.as_slice(), b"BLPOP" | b"BRPOP")
}

/// Returns true for a request that waits no longer than a step.
pub(super) fn waits_shortly(form: &Form) -> bool {
    let Form::Array(words) = form else { return false };
    waits(form) && matches!(words.last(), Some(Word::Is(it)) if *it == *SHORT.as_bytes())
}

fn settings(dice: &mut Dice) -> Vec<Word> {
    if dice.once_in(4) {
        return phrase(dice, &["CLIENT", "KILL", "TYPE", "pubsub"]);
    }
    let user = dice.pick(&["judge", "judge", "default"]);
    phrase(dice, &["AUTH", user, "x"])
}

fn tracking(dice: &mut Dice) -> Vec<Word> {
    let rest: &[&str] = match dice.below(10) {
        0 | 1 => &["CLIENT", "TRACKING", "OFF"],
        2 => &["CLIENT", "TRACKING", "ON", "NOLOOP"],
        3..=5 => &["CLIENT", "TRACKING", "ON", "REDIRECT", "{id}"],
        6 => &["CLIENT", "GETREDIR"],
        7 => &["CLIENT", "TRACKINGINFO"],
        _ => &["CLIENT", "TRACKING", "ON"],
    };
    phrase(dice, rest)
}
