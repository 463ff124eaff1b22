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

const KINDS: [(usize, Make); 19] = [
    (14, |dice| several(dice, "SUBSCRIBE", &CHANNELS)),
    (8, |dice| several(dice, "PSUBSCRIBE", &PATTERNS)),
    (6, |dice| several(dice, "SSUBSCRIBE", &CHANNELS)),
    (8, |dice| several(dice, "UNSUBSCRIBE", &CHANNELS)),
    (6, |dice| several(dice, "PUNSUBSCRIBE", &PATTERNS)),
    (4, |dice| several(dice, "SUNSUBSCRIBE", &CHANNELS)),
    (30, publish),
    (6, |dice| several(dice, "PING", &["hello", ""])),
    (6, shown),
    (6, |dice| version(dice)),
    (6, |dice| one(dice, "RESET")),
    (10, |dice| one(dice, "MULTI")),
    (12, |dice| one(dice, "EXEC")),
    (2, |dice| one(dice, "DISCARD")),
    (10, script),
    (30, keyed),
    (8, settings),
    (6, tracking),
    (3, |dice| one(dice, "QUIT")),
];

/// Draws a request.
pub(super) fn draw(dice: &mut Dice) -> Form {
    let make = dice.weighted(&KINDS);
    Form::Array(make(dice))
}

/// Returns true for a request that must be sent alone: it may close a connection, and what the
/// requests sent with it cause may be lost.
pub(super) fn is_alone(form: &Form) -> bool {
    matches!(form.name().0.as_slice(), b"QUIT" | b"ACL" | b"CLIENT")
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
    let version = dice.pick(&["3", "3", "2"]);
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
    let words: &[&str] = match dice.below(8) {
        0 => &["SET", key, "m"],
        1 => &["SET", key, "m", "NX", "PX", "100000"],
        2 => &["DEL", key, other],
        3 => &["GET", key],
        4 => &["SET", key, "7", "XX"],
        _ => return phrase(dice, &["GET", other]),
    };
    phrase(dice, words)
}

fn settings(dice: &mut Dice) -> Vec<Word> {
    match dice.below(6) {
        0 | 1 => {
            let user = dice.pick(&["judge", "judge", "default"]);
            phrase(dice, &["AUTH", user, "x"])
        }
        2 => {
            let rule = dice.pick(&["&wake:a", "&other", "allchannels", "resetchannels", "&*"]);
            phrase(dice, &["ACL", "SETUSER", "judge", rule])
        }
        3 => phrase(dice, &["ACL", "SETUSER", "judge", "resetchannels", "&wake:*", "&__key*"]),
        4 => phrase(dice, &["CLIENT", "KILL", "TYPE", "pubsub"]),
        _ => phrase(dice, &["PUBSUB", "NUMPAT"]),
    }
}

fn tracking(dice: &mut Dice) -> Vec<Word> {
    let rest: &[&str] = match dice.below(4) {
        0 => &["CLIENT", "TRACKING", "OFF"],
        1 => &["CLIENT", "TRACKING", "ON", "NOLOOP"],
        _ => &["CLIENT", "TRACKING", "ON"],
    };
    phrase(dice, rest)
}
