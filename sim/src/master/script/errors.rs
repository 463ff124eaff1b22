//! Errors on their way through a script.
//!
//! A Rust function raises [`Raised`], which Lua carries as an opaque value. Whatever catches errors
//! for a script — `pcall`, `xpcall`, `coroutine.resume` — turns it into what the script knows.

use bytes::Bytes;
use mlua::{Lua, Value};

/// How many values a function of C may have on the interpreter's stack, its arguments among them.
pub(super) const STACK_MAX: usize = 8_000;

/// What a Rust function raises.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum Raised {
    /// A string.
    #[error("{0:?}")]
    Text(Bytes),
    /// A table with the string in its field `err`, as `redis.call` raises it; whether a command
    /// said it.
    #[error("{0:?}")]
    Reply(Bytes, bool),
    /// The script must end, and cannot catch it.
    #[error("{0}")]
    Stop(String),
}

impl From<Raised> for mlua::Error {
    fn from(raised: Raised) -> Self {
        Self::external(raised)
    }
}

/// A string, after the place in the script where the running function was called.
pub(super) fn text(lua: &Lua, text: impl core::fmt::Display) -> mlua::Error {
    Raised::Text(format!("{}{text}", place(lua)).into()).into()
}

/// The refusal of an argument, as C functions of Lua word it.
pub(super) fn argument(lua: &Lua, number: usize, what: &str) -> mlua::Error {
    let names = |it: &mlua::debug::Debug<'_>| it.names().name.map(|name| name.into_owned());
    let name = lua.inspect_stack(0, names).flatten().unwrap_or_else(|| String::from("?"));
    text(lua, format_args!("bad argument #{number} to '{name}' ({what})"))
}

/// The refusal of an argument that is not of the type `expected`.
pub(super) fn type_error(
    lua: &Lua,
    number: usize,
    expected: &str,
    got: Option<&Value>,
) -> mlua::Error {
    let got = got.map_or("no value", type_name);
    argument(lua, number, &format!("{expected} expected, got {got}"))
}

/// The type of a value, as Lua names it.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Integer(_) => "number",
        Value::LightUserData(_) | Value::Error(_) => "userdata",
        other => other.type_name(),
    }
}

fn place(lua: &Lua) -> String {
    let place = lua.inspect_stack(1, |caller| {
        let line = caller.current_line()?;
        Some(format!("{}:{line}: ", caller.source().short_src?))
    });
    place.flatten().unwrap_or_default()
}

/// What a caught error is to the script.
///
/// # Errors
///
/// The error itself, if it cannot be caught.
pub(super) fn caught(lua: &Lua, error: Value) -> mlua::Result<Value> {
    let Value::Error(error) = error else { return Ok(error) };
    match error.downcast_ref::<Raised>() {
        Some(Raised::Text(text)) => Ok(Value::String(lua.create_string(text)?)),
        Some(Raised::Reply(text, is_said)) => reply(lua, text, *is_said),
        None if is_overflow(&error) => Ok(Value::String(lua.create_string(OVERFLOW)?)),
        Some(Raised::Stop(_)) | None => Err(*error),
    }
}

/// What a script is told whose call has more values than the binding can carry: some servers could.
const OVERFLOW: &str = "stack overflow (too many values)";

fn is_overflow(error: &mlua::Error) -> bool {
    error.chain().any(|cause| matches!(cause.downcast_ref(), Some(mlua::Error::StackError)))
}

/// An error as a table.
pub(super) fn reply(lua: &Lua, text: &[u8], is_said: bool) -> mlua::Result<Value> {
    let table = lua.create_table()?;
    table.raw_set("err", lua.create_string(text)?)?;
    if is_said {
        table.raw_set("ignore_error_stats_update", true)?;
    }
    Ok(Value::Table(table))
}

/// An error that no script caught.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Uncaught {
    /// What it says; `None`: a table that says nothing.
    pub(super) text: Option<Vec<u8>>,
    /// Where it was raised: the name of the text and the line.
    pub(super) place: Option<(String, i64)>,
    /// The script could not have caught it.
    pub(super) is_stop: bool,
}

impl Uncaught {
    /// What became of `error`, asked while the stack is still as it was when it was raised.
    pub(super) fn new(lua: &Lua, error: &Value, tostring: impl Fn(&Value) -> Vec<u8>) -> Self {
        let (text, is_stop) = match error {
            Value::Table(table) => {
                let text = match table.raw_get("err") {
                    Ok(Value::String(text)) => Some(text.as_bytes().to_vec()),
                    Ok(number @ (Value::Integer(_) | Value::Number(_))) => Some(tostring(&number)),
                    _ => None,
                };
                (text, false)
            }
            Value::Error(error) => match error.downcast_ref::<Raised>() {
                Some(Raised::Text(text)) => (Some([b"ERR ", &text[..]].concat()), false),
                Some(Raised::Reply(text, _)) => (Some(text.to_vec()), false),
                Some(Raised::Stop(text)) => (Some(text.clone().into_bytes()), true),
                None if is_overflow(error) => (Some(format!("ERR {OVERFLOW}").into_bytes()), false),
                None => (Some(format!("ERR {error}").into_bytes()), true),
            },
            other => (Some([b"ERR ", &tostring(other)[..]].concat()), false),
        };
        Self { text, place: raised_at(lua), is_stop }
    }
}

/// Where the script was when the error was raised, which may have been by a function of Lua's own.
fn raised_at(lua: &Lua) -> Option<(String, i64)> {
    for level in 1.. {
        let (is_native, source, line) = lua.inspect_stack(level, |it| {
            let source = it.source();
            (source.what == "C", source.source.map(|name| name.into_owned()), it.current_line())
        })?;
        if !is_native {
            let line = line.and_then(|line| i64::try_from(line).ok()).unwrap_or(-1);
            return Some((source.unwrap_or_default(), line));
        }
    }
    None
}
