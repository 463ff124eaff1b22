//! Tests of the operations that scripts may perform and of the errors for all others.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;

/// A server that knows three commands.
struct Stub {
    kept: Option<Vec<u8>>,
    asked: u32,
    patience: u32,
}

impl Stub {
    fn new(patience: u32) -> Self {
        Self { kept: None, asked: 0, patience }
    }
}

impl Caller for Stub {
    fn call(&mut self, arguments: &[&[u8]], _: Protocol) -> Value {
        match (arguments[0].to_ascii_lowercase().as_slice(), &arguments[1..]) {
            (b"set", [_, value]) => {
                self.kept = Some(value.to_vec());
                Value::ok()
            }
            (b"get", [_]) => self.kept.as_deref().map_or(Value::Null, Value::bulk),
            (b"get", _) => {
                Value::error("ERR Wrong number of args calling Redis command from script")
            }
            (b"echo", [word]) => Value::bulk(word),
            _ => Value::error("ERR Unknown Redis command called from script"),
        }
    }

    fn interrupt(&mut self) -> Option<String> {
        self.asked += 1;
        (self.asked > self.patience).then(|| String::from("ERR enough"))
    }
}

/// Returns the bytes sent to a client that speaks version 2.
fn sent(script: &str) -> String {
    let text = Bytes::copy_from_slice(script.as_bytes());
    let mut stub = Stub::new(10_000);
    let reply = run(&text, &sha_of(&text), &[b"k"], &[b"a", b"b"], &REDIS_7_0, &mut stub);
    let mut out = Vec::new();
    reply.encode(Protocol::Resp2, &mut out);
    out.escape_ascii().to_string()
}

/// Scripts, and the reply of a real server of this version to each, without the digits of the hash.
const TRANSCRIPT: &str = include_str!("transcript.txt");

#[test]
fn scripts_are_answered_as_a_real_server_did() {
    let mut wrong = String::new();
    for exchange in TRANSCRIPT.split("\n---\n") {
        let (script, expected) = exchange.rsplit_once("\n> ").expect("a script and its answer");
        let text = Bytes::copy_from_slice(script.as_bytes());
        let sha = String::from_utf8(sha_of(&text).to_vec()).unwrap();
        let sent = sent(script).replace(&sha, "<sha>");
        if sent != expected.trim_end() {
            wrong.push_str(&format!("{script}\n  expected {expected}\n  sent     {sent}\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

fn run_patiently(script: &[u8], patience: u32) -> Value {
    let text = Bytes::copy_from_slice(script);
    let mut stub = Stub::new(patience);
    run(&text, &sha_of(&text), &[b"k"], &[b"a", b"b"], &REDIS_7_0, &mut stub)
}

fn says(reply: &Value, what: &str) -> bool {
    matches!(reply, Value::Error(text) if String::from_utf8_lossy(text).contains(what))
}

#[test]
fn an_endless_script_ends_when_the_server_says_so() {
    for script in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "while true do xpcall(function() while true do end end, function(e) return e end) end",
        "local co = coroutine.wrap(function() while true do end end) while true do co() end",
        "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
        "local function f() return f() end return f()",
        "return load(function() return ' ' end)",
        "local t = {1, 2} table.insert(t, -2147483648, 9) return #t",
        "pcall(table.insert, {1, 2}, 2^31, 9) return 1",
    ] {
        assert!(says(&run_patiently(script.as_bytes(), 3), "enough"), "{script}");
        assert_eq!(run_patiently(b"return 7", 0), Value::Integer(7), "after {script}");
    }
}

#[test]
fn script_that_wants_all_memory_fails_and_keeps_none() {
    for script in [
        "local t = {} while true do t[#t + 1] = ('x'):rep(100000) .. #t end",
        "return ('x'):rep(1000000000)",
        "local s = 'x' while true do s = s .. s end",
        "local t = {} for i = 1, 1e9 do t[i] = {} end",
        "return cjson.encode(('x'):rep(60000000))",
        "local t = {('x'):rep(1000)} for i = 1, 60 do t = {t, t} end return t",
    ] {
        let reply = run_patiently(script.as_bytes(), 1_000_000);
        assert!(says(&reply, "not enough memory") || says(&reply, "too large"), "{reply:?}");
        assert_eq!(run_patiently(b"return 7", 0), Value::Integer(7), "after {script}");
    }
}

#[test]
fn no_script_pays_for_the_memory_of_those_before_it() {
    // Compiled functions hold their strings.
    for length in [1 << 20, 1 << 18, 1 << 16, 1 << 14, 1 << 12, 1 << 11] {
        for number in 0..75 {
            let script = format!("return #'{}' + {number}", "x".repeat(length));
            let expected = Value::Integer(length as i64 + number);
            assert_eq!(run_patiently(script.as_bytes(), 10), expected, "{length}, {number}");
        }
    }
    for number in 0..100 {
        let innocent = format!("return redis.call('get', KEYS[1]) == ARGV[1] and {number}");
        assert_eq!(run_patiently(innocent.as_bytes(), 10), Value::Null, "{number}");
    }
    for number in 0..10 {
        let garbage = "local t = {} for i = 1, 38 do t[i] = ('x'):rep(1000000) .. i end return 1";
        assert_eq!(run_patiently(garbage.as_bytes(), 10_000), Value::Integer(1), "{number}");
        let innocent = "local t = {} for i = 1, 40 do t[i] = ('y'):rep(1000000) .. i end return 2";
        assert_eq!(run_patiently(innocent.as_bytes(), 10_000), Value::Integer(2), "{number}");
    }
}

#[test]
fn recursion_ends_with_an_error() {
    for (script, what) in [
        ("local function f() return f() + 1 end return f()", "stack overflow"),
        ("local function f() return pcall(f) end return f()", ""),
        (
            "local t = {} setmetatable(t, {__index = function(t, k) return t[k] end}) return t.x",
            "overflow",
        ),
        ("local t = {} t[1] = t return cjson.encode(t)", "excessive nesting"),
        ("return (('x'):rep(10)):gsub('.', function(c) return c end)", ""),
        ("local f f = function(x) return x:gsub('.', f) end return f('x')", "overflow"),
    ] {
        let reply = run_patiently(script.as_bytes(), 10_000);
        assert!(what.is_empty() || says(&reply, what), "{script}: {reply:?}");
        assert_eq!(run_patiently(b"return 7", 0), Value::Integer(7), "after {script}");
    }
    let mut reply = run_patiently(b"local t = {} t[1] = t return t", 10);
    let mut depth = 0;
    while let Value::Array(mut values) = reply {
        reply = values.pop().unwrap();
        depth += 1;
    }
    assert!(says(&reply, "reached lua stack limit"), "{reply:?}");
    assert_eq!(depth, 1_000);
}

#[test]
fn nothing_of_a_run_is_left_to_the_next() {
    run_patiently(b"math.random() cjson.encode_max_depth(1) redis.setresp(3) KEYS[5] = 1", 10);
    let reply = run_patiently(
        b"return {#KEYS, #ARGV, math.random(100), cjson.encode_max_depth(), true, tostring({})}",
        10,
    );
    let Value::Array(values) = reply else { panic!("{reply:?}") };
    let expected = [1, 2, 40, 1_000, 1].map(Value::Integer);
    assert_eq!(values[..5], expected);
    assert_eq!(values[5], Value::bulk(b"table: 0x7f0000000040"));
}

#[test]
fn a_script_that_is_no_longer_kept_is_compiled_again() {
    for number in 0..1_100 {
        let script = format!("return {number}");
        assert_eq!(run_patiently(script.as_bytes(), 10), Value::Integer(number));
    }
    assert_eq!(run_patiently(b"return 0", 10), Value::Integer(0));
}

#[test]
fn compiling_says_what_is_wrong() {
    let compile = |text: &'static [u8]| {
        let text = Bytes::from_static(text);
        compile(&text, &sha_of(&text), &REDIS_7_0)
    };
    assert_eq!(compile(b"return 1"), Ok(()));
    let error = compile(b"return return").unwrap_err();
    assert!(says(&error, "ERR Error compiling script (new function): user_script:1:"));
    assert!(compile(b"\x1bLua").is_err(), "a binary chunk is no script");
}

/// Generates pieces of scripts that are likely to be accepted and to do harm.
fn piece() -> impl Strategy<Value = String> {
    let words = [
        "redis",
        ".call",
        ".pcall",
        "('get','k')",
        "('nosuch')",
        "local x =",
        "x",
        "return",
        "{",
        "}",
        "(",
        ")",
        "function()",
        "end",
        "if",
        "then",
        "while true do",
        "pcall",
        "error",
        "'s'",
        "..",
        "1e308",
        "-1",
        "string.rep",
        "('x', 1e9)",
        "table.insert",
        "setmetatable",
        "getmetatable",
        "_G",
        "[1]",
        "=",
        ",",
        "cjson.decode",
        "cjson.encode",
        "coroutine.wrap",
        "tostring",
        "nil",
        "unpack",
        "loadstring",
        "load",
        "bit.band",
        "math.random",
        "next",
        "pairs",
        "rawset",
        "rawget",
        "string.format('%s%d%q',",
        "collectgarbage()",
        "KEYS",
        "ARGV",
        "\n",
        "\0",
        "\u{1b}Lua",
        "#",
    ];
    prop::sample::select(words.to_vec()).prop_map(String::from)
}

proptest! {
    #[test]
    fn no_text_is_too_bad_for_a_script(text: Vec<u8>) {
        let _ = run_patiently(&text, 20);
    }

    #[test]
    fn no_program_is_too_bad_either(pieces in prop::collection::vec(piece(), 0..12)) {
        let _ = run_patiently(pieces.join(" ").as_bytes(), 20);
    }

    #[test]
    fn no_json_is_too_bad(text in prop::collection::vec(
        prop::sample::select(b"[]{}:,\"\\u0123dD8eE+-.truefalsn \t\0\xff".to_vec()), 0..24,
    )) {
        let script = Bytes::from_static(b"return cjson.encode(cjson.decode(ARGV[1]))");
        let mut stub = Stub::new(20);
        let sha = sha_of(&script);
        let _ = run(&script, &sha, &[], &[&text], &REDIS_7_0, &mut stub);
    }
}
