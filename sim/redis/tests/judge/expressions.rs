//! Expressions of scripts: values of every type of Lua, and calls of library functions on them.

use crate::dice::Dice;
use crate::round::Word;
use crate::scripts::{NAMES, call, quoted};
use crate::words;

/// Draws a condition.
pub(crate) fn condition(dice: &mut Dice, known: usize) -> String {
    let left = expression(dice, known, 0);
    match dice.below(5) {
        0 => left,
        1 => format!("not {left}"),
        2 => format!("{left} == false"),
        3 => format!("type({left}) == 'table'"),
        _ => format!("{left} == {}", expression(dice, known, 0)),
    }
}

/// Draws an expression. `known` is the number of variables it may use, and `depth` the depth to
/// which tables may nest.
pub(crate) fn expression(dice: &mut Dice, known: usize, depth: usize) -> String {
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

/// Draws a table that means something to Redis, or looks like it.
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
        "type(tonumber('x'))",
        "type(os)",
        "type(redis.call) == 'function'",
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
        "cjson.encode_sparse_array()",
        "cjson.encode_sparse_array(true)",
        "cjson.encode_sparse_array('off', 2, 3)",
        "cjson.encode_sparse_array(false, 0, 1)",
        "cjson.encode({[1]=1, [9]=2})",
        "cjson.encode({[1]=1, [40]=2})",
        "cjson.encode_invalid_numbers(true)",
        "cjson.encode_invalid_numbers('null')",
        "cjson.encode_invalid_numbers('off')",
        "cjson.encode({1/0, -1/0, 0/0})",
        "cjson.decode_invalid_numbers(false)",
        "cjson.decode_invalid_numbers(true)",
        "cjson.decode('[0x10, -inf, 01]')",
        "cjson.decode('[nan]')",
        "cjson.encode_max_depth(2)",
        "cjson.encode_max_depth(1000)",
        "cjson.decode_max_depth(2)",
        "cjson.decode_max_depth(1000)",
        "cjson.encode({{{}}})",
        "cjson.decode('[[[]]]')",
        "cjson.encode_number_precision(3)",
        "cjson.encode_number_precision(14)",
        "cjson.encode(1234.5678)",
        "cjson.encode_keep_buffer(1)",
        "cjson.new().encode({[1]=1, [40]=2})",
        "table.insert({1, 2}, -3, 9)",
        "table.remove({1, 2}, 2^32 + 1)",
        "select('#', unpack({}, 1, 7000))",
        "unpack({}, 1, 8000)",
        "select(2, pcall(unpack, {}, 1, 9000))",
        "select(2, pcall(cmsgpack.unpack, ('\\1'):rep(9000)))",
        "select(2, pcall(struct.unpack, ('b'):rep(9000), ('\\1'):rep(9000)))",
        "bit.band(7, 2)",
        "bit.tohex(255)",
        "struct.pack('>I', 5)",
        "select(2, struct.unpack('bh', '\\1\\2\\3'))",
        "cmsgpack.pack({1, 2.5, 'x'})",
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
