//! `cmsgpack`: values to MessagePack and back.

use mlua::{Lua, MultiValue, Table, Value as Lv};

use super::MEMORY_MAX;
use super::arguments::{integer_argument, number_of, text_argument};
use super::errors::{self, Raised};

/// Tables nest so deep; those within are written as nothing.
const ENCODE_DEPTH: usize = 16;

/// Tables nest so deep when they are read. Servers go on for as long as the interpreter's stack holds
/// them; this one must not exhaust its own.
const DECODE_DEPTH: usize = 1_000;

/// The table `cmsgpack`.
pub(super) fn cmsgpack(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("_NAME", "cmsgpack")?;
    table.raw_set("_VERSION", "lua-cmsgpack 0.4.0")?;
    table.raw_set("pack", lua.create_function(pack)?)?;
    let unpack = |lua: &Lua, arguments: MultiValue| {
        let text = text_argument(lua, &arguments, 1)?;
        unpack(lua, &text, 0, 0)
    };
    table.raw_set("unpack", lua.create_function(unpack)?)?;
    let unpack_one = |lua: &Lua, arguments: MultiValue| {
        let text = text_argument(lua, &arguments, 1)?;
        self::unpack(lua, &text, 1, optional(lua, &arguments, 2)?)
    };
    table.raw_set("unpack_one", lua.create_function(unpack_one)?)?;
    let unpack_limit = |lua: &Lua, arguments: MultiValue| {
        let text = text_argument(lua, &arguments, 1)?;
        let limit = integer_argument(lua, &arguments, 2)?;
        self::unpack(lua, &text, limit, optional(lua, &arguments, 3)?)
    };
    table.raw_set("unpack_limit", lua.create_function(unpack_limit)?)?;
    Ok(table)
}

fn optional(lua: &Lua, arguments: &MultiValue, number: usize) -> mlua::Result<i64> {
    match arguments.get(number - 1) {
        None | Some(Lv::Nil) => Ok(0),
        _ => integer_argument(lua, arguments, number),
    }
}

fn pack(lua: &Lua, arguments: MultiValue) -> mlua::Result<mlua::LuaString> {
    if arguments.is_empty() {
        return Err(errors::argument(lua, 0, "MessagePack pack needs input."));
    }
    let mut out = Vec::new();
    for value in &arguments {
        encode(value, 0, &mut out)?;
    }
    lua.create_string(out)
}

fn encode(value: &Lv, depth: usize, out: &mut Vec<u8>) -> mlua::Result<()> {
    if out.len() > MEMORY_MAX {
        return Err(mlua::Error::MemoryError(String::from("not enough memory")));
    }
    match value {
        Lv::String(text) => {
            let text = text.as_bytes();
            match text.len() {
                length @ 0..32 => out.push(0xa0 | length as u8),
                length @ 32..=0xff => out.extend([0xd9, length as u8]),
                length => marked(out, [0xda, 0xdb], length),
            }
            out.extend(&*text);
        }
        Lv::Boolean(value) => out.push(0xc2 | u8::from(*value)),
        Lv::Table(table) if depth < ENCODE_DEPTH => encode_table(table, depth + 1, out)?,
        value @ (Lv::Integer(_) | Lv::Number(_)) => number(number_of(value).unwrap_or(0.0), out),
        _ => out.push(0xc0),
    }
    Ok(())
}

/// A length of more than one byte, behind the mark for two or for four.
fn marked(out: &mut Vec<u8>, [two, four]: [u8; 2], length: usize) {
    match u16::try_from(length) {
        Ok(length) => {
            out.push(two);
            out.extend(length.to_be_bytes());
        }
        Err(_) => {
            out.push(four);
            out.extend((length as u32).to_be_bytes());
        }
    }
}

fn encode_table(table: &Table, depth: usize, out: &mut Vec<u8>) -> mlua::Result<()> {
    let (mut count, mut longest, mut is_array) = (0, 0, true);
    for pair in table.pairs::<Lv, Lv>() {
        count += 1;
        match pair?.0 {
            Lv::Integer(index) if (1..=i64::from(i32::MAX)).contains(&index) => {
                longest = longest.max(index as usize);
            }
            _ => is_array = false,
        }
    }
    if is_array && longest == count {
        match count {
            0..16 => out.push(0x90 | count as u8),
            _ => marked(out, [0xdc, 0xdd], count),
        }
        return (1..=count).try_for_each(|index| {
            let value: Lv = table.raw_get(index)?;
            encode(&value, depth, out)
        });
    }
    match count {
        0..16 => out.push(0x80 | count as u8),
        _ => marked(out, [0xde, 0xdf], count),
    }
    table.pairs::<Lv, Lv>().try_for_each(|pair| {
        let (key, value) = pair?;
        encode(&key, depth, out)?;
        encode(&value, depth, out)
    })
}

fn number(number: f64, out: &mut Vec<u8>) {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&number) && number.trunc() == number {
        return integer(number as i64, out);
    }
    let short = number as f32;
    if f64::from(short) == number {
        out.push(0xca);
        out.extend(short.to_be_bytes());
    } else {
        out.push(0xcb);
        out.extend(number.to_be_bytes());
    }
}

fn integer(number: i64, out: &mut Vec<u8>) {
    let (mark, length) = match number {
        -32..=0x7f => return out.push(number as u8),
        0x80..=0xff => (0xcc, 1),
        0x100..=0xffff => (0xcd, 2),
        0x1_0000..=0xffff_ffff => (0xce, 4),
        0x1_0000_0000.. => (0xcf, 8),
        -0x80..=-33 => (0xd0, 1),
        -0x8000..=-0x81 => (0xd1, 2),
        -0x8000_0000..=-0x8001 => (0xd2, 4),
        _ => (0xd3, 8),
    };
    out.push(mark);
    out.extend(&number.to_be_bytes()[8 - length..]);
}

/// So many values from a place on, or all of them; the place of what follows stands before those that
/// were counted.
fn unpack(lua: &Lua, text: &[u8], limit: i64, from: i64) -> mlua::Result<MultiValue> {
    let length = text.len();
    if from < 0 || limit < 0 {
        // Servers name the length here.
        let text =
            format!("Invalid request to unpack with offset of {from} and limit of {length}.");
        return Err(errors::text(lua, text));
    }
    let from = usize::try_from(from).unwrap_or(usize::MAX);
    let Some(rest) = text.get(from..) else {
        let text = format!("Start offset {from} greater than input length {length}.");
        return Err(errors::text(lua, text));
    };
    let mut decoder = Decoder { lua, rest };
    let mut values = Vec::new();
    while !decoder.rest.is_empty() && (limit == 0 || (values.len() as i64) < limit) {
        values.push(decoder.value(0)?);
    }
    if limit > 0 {
        let left = decoder.rest.len();
        let place = if left == 0 { -1.0 } else { (length - left) as f64 };
        values.insert(0, Lv::Number(place));
    }
    Ok(MultiValue::from_vec(values))
}

struct Decoder<'a> {
    lua: &'a Lua,
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    fn take(&mut self, length: usize) -> mlua::Result<&'a [u8]> {
        let missing = || errors::text(self.lua, "Missing bytes in input.");
        let (taken, rest) = self.rest.split_at_checked(length).ok_or_else(missing)?;
        self.rest = rest;
        Ok(taken)
    }

    fn unsigned(&mut self, length: usize) -> mlua::Result<u64> {
        Ok(self.take(length)?.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    fn signed(&mut self, length: usize) -> mlua::Result<f64> {
        let unused = 64 - 8 * length as u32;
        Ok(((self.unsigned(length)? << unused) as i64 >> unused) as f64)
    }

    fn value(&mut self, depth: usize) -> mlua::Result<Lv> {
        if depth > DECODE_DEPTH {
            let text = "stack overflow (in function mp_decode_to_lua_type)";
            return Err(errors::text(self.lua, text));
        }
        let mark = self.take(1)?[0];
        Ok(match mark {
            0x00..=0x7f => Lv::Number(f64::from(mark)),
            0xe0..=0xff => Lv::Number(f64::from(mark as i8)),
            0x80..=0x8f => self.map(usize::from(mark & 15), depth)?,
            0x90..=0x9f => self.array(usize::from(mark & 15), depth)?,
            0xa0..=0xbf => self.string(usize::from(mark & 31))?,
            0xc0 => Lv::Nil,
            0xc2 | 0xc3 => Lv::Boolean(mark == 0xc3),
            0xca => Lv::Number(f64::from(f32::from_bits(self.unsigned(4)? as u32))),
            0xcb => Lv::Number(f64::from_bits(self.unsigned(8)?)),
            0xcc..=0xcf => Lv::Number(self.unsigned(1 << (mark - 0xcc))? as f64),
            0xd0..=0xd3 => Lv::Number(self.signed(1 << (mark - 0xd0))?),
            0xd9..=0xdb => {
                let length = self.unsigned(1 << (mark - 0xd9))?;
                self.string(length as usize)?
            }
            0xdc | 0xdd => {
                let length = self.unsigned(if mark == 0xdc { 2 } else { 4 })?;
                self.array(length as usize, depth)?
            }
            0xde | 0xdf => {
                let length = self.unsigned(if mark == 0xde { 2 } else { 4 })?;
                self.map(length as usize, depth)?
            }
            _ => return Err(errors::text(self.lua, "Bad data format in input.")),
        })
    }

    fn string(&mut self, length: usize) -> mlua::Result<Lv> {
        let text = self.take(length)?;
        self.lua.create_string(text).map(Lv::String)
    }

    /// Room is taken for what is there, never for what is announced.
    fn array(&mut self, length: usize, depth: usize) -> mlua::Result<Lv> {
        let table = self.lua.create_table()?;
        for index in 1..=length {
            table.raw_set(index, self.value(depth + 1)?)?;
        }
        Ok(Lv::Table(table))
    }

    fn map(&mut self, length: usize, depth: usize) -> mlua::Result<Lv> {
        let table = self.lua.create_table()?;
        for _ in 0..length {
            let key = self.value(depth + 1)?;
            let value = self.value(depth + 1)?;
            match key {
                Lv::Nil => return Err(Raised::Text("table index is nil".into()).into()),
                Lv::Number(number) if number.is_nan() => {
                    return Err(Raised::Text("table index is NaN".into()).into());
                }
                key => table.raw_set(key, value)?,
            }
        }
        Ok(Lv::Table(table))
    }
}
