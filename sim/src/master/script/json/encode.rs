//! Tables to JSON.

use mlua::{Lua, Table, Value as Lv};

use super::super::arguments::number_of;
use super::super::errors::{self, type_name};
use super::super::{MEMORY_MAX, number::general};
use super::{SPARSE_RATIO, SPARSE_SAFE, Settings};

pub(super) struct Encoder<'a> {
    lua: &'a Lua,
    settings: Settings,
    out: Vec<u8>,
}

impl<'a> Encoder<'a> {
    /// `value` in JSON.
    pub(super) fn encode(lua: &'a Lua, settings: Settings, value: &Lv) -> mlua::Result<Vec<u8>> {
        let mut encoder = Self { lua, settings, out: Vec::new() };
        encoder.value(value, 0)?;
        Ok(encoder.out)
    }

    fn value(&mut self, value: &Lv, depth: i64) -> mlua::Result<()> {
        if self.out.len() > MEMORY_MAX {
            return Err(mlua::Error::MemoryError(String::from("not enough memory")));
        }
        match value {
            Lv::Nil => self.out.extend(b"null"),
            Lv::LightUserData(_) => self.out.extend(b"null"),
            Lv::Boolean(value) => self.out.extend(value.to_string().as_bytes()),
            Lv::String(text) => self.string(&text.as_bytes()),
            Lv::Table(table) => self.table(table, depth + 1)?,
            other => match number_of(other) {
                Some(number) if number.is_finite() => {
                    let digits = general(number, self.settings.digits as usize);
                    self.out.extend(digits.as_bytes());
                }
                Some(_) => {
                    let text = "Cannot serialise number: must not be NaN or Inf";
                    return Err(errors::text(self.lua, text));
                }
                None => {
                    let name = type_name(other);
                    let text = format!("Cannot serialise {name}: type not supported");
                    return Err(errors::text(self.lua, text));
                }
            },
        }
        Ok(())
    }

    fn table(&mut self, table: &Table, depth: i64) -> mlua::Result<()> {
        if depth > self.settings.encode_depth {
            let text = format!("Cannot serialise, excessive nesting ({depth})");
            return Err(errors::text(self.lua, text));
        }
        match self.length(table)? {
            0 => self.object(table, depth),
            length => {
                self.out.push(b'[');
                for index in 1..=length {
                    if index > 1 {
                        self.out.push(b',');
                    }
                    self.value(&table.raw_get(index)?, depth)?;
                }
                self.out.push(b']');
                Ok(())
            }
        }
    }

    /// How long the table is as an array; 0: it is none.
    fn length(&self, table: &Table) -> mlua::Result<i64> {
        let (mut longest, mut count) = (0, 0);
        for pair in table.pairs::<Lv, Lv>() {
            match pair?.0 {
                Lv::Integer(index) if index > 0 => longest = longest.max(index),
                _ => return Ok(0),
            }
            count += 1;
        }
        if longest > SPARSE_SAFE && longest > count * SPARSE_RATIO {
            let text = "Cannot serialise table: excessively sparse array";
            return Err(errors::text(self.lua, text));
        }
        Ok(longest)
    }

    fn object(&mut self, table: &Table, depth: i64) -> mlua::Result<()> {
        self.out.push(b'{');
        let mut is_first = true;
        for pair in table.pairs::<Lv, Lv>() {
            let (key, value) = pair?;
            if !core::mem::take(&mut is_first) {
                self.out.push(b',');
            }
            match &key {
                Lv::String(key) => self.string(&key.as_bytes()),
                Lv::Integer(_) | Lv::Number(_) => {
                    self.out.push(b'"');
                    self.value(&key, depth)?;
                    self.out.push(b'"');
                }
                _ => {
                    let text = "Cannot serialise table: table key must be a number or string";
                    return Err(errors::text(self.lua, text));
                }
            }
            self.out.push(b':');
            self.value(&value, depth)?;
        }
        self.out.push(b'}');
        Ok(())
    }

    fn string(&mut self, text: &[u8]) {
        self.out.push(b'"');
        for &byte in text {
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
        self.out.push(b'"');
    }
}
