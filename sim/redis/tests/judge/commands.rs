//! Random commands: the commands of lock clients with all their options, valid and invalid.

mod connection;
mod keys;
mod server;
mod types;

use self::connection::{client, hello, select};
use self::keys::{conditional, expire, found, getex, moved, set, several};
use self::server::{config, described, restricted, users};
pub(crate) use self::types::stores_in_hash;
use self::types::{cut, hash, list, sorted_set};
use crate::dice::Dice;
use crate::round::Word;
use crate::words::{anything, in_some_case, integer, is, key, milliseconds, seconds, value};

type Words = Vec<Word>;

/// Generator of one kind of command.
type Make = fn(&mut Dice) -> Words;

/// Weights and generators of commands on keys, which may also appear in a script or a transaction.
const KEYED: [(usize, Make); 22] = [
    (20, set),
    (8, |dice| words(dice, "GET", &[key])),
    (6, |dice| words(dice, "SETNX", &[key, value])),
    (3, |dice| words(dice, "PSETEX", &[key, milliseconds, value])),
    (3, |dice| words(dice, "SETEX", &[key, seconds, value])),
    (2, |dice| words(dice, "GETSET", &[key, value])),
    (2, |dice| words(dice, "GETDEL", &[key])),
    (3, getex),
    (8, several),
    (8, |dice| pick_words(dice, &["PTTL", "TTL", "PEXPIRETIME", "EXPIRETIME"], &[key])),
    (14, expire),
    (4, |dice| pick_words(dice, &["PERSIST", "TYPE", "STRLEN"], &[key])),
    (5, |dice| pick_words(dice, &["INCR", "DECR"], &[key])),
    (4, |dice| pick_words(dice, &["INCRBY", "DECRBY"], &[key, integer])),
    (3, |dice| words(dice, "APPEND", &[key, value])),
    (3, |dice| words(dice, "GETRANGE", &[key, integer, integer])),
    (2, conditional),
    (4, moved),
    (3, found),
    (18, hash),
    (18, list),
    (18, sorted_set),
];

/// Weights and generators of commands on the connection and the server.
const OTHERS: [(usize, Make); 17] = [
    (6, |dice| pick_words(dice, &["PING", "DBSIZE", "TIME"], &[])),
    (2, |dice| words(dice, "PING", &[anything])),
    (2, |dice| words(dice, "ECHO", &[anything])),
    (3, select),
    (2, |dice| match dice.below(6) {
        0 => words(dice, "FLUSHALL", &[]),
        1 => words(dice, "FLUSHDB", &[]),
        2 => words(dice, "FLUSHDB", &[|dice| in_some_case(dice, "SYNC")]),
        3 => words(dice, "FLUSHALL", &[|dice| in_some_case(dice, "ASYNC")]),
        _ => words(dice, "FLUSHALL", &[anything]),
    }),
    (4, hello),
    (5, client),
    (2, |dice| match dice.below(3) {
        0 => words(dice, "AUTH", &[value]),
        1 => words(dice, "AUTH", &[|_| Word::text("default"), value]),
        _ => words(dice, "AUTH", &[|_| Word::text("nobody"), value]),
    }),
    (3, unknown),
    (2, |dice| words(dice, "WAIT", &[|_| Word::text("0"), integer])),
    (1, |dice| words(dice, "WAIT", &[integer, |_| Word::text("1")])),
    (2, elsewhere),
    (3, config),
    (1, users),
    (1, restricted),
    (2, described),
    (1, |dice| words(dice, "RESET", &[])),
];

/// Draws a command on keys.
pub(crate) fn keyed(dice: &mut Dice) -> Words {
    let make = dice.weighted(&KEYED);
    let command = make(dice);
    let mut command = spoiled(dice, command);
    cut(&mut command);
    command
}

/// Draws a command on the connection or the server.
pub(crate) fn other(dice: &mut Dice) -> Words {
    let make = dice.weighted(&OTHERS);
    let command = make(dice);
    spoiled(dice, command)
}

/// Draws `MULTI` or a related command.
pub(crate) fn transaction(dice: &mut Dice, is_open: bool) -> Words {
    let choices: &[(usize, &str)] = if is_open {
        &[(8, "EXEC"), (2, "DISCARD"), (1, "MULTI"), (1, "WATCH"), (1, "UNWATCH")]
    } else {
        &[(8, "MULTI"), (6, "WATCH"), (1, "UNWATCH"), (1, "EXEC"), (1, "DISCARD")]
    };
    let name = dice.weighted(choices);
    let mut command = words(dice, name, &[]);
    if name == "WATCH" {
        command.extend((0..1 + dice.below(2)).map(|_| key(dice)));
    }
    if dice.once_in(30) { spoiled(dice, command) } else { command }
}

/// Returns `command`, or occasionally a variant of it: with a word more or less, or with other
/// words.
fn spoiled(dice: &mut Dice, mut command: Words) -> Words {
    if !dice.once_in(8) || is_delicate(&command[0]) {
        return command;
    }
    let at = dice.below(command.len());
    match dice.below(5) {
        0 if command.len() > 1 => drop(command.remove(at.max(1))),
        1 => command.push(anything(dice)),
        2 => command.insert(at + 1, anything(dice)),
        3 if at > 0 => command[at] = anything(dice),
        _ if command.len() > 2 => dice.shuffle(&mut command[1..]),
        _ => command.push(command[at].clone()),
    }
    command
}

/// Returns true for commands that must not be varied. A list of all commands is longer on a real
/// server. The meaning of a cursor other than 0, the
/// order of keys and unusual parameters differ between servers; WAIT blocks if its numbers change.
fn is_delicate(name: &Word) -> bool {
    let Word::Is(name) = name else { return false };
    ["ACL", "COMMAND", "CONFIG", "KEYS", "SCAN", "WAIT"]
        .iter()
        .any(|it| name.eq_ignore_ascii_case(it.as_bytes()))
}

pub(crate) fn words(dice: &mut Dice, name: &str, arguments: &[fn(&mut Dice) -> Word]) -> Words {
    let mut words = vec![in_some_case(dice, name)];
    words.extend(arguments.iter().map(|argument| argument(dice)));
    words
}

fn pick_words(dice: &mut Dice, names: &[&str], arguments: &[fn(&mut Dice) -> Word]) -> Words {
    let name = dice.pick(names);
    words(dice, name, arguments)
}

fn unknown(dice: &mut Dice) -> Words {
    let name = dice.pick(&[
        "NOSUCH",
        "get2",
        "",
        "SENTINEL",
        "WAITAOF",
        "with space",
        "\x01\x02",
        "a\r\nb",
    ]);
    let mut command = vec![Word::text(name)];
    command.extend((0..dice.below(4)).map(|_| anything(dice)));
    if dice.once_in(6) {
        command.push(is(&vec![b'y'; 60 + dice.below(120)]));
    }
    command
}

fn elsewhere(dice: &mut Dice) -> Words {
    match dice.below(5) {
        0 => words(dice, "CLUSTER", &[|_| Word::text("NODES")]),
        1 => words(dice, "CLUSTER", &[anything]),
        2 => words(dice, "READONLY", &[]),
        3 => words(dice, "READWRITE", &[]),
        _ => words(dice, "SENTINEL", &[|_| Word::text("MASTERS")]),
    }
}
