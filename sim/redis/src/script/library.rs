//! The table `redis`, through which scripts reach the server, and the random numbers of `math`.

use std::rc::Rc;

use bytes::Bytes;
use mlua::{Lua, MultiValue, Table, Value as Lv};

use super::arguments::{integer_argument, number_of};
use super::convert::to_lua;
use super::errors::{self, Raised};
use super::number::{general, shortest, truncate};
use super::state::{State, with_caller};
use crate::resp::{Protocol, Value};

/// State of the random number generator in a server that has just started: `lrand48` of POSIX
/// before it is seeded.
pub(super) const SEED: u64 = 0x1234_ABCD_330E;

/// Low bits of the generator's state after seeding.
const SEED_LOW: u64 = 0x330E;

const RANDOM_MAX: u64 = i32::MAX as u64;

/// Returns the table `redis`.
pub(super) fn redis(lua: &Lua, state: &Rc<State>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    for (name, value) in [
        ("LOG_DEBUG", 0),
        ("LOG_VERBOSE", 1),
        ("LOG_NOTICE", 2),
        ("LOG_WARNING", 3),
        ("REPL_NONE", 0),
        ("REPL_AOF", 1),
        ("REPL_SLAVE", 2),
        ("REPL_REPLICA", 2),
        ("REPL_ALL", 3),
    ] {
        table.raw_set(name, value)?;
    }
    version(&table, "REDIS", state.style.version)?;
    if let Some((name, number)) = state.style.own {
        table.raw_set("SERVER_NAME", name)?;
        version(&table, &name.to_ascii_uppercase(), number)?;
    }
    type Act = fn(&Lua, &State, MultiValue) -> mlua::Result<Lv>;
    let functions: [(&str, Act); 12] = [
        ("call", |lua, state, arguments| call(lua, state, &arguments, true)),
        ("pcall", |lua, state, arguments| call(lua, state, &arguments, false)),
        ("sha1hex", sha1hex),
        ("error_reply", error_reply),
        ("status_reply", status_reply),
        ("log", log),
        ("setresp", setresp),
        ("set_repl", set_repl),
        ("acl_check_cmd", acl_check_cmd),
        ("replicate_commands", |_, _, _| Ok(Lv::Boolean(true))),
        ("breakpoint", |_, _, _| Ok(Lv::Boolean(false))),
        ("debug", |_, _, _| Ok(Lv::Nil)),
    ];
    for (name, act) in functions {
        let state = Rc::clone(state);
        let function = lua.create_function(move |lua, arguments| act(lua, &state, arguments))?;
        table.raw_set(name, function)?;
    }
    Ok(table)
}

fn version(table: &Table, name: &str, (major, minor, patch): (u8, u8, u8)) -> mlua::Result<()> {
    table.raw_set(format!("{name}_VERSION"), format!("{major}.{minor}.{patch}"))?;
    let number = u32::from_be_bytes([0, major, minor, patch]);
    table.raw_set(format!("{name}_VERSION_NUM"), number)
}

fn refusal(text: impl Into<Bytes>) -> mlua::Error {
    Raised::Reply(text.into(), false).into()
}

fn call(lua: &Lua, state: &State, arguments: &MultiValue, raises: bool) -> mlua::Result<Lv> {
    let protocol = state.protocol.get();
    let value = match command(state, arguments) {
        Ok(command) => {
            let command: Vec<&[u8]> = command.iter().map(Argument::bytes).collect();
            with_caller(|caller| caller.call(&command, protocol))
        }
        Err(text) if raises => return Err(refusal(text)),
        Err(text) => return errors::reply(lua, text.as_bytes(), false),
    };
    match value {
        Value::Error(text) if raises => Err(Raised::Reply(text, true).into()),
        value => to_lua(lua, &value, protocol),
    }
}

enum Argument {
    Text(mlua::string::BorrowedBytes),
    Number(String),
}

impl Argument {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(bytes) => bytes,
            Self::Number(digits) => digits.as_bytes(),
        }
    }
}

fn command(state: &State, arguments: &MultiValue) -> Result<Vec<Argument>, &'static str> {
    let is_valkey = state.style.is_valkey;
    if arguments.is_empty() {
        return Err(match is_valkey {
            true => "ERR Please specify at least one argument for this call",
            false => "ERR Please specify at least one argument for this redis lib call",
        });
    }
    let argument = |value: &Lv| match value {
        Lv::String(text) => Ok(Argument::Text(text.as_bytes())),
        Lv::Integer(number) => Ok(Argument::Number(written(state, *number as f64))),
        Lv::Number(number) => Ok(Argument::Number(written(state, *number))),
        _ => Err(match is_valkey {
            true => "ERR Command arguments must be strings or integers",
            false => "ERR Lua redis lib command arguments must be strings or integers",
        }),
    };
    arguments.iter().map(argument).collect()
}

/// Formats a number as an argument of a command.
fn written(state: &State, number: f64) -> String {
    const LIMIT: f64 = 1e17;
    let is_whole = number == number.trunc();
    match state.style.writes_shortest {
        // Whole numbers below 2^62 are formatted as integers.
        true if is_whole && number.abs() < 4_611_686_018_427_387_904.0 => {
            truncate(number).to_string()
        }
        true if !number.is_nan() => shortest(number),
        _ if is_whole && number != 0.0 && number.abs() < LIMIT => truncate(number).to_string(),
        _ => general(number, 17),
    }
}

fn sha1hex(lua: &Lua, _: &State, arguments: MultiValue) -> mlua::Result<Lv> {
    let [value] = arguments.as_slices().0 else {
        return Err(refusal("ERR wrong number of arguments"));
    };
    let text = match value {
        Lv::String(text) => text.as_bytes().to_vec(),
        other => match number_of(other) {
            Some(number) => general(number, 14).into_bytes(),
            None => Vec::new(),
        },
    };
    lua.create_string(super::sha_of(&text)).map(Lv::String)
}

fn word(arguments: &MultiValue) -> Option<mlua::LuaString> {
    match (arguments.len(), arguments.front()) {
        (1, Some(Lv::String(word))) => Some(word.clone()),
        _ => None,
    }
}

const NOT_A_WORD: &[u8] = b"ERR wrong number or type of arguments";

fn error_reply(lua: &Lua, _: &State, arguments: MultiValue) -> mlua::Result<Lv> {
    let Some(word) = word(&arguments) else { return errors::reply(lua, NOT_A_WORD, false) };
    let bytes = word.as_bytes();
    let text = bytes.strip_prefix(b"-").unwrap_or(&bytes);
    let text = if text.contains(&b' ') { text.to_vec() } else { [b"ERR ", text].concat() };
    errors::reply(lua, &text, false)
}

fn status_reply(lua: &Lua, _: &State, arguments: MultiValue) -> mlua::Result<Lv> {
    let Some(word) = word(&arguments) else { return errors::reply(lua, NOT_A_WORD, false) };
    let table = lua.create_table()?;
    table.raw_set("ok", word)?;
    Ok(Lv::Table(table))
}

/// Returns the name of the table in error texts.
fn own_name(state: &State) -> &'static str {
    if state.style.is_valkey { "server" } else { "redis" }
}

fn log(_: &Lua, state: &State, arguments: MultiValue) -> mlua::Result<Lv> {
    if arguments.len() < 2 {
        let name = own_name(state);
        return Err(refusal(format!("ERR {name}.log() requires two arguments or more.")));
    }
    let Some(level) = arguments.front().and_then(number_of) else {
        return Err(refusal("ERR First argument must be a number (log level)."));
    };
    if !(0..=3).contains(&truncate(level)) {
        let kind = if state.style.is_valkey { "log" } else { "debug" };
        return Err(refusal(format!("ERR Invalid {kind} level.")));
    }
    Ok(Lv::Nil)
}

fn setresp(_: &Lua, state: &State, arguments: MultiValue) -> mlua::Result<Lv> {
    if arguments.len() != 1 {
        let name = own_name(state);
        return Err(refusal(format!("ERR {name}.setresp() requires one argument.")));
    }
    state.protocol.set(match arguments.front().and_then(number_of).map(truncate) {
        Some(2) => Protocol::Resp2,
        Some(3) => Protocol::Resp3,
        _ => return Err(refusal("ERR RESP version must be 2 or 3.")),
    });
    Ok(Lv::Nil)
}

fn set_repl(_: &Lua, state: &State, arguments: MultiValue) -> mlua::Result<Lv> {
    if arguments.len() != 1 {
        return Err(refusal(match state.style.is_valkey {
            true => "ERR server.set_repl() requires one argument.",
            false => "ERR redis.set_repl() requires two arguments.",
        }));
    }
    let flags = arguments.front().and_then(number_of).map_or(0, truncate);
    if flags & !3 != 0 {
        return Err(refusal(
            "ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.",
        ));
    }
    Ok(Lv::Nil)
}

fn acl_check_cmd(_: &Lua, state: &State, arguments: MultiValue) -> mlua::Result<Lv> {
    let command = command(state, &arguments).map_err(refusal)?;
    let command: Vec<&[u8]> = command.iter().map(Argument::bytes).collect();
    with_caller(|caller| caller.is_allowed(&command)).map(Lv::Boolean).ok_or_else(|| {
        let name = own_name(state);
        refusal(format!("ERR Invalid command passed to {name}.acl_check_cmd()"))
    })
}

/// Adds random functions to `math` that give the same numbers in every run: the generator of
/// `lrand48`.
pub(super) fn randomness(lua: &Lua, state: &Rc<State>, math: &Table) -> mlua::Result<()> {
    let random = {
        let state = Rc::clone(state);
        lua.create_function(move |lua, arguments: MultiValue| random(lua, &state, &arguments))?
    };
    math.raw_set("random", random)?;
    let state = Rc::clone(state);
    let seed = move |lua: &Lua, arguments: MultiValue| {
        let seed = integer_argument(lua, &arguments, 1)? as u32;
        state.random.set(u64::from(seed) << 16 | SEED_LOW);
        Ok(())
    };
    math.raw_set("randomseed", lua.create_function(seed)?)
}

fn random(lua: &Lua, state: &State, arguments: &MultiValue) -> mlua::Result<f64> {
    let next = state.random.get().wrapping_mul(0x5_DEEC_E66D).wrapping_add(0xB) & ((1 << 48) - 1);
    state.random.set(next);
    let fraction = ((next >> 17) % RANDOM_MAX) as f64 / RANDOM_MAX as f64;
    let (low, high) = match arguments.len() {
        0 => return Ok(fraction),
        1 => (1, integer_argument(lua, arguments, 1)?),
        2 => (integer_argument(lua, arguments, 1)?, integer_argument(lua, arguments, 2)?),
        _ => return Err(errors::text(lua, "wrong number of arguments")),
    };
    if low > high {
        return Err(errors::argument(lua, arguments.len(), "interval is empty"));
    }
    let width = f64::from((high as i32).wrapping_sub(low as i32).wrapping_add(1));
    Ok((fraction * width).floor() + low as f64)
}
