//! Small random scripts: commands, errors, and every type of Lua and of Redis turned into the other.

use std::fmt::Write;

use crate::commands;
use crate::dice::Dice;
use crate::round::Word;
use crate::words::{self, in_some_case};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// A random script.
pub(crate) fn script(dice: &mut Dice) -> String {
    let mut text = String::new();
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

/// What stands behind a script or its digest.
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
        20 => dice
            .pick(&[
                "error('boom')",
                "error({err='MINE it is'})",
                "error({err='noprefix'})",
                "error({ok='fine'})",
                "error()",
                "error('boom', 0)",
                "error('boom', 2)",
                "error({})",
                "error(nil)",
                "error(12)",
                "error(true)",
                "assert(false)",
                "assert(false, 'asserted')",
                "assert(nil, {err='E a'})",
            ])
            .to_owned(),
        21 => dice
            .pick(&[
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
            ])
            .to_owned(),
        22 => dice
            .pick(&[
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
            ])
            .to_owned(),
        _ => format!("redis.call('SELECT', {})", dice.below(2)),
    }
}

/// A call of a command.
fn call(dice: &mut Dice, known: usize) -> String {
    let mut text = String::from(if dice.once_in(3) { "redis.pcall(" } else { "redis.call(" });
    let command = match dice.below(20) {
        0 => commands::other(dice),
        _ => commands::keyed(dice),
    };
    for (at, word) in command.iter().enumerate() {
        if at > 0 {
            text.push_str(", ");
        }
        let argument = argument(dice, word, known);
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

fn quoted(bytes: &[u8]) -> String {
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

fn condition(dice: &mut Dice, known: usize) -> String {
    let left = expression(dice, known, 0);
    match dice.below(5) {
        0 => left,
        1 => format!("not {left}"),
        2 => format!("{left} == false"),
        3 => format!("type({left}) == 'table'"),
        _ => format!("{left} == {}", expression(dice, known, 0)),
    }
}

/// An expression; a table may be so deep.
fn expression(dice: &mut Dice, known: usize, depth: usize) -> String {
    if known > 0 && dice.once_in(2) {
        let name = NAMES[dice.below(known)];
        return match dice.below(12) {
            0 => format!("type({name})"),
            1 => format!("{name} == false"),
            2 => format!("{{{name}, {name}}}"),
            3 => format!("tostring(type({name}) == 'table' and {name}.err or {name}.ok)"),
            4 => format!("#{name}"),
            5 => format!("{name} .. 'x'"),
            6 => format!("tonumber({name})"),
            7 => format!("{name} + 1"),
            8 => format!("type({name}) == 'table' and ({name}.err or {name}.ok) or {name}"),
            _ => name.to_owned(),
        };
    }
    match dice.below(12) {
        0 => number(dice),
        1 => dice.pick(&["nil", "true", "false"]).to_owned(),
        2 => {
            let word = words::value(dice);
            let Word::Is(bytes) = word else { unreachable!("values are bytes") };
            quoted(&bytes)
        }
        3 | 4 if depth > 0 => {
            let parts: Vec<_> =
                (0..dice.below(5)).map(|_| expression(dice, known, depth - 1)).collect();
            format!("{{{}}}", parts.join(", "))
        }
        5 | 6 => reply(dice),
        7 => dice.pick(&["KEYS", "ARGV", "KEYS[1]", "ARGV[1]", "#ARGV", "#KEYS"]).to_owned(),
        8 | 9 => function(dice),
        10 => arithmetic(dice),
        _ => call(dice, known),
    }
}

fn number(dice: &mut Dice) -> String {
    dice.pick(&[
        "0",
        "1",
        "-1",
        "3.99",
        "-3.99",
        "0.5",
        "1e20",
        "-1e20",
        "2^31",
        "2^53",
        "2^53 + 1",
        "-2^63",
        "1e15",
        "100000000000000",
        "0x10",
        "1e3",
        "9007199254740993",
    ])
    .to_owned()
}

/// A table that means something to Redis, or looks like it.
fn reply(dice: &mut Dice) -> String {
    dice.pick(&[
        "{ok='FINE'}",
        "{ok=1}",
        "{ok=''}",
        "{ok='two\\r\\nlines'}",
        "{err='ERR mine'}",
        "{err='mine'}",
        "{err=''}",
        "{err='two\\r\\nlines'}",
        "{err=5}",
        "{err='A b', ok='c'}",
        "{double=1.5}",
        "{double=3}",
        "{double=0.1}",
        "{double=-1e100}",
        "{double=1/0}",
        "{double='x'}",
        "{map={a=1}}",
        "{map={}}",
        "{map={[1]={ok='x'}}}",
        "{set={a=true}}",
        "{set={}}",
        "{big_number='12345678901234567890'}",
        "{verbatim_string={format='txt', string='text'}}",
        "{verbatim_string={format='mkd', string=''}}",
        "{1, 2, nil, 4}",
        "{nil, 1}",
        "{[2]=1}",
        "{a=1}",
        "{{{}}}",
        "redis.status_reply('FINE')",
        "redis.status_reply('')",
        "redis.error_reply('MY error')",
        "redis.error_reply('ERROR')",
        "redis.error_reply('-MY error')",
        "redis.error_reply('')",
        "redis.error_reply('no code here')",
        "redis.error_reply('two\\r\\nlines')",
        "{redis.error_reply('inner'), 1}",
    ])
    .to_owned()
}

fn function(dice: &mut Dice) -> String {
    dice.pick(&[
        "redis.sha1hex('')",
        "redis.sha1hex('abc')",
        "redis.sha1hex(12)",
        "tostring(12.5)",
        "tostring(1e15)",
        "tostring(1e14)",
        "tostring(nil)",
        "tostring(true)",
        "tonumber('0x10')",
        "tonumber('10', 2)",
        "tonumber('x')",
        "tonumber(' 5 ')",
        "string.format('%d-%s', 3, 'x')",
        "string.format('%5.2f', 1/3)",
        "string.format('%q', 'a\\nb')",
        "string.rep('ab', 3)",
        "string.sub('hello', -3, -2)",
        "string.byte('A')",
        "string.find('a.b', '.', 1, true)",
        "string.gsub('hello', 'l', 'L')",
        "('x'):upper()",
        "table.concat({1, 2, 'x'}, ',')",
        "table.concat(KEYS, '|')",
        "unpack({1, 2, 3})",
        "select('#', 1, nil, 3)",
        "math.floor(-3.5)",
        "math.max(1, 2.5)",
        "math.fmod(7, 3)",
        "math.random(1000)",
        "math.random(1000) + math.random(1000)",
        "math.huge",
        "type(redis)",
        "type(math.random)",
        "type(os)",
        "type(redis.call)",
        "type(redis.pcall('get', 'lock:a'))",
        "pcall(function() error('x') end)",
        "select(2, pcall(function() error('x') end))",
        "select(2, pcall(redis.call, 'nosuch'))",
        "select(2, pcall(function() return redis.call('incr', 'lock:a') end))",
        "pcall(redis.call, 'get', 'lock:a')",
        "xpcall(function() error('x') end, function(e) return e end)",
        "redis.pcall('nosuch').err",
        "redis.pcall('get')",
        "redis.pcall('set', 'c', 1).ok",
        "rawget(redis, 'nosuch')",
        "next({})",
        "redis.REDIS_VERSION",
        "redis.REDIS_VERSION_NUM",
        "redis.LOG_WARNING",
        "redis.REPL_ALL",
        "_VERSION",
        "loadstring('return 1 + 1')()",
        "load(function() return nil end)",
        "loadstring('x x')",
        "getmetatable('')",
        "coroutine.wrap(function() coroutine.yield(7) end)()",
        "collectgarbage('count') > 0",
        "#redis.call('time')",
        "cjson.encode({1, 2, 'x'})",
        "cjson.decode('[1, \"a\", null]')",
        "bit.band(7, 2)",
        "bit.tohex(255)",
        "struct.pack('>I', 5)",
        "cmsgpack.pack({1, 2})",
        "cmsgpack.unpack(cmsgpack.pack({1, 'a'}))",
    ])
    .to_owned()
}

fn arithmetic(dice: &mut Dice) -> String {
    let operator = dice.pick(&["+", "-", "*", "/", "%", "^", "..", "==", "<", "and", "or"]);
    let (left, right) = (number(dice), number(dice));
    match dice.below(3) {
        0 => format!("({left} {operator} '{}')", dice.between(-5, 5)),
        _ => format!("({left} {operator} {right})"),
    }
}

/// The words of a call that runs `script` by its text.
pub(crate) fn eval(dice: &mut Dice, script: &str) -> Vec<Word> {
    vec![in_some_case(dice, "EVAL"), Word::text(script)]
}
