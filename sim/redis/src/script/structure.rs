//! `struct`: packs values into bytes in the layout of C, and unpacks them.

use mlua::{Lua, MultiValue, Table, Value as Lv};

use super::arguments::{integer_argument, number_argument, number_of, text_argument};
use super::errors::{self, STACK_MAX};
use super::number::truncate;

/// Greatest size of an integer, in bytes.
const INTEGER_MAX: usize = 32;

/// Alignment of `!` without a number.
const ALIGNMENT: usize = 8;

/// Returns the table `struct`.
pub(super) fn structure(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("pack", lua.create_function(pack)?)?;
    table.raw_set("unpack", lua.create_function(unpack)?)?;
    table.raw_set("size", lua.create_function(size)?)?;
    Ok(table)
}

/// A format string during parsing.
struct Format<'a> {
    lua: &'a Lua,
    rest: &'a [u8],
    is_big: bool,
    alignment: usize,
    /// True if unknown letters are ignored instead of rejected.
    forgives: bool,
}

/// One field of a format and its size in bytes; 0 if the size depends on the value.
struct Field {
    option: u8,
    size: usize,
}

impl<'a> Format<'a> {
    fn new(lua: &'a Lua, text: &'a [u8]) -> Self {
        // A C string ends at a zero.
        let rest = text.split(|&byte| byte == 0).next().unwrap_or(text);
        Self { lua, rest, is_big: false, alignment: 1, forgives: false }
    }

    /// Returns the next field; letters that only control the layout are applied and skipped.
    fn next(&mut self) -> mlua::Result<Option<Field>> {
        while let Some((&option, rest)) = self.rest.split_first() {
            self.rest = rest;
            let size = match option {
                b'b' | b'B' | b'x' => 1,
                b'h' | b'H' => 2,
                b'f' => 4,
                b'l' | b'L' | b'T' | b'd' => 8,
                b's' => 0,
                b'c' => self.number(1)?,
                b'i' | b'I' => self.integer_size()?,
                other => {
                    self.control(other)?;
                    continue;
                }
            };
            return Ok(Some(Field { option, size }));
        }
        Ok(None)
    }

    fn integer_size(&mut self) -> mlua::Result<usize> {
        let size = self.number(4)?;
        if size > INTEGER_MAX {
            let text = format!("integral size {size} is larger than limit of {INTEGER_MAX}");
            return Err(errors::text(self.lua, text));
        }
        Ok(size)
    }

    fn control(&mut self, option: u8) -> mlua::Result<()> {
        match option {
            b' ' => {}
            _ if self.forgives && option.is_ascii_alphanumeric() => {}
            b'>' => self.is_big = true,
            b'<' => self.is_big = false,
            b'!' => {
                self.alignment = self.number(ALIGNMENT)?;
                if !self.alignment.is_power_of_two() {
                    let text = format!("alignment {} is not a power of 2", self.alignment);
                    return Err(errors::text(self.lua, text));
                }
            }
            other => {
                let what = format!("invalid format option '{}'", char::from(other));
                return Err(errors::argument(self.lua, 1, &what));
            }
        }
        Ok(())
    }

    fn number(&mut self, otherwise: usize) -> mlua::Result<usize> {
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, rest) = self.rest.split_at(digits);
        self.rest = rest;
        if number.is_empty() {
            return Ok(otherwise);
        }
        let number = core::str::from_utf8(number).ok().and_then(|it| it.parse::<i32>().ok());
        let overflow = || errors::text(self.lua, "integral size overflow");
        number.and_then(|it| usize::try_from(it).ok()).ok_or_else(overflow)
    }

    /// Returns the number of padding bytes before a field at offset `length`.
    fn padding(&self, field: &Field, length: usize) -> usize {
        if field.size == 0 || field.option == b'c' {
            return 0;
        }
        let size = field.size.min(self.alignment);
        size.wrapping_sub(length & (size - 1)) & (size - 1)
    }

    /// Returns the bytes of a little-endian number in the byte order of the format.
    fn ordered(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        if self.is_big {
            bytes.reverse();
        }
        bytes
    }
}

fn pack(lua: &Lua, mut arguments: MultiValue) -> mlua::Result<mlua::LuaString> {
    let text = text_argument(lua, &arguments, 1)?;
    let mut format = Format::new(lua, &text);
    // Real servers find a nil in the place of a missing argument.
    arguments.push_back(Lv::Nil);
    let (mut out, mut at) = (Vec::new(), 1);
    while let Some(field) = format.next()? {
        out.resize(out.len() + format.padding(&field, out.len()), 0);
        match field.option {
            b'x' => {
                out.push(0);
                continue;
            }
            b'c' | b's' => {
                let value = text_argument(lua, &arguments, at + 1)?;
                let size = if field.size == 0 { value.len() } else { field.size };
                let value = value.get(..size);
                let short = || errors::argument(lua, at + 2, "string too short");
                out.extend(value.ok_or_else(short)?);
                if field.option == b's' {
                    out.push(0);
                }
            }
            b'f' => {
                let number = number_argument(lua, &arguments, at + 1)? as f32;
                out.extend(format.ordered(number.to_le_bytes().to_vec()));
            }
            b'd' => {
                let number = number_argument(lua, &arguments, at + 1)?;
                out.extend(format.ordered(number.to_le_bytes().to_vec()));
            }
            _ => {
                let number = bits(number_argument(lua, &arguments, at + 1)?);
                let mut bytes = number.to_le_bytes().to_vec();
                bytes.resize(field.size, 0);
                out.extend(format.ordered(bytes));
            }
        }
        at += 1;
    }
    lua.create_string(out)
}

/// Converts a number like a C cast: values from 2^63 on are taken as unsigned.
fn bits(number: f64) -> u64 {
    if number < 0.0 { truncate(number) as u64 } else { number as u64 }
}

fn unpack(lua: &Lua, arguments: MultiValue) -> mlua::Result<MultiValue> {
    let text = text_argument(lua, &arguments, 1)?;
    let data = text_argument(lua, &arguments, 2)?;
    let from = match arguments.get(2) {
        None | Some(Lv::Nil) => 1,
        _ => integer_argument(lua, &arguments, 3)?,
    };
    let below = || errors::argument(lua, 3, "offset must be 1 or greater");
    let from = usize::try_from(from).ok().and_then(|it| it.checked_sub(1));
    let mut at = from.ok_or_else(below)?;
    let mut format = Format::new(lua, &text);
    let mut values = Vec::new();
    let short = || errors::argument(lua, 2, "data string too short");
    let take = |at: usize, size: usize| {
        let end = at.checked_add(size).ok_or_else(short)?;
        data.get(at..end).ok_or_else(short)
    };
    while let Some(field) = format.next()? {
        // Real servers need room for the value and for the position after it.
        if arguments.len() + values.len() + 2 > STACK_MAX {
            return Err(errors::text(lua, "stack overflow (too many results)"));
        }
        at = at.saturating_add(format.padding(&field, at));
        let mut bytes = take(at, field.size)?;
        at += field.size;
        let value = match field.option {
            b'x' => continue,
            b's' => {
                let rest = &data[at..];
                let end = rest.iter().position(|&byte| byte == 0);
                let end = end.ok_or_else(|| errors::text(lua, "unfinished string in data"))?;
                at += end + 1;
                Lv::String(lua.create_string(&rest[..end])?)
            }
            b'c' => {
                if field.size == 0 {
                    let size = values.pop().as_ref().and_then(number_of);
                    let needed = || errors::text(lua, "format 'c0' needs a previous size");
                    let size = usize::try_from(truncate(size.ok_or_else(needed)?));
                    bytes = take(at, size.map_err(|_| short())?)?;
                    at += bytes.len();
                }
                Lv::String(lua.create_string(bytes)?)
            }
            b'f' => Lv::Number(f64::from(f32::from_le_bytes(exactly(&format, bytes)))),
            b'd' => Lv::Number(f64::from_le_bytes(exactly(&format, bytes))),
            option => Lv::Number(integer(&format, bytes, option.is_ascii_lowercase())),
        };
        values.push(value);
    }
    values.push(Lv::Number((at + 1) as f64));
    Ok(MultiValue::from_vec(values))
}

fn exactly<const N: usize>(format: &Format<'_>, bytes: &[u8]) -> [u8; N] {
    format.ordered(bytes.to_vec()).try_into().expect("as many as the field has")
}

/// Decodes an integer; bytes beyond the low 64 bits are ignored.
fn integer(format: &Format<'_>, bytes: &[u8], is_signed: bool) -> f64 {
    let mut whole = format.ordered(bytes.to_vec());
    whole.resize(8, 0);
    let number = u64::from_le_bytes(whole[..8].try_into().expect("eight"));
    if !is_signed {
        return number as f64;
    }
    // The shift to the sign bit is taken modulo 64, as on x86: with more than eight bytes it hits
    // another bit.
    let from_sign = u64::MAX.wrapping_shl((8 * bytes.len() as u32).wrapping_sub(1));
    (if number & from_sign == 0 { number } else { number | from_sign }) as i64 as f64
}

fn size(lua: &Lua, arguments: MultiValue) -> mlua::Result<Lv> {
    let text = text_argument(lua, &arguments, 1)?;
    let mut format = Format::new(lua, &text);
    let mut total = 0_usize;
    format.forgives = true;
    while let Some(field) = format.next()? {
        if field.size == 0 && matches!(field.option, b's' | b'c') {
            let option = if field.option == b's' { "s" } else { "c0" };
            let what = format!("option '{option}' has no fixed size");
            return Err(errors::argument(lua, 1, &what));
        }
        total = total.saturating_add(format.padding(&field, total)).saturating_add(field.size);
    }
    Ok(Lv::Number(total as f64))
}
