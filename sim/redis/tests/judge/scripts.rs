//! Small random scripts: commands, errors, and conversions between every type of Lua and of Redis.

use std::fmt::Write;

use crate::commands;
use crate::dice::Dice;
use crate::expressions::{condition, expression};
use crate::round::Word;
use crate::words::{self, in_some_case};

/// Names of the local variables of scripts, in the order of declaration.
pub(crate) const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// Statements that raise errors. None raises a table without a text: the process of Redis 7.0 would
/// end.
const ERRORS: &[&str] = &[
    "error('boom')",
    "error({err='MINE it is'})",
    "error({err='noprefix'})",
    "error()",
    "error('boom', 0)",
    "error('boom', 2)",
    "error(nil)",
    "error(12)",
    "error(true)",
    "assert(false)",
    "assert(false, 'asserted')",
    "assert(nil, {err='E a'})",
];

/// Statements that the sandbox or Lua refuses.
const FORBIDDEN: &[&str] = &[
    "x = 1",
    "local y = foo",
    "redis.x = 1",
    "KEYS[1] = 'z'",
    "ARGV[9] = 1",
    "string.x = 1",
    "_G.x = 1",
    "rawset(_G, 'x', 1)",
    "setmetatable(_G, {})",
    "KEYS = {}",
    "function f() return 1 end",
    "redis.call = 1",
    "print('x')",
    "os.exit()",
    "local y = io",
    "require('x')",
    "local t = nil; t.x = 1",
    "local t = {} + 1",
    "('x')()",
    "local t = 1 < 'x'",
    "local t = 'a' .. {}",
    "local t = #5",
];

/// Calls that `redis.*` refuses, mostly.
const WRONG_CALLS: &[&str] = &[
    "redis.call()",
    "redis.call('')",
    "redis.call({})",
    "redis.call('get', {})",
    "redis.call('get', nil)",
    "redis.call('get', true)",
    "redis.call(1)",
    "redis.pcall()",
    "redis.call('nosuch', 1)",
    "redis.call('get')",
    "redis.call('eval', 'return 1', 0)",
    "redis.call('multi')",
    "redis.call('watch', 'a')",
    "redis.call('script', 'load', 'x')",
    "redis.call('script')",
    "redis.call('script', 'nosuch')",
    "redis.call('client', 'id')",
    "redis.call('config', 'get', 'databases')",
    "redis.call('hello', 3)",
    "redis.call('auth', 'x')",
    "redis.call('quit')",
    "redis.call('wait', 0, 0)",
    "redis.call('select', 'x')",
    "redis.call('select', 99)",
    "redis.nosuch()",
    "redis.log(redis.LOG_DEBUG, 'x')",
    "redis.log()",
    "redis.log(99, 'x')",
    "redis.set_repl(redis.REPL_ALL)",
    "redis.set_repl(99)",
    "redis.sha1hex()",
    "redis.error_reply()",
    "redis.status_reply({})",
    "redis.replicate_commands()",
];

/// Shebang lines of scripts, valid and invalid.
const SHEBANGS: &[&str] = &[
    "#!lua\n",
    "#!lua\n",
    "#!lua flags=no-writes\n",
    "#!lua flags=no-writes,allow-stale\n",
    "#!lua  flags=allow-oom\t\n",
    "#!lua 'flags=allow-oom,no-cluster'\n",
    "#!lua flags=no-writes flags=allow-cross-slot-keys\n",
    "#!lua flags=\n",
    "#!lua flags=no-writes,\n",
    "#!lua flags=nosuch\n",
    "#!lua flags=NO-WRITES\n",
    "#!lua nosuch\n",
    "#!lua 'open\n",
    "#!lua\r\n",
    "#!nosuch\n",
    "#! lua\n",
    "#!\n",
    "#!lua ",
];

/// Draws a random script.
pub(crate) fn script(dice: &mut Dice) -> String {
    let mut text = String::new();
    if dice.once_in(6) {
        text.push_str(dice.pick(SHEBANGS));
    }
    if dice.once_in(8) {
        let version = dice.weighted(&[(6, "3"), (2, "2"), (1, "4"), (1, "'x'"), (1, "")]);
        write!(text, "redis.setresp({version}) ").expect("strings take everything");
    }
    let mut known = 0;
    for _ in 0..dice.below(4) {
        let statement = statement(dice, &mut known);
        text.push_str(&statement);
        text.push(dice.weighted(&[(8, ' '), (3, '\n'), (1, ';')]));
    }
    if !dice.once_in(12) {
        let value = expression(dice, known, 2);
        text.push_str("return ");
        text.push_str(&value);
    }
    if dice.once_in(60) {
        text.push_str(dice.pick(&[" end", " =", " (", " 'open", " @", " goto x", " return 1"]));
    }
    text
}

/// Draws the words that follow a script or its digest.
pub(crate) fn arguments(dice: &mut Dice) -> Vec<Word> {
    let keys = dice.below(3);
    let mut call = match dice.below(30) {
        0 => vec![words::integer(dice)],
        _ => vec![Word::text(&keys.to_string())],
    };
    call.extend((0..keys).map(|_| words::key(dice)));
    call.extend((0..dice.below(4)).map(|_| words::anything(dice)));
    call
}

fn statement(dice: &mut Dice, known: &mut usize) -> String {
    match dice.below(24) {
        0..=13 => {
            let call = call(dice, *known);
            if *known < NAMES.len() {
                *known += 1;
                format!("local {} = {call}", NAMES[*known - 1])
            } else {
                call
            }
        }
        14 | 15 => {
            let condition = condition(dice, *known);
            let call = call(dice, *known);
            let value = expression(dice, *known, 1);
            format!("if {condition} then {call} else return {value} end")
        }
        16 | 17 => {
            let call = call(dice, *known);
            format!("for i = 1, {} do {call} end", dice.between(0, 3))
        }
        18 => {
            let value = expression(dice, *known, 1);
            format!("do return {value} end")
        }
        19 if *known < NAMES.len() => {
            let value = expression(dice, *known, 1);
            *known += 1;
            format!("local {} = {value}", NAMES[*known - 1])
        }
        20 => dice.pick(ERRORS).to_owned(),
        21 => dice.pick(FORBIDDEN).to_owned(),
        22 => dice.pick(WRONG_CALLS).to_owned(),
        _ => format!("redis.call('SELECT', {})", dice.below(2)),
    }
}

/// Draws a call of a command.
pub(crate) fn call(dice: &mut Dice, known: usize) -> String {
    let mut text = String::from(if dice.once_in(3) { "redis.pcall(" } else { "redis.call(" });
    let is_named = |command: &[Word], name: &[u8]| matches!(&command[0], Word::Is(it) if it.eq_ignore_ascii_case(name));
    // COMMAND replies with sets. In a table of Lua their order depends on addresses.
    let other = (dice.below(20) == 0).then(|| commands::other(dice));
    let other = other.filter(|command| !is_named(command, b"COMMAND"));
    let command = other.unwrap_or_else(|| commands::keyed(dice));
    // The result of a cursor that no server handed out, and the order of several keys, depend on a
    // seed inside the server. So the arguments of such commands are used as drawn.
    let is_search = is_named(&command, b"SCAN") || is_named(&command, b"KEYS");
    let is_stored = commands::stores_in_hash(&command);
    for (at, word) in command.iter().enumerate() {
        if at > 0 {
            text.push_str(", ");
        }
        let argument = match word {
            Word::Is(bytes) if is_search || (is_stored && at > 1) => quoted(bytes),
            _ => argument(dice, word, known),
        };
        text.push_str(&argument);
    }
    text.push(')');
    text
}

fn argument(dice: &mut Dice, word: &Word, known: usize) -> String {
    let Word::Is(bytes) = word else {
        return String::from("redis.call('time')[1] .. '000'");
    };
    if dice.once_in(30) {
        return expression(dice, known, 0);
    }
    if dice.once_in(4) && words::KEYS.iter().any(|key| key == bytes) {
        return dice.pick(&["KEYS[1]", "KEYS[1]", "KEYS[2]"]).to_owned();
    }
    if dice.once_in(40) {
        return dice.pick(&["ARGV[1]", "ARGV[2]", "#KEYS"]).to_owned();
    }
    let number = std::str::from_utf8(bytes).ok().and_then(|text| text.parse::<i32>().ok());
    match number {
        Some(number) if number >= 0 && dice.once_in(2) => number.to_string(),
        _ => quoted(bytes),
    }
}

/// Formats `bytes` as a string literal of Lua.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    let mut text = String::from("'");
    for &byte in bytes {
        match byte {
            b'\'' | b'\\' => {
                text.push('\\');
                text.push(byte as char);
            }
            b' '..=b'~' => text.push(byte as char),
            _ => write!(text, "\\{byte:03}").expect("strings take everything"),
        }
    }
    text.push('\'');
    text
}

/// Returns the words of a call that runs `script` by its text.
pub(crate) fn eval(dice: &mut Dice, script: &str) -> Vec<Word> {
    vec![in_some_case(dice, "EVAL"), Word::text(script)]
}
