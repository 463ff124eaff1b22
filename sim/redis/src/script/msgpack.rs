//! `cmsgpack`: encodes values as MessagePack and decodes them.

use mlua::{Lua, MultiValue, Table, Value as Lv};

use super::MEMORY_MAX;
use super::arguments::{integer_argument, number_of, text_argument};
use super::errors::{self, Raised, STACK_MAX};
use super::shelf::Shelf;

/// Greatest nesting depth of tables; deeper tables are written as nil.
const ENCODE_DEPTH: usize = 16;

/// Places where real servers report that the interpreter's stack is full.
const IN_ARRAY: &str = "in function mp_decode_to_lua_array";
const IN_VALUE: &str = "too many return values at once; use unpack_one or unpack_limit instead.";

/// Returns the table `cmsgpack`.
pub(super) fn cmsgpack(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("_NAME", "cmsgpack")?;
    table.raw_set("_VERSION", "lua-cmsgpack 0.4.0")?;
    table.raw_set("pack", lua.create_function(pack)?)?;
    let unpack = |lua: &Lua, arguments: MultiValue| {
        let text = text_argument(lua, &arguments, 1)?;
        unpack(lua, &text, arguments.len(), (0, 0))
    };
    table.raw_set("unpack", lua.create_function(unpack)?)?;
    let unpack_one = |lua: &Lua, arguments: MultiValue| {
        let text = text_argument(lua, &arguments, 1)?;
        let from = optional(lua, &arguments, 2)?;
        self::unpack(lua, &text, arguments.len(), (1, from))
    };
    table.raw_set("unpack_one", lua.create_function(unpack_one)?)?;
    let unpack_limit = |lua: &Lua, arguments: MultiValue| {
        let text = text_argument(lua, &arguments, 1)?;
        let limit = integer_argument(lua, &arguments, 2)?;
        let from = optional(lua, &arguments, 3)?;
        self::unpack(lua, &text, arguments.len(), (limit, from))
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

/// Writes a length of more than one byte, after the mark for two or for four bytes.
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

/// Decodes up to `limit` values from offset `from`, or all values if `limit` is 0. With a limit,
/// the offset of the next value comes first, or −1 at the end.
fn unpack(
    lua: &Lua,
    text: &[u8],
    arguments: usize,
    (limit, from): (i64, i64),
) -> mlua::Result<MultiValue> {
    let length = text.len();
    if from < 0 || limit < 0 {
        // Real servers print the length here.
        let text =
            format!("Invalid request to unpack with offset of {from} and limit of {length}.");
        return Err(errors::text(lua, text));
    }
    let from = usize::try_from(from).unwrap_or(usize::MAX);
    let Some(rest) = text.get(from..) else {
        let text = format!("Start offset {from} greater than input length {length}.");
        return Err(errors::text(lua, text));
    };
    let (open, shelf) = (Vec::new(), Shelf::new(lua)?);
    let mut decoder = Decoder { lua, rest, open, shelf, slots: arguments };
    let mut values = Vec::new();
    while !decoder.rest.is_empty() && (limit == 0 || (values.len() as i64) < limit) {
        values.push(decoder.value()?);
        decoder.slots += 1;
    }
    if limit > 0 {
        let left = decoder.rest.len();
        let place = if left == 0 { -1.0 } else { (length - left) as f64 };
        values.insert(0, Lv::Number(place));
    }
    Ok(MultiValue::from_vec(values))
}

/// A partly read table. The shelf holds the table and, for a map, the key of the next value.
#[derive(Clone, Copy)]
enum Open {
    Array { index: usize, length: usize },
    Map { has_key: bool, left: usize },
}

/// The value, or the kind and length of the table, that a mark begins.
enum Begun {
    Value(Lv),
    Array(usize),
    Map(usize),
}

/// Keeps unfinished tables in a list instead of recursing: the bytes may nest to any depth.
struct Decoder<'a> {
    lua: &'a Lua,
    rest: &'a [u8],
    open: Vec<Open>,
    shelf: Shelf,
    /// Stack slots that real servers would use for the values read and for the arguments.
    slots: usize,
}

impl<'a> Decoder<'a> {
    /// Decodes the next value.
    fn value(&mut self) -> mlua::Result<Lv> {
        loop {
            self.check_stack(IN_VALUE)?;
            let mut whole = match self.begin()? {
                Begun::Value(value) => Some(value),
                Begun::Array(length) => {
                    let table = self.enter()?;
                    self.check_stack(IN_ARRAY)?;
                    self.array(table, 1, length)
                }
                Begun::Map(length) => {
                    let table = self.enter()?;
                    self.map(table, length)
                }
            };
            while let Some(value) = whole {
                whole = match self.open.pop() {
                    None => return Ok(value),
                    Some(open) => self.fill(open, value)?,
                };
            }
        }
    }

    fn enter(&mut self) -> mlua::Result<Table> {
        let table = self.lua.create_table()?;
        self.shelf.put(self.open.len(), &table, Lv::Nil)?;
        self.slots += 1;
        Ok(table)
    }

    /// Adds `value` to the open table; returns the table if that completes it.
    fn fill(&mut self, open: Open, value: Lv) -> mlua::Result<Option<Lv>> {
        let depth = self.open.len();
        match open {
            Open::Array { index, length } => {
                self.slots -= 1;
                let table = self.shelf.table(depth)?;
                table.raw_set(index, value)?;
                Ok(self.array(table, index + 1, length))
            }
            Open::Map { has_key: false, left } => {
                self.slots += 1;
                self.shelf.set_key(depth, value)?;
                self.open.push(Open::Map { has_key: true, left });
                Ok(None)
            }
            Open::Map { has_key: true, left } => {
                self.slots -= 1;
                let table = self.shelf.table(depth)?;
                set(&table, self.shelf.key(depth)?, value)?;
                Ok(self.map(table, left - 1))
            }
        }
    }

    /// Returns the array if it is complete; otherwise opens it to read `index` next.
    fn array(&mut self, table: Table, index: usize, length: usize) -> Option<Lv> {
        if index > length {
            self.slots -= 1;
            return Some(Lv::Table(table));
        }
        self.slots += 1;
        self.open.push(Open::Array { index, length });
        None
    }

    /// Returns the map if it is complete; otherwise opens it to read a key next.
    fn map(&mut self, table: Table, left: usize) -> Option<Lv> {
        if left == 0 {
            self.slots -= 1;
            return Some(Lv::Table(table));
        }
        self.open.push(Open::Map { has_key: false, left });
        None
    }

    fn check_stack(&self, what: &str) -> mlua::Result<()> {
        if self.slots < STACK_MAX {
            return Ok(());
        }
        Err(errors::text(self.lua, format!("stack overflow ({what})")))
    }

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

    fn begin(&mut self) -> mlua::Result<Begun> {
        let mark = self.take(1)?[0];
        Ok(Begun::Value(match mark {
            0x00..=0x7f => Lv::Number(f64::from(mark)),
            0xe0..=0xff => Lv::Number(f64::from(mark as i8)),
            0x80..=0x8f => return Ok(Begun::Map(usize::from(mark & 15))),
            0x90..=0x9f => return Ok(Begun::Array(usize::from(mark & 15))),
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
                return Ok(Begun::Array(length as usize));
            }
            0xde | 0xdf => {
                let length = self.unsigned(if mark == 0xde { 2 } else { 4 })?;
                return Ok(Begun::Map(length as usize));
            }
            _ => return Err(errors::text(self.lua, "Bad data format in input.")),
        }))
    }

    fn string(&mut self, length: usize) -> mlua::Result<Lv> {
        let text = self.take(length)?;
        self.lua.create_string(text).map(Lv::String)
    }
}

fn set(table: &Table, key: Lv, value: Lv) -> mlua::Result<()> {
    match key {
        Lv::Nil => Err(Raised::Text("table index is nil".into()).into()),
        Lv::Number(number) if number.is_nan() => {
            Err(Raised::Text("table index is NaN".into()).into())
        }
        key => table.raw_set(key, value),
    }
}
