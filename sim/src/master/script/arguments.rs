//! What C functions of Lua make of their arguments.

use mlua::{Lua, MultiValue, Table, Value as Lv};

use super::errors::{self, type_error};
use super::number::{general, parse, truncate};

/// The number that C functions take a value for.
pub(super) fn number_of(value: &Lv) -> Option<f64> {
    match value {
        Lv::Integer(number) => Some(*number as f64),
        Lv::Number(number) => Some(*number),
        Lv::String(digits) => parse(&digits.as_bytes()),
        _ => None,
    }
}

/// The bytes that C functions take a value for.
pub(super) fn text_of(value: &Lv) -> Option<Vec<u8>> {
    match value {
        Lv::String(text) => Some(text.as_bytes().to_vec()),
        other => number_of(other).map(|digits| general(digits, 14).into_bytes()),
    }
}

/// A string among the arguments; they are numbered from 1.
pub(super) fn text_argument(
    lua: &Lua,
    arguments: &MultiValue,
    number: usize,
) -> mlua::Result<Vec<u8>> {
    let value = arguments.get(number - 1);
    value.and_then(text_of).ok_or_else(|| type_error(lua, number, "string", value))
}

/// An integer among the arguments; they are numbered from 1.
pub(super) fn integer_argument(
    lua: &Lua,
    arguments: &MultiValue,
    number: usize,
) -> mlua::Result<i64> {
    number_argument(lua, arguments, number).map(truncate)
}

/// A number among the arguments; they are numbered from 1.
pub(super) fn number_argument(
    lua: &Lua,
    arguments: &MultiValue,
    number: usize,
) -> mlua::Result<f64> {
    let value = arguments.get(number - 1);
    value.and_then(number_of).ok_or_else(|| type_error(lua, number, "number", value))
}

/// The table that must be the first of the arguments.
pub(super) fn table_argument<'a>(lua: &Lua, arguments: &'a MultiValue) -> mlua::Result<&'a Table> {
    match arguments.front() {
        Some(Lv::Table(table)) => Ok(table),
        other => Err(type_error(lua, 1, "table", other)),
    }
}

/// Whatever stands at a place among the arguments; they are numbered from 1.
pub(super) fn any_argument<'a>(
    lua: &Lua,
    arguments: &'a MultiValue,
    number: usize,
) -> mlua::Result<&'a Lv> {
    let missing = || errors::argument(lua, number, "value expected");
    arguments.get(number - 1).ok_or_else(missing)
}
