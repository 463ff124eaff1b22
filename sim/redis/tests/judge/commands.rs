//! Random commands: the commands of lock clients with all their options, valid and invalid.

use crate::dice::Dice;
use crate::round::Word;
use crate::words::{
    anything, at_milliseconds, at_seconds, in_some_case, integer, is, key, milliseconds, seconds,
    value,
};

type Words = Vec<Word>;

/// Generator of one kind of command.
type Make = fn(&mut Dice) -> Words;

/// Weights and generators of commands on keys, which may also appear in a script or a transaction.
const KEYED: [(usize, Make); 18] = [
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
    (2, conditional),
    (4, moved),
    (3, found),
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
    spoiled(dice, command)
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

fn set(dice: &mut Dice) -> Words {
    let mut command = words(dice, "SET", &[key, value]);
    let mut options: Vec<Words> = Vec::new();
    // Half of the time, the options that lock clients send.
    if dice.once_in(2) {
        options.push(vec![in_some_case(dice, "NX")]);
        options.push(vec![in_some_case(dice, "PX"), milliseconds(dice)]);
    } else {
        for _ in 0..dice.below(4) {
            let option = expiry(dice);
            options.push(option);
        }
    }
    dice.shuffle(&mut options);
    command.extend(options.into_iter().flatten());
    command
}

fn expiry(dice: &mut Dice) -> Words {
    let name = dice.pick(&["NX", "XX", "GET", "KEEPTTL", "PX", "PX", "EX", "PXAT", "EXAT", "IFEQ"]);
    let mut option = vec![in_some_case(dice, name)];
    match name {
        "PX" => option.push(milliseconds(dice)),
        "EX" => option.push(seconds(dice)),
        "PXAT" => option.push(at_milliseconds(dice)),
        "EXAT" => option.push(at_seconds(dice)),
        "IFEQ" => option.push(value(dice)),
        _ => {}
    }
    option
}

fn getex(dice: &mut Dice) -> Words {
    let mut command = words(dice, "GETEX", &[key]);
    match dice.below(3) {
        0 => {}
        1 => command.push(in_some_case(dice, "PERSIST")),
        _ => command.extend(expiry(dice)),
    }
    command
}

fn several(dice: &mut Dice) -> Words {
    let name = dice.pick(&["DEL", "DEL", "UNLINK", "EXISTS", "TOUCH", "MGET", "MSET", "MSETNX"]);
    let mut command = vec![in_some_case(dice, name)];
    for _ in 0..1 + dice.below(3) {
        command.push(key(dice));
        if name.starts_with("MSET") {
            command.push(value(dice));
        }
    }
    command
}

fn expire(dice: &mut Dice) -> Words {
    let (name, when): (&str, fn(&mut Dice) -> Word) = dice.weighted(&[
        (8, ("PEXPIRE", milliseconds as fn(&mut Dice) -> Word)),
        (3, ("EXPIRE", seconds)),
        (3, ("PEXPIREAT", at_milliseconds)),
        (2, ("EXPIREAT", at_seconds)),
    ]);
    let mut command = words(dice, name, &[key, when]);
    for _ in 0..dice.weighted(&[(4, 0), (4, 1), (2, 2), (1, 3)]) {
        let option = dice.pick(&["NX", "XX", "GT", "LT"]);
        command.push(in_some_case(dice, option));
    }
    command
}

/// Draws a command that only some servers know.
fn conditional(dice: &mut Dice) -> Words {
    match dice.below(4) {
        0 => words(dice, "DELIFEQ", &[key, value]),
        1 => words(dice, "DELEX", &[key, |dice| in_some_case(dice, "IFEQ"), value]),
        2 => words(dice, "DELEX", &[key]),
        _ => words(dice, "DIGEST", &[key]),
    }
}

fn moved(dice: &mut Dice) -> Words {
    let mut command = match dice.below(6) {
        0 | 1 => pick_words(dice, &["RENAME", "RENAMENX"], &[key, key]),
        2 | 3 => words(dice, "COPY", &[key, key]),
        4 => words(dice, "MOVE", &[key, |dice| Word::text(dice.pick(&["0", "1", "99", "x"]))]),
        _ => words(dice, "SWAPDB", &[|_| Word::text("0"), |_| Word::text("1")]),
    };
    if command.len() == 3 && dice.once_in(4) {
        command.push(in_some_case(dice, "REPLACE"));
    }
    if command.len() > 2 && dice.once_in(6) {
        command.extend([in_some_case(dice, "DB"), Word::text(dice.pick(&["0", "1", "16"]))]);
    }
    command
}

/// Draws a command that lists keys, with a pattern that matches at most one: no server promises an
/// order.
fn found(dice: &mut Dice) -> Words {
    let pattern = |dice: &mut Dice| {
        Word::text(dice.pick(&[
            "lock:a",
            "c",
            "lock:[b-z]",
            "loc?:b",
            "[^ab]ock:b",
            "nosuch*",
            "\\c",
        ]))
    };
    match dice.below(3) {
        0 => words(dice, "KEYS", &[pattern]),
        1 => {
            let mut command = words(dice, "SCAN", &[|_| Word::text("0")]);
            command.push(in_some_case(dice, "MATCH"));
            command.push(pattern(dice));
            command.extend(words(dice, "COUNT", &[|_| Word::text("100")]));
            command
        }
        _ => words(
            dice,
            "SCAN",
            &[|_| Word::text("abc"), |dice| in_some_case(dice, "MATCH"), pattern],
        ),
    }
}

fn select(dice: &mut Dice) -> Words {
    let mut command = words(dice, "SELECT", &[]);
    command.push(match dice.below(8) {
        0..=4 => Word::text(&dice.below(2).to_string()),
        5 => Word::text(&dice.between(-1, 16).to_string()),
        _ => integer(dice),
    });
    command
}

fn hello(dice: &mut Dice) -> Words {
    let mut command = words(dice, "HELLO", &[]);
    match dice.below(10) {
        0 => {}
        1..=3 => command.push(Word::text("3")),
        4..=5 => command.push(Word::text("2")),
        6 => command.push(integer(dice)),
        _ => {
            command.push(Word::text(dice.pick(&["2", "3", "4"])));
            for _ in 0..1 + dice.below(2) {
                match dice.below(3) {
                    0 => command.extend([in_some_case(dice, "SETNAME"), name(dice)]),
                    1 => command.extend(words(dice, "AUTH", &[anything, anything])),
                    _ => command.push(anything(dice)),
                }
            }
        }
    }
    command
}

fn name(dice: &mut Dice) -> Word {
    is(dice.pick(&[&b"worker"[..], b"", b"two words", b"new\nline", b"\xff", b"a:b-c_d"]))
}

fn client(dice: &mut Dice) -> Words {
    let mut command = words(dice, "CLIENT", &[]);
    match dice.below(8) {
        0 | 1 => command.extend(words(dice, "SETNAME", &[name])),
        2 | 3 => command.extend(words(dice, "GETNAME", &[])),
        4 => command.extend(words(dice, "ID", &[])),
        5 => command.extend(words(
            dice,
            "SETINFO",
            &[
                |dice| {
                    let field = dice.pick(&["LIB-NAME", "LIB-VER", "NOSUCH"]);
                    in_some_case(dice, field)
                },
                name,
            ],
        )),
        6 => command.extend(words(dice, "MAINT_NOTIFICATIONS", &[|_| Word::text("ON")])),
        _ => command.push(anything(dice)),
    }
    command
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

fn users(dice: &mut Dice) -> Words {
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
fn restricted(dice: &mut Dice) -> Words {
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
fn described(dice: &mut Dice) -> Words {
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

fn elsewhere(dice: &mut Dice) -> Words {
    match dice.below(5) {
        0 => words(dice, "CLUSTER", &[|_| Word::text("NODES")]),
        1 => words(dice, "CLUSTER", &[anything]),
        2 => words(dice, "READONLY", &[]),
        3 => words(dice, "READWRITE", &[]),
        _ => words(dice, "SENTINEL", &[|_| Word::text("MASTERS")]),
    }
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

fn config(dice: &mut Dice) -> Words {
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
