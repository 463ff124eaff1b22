//! Commands on the server: its users, its commands and its settings.

use super::{Words, keyed, words};
use crate::dice::Dice;
use crate::round::Word;
use crate::words::{anything, in_some_case, integer, key, value};

pub(super) fn users(dice: &mut Dice) -> Words {
    match dice.below(3) {
        0 => words(dice, "ACL", &[|dice| in_some_case(dice, "USERS")]),
        1 => words(dice, "ACL", &[|_| Word::text("NOSUCH")]),
        _ => words(dice, "ACL", &[|dice| in_some_case(dice, "WHOAMI")]),
    }
}

/// Categories of commands, and the commands and subcommands that rules name.
const SUBJECTS: &[&str] = &[
    "@all",
    "@read",
    "@write",
    "@keyspace",
    "@string",
    "@fast",
    "@slow",
    "@dangerous",
    "@admin",
    "@connection",
    "@scripting",
    "@transaction",
    "@Blocking",
    "@list",
    "@hash",
    "@nosuch",
    "get",
    "SET",
    "client",
    "client|id",
    "config|get",
    "nosuch",
];

/// Draws a command that restricts a user, or becomes that user. The user may always read the clock,
/// as this test does.
pub(super) fn restricted(dice: &mut Dice) -> Words {
    if dice.once_in(2) {
        return words(dice, "AUTH", &[|_| Word::text("judge"), |_| Word::text("any")]);
    }
    let mut command = words(dice, "ACL", &[|dice| in_some_case(dice, "SETUSER")]);
    command.push(Word::text("judge"));
    for rule in ["on", "nopass", "~*", "+@all"] {
        command.push(Word::text(rule));
    }
    for _ in 0..1 + dice.below(3) {
        let (sign, subject) = (dice.pick(&["+", "-", "-"]), dice.pick(SUBJECTS));
        command.push(Word::text(&format!("{sign}{subject}")));
    }
    command.push(Word::text("+time"));
    command
}

/// Commands without subcommands, which are described in the same words everywhere.
const DESCRIBED: &[&str] = &[
    "get",
    "SET",
    "mset",
    "copy",
    "eval",
    "evalsha_ro",
    "getex",
    "hset",
    "HGETALL",
    "hincrby",
    "hdel",
    "lpush",
    "rpop",
    "lrange",
    "lset",
    "object|encoding",
    "client|ID",
    "config|set",
    "scan",
    "watch",
    "wait",
    "info",
    "ping",
    "acl|setuser",
    "nosuch",
    "get|x",
    "client|nosuch",
];

/// Filters of a list of commands that leave the same on every server.
const FILTERS: &[(&str, &str)] = &[
    ("ACLCAT", "nosuch"),
    ("MODULE", "nosuch"),
    ("NOSUCH", "get"),
    ("PATTERN", "CLIENT|ID"),
    ("PATTERN", "pttl"),
];

/// Draws a command about commands.
pub(super) fn described(dice: &mut Dice) -> Words {
    let mut command = words(dice, "COMMAND", &[]);
    match dice.below(6) {
        0..=2 => {
            command.push(in_some_case(dice, "INFO"));
            for _ in 0..1 + dice.below(2) {
                let name = dice.pick(DESCRIBED);
                command.push(in_some_case(dice, name));
            }
        }
        3 => {
            command.push(in_some_case(dice, "GETKEYS"));
            let asked = keyed(dice);
            command.extend(asked);
        }
        4 => {
            command.push(in_some_case(dice, "GETKEYS"));
            let asked = match dice.below(4) {
                0 => words(dice, "EVAL", &[anything, integer, key, value]),
                1 => words(dice, "OBJECT", &[|dice| in_some_case(dice, "ENCODING"), key]),
                2 => words(dice, "WATCH", &[key, key]),
                _ => words(dice, "CLIENT", &[|dice| in_some_case(dice, "ID")]),
            };
            command.extend(asked);
        }
        _ => {
            command.extend(words(dice, "LIST", &[|dice| in_some_case(dice, "FILTERBY")]));
            let (kind, name) = FILTERS[dice.below(FILTERS.len())];
            command.extend([in_some_case(dice, kind), Word::text(name)]);
        }
    }
    command
}

/// Parameters and values for CONFIG SET, mostly valid. A round never sees the settings of the round
/// before.
const SETTINGS: &[(&str, &str)] = &[
    ("maxmemory", "1"),
    ("maxmemory", "0"),
    ("maxmemory", "0"),
    ("maxmemory", "x"),
    ("min-replicas-to-write", "1"),
    ("min-replicas-to-write", "0"),
    ("min-slaves-to-write", "0"),
    ("min-replicas-max-lag", "10"),
    ("timeout", "0"),
    ("timeout", "-1"),
    ("maxmemory-policy", "noeviction"),
    ("maxmemory-policy", "nosuch"),
    ("appendfsync", "Always"),
    ("replica-read-only", "yes"),
    ("slowlog-max-len", "128"),
    ("databases", "16"),
    ("nosuch", "1"),
];

pub(super) fn config(dice: &mut Dice) -> Words {
    let mut command = words(dice, "CONFIG", &[]);
    match dice.below(12) {
        0..=3 => {
            command.push(in_some_case(dice, "GET"));
            command.push(Word::text(dice.pick(&[
                "timeout",
                "databases",
                "replica-read-only",
                "slave-read-only",
                "save",
                "appendonly",
                "appendfsync",
                "maxmemory-policy",
                "min-replicas-to-write",
                "maxmemory",
                "nosuch",
            ])));
        }
        7..=9 => {
            command.push(in_some_case(dice, "SET"));
            let (name, value) = SETTINGS[dice.below(SETTINGS.len())];
            command.extend([in_some_case(dice, name), Word::text(value)]);
        }
        4 => command.push(in_some_case(dice, "NOSUCH")),
        5 => command.push(in_some_case(dice, "SET")),
        _ => command.push(anything(dice)),
    }
    command
}
