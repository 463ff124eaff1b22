//! JSON to tables.

use mlua::{Lua, Value as Lv};

use super::super::errors;
use super::super::number::leading;

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

pub(super) struct Decoder<'a> {
    lua: &'a Lua,
    text: &'a [u8],
    at: usize,
    depth_max: i64,
}

impl<'a> Decoder<'a> {
    /// What `text` says; tables nest so deep at most.
    pub(super) fn decode(lua: &'a Lua, text: &'a [u8], depth_max: i64) -> mlua::Result<Lv> {
        let mut decoder = Self { lua, text, at: 0, depth_max };
        let first = decoder.token()?;
        let value = decoder.value(first, 0)?;
        decoder.expect(|token| matches!(token, Token::End), "the end")?;
        Ok(value)
    }

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
            Some(b'-' | b'+' | b'0'..=b'9') => match leading(rest) {
                Some((number, length)) => (Token::Number(number), length),
                None => (Token::Wrong("invalid number"), 0),
            },
            _ if rest.starts_with(b"true") => (Token::Boolean(true), 4),
            _ if rest.starts_with(b"false") => (Token::Boolean(false), 5),
            _ if rest.starts_with(b"null") => (Token::Null, 4),
            _ => match leading(rest) {
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
