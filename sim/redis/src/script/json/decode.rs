//! Decodes JSON into tables.

use mlua::{Lua, Value as Lv};

use super::super::errors::{self, STACK_MAX};
use super::super::number::leading;
use super::super::shelf::Shelf;
use super::Settings;

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

/// A token and its position.
type Placed = (Token, usize);

/// Free slots that an open array needs on the interpreter's stack.
const ARRAY_SLOTS: usize = 2;
/// Free slots that an open object needs on the interpreter's stack.
const OBJECT_SLOTS: usize = 3;

/// A partly read table. The shelf holds the table and, for an object, the key of the next value.
#[derive(Clone, Copy)]
enum Open {
    Array { index: i64 },
    Object,
}

enum Step {
    /// A complete value.
    Whole(Lv),
    /// The first token of the next value.
    Within(Placed),
}

/// Keeps unfinished tables in a list instead of recursing: a text may nest to any depth.
pub(super) struct Decoder<'a> {
    lua: &'a Lua,
    text: &'a [u8],
    at: usize,
    settings: Settings,
    open: Vec<Open>,
    shelf: Shelf,
    /// Number of open tables that are objects.
    objects: usize,
}

impl<'a> Decoder<'a> {
    /// Returns the value of `text`.
    pub(super) fn decode(lua: &'a Lua, text: &'a [u8], settings: Settings) -> mlua::Result<Lv> {
        let (open, shelf) = (Vec::new(), Shelf::new(lua)?);
        Self { lua, text, at: 0, settings, open, shelf, objects: 0 }.read()
    }

    fn read(mut self) -> mlua::Result<Lv> {
        let first = self.token()?;
        let mut step = self.begin(first)?;
        loop {
            step = match step {
                Step::Within(token) => self.begin(token)?,
                Step::Whole(value) => match self.open.pop() {
                    Some(open) => self.fill(open, value)?,
                    None => {
                        self.expect(|token| matches!(token, Token::End), "the end")?;
                        return Ok(value);
                    }
                },
            }
        }
    }

    fn begin(&mut self, (token, at): Placed) -> mlua::Result<Step> {
        Ok(Step::Whole(match token {
            Token::String(text) => self.lua.create_string(text).map(Lv::String)?,
            Token::Number(number) => Lv::Number(number),
            Token::Boolean(value) => Lv::Boolean(value),
            Token::Null => Lv::NULL,
            Token::ArrayBegin => return self.begin_array(),
            Token::ObjectBegin => return self.begin_object(),
            other => return Err(self.unexpected("value", &other, at)),
        }))
    }

    fn begin_array(&mut self) -> mlua::Result<Step> {
        self.descend(ARRAY_SLOTS)?;
        let table = self.lua.create_table()?;
        let token = self.token()?;
        if matches!(token.0, Token::ArrayEnd) {
            return Ok(Step::Whole(Lv::Table(table)));
        }
        self.shelf.put(self.open.len(), &table, Lv::Nil)?;
        self.open.push(Open::Array { index: 1 });
        Ok(Step::Within(token))
    }

    fn begin_object(&mut self) -> mlua::Result<Step> {
        self.descend(OBJECT_SLOTS)?;
        let table = self.lua.create_table()?;
        let token = self.token()?;
        if matches!(token.0, Token::ObjectEnd) {
            return Ok(Step::Whole(Lv::Table(table)));
        }
        self.shelf.put(self.open.len(), &table, Lv::Nil)?;
        self.member(token)
    }

    /// Begins a member of an object; `token` is its key.
    fn member(&mut self, (token, at): Placed) -> mlua::Result<Step> {
        let Token::String(key) = token else {
            return Err(self.unexpected("object key string", &token, at));
        };
        self.expect(|token| matches!(token, Token::Colon), "colon")?;
        let key = self.lua.create_string(key)?;
        let value = self.token()?;
        self.shelf.set_key(self.open.len(), key)?;
        self.open.push(Open::Object);
        self.objects += 1;
        Ok(Step::Within(value))
    }

    /// Adds `value` to the innermost open table.
    fn fill(&mut self, open: Open, value: Lv) -> mlua::Result<Step> {
        let depth = self.open.len();
        let table = self.shelf.table(depth)?;
        match open {
            Open::Array { index } => {
                table.raw_set(index, value)?;
                let token = self.token()?;
                match token.0 {
                    Token::ArrayEnd => return Ok(Step::Whole(Lv::Table(table))),
                    Token::Comma => {}
                    other => return Err(self.unexpected("comma or array end", &other, token.1)),
                }
                self.open.push(Open::Array { index: index + 1 });
                Ok(Step::Within(self.token()?))
            }
            Open::Object => {
                self.objects -= 1;
                table.raw_set(self.shelf.key(depth)?, value)?;
                let token = self.token()?;
                match token.0 {
                    Token::ObjectEnd => return Ok(Step::Whole(Lv::Table(table))),
                    Token::Comma => {}
                    other => return Err(self.unexpected("comma or object end", &other, token.1)),
                }
                let key = self.token()?;
                self.member(key)
            }
        }
    }

    /// Checks the nesting depth before a table is opened. Real servers keep every open table on the
    /// interpreter's stack, and for objects the key, too; the next table needs `slots` more.
    fn descend(&self, slots: usize) -> mlua::Result<()> {
        let depth = self.open.len() + 1;
        let slots = slots + depth + self.objects;
        if depth as i64 <= self.settings.decode_depth && slots <= STACK_MAX {
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
        let takes_invalid = self.settings.decodes_invalid;
        let (token, length) = match rest.first() {
            None | Some(0) => (Token::End, 0),
            Some(b'{') => (Token::ObjectBegin, 1),
            Some(b'}') => (Token::ObjectEnd, 1),
            Some(b'[') => (Token::ArrayBegin, 1),
            Some(b']') => (Token::ArrayEnd, 1),
            Some(b':') => (Token::Colon, 1),
            Some(b',') => (Token::Comma, 1),
            Some(b'"') => return Ok(self.string()),
            Some(b'-' | b'0'..=b'9') if !takes_invalid && is_invalid(rest) => {
                (Token::Wrong("invalid number"), 0)
            }
            Some(b'+') if !takes_invalid => (Token::Wrong("invalid token"), 0),
            Some(b'-' | b'+' | b'0'..=b'9') => match leading(rest) {
                Some((number, length)) => (Token::Number(number), length),
                None => (Token::Wrong("invalid number"), 0),
            },
            _ if rest.starts_with(b"true") => (Token::Boolean(true), 4),
            _ if rest.starts_with(b"false") => (Token::Boolean(false), 5),
            _ if rest.starts_with(b"null") => (Token::Null, 4),
            _ => match leading(rest) {
                Some((number, length)) if takes_invalid && rest[0] != b'.' => {
                    (Token::Number(number), length)
                }
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

    /// Decodes the escape sequence after a backslash; returns its length.
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

/// Returns true if the text looks like a number but is not one in JSON: it has leading zeros, is
/// hexadecimal, infinite or not a number.
fn is_invalid(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let lower = |length| text.get(..length).map(<[u8]>::to_ascii_lowercase);
    match text {
        [b'0', after, ..] => matches!(after, b'x' | b'X' | b'0'..=b'9'),
        _ => lower(3).is_some_and(|word| word == b"inf" || word == b"nan"),
    }
}

fn hexadecimal(digits: &[u8]) -> Option<u32> {
    let digits = core::str::from_utf8(digits.get(..4)?).ok()?;
    let is_hexadecimal = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u32::from_str_radix(digits, 16).ok().filter(|_| is_hexadecimal)
}
