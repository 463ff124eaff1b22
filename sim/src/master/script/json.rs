//! `cjson`: tables to JSON and back.

use std::rc::Rc;

use mlua::{Lua, MultiValue, Table, Value as Lv};

use super::errors::{self, type_name};
use super::machine::State;
use super::number::general;
use super::sandbox::{integer_argument, number_of, text_argument};

/// An array may have so many holes beside each element, once it is longer than [`SPARSE_SAFE`].
const SPARSE_RATIO: i64 = 2;
const SPARSE_SAFE: i64 = 10;

/// What a script may set, for itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    encode_depth: i64,
    decode_depth: i64,
    digits: i64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { encode_depth: 1_000, decode_depth: 1_000, digits: 14 }
    }
}

/// The table `cjson`.
pub(super) fn cjson(lua: &Lua, state: &Rc<State>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("_NAME", "cjson")?;
    table.raw_set("_VERSION", "2.1.0")?;
    table.raw_set("null", Lv::NULL)?;
    let state_of = Rc::clone(state);
    let encode = move |lua: &Lua, arguments: MultiValue| {
        let [value] = arguments.as_slices().0 else {
            return Err(errors::argument(lua, 1, "expected 1 argument"));
        };
        let mut encoder = Encoder { lua, settings: state_of.json.get(), out: Vec::new() };
        encoder.value(value, 0)?;
        lua.create_string(encoder.out)
    };
    table.raw_set("encode", lua.create_function(encode)?)?;
    let state_of = Rc::clone(state);
    let decode = move |lua: &Lua, arguments: MultiValue| {
        if arguments.len() != 1 {
            return Err(errors::argument(lua, 1, "expected 1 argument"));
        }
        let text = text_argument(lua, &arguments, 1)?;
        let depth_max = state_of.json.get().decode_depth;
        let mut decoder = Decoder { lua, text: &text, at: 0, depth_max };
        let first = decoder.token()?;
        let value = decoder.value(first, 0)?;
        decoder.expect(|token| matches!(token, Token::End), "the end")?;
        Ok(value)
    };
    table.raw_set("decode", lua.create_function(decode)?)?;
    setting(lua, state, &table, "encode_max_depth", i64::from(i32::MAX), |it| {
        &mut it.encode_depth
    })?;
    setting(lua, state, &table, "decode_max_depth", i64::from(i32::MAX), |it| {
        &mut it.decode_depth
    })?;
    setting(lua, state, &table, "encode_number_precision", 14, |it| &mut it.digits)?;
    table.raw_set("encode_keep_buffer", lua.create_function(|_, ()| Ok(true))?)?;
    table.raw_set("encode_invalid_numbers", lua.create_function(|_, ()| Ok(false))?)?;
    table.raw_set("decode_invalid_numbers", lua.create_function(|_, ()| Ok(true))?)?;
    let sparse = |_: &Lua, ()| Ok((false, SPARSE_RATIO, SPARSE_SAFE));
    table.raw_set("encode_sparse_array", lua.create_function(sparse)?)?;
    Ok(table)
}

fn setting(
    lua: &Lua,
    state: &Rc<State>,
    table: &Table,
    name: &str,
    most: i64,
    field: fn(&mut Settings) -> &mut i64,
) -> mlua::Result<()> {
    let state = Rc::clone(state);
    let function = move |lua: &Lua, arguments: MultiValue| {
        let mut settings = state.json.get();
        if !arguments.is_empty() {
            let number = integer_argument(lua, &arguments, 1)?;
            if !(1..=most).contains(&number) {
                let what = format!("expected integer between 1 and {most}");
                return Err(errors::argument(lua, 1, &what));
            }
            *field(&mut settings) = number;
            state.json.set(settings);
        }
        Ok(*field(&mut settings))
    };
    table.raw_set(name, lua.create_function(function)?)
}

struct Encoder<'a> {
    lua: &'a Lua,
    settings: Settings,
    out: Vec<u8>,
}

impl Encoder<'_> {
    fn value(&mut self, value: &Lv, depth: i64) -> mlua::Result<()> {
        if self.out.len() > super::MEMORY_MAX {
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

#[derive(Debug)]
enum Token {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    String(Vec<u8>),
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    Wrong(&'static str),
}

impl Token {
    fn name(&self) -> &'static str {
        match self {
            Self::ObjectBegin => "T_OBJ_BEGIN",
            Self::ObjectEnd => "T_OBJ_END",
            Self::ArrayBegin => "T_ARR_BEGIN",
            Self::ArrayEnd => "T_ARR_END",
            Self::String(_) => "T_STRING",
            Self::Number(_) => "T_NUMBER",
            Self::Boolean(_) => "T_BOOLEAN",
            Self::Null => "T_NULL",
            Self::Colon => "T_COLON",
            Self::Comma => "T_COMMA",
            Self::End => "T_END",
            Self::Wrong(what) => what,
        }
    }
}

/// A token and where it begins.
type Placed = (Token, usize);

struct Decoder<'a> {
    lua: &'a Lua,
    text: &'a [u8],
    at: usize,
    depth_max: i64,
}

impl Decoder<'_> {
    fn value(&mut self, (token, at): Placed, depth: i64) -> mlua::Result<Lv> {
        match token {
            Token::String(text) => self.lua.create_string(text).map(Lv::String),
            Token::Number(number) => Ok(Lv::Number(number)),
            Token::Boolean(value) => Ok(Lv::Boolean(value)),
            Token::Null => Ok(Lv::NULL),
            Token::ArrayBegin => self.array(depth + 1),
            Token::ObjectBegin => self.object(depth + 1),
            other => Err(self.unexpected("value", &other, at)),
        }
    }

    fn array(&mut self, depth: i64) -> mlua::Result<Lv> {
        self.descend(depth)?;
        let table = self.lua.create_table()?;
        let mut token = self.token()?;
        if matches!(token.0, Token::ArrayEnd) {
            return Ok(Lv::Table(table));
        }
        for index in 1.. {
            table.raw_set(index, self.value(token, depth)?)?;
            token = self.token()?;
            match token.0 {
                Token::ArrayEnd => break,
                Token::Comma => token = self.token()?,
                other => return Err(self.unexpected("comma or array end", &other, token.1)),
            }
        }
        Ok(Lv::Table(table))
    }

    fn object(&mut self, depth: i64) -> mlua::Result<Lv> {
        self.descend(depth)?;
        let table = self.lua.create_table()?;
        let mut token = self.token()?;
        if matches!(token.0, Token::ObjectEnd) {
            return Ok(Lv::Table(table));
        }
        loop {
            let Token::String(key) = token.0 else {
                return Err(self.unexpected("object key string", &token.0, token.1));
            };
            self.expect(|token| matches!(token, Token::Colon), "colon")?;
            let value = self.token()?;
            let value = self.value(value, depth)?;
            table.raw_set(self.lua.create_string(key)?, value)?;
            token = self.token()?;
            match token.0 {
                Token::ObjectEnd => return Ok(Lv::Table(table)),
                Token::Comma => token = self.token()?,
                other => return Err(self.unexpected("comma or object end", &other, token.1)),
            }
        }
    }

    fn descend(&self, depth: i64) -> mlua::Result<()> {
        if depth <= self.depth_max {
            return Ok(());
        }
        let at = self.at;
        let text = format!("Found too many nested data structures ({depth}) at character {at}");
        Err(errors::text(self.lua, text))
    }

    fn expect(&mut self, is_it: impl Fn(&Token) -> bool, what: &str) -> mlua::Result<()> {
        let (token, at) = self.token()?;
        if is_it(&token) { Ok(()) } else { Err(self.unexpected(what, &token, at)) }
    }

    fn unexpected(&self, expected: &str, found: &Token, at: usize) -> mlua::Error {
        let (found, at) = (found.name(), at + 1);
        errors::text(self.lua, format!("Expected {expected} but found {found} at character {at}"))
    }

    fn token(&mut self) -> mlua::Result<Placed> {
        let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        self.at += self.text[self.at..].iter().take_while(|byte| is_space(byte)).count();
        let at = self.at;
        let rest = &self.text[at..];
        let (token, length) = match rest.first() {
            None | Some(0) => (Token::End, 0),
            Some(b'{') => (Token::ObjectBegin, 1),
            Some(b'}') => (Token::ObjectEnd, 1),
            Some(b'[') => (Token::ArrayBegin, 1),
            Some(b']') => (Token::ArrayEnd, 1),
            Some(b':') => (Token::Colon, 1),
            Some(b',') => (Token::Comma, 1),
            Some(b'"') => return Ok(self.string()),
            Some(b'-' | b'+' | b'0'..=b'9') => match number(rest) {
                Some((number, length)) => (Token::Number(number), length),
                None => (Token::Wrong("invalid number"), 0),
            },
            _ if rest.starts_with(b"true") => (Token::Boolean(true), 4),
            _ if rest.starts_with(b"false") => (Token::Boolean(false), 5),
            _ if rest.starts_with(b"null") => (Token::Null, 4),
            _ => match number(rest) {
                Some((number, length)) if rest[0] != b'.' => (Token::Number(number), length),
                _ => (Token::Wrong("invalid token"), 0),
            },
        };
        self.at += length;
        Ok((token, at))
    }

    fn string(&mut self) -> Placed {
        let begin = self.at;
        self.at += 1;
        let mut text = Vec::new();
        loop {
            match self.text.get(self.at) {
                None => return (Token::Wrong("unexpected end of string"), self.at),
                Some(b'"') => break,
                Some(b'\\') => match self.escape(&mut text) {
                    Ok(length) => self.at += length,
                    Err(what) => return (Token::Wrong(what), self.at),
                },
                Some(&byte) => {
                    text.push(byte);
                    self.at += 1;
                }
            }
        }
        self.at += 1;
        (Token::String(text), begin)
    }

    /// Reads what follows a backslash, and says how long it is.
    fn escape(&self, text: &mut Vec<u8>) -> Result<usize, &'static str> {
        const UNICODE: &str = "invalid unicode escape code";
        let rest = &self.text[self.at + 1..];
        let byte = match rest.first() {
            Some(&byte @ (b'"' | b'\\' | b'/')) => byte,
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => {
                let unit = hexadecimal(&rest[1..]).ok_or(UNICODE)?;
                let (code, length) = match unit {
                    0xd800..0xdc00 => {
                        let low = rest[5..].strip_prefix(b"\\u").and_then(hexadecimal);
                        let low =
                            low.filter(|low| (0xdc00..0xe000).contains(low)).ok_or(UNICODE)?;
                        (0x10000 + ((unit & 0x3ff) << 10) + (low & 0x3ff), 12)
                    }
                    _ => (unit, 6),
                };
                let character = char::from_u32(code).ok_or(UNICODE)?;
                text.extend(character.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(length);
            }
            _ => return Err("invalid escape code"),
        };
        text.push(byte);
        Ok(2)
    }
}

fn hexadecimal(digits: &[u8]) -> Option<u32> {
    let digits = core::str::from_utf8(digits.get(..4)?).ok()?;
    let is_hexadecimal = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u32::from_str_radix(digits, 16).ok().filter(|_| is_hexadecimal)
}

/// The number that `text` begins with, as `strtod` reads it, and how long it is.
fn number(text: &[u8]) -> Option<(f64, usize)> {
    let sign = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    let negate = |number: f64| if text[0] == b'-' { -number } else { number };
    let rest = &text[sign..];
    for (word, value) in [("infinity", f64::INFINITY), ("inf", f64::INFINITY), ("nan", f64::NAN)] {
        if rest.get(..word.len()).is_some_and(|it| it.eq_ignore_ascii_case(word.as_bytes())) {
            return Some((negate(value), sign + word.len()));
        }
    }
    let count = |bytes: &[u8], is_digit: fn(&u8) -> bool| {
        bytes.iter().take_while(|byte| is_digit(byte)).count()
    };
    if rest.get(..2).is_some_and(|it| it.eq_ignore_ascii_case(b"0x")) {
        let digits = count(&rest[2..], u8::is_ascii_hexdigit);
        let digit = |number: f64, byte: &u8| {
            number * 16.0 + f64::from((*byte as char).to_digit(16).unwrap_or(0))
        };
        let value = rest[2..2 + digits].iter().fold(0.0, digit);
        return Some((negate(value), sign + 2 + digits)).filter(|_| digits > 0);
    }
    let mut length = count(rest, u8::is_ascii_digit);
    let mut digits = length;
    if rest.get(length) == Some(&b'.') {
        let decimals = count(&rest[length + 1..], u8::is_ascii_digit);
        digits += decimals;
        length += 1 + decimals;
    }
    if digits == 0 {
        return None;
    }
    if matches!(rest.get(length), Some(b'e' | b'E')) {
        let signed = usize::from(matches!(rest.get(length + 1), Some(b'-' | b'+')));
        let exponent = count(&rest[length + 1 + signed..], u8::is_ascii_digit);
        if exponent > 0 {
            length += 1 + signed + exponent;
        }
    }
    let number: f64 = core::str::from_utf8(&rest[..length]).ok()?.parse().ok()?;
    Some((negate(number), sign + length))
}
