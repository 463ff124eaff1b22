//! Input that no correct client sends: compares the servers' replies byte for byte, and the state
//! of the connection afterwards.

use std::fmt::Write;

use libtest_mimic::Failed;
use redis_sim::profile::Profile;

use crate::real;
use crate::reply::{Reply, escaped};
use crate::round::{Form, Word};
use crate::simulated::Simulated;

/// Sent after input that leaves the connection open: a server that has not closed the connection
/// echoes it.
const LAST_WORDS: &[u8] = b"*2\r\n$4\r\nECHO\r\n$10\r\nlast words\r\n";

/// End of the reply to [`LAST_WORDS`].
const LAST_ANSWER: &[u8] = b"$10\r\nlast words\r\n";

/// Maximum number of bytes of a reply that a failure shows.
const TOLD_BYTES: usize = 300;

struct Case {
    what: &'static str,
    bytes: Vec<u8>,
    /// True for complete requests. After an incomplete request the test closes the connection.
    is_whole: bool,
}

fn whole(what: &'static str, requests: &[&[&[u8]]]) -> Case {
    let encode = |request: &&[&[u8]]| {
        let words = request.iter().map(|word| Word::Is(bytes::Bytes::copy_from_slice(word)));
        Form::Array(words.collect()).encode(0)
    };
    Case { what, bytes: requests.iter().flat_map(encode).collect(), is_whole: true }
}

fn script(what: &'static str, text: &str) -> Case {
    whole(what, &[&[b"EVAL", text.as_bytes(), b"0"]])
}

fn broken(what: &'static str, bytes: impl Into<Vec<u8>>) -> Case {
    Case { what, bytes: bytes.into(), is_whole: false }
}

/// All cases in order. Each uses its own connection.
fn cases() -> Vec<Case> {
    let large = vec![b'v'; 10 << 20];
    let many: Vec<Vec<u8>> = (0..10_000).map(|number: u32| number.to_string().into()).collect();
    let many: Vec<&[u8]> = many.iter().map(Vec::as_slice).collect();
    let with_many = |words: &[&'static [u8]]| [words, &many].concat();
    let unpacking = |call| with_many(&[b"EVAL", call, b"10000"]);
    let nested =
        |open: &str, close: &str| format!("return {}1{}", open.repeat(300), close.repeat(300));
    let locals: String = (0..300).map(|number| format!("local a{number} = 1 ")).collect();
    vec![
        whole(
            "a value of 10 MB",
            &[
                &[b"SET", b"large", &large],
                &[b"GET", b"large"],
                &[b"APPEND", b"large", b"more"],
                &[
                    b"EVAL",
                    b"return #redis.call('get', KEYS[1]) + #ARGV[1]",
                    b"1",
                    b"large",
                    &large,
                ],
                &[b"DEL", b"large"],
            ],
        ),
        whole("a key of 10 MB", &[&[b"SETNX", &large, b"v"], &[b"EXISTS", &large], &[b"FLUSHALL"]]),
        whole("a name of 10 MB", &[&[&large, &large]]),
        whole("an empty name", &[&[b""], &[b"", b""]]),
        whole(
            "binary words",
            &[
                &[b"SET", b"\x00\xff\r\n", b"\r\n\x00"],
                &[b"GET", b"\x00\xff\r\n"],
                &[b"\x00\xff\r\n", b"\xff"],
                &[b"CLIENT", b"\x00\xff"],
            ],
        ),
        whole(
            "many words",
            &[
                &with_many(&[b"DEL"]),
                &with_many(&[b"MSET"]),
                &with_many(&[b"EXISTS"]),
                &with_many(&[b"NOSUCH"]),
                &with_many(&[b"GET"]),
                &unpacking(b"return redis.call('del', unpack(KEYS))"),
                &unpacking(b"return #KEYS"),
                &unpacking(b"return redis.call('del', unpack(KEYS, 1, 5000))"),
            ],
        ),
        broken("half a request", "*3\r\n$3\r\nSET\r\n$4\r\nhalf\r\n$1\r\nv"),
        broken("half a request behind a whole one", "PING\r\n*2\r\n$3\r\nDEL"),
        broken("half a line", "SET half v"),
        whole("what was asked by halves", &[&[b"EXISTS", b"half"]]),
        broken("many words, announced", "*2147483647\r\n$4\r\nPING\r\n"),
        broken("too many words, announced", "*2147483648\r\n"),
        broken("512 MB, announced", "*2\r\n$3\r\nGET\r\n$536870912\r\nabc"),
        broken("more than 512 MB, announced", "*2\r\n$3\r\nGET\r\n$536870913\r\n"),
        broken("fewer than no words", "*-5\r\nPING\r\n"),
        broken("fewer than no bytes", "*1\r\n$-1\r\n"),
        broken("a quote within a word", "ECHO 'a'b\r\n"),
        broken("quotes within words", "ECHO \"a\"'b'\r\nECHO c\"d e\"\r\n"),
        broken("a line without end", vec![b'a'; 70_000]),
        broken("a count without end", [b"*", &[b'1'; 70_000][..]].concat()),
        broken("a length without end", [b"*1\r\n$", &[b'1'; 70_000][..]].concat()),
        script("recursion", "local function f() return f() + 1 end return f()"),
        script("recursion that is caught", "local function f() return pcall(f) end return f()"),
        script(
            "recursion of a metatable",
            "local t = {} setmetatable(t, {__index = function(t, k) \
            return t[k] end}) return t.x",
        ),
        script("deep tables", "local t = {} for i = 1, 900 do t = {t} end return t"),
        script("a table within itself", "local t = {} t[1] = t return cjson.encode(t)"),
        script(
            "a table deeper than the stack",
            "cjson.encode_max_depth(2^30) local t = {} for i = 1, 5000 do t = {t} end \
            return #cjson.encode(t)",
        ),
        script(
            "a table deeper than the interpreter's stack",
            "cjson.encode_max_depth(2^30) local t = {} for i = 1, 100000 do t = {t} end \
            return #cjson.encode(t)",
        ),
        script(
            "objects deeper than the interpreter's stack",
            "cjson.encode_max_depth(2^30) local t = {} for i = 1, 100000 do t = {a = t} end \
            return #cjson.encode(t)",
        ),
        script(
            "JSON deeper than the interpreter's stack",
            "cjson.decode_max_depth(2^30) return cjson.decode(('['):rep(100000))",
        ),
        script(
            "objects of JSON deeper than that",
            "cjson.decode_max_depth(2^30) return cjson.decode(('{\"a\":'):rep(100000))",
        ),
        script("MessagePack deeper than that", "return cmsgpack.unpack(('\\145'):rep(100000))"),
        script("keys of MessagePack as deep", "return cmsgpack.unpack(('\\129'):rep(100000))"),
        script("too many values of MessagePack", "return cmsgpack.unpack(('\\1'):rep(4000000))"),
        script(
            "too many values of a structure",
            "return struct.unpack(('b'):rep(4000000), ('\\1'):rep(4000000))",
        ),
        script("too many values of a table", "return unpack({}, 1, 1e9)"),
        script(
            "a place far before the beginning",
            "local t = {1, 2} table.insert(t, -4611686018427387904, 9) return #t",
        ),
        whole("settings are forgotten", &[&[b"SCRIPT", b"FLUSH"]]),
        whole(
            "no answers are wanted",
            &[
                &[b"CLIENT", b"REPLY", b"OFF"],
                &[b"CLIENT", b"REPLY", b"SKIP"],
                &[b"PING"],
                &[b"NOSUCH"],
                &[b"CLIENT", b"REPLY", b"ON"],
                &[b"CLIENT", b"REPLY", b"SKIP"],
                &[b"PING"],
                &[b"CLIENT", b"REPLY", b"SKIP"],
                &[b"CLIENT", b"REPLY", b"SKIP"],
                &[b"PING"],
                &[b"CLIENT", b"REPLY", b"SKIP"],
                &[b"CLIENT", b"REPLY", b"ON"],
                &[b"CLIENT", b"REPLY", b"SKIP"],
                &[b"CLIENT", b"REPLY", b"NOSUCH"],
                &[b"CLIENT", b"REPLY", b"OFF"],
                &[b"RESET"],
                &[b"PING"],
            ],
        ),
        script("deep brackets", &nested("(", ")")),
        script("deep braces", &nested("{", "}")),
        script("deep functions", &nested("(function() return ", " end)()")),
        script("many variables", &locals),
        script("a long text", &format!("return #'{}'", "x".repeat(1 << 20))),
        script("a text that does not end", &format!("return '{}", "x".repeat(1 << 10))),
    ]
}

/// Checks that every reply equals that of the real server.
pub(crate) fn compare(name: &str, program: &str) -> Result<(), Failed> {
    let profile = Profile::named(name).ok_or("no such profile")?;
    let server = real::Server::start(program)?;
    let wall_us = server.connect()?.time_us()?;
    let mut simulated = Simulated::new(profile, wall_us as u64 / 1_000);
    let mut told = String::new();
    for Case { what, mut bytes, is_whole } in cases() {
        if is_whole {
            bytes.extend(LAST_WORDS);
        }
        let end = is_whole.then_some(LAST_ANSWER);
        let real = server.connect()?.exchange(&bytes, end)?;
        simulated.open(0, 0);
        let answer = simulated.ask(0, &bytes, wall_us);
        if answer != real {
            let tell = |bytes: &[u8]| escaped(&bytes[..bytes.len().min(TOLD_BYTES)]);
            write!(told, "{what}\nreal      {}\nsimulated {}\n", tell(&real), tell(&answer))?;
        }
    }
    if told.is_empty() { Ok(()) } else { Err(told.into()) }
}

/// A script without end: checks that both servers refuse other clients meanwhile and end the script
/// with the same words.
pub(crate) fn endless(name: &str, program: &str) -> Result<(), Failed> {
    let profile = Profile::named(name).ok_or("no such profile")?;
    let server = real::Server::start(program)?;
    let (mut one, mut other) = (server.connect()?, server.connect()?);
    let wall_us = one.time_us()?;
    one.ask(&["CONFIG", "SET", "lua-time-limit", "1"])?;
    let request = Form::Array(["EVAL", "while true do end", "0"].map(Word::text).to_vec());
    one.send(&request.encode(0))?;
    let refused = loop {
        match other.ask(&["GET", "k"])? {
            Reply::One(b'-', text) => break text,
            _ => std::thread::yield_now(),
        }
    };
    assert_eq!(escaped(&refused), profile.texts.busy);
    assert_eq!(other.ask(&["SCRIPT", "KILL"])?, Reply::One(b'+', b"OK".to_vec()));
    let real = one.receive()?.1;
    let mut simulated = Simulated::new(profile, wall_us as u64 / 1_000);
    simulated.open(0, 0);
    assert_eq!(escaped(&simulated.ask(0, &request.encode(0), wall_us)), escaped(&real));
    Ok(())
}
