//! Encodes tables as JSON.

use mlua::{Function, Lua, Table, Value as Lv};

use super::super::arguments::number_of;
use super::super::errors::{self, STACK_MAX, type_name};
use super::super::shelf::Shelf;
use super::super::{MEMORY_MAX, number::general};
use super::{Invalid, Settings};

/// Number of bytes of a string that are written between two checks of the size.
const PIECE_BYTES: usize = 64 * 1_024;

/// Free slots that an open table needs on the interpreter's stack.
const TABLE_SLOTS: usize = 3;

/// A partly written table. The shelf holds the table and, for an object, its last key.
#[derive(Clone, Copy)]
enum Open {
    Array {
        /// Index of the last element written.
        index: i64,
        length: i64,
    },
    Object,
}

/// Keeps unfinished tables in a list instead of recursing: a script may nest tables to any depth.
pub(super) struct Encoder<'a> {
    lua: &'a Lua,
    /// Lua's `next`.
    next: &'a Function,
    settings: Settings,
    out: Vec<u8>,
    open: Vec<Open>,
    shelf: Shelf,
    /// Number of open tables that are objects.
    objects: usize,
}

impl<'a> Encoder<'a> {
    /// Returns `value` in JSON.
    pub(super) fn encode(
        lua: &'a Lua,
        next: &'a Function,
        settings: Settings,
        value: &Lv,
    ) -> mlua::Result<Vec<u8>> {
        let (out, open, shelf) = (Vec::new(), Vec::new(), Shelf::new(lua)?);
        let mut encoder = Self { lua, next, settings, out, open, shelf, objects: 0 };
        encoder.value(value)?;
        while let Some(open) = encoder.open.pop() {
            let depth = encoder.open.len();
            match open {
                Open::Array { index, length } if index == length => encoder.out.push(b']'),
                Open::Array { index, length } => encoder.element(depth, index + 1, length)?,
                Open::Object => encoder.pair(depth)?,
            }
        }
        Ok(encoder.out)
    }

    fn element(&mut self, depth: usize, index: i64, length: i64) -> mlua::Result<()> {
        if index > 1 {
            self.out.push(b',');
        }
        let value = self.shelf.table(depth)?.raw_get(index)?;
        self.open.push(Open::Array { index, length });
        self.value(&value)
    }

    fn pair(&mut self, depth: usize) -> mlua::Result<()> {
        let last = self.shelf.key(depth)?;
        let is_first = last.is_nil();
        let (key, value): (Lv, Lv) = self.next.call((self.shelf.table(depth)?, last))?;
        if key.is_nil() {
            self.out.push(b'}');
            self.objects -= 1;
            return Ok(());
        }
        if !is_first {
            self.out.push(b',');
        }
        match &key {
            Lv::String(key) => self.string(&key.as_bytes())?,
            Lv::Integer(_) | Lv::Number(_) => {
                self.out.push(b'"');
                self.value(&key)?;
                self.out.push(b'"');
            }
            _ => {
                let text = "Cannot serialise table: table key must be a number or string";
                return Err(errors::text(self.lua, text));
            }
        }
        self.out.push(b':');
        self.shelf.set_key(depth, key)?;
        self.open.push(Open::Object);
        self.value(&value)
    }

    /// Writes a value, or opens it if it is a table.
    fn value(&mut self, value: &Lv) -> mlua::Result<()> {
        self.check_size()?;
        match value {
            Lv::Nil => self.out.extend(b"null"),
            Lv::LightUserData(_) => self.out.extend(b"null"),
            Lv::Boolean(value) => self.out.extend(value.to_string().as_bytes()),
            Lv::String(text) => self.string(&text.as_bytes())?,
            Lv::Table(table) => self.table(table)?,
            other => match number_of(other) {
                Some(number) => self.number(number)?,
                None => {
                    let name = type_name(other);
                    let text = format!("Cannot serialise {name}: type not supported");
                    return Err(errors::text(self.lua, text));
                }
            },
        }
        Ok(())
    }

    fn number(&mut self, number: f64) -> mlua::Result<()> {
        match self.settings.encode_invalid {
            _ if number.is_finite() => {}
            Invalid::Refused => {
                let text = "Cannot serialise number: must not be NaN or Inf";
                return Err(errors::text(self.lua, text));
            }
            Invalid::Null => {
                self.out.extend(b"null");
                return Ok(());
            }
            Invalid::Taken if number.is_nan() => {
                self.out.extend(b"nan");
                return Ok(());
            }
            Invalid::Taken => {}
        }
        self.out.extend(general(number, self.settings.digits as usize).as_bytes());
        Ok(())
    }

    fn table(&mut self, table: &Table) -> mlua::Result<()> {
        let depth = self.open.len() + 1;
        // Real servers keep every open table on the interpreter's stack, and for objects the key,
        // too.
        let slots = depth + self.objects + TABLE_SLOTS;
        if depth as i64 > self.settings.encode_depth || slots > STACK_MAX {
            let text = format!("Cannot serialise, excessive nesting ({depth})");
            return Err(errors::text(self.lua, text));
        }
        self.shelf.put(depth - 1, table, Lv::Nil)?;
        self.open.push(match self.length(table)? {
            0 => {
                self.out.push(b'{');
                self.objects += 1;
                Open::Object
            }
            length => {
                self.out.push(b'[');
                Open::Array { index: 0, length }
            }
        });
        Ok(())
    }

    /// Returns the length of the table as an array; 0 if it is not an array.
    fn length(&self, table: &Table) -> mlua::Result<i64> {
        let (mut longest, mut count) = (0, 0);
        for pair in table.pairs::<Lv, Lv>() {
            match pair?.0 {
                Lv::Integer(index) if index > 0 => longest = longest.max(index),
                _ => return Ok(0),
            }
            count += 1;
        }
        let Settings { sparse_ratio, sparse_safe, sparse_converts, .. } = self.settings;
        if sparse_ratio == 0 || longest <= sparse_safe || longest <= count * sparse_ratio {
            return Ok(longest);
        }
        if sparse_converts {
            return Ok(0);
        }
        Err(errors::text(self.lua, "Cannot serialise table: excessively sparse array"))
    }

    fn check_size(&self) -> mlua::Result<()> {
        if self.out.len() <= MEMORY_MAX {
            return Ok(());
        }
        Err(mlua::Error::MemoryError(String::from("not enough memory")))
    }

    fn string(&mut self, text: &[u8]) -> mlua::Result<()> {
        self.out.push(b'"');
        for piece in text.chunks(PIECE_BYTES) {
            piece.iter().for_each(|&byte| self.byte(byte));
            self.check_size()?;
        }
        self.out.push(b'"');
        Ok(())
    }

    fn byte(&mut self, byte: u8) {
        match byte {
            b'"' | b'\\' | b'/' => self.out.extend([b'\\', byte]),
            8 => self.out.extend(b"\\b"),
            b'\t' => self.out.extend(b"\\t"),
            b'\n' => self.out.extend(b"\\n"),
            12 => self.out.extend(b"\\f"),
            b'\r' => self.out.extend(b"\\r"),
            0..32 | 127 => self.out.extend(format!("\\u{byte:04x}").as_bytes()),
            _ => self.out.push(byte),
        }
    }
}
