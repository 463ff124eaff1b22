//! Conversion of values between scripts and the wire.

use bytes::Bytes;
use mlua::{Lua, Table, Value as Lv};

use super::Style;
use super::errors::reply;
use super::number::{general, shortest, truncate};
use crate::resp::{Protocol, Value};

/// Greatest nesting depth of a reply. Real servers go on as long as the interpreter's stack holds
/// the tables, which is eight times as deep; the simulator must not exhaust its own stack.
const DEPTH_MAX: usize = 1_000;

/// Greatest total size of a reply's values and bytes, in bytes. Tables may contain each other many
/// times over, so a small script can describe an unbounded reply.
const SIZE_MAX: usize = 128 * 1_024 * 1_024;

/// Converts a server's reply for the script.
pub(super) fn to_lua(lua: &Lua, value: &Value, protocol: Protocol) -> mlua::Result<Lv> {
    let is_3 = protocol == Protocol::Resp3;
    let string = |bytes: &[u8]| Ok(Lv::String(lua.create_string(bytes)?));
    match value {
        Value::Array(values) | Value::Push(values) | Value::Sequence(values) => {
            sequence(lua, values, protocol)
        }
        Value::BigNumber(digits) if is_3 => tagged(lua, "big_number", string(digits)?),
        Value::BigNumber(digits) => string(digits),
        Value::Boolean(value) if is_3 => Ok(Lv::Boolean(*value)),
        Value::Boolean(value) => Ok(Lv::Number(f64::from(u8::from(*value)))),
        Value::Bulk(bytes) => string(bytes),
        Value::Double(digits) if is_3 => {
            let number = digits.parse().unwrap_or(f64::NAN);
            tagged(lua, "double", Lv::Number(number))
        }
        Value::Double(digits) => string(digits.as_bytes()),
        Value::Error(text) => reply(lua, text, true),
        Value::In(protocol, value) => to_lua(lua, value, *protocol),
        Value::Integer(number) => Ok(Lv::Number(*number as f64)),
        Value::Map(pairs) if is_3 => {
            let table = lua.create_table()?;
            for (key, value) in pairs {
                table.raw_set(to_lua(lua, key, protocol)?, to_lua(lua, value, protocol)?)?;
            }
            tagged(lua, "map", Lv::Table(table))
        }
        Value::Map(pairs) => {
            let table = lua.create_table()?;
            for value in pairs.iter().flat_map(|(key, value)| [key, value]) {
                table.raw_push(to_lua(lua, value, protocol)?)?;
            }
            Ok(Lv::Table(table))
        }
        Value::Null | Value::NullArray if is_3 => Ok(Lv::Nil),
        Value::Null | Value::NullArray => Ok(Lv::Boolean(false)),
        Value::Set(values) if is_3 => {
            let table = lua.create_table()?;
            for value in values {
                table.raw_set(to_lua(lua, value, protocol)?, true)?;
            }
            tagged(lua, "set", Lv::Table(table))
        }
        Value::Set(values) => sequence(lua, values, protocol),
        Value::Simple(word) => tagged(lua, "ok", string(word)?),
        Value::Verbatim(kind, text) if is_3 => {
            let table = lua.create_table()?;
            table.raw_set("string", string(text)?)?;
            table.raw_set("format", string(kind)?)?;
            tagged(lua, "verbatim_string", Lv::Table(table))
        }
        Value::Verbatim(_, text) => string(text),
    }
}

fn sequence(lua: &Lua, values: &[Value], protocol: Protocol) -> mlua::Result<Lv> {
    // The table grows as it does in real servers: the length of an array with holes depends on
    // that.
    let table = lua.create_table()?;
    for (index, value) in values.iter().enumerate() {
        // A null of version 3 leaves a hole.
        table.raw_set(index + 1, to_lua(lua, value, protocol)?)?;
    }
    Ok(Lv::Table(table))
}

fn tagged(lua: &Lua, tag: &str, value: Lv) -> mlua::Result<Lv> {
    let table = lua.create_table()?;
    table.raw_set(tag, value)?;
    Ok(Lv::Table(table))
}

/// Converts a script's return value for the client.
pub(super) struct Returned<'a> {
    style: &'a Style,
    protocol: Protocol,
    room: usize,
}

impl<'a> Returned<'a> {
    /// Begins a conversion for a script that speaks `protocol` when it returns.
    pub(super) fn new(style: &'a Style, protocol: Protocol) -> Self {
        Self { style, protocol, room: SIZE_MAX }
    }

    /// Returns the reply for `value`.
    pub(super) fn reply(mut self, value: &Lv) -> Value {
        let reply = self.value(value, 0);
        let reply = reply.and_then(|reply| self.room.checked_sub(1).map(|_| reply));
        reply.unwrap_or_else(|| Value::error("ERR the reply of the script is too large"))
    }

    /// Returns `None` if the reply is too large.
    fn value(&mut self, value: &Lv, depth: usize) -> Option<Value> {
        self.room = self.room.checked_sub(size_of::<Value>())?;
        Some(match value {
            Lv::Boolean(value) if self.protocol == Protocol::Resp3 => Value::Boolean(*value),
            Lv::Boolean(true) => Value::Integer(1),
            Lv::Integer(number) => Value::Integer(*number),
            Lv::Number(number) => Value::Integer(truncate(*number)),
            Lv::String(text) => Value::Bulk(self.bytes(text)?),
            Lv::Table(_) if depth == DEPTH_MAX => Value::error("ERR reached lua stack limit"),
            Lv::Table(table) => return self.table(table, depth + 1),
            _ => Value::Null,
        })
    }

    fn table(&mut self, table: &Table, depth: usize) -> Option<Value> {
        let field = |name: &str| table.raw_get::<Lv>(name).unwrap_or(Lv::Nil);
        if let Lv::String(text) = field("err") {
            return Some(Value::Error(self.line(&text)?));
        }
        if let Lv::String(text) = field("ok") {
            return Some(Value::Simple(self.line(&text)?));
        }
        if let Some(number) = number(&field("double")) {
            return Some(Value::Double(self.double(number)));
        }
        if let Lv::Table(map) = field("map") {
            return self.map(&map, depth);
        }
        if let Lv::Table(set) = field("set") {
            return self.set(&set, depth);
        }
        if let Lv::String(digits) = field("big_number") {
            return Some(Value::BigNumber(self.line(&digits)?));
        }
        if let Lv::Table(verbatim) = field("verbatim_string")
            && let (Ok(Lv::String(text)), Ok(Lv::String(format))) =
                (verbatim.raw_get("string"), verbatim.raw_get("format"))
        {
            let mut kind = [b' '; 3];
            kind.iter_mut().zip(&*format.as_bytes()).for_each(|(place, byte)| *place = *byte);
            return Some(Value::Verbatim(kind, self.bytes(&text)?));
        }
        let mut values = Vec::new();
        for index in 1_i64.. {
            match table.raw_get(index) {
                Ok(Lv::Nil) | Err(_) => break,
                Ok(value) => values.push(self.value(&value, depth)?),
            }
        }
        Some(Value::Array(values))
    }

    fn map(&mut self, map: &Table, depth: usize) -> Option<Value> {
        let mut pairs = Vec::new();
        for pair in map.pairs::<Lv, Lv>() {
            let Ok((key, value)) = pair else { break };
            pairs.push((self.value(&key, depth)?, self.value(&value, depth)?));
        }
        Some(Value::Map(pairs))
    }

    fn set(&mut self, set: &Table, depth: usize) -> Option<Value> {
        let mut members = Vec::new();
        for pair in set.pairs::<Lv, Lv>() {
            let Ok((member, _)) = pair else { break };
            members.push(self.value(&member, depth)?);
        }
        Some(Value::Set(members))
    }

    fn double(&self, number: f64) -> String {
        match (number.is_nan(), self.style.writes_shortest) {
            (true, true) => String::from("nan"),
            (_, true) => shortest(number),
            (_, false) => general(number, 17),
        }
    }

    fn bytes(&mut self, text: &mlua::LuaString) -> Option<Bytes> {
        let bytes = text.as_bytes();
        self.room = self.room.checked_sub(bytes.len())?;
        Some(Bytes::copy_from_slice(&bytes))
    }

    /// Returns text that is sent on a line of its own.
    fn line(&mut self, text: &mlua::LuaString) -> Option<Bytes> {
        self.bytes(text).map(|bytes| one_line(&bytes))
    }
}

fn number(value: &Lv) -> Option<f64> {
    match value {
        Lv::Integer(number) => Some(*number as f64),
        Lv::Number(number) => Some(*number),
        _ => None,
    }
}

/// Returns `text` with its line ends replaced by spaces.
pub(super) fn one_line(text: &[u8]) -> Bytes {
    let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
    text.iter().map(|byte| if is_end(byte) { b' ' } else { *byte }).collect()
}
