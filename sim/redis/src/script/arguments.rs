//! Conversion of arguments as Lua's C functions do it.

use mlua::{Lua, MultiValue, Table, Value as Lv};

use super::errors::{self, type_error};
use super::number::{general, parse, truncate};

/// Returns the value as a number, as C functions read it.
pub(super) fn number_of(value: &Lv) -> Option<f64> {
    match value {
        Lv::Integer(number) => Some(*number as f64),
        Lv::Number(number) => Some(*number),
        Lv::String(digits) => parse(&digits.as_bytes()),
        _ => None,
    }
}

/// Returns the value as bytes, as C functions read it.
pub(super) fn text_of(value: &Lv) -> Option<Vec<u8>> {
    match value {
        Lv::String(text) => Some(text.as_bytes().to_vec()),
        other => number_of(other).map(|digits| general(digits, 14).into_bytes()),
    }
}

/// Returns an argument as a string; arguments are numbered from 1.
pub(super) fn text_argument(
    lua: &Lua,
    arguments: &MultiValue,
    number: usize,
) -> mlua::Result<Vec<u8>> {
    let value = arguments.get(number - 1);
    value.and_then(text_of).ok_or_else(|| type_error(lua, number, "string", value))
}

/// Returns an argument as an integer; arguments are numbered from 1.
pub(super) fn integer_argument(
    lua: &Lua,
    arguments: &MultiValue,
    number: usize,
) -> mlua::Result<i64> {
    number_argument(lua, arguments, number).map(truncate)
}

/// Returns an argument as a number; arguments are numbered from 1.
pub(super) fn number_argument(
    lua: &Lua,
    arguments: &MultiValue,
    number: usize,
) -> mlua::Result<f64> {
    let value = arguments.get(number - 1);
    value.and_then(number_of).ok_or_else(|| type_error(lua, number, "number", value))
}

/// Returns the first argument, which must be a table.
pub(super) fn table_argument<'a>(lua: &Lua, arguments: &'a MultiValue) -> mlua::Result<&'a Table> {
    match arguments.front() {
        Some(Lv::Table(table)) => Ok(table),
        other => Err(type_error(lua, 1, "table", other)),
    }
}

/// Returns an argument of any type; arguments are numbered from 1.
pub(super) fn any_argument<'a>(
    lua: &Lua,
    arguments: &'a MultiValue,
    number: usize,
) -> mlua::Result<&'a Lv> {
    let missing = || errors::argument(lua, number, "value expected");
    arguments.get(number - 1).ok_or_else(missing)
}
