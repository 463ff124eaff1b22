//! Errors within a script.
//!
//! A Rust function raises [`Raised`], which Lua carries as an opaque value. Each function that
//! catches errors for a script — `pcall`, `xpcall`, `coroutine.resume` — converts it into the value
//! that the script sees.

use bytes::Bytes;
use mlua::{Lua, Value};

/// Number of values that a C function may have on the interpreter's stack, including its arguments.
pub(super) const STACK_MAX: usize = 8_000;

/// An error raised by a Rust function.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum Raised {
    /// A string.
    #[error("{0:?}")]
    Text(Bytes),
    /// A table with the string in its field `err`, as `redis.call` raises it; true if the text came
    /// from a command.
    #[error("{0:?}")]
    Reply(Bytes, bool),
    /// The script must end and cannot catch this error.
    #[error("{0}")]
    Stop(String),
}

impl From<Raised> for mlua::Error {
    fn from(raised: Raised) -> Self {
        Self::external(raised)
    }
}

/// Returns an error with `text` after the place in the script where the running function was
/// called.
pub(super) fn text(lua: &Lua, text: impl core::fmt::Display) -> mlua::Error {
    Raised::Text(format!("{}{text}", place(lua)).into()).into()
}

/// Returns the error for an invalid argument, as Lua's C functions word it.
pub(super) fn argument(lua: &Lua, number: usize, what: &str) -> mlua::Error {
    let names = |it: &mlua::debug::Debug<'_>| it.names().name.map(|name| name.into_owned());
    let name = lua.inspect_stack(0, names).flatten().unwrap_or_else(|| String::from("?"));
    text(lua, format_args!("bad argument #{number} to '{name}' ({what})"))
}

/// Returns the error for an argument that is not of the type `expected`.
pub(super) fn type_error(
    lua: &Lua,
    number: usize,
    expected: &str,
    got: Option<&Value>,
) -> mlua::Error {
    let got = got.map_or("no value", type_name);
    argument(lua, number, &format!("{expected} expected, got {got}"))
}

/// Returns the type of a value, as Lua names it.
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

/// Returns a caught error as the script sees it.
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

/// Error for a call with more values than the binding can carry; some real servers could carry
/// them.
const OVERFLOW: &str = "stack overflow (too many values)";

fn is_overflow(error: &mlua::Error) -> bool {
    error.chain().any(|cause| matches!(cause.downcast_ref(), Some(mlua::Error::StackError)))
}

/// Returns an error as a table.
pub(super) fn reply(lua: &Lua, text: &[u8], is_said: bool) -> mlua::Result<Value> {
    let table = lua.create_table()?;
    table.raw_set("err", lua.create_string(text)?)?;
    if is_said {
        table.raw_set("ignore_error_stats_update", true)?;
    }
    Ok(Value::Table(table))
}

/// An error that the script did not catch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Uncaught {
    /// Text of the error; `None` for a table without one.
    pub(super) text: Option<Vec<u8>>,
    /// Place where the error was raised: the chunk name and the line.
    pub(super) place: Option<(String, i64)>,
    /// True if the script could not have caught the error.
    pub(super) is_stop: bool,
}

impl Uncaught {
    /// Describes `error`. Must be called while the stack is still as it was when the error was
    /// raised.
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

/// Returns the place in the script where the error was raised; skips native functions on the stack.
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
