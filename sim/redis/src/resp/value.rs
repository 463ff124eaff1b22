//! Replies and their encoding.

use bytes::Bytes;

use crate::SmallBytes;

/// Version of the protocol on a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// Version 2.
    #[default]
    Resp2,
    /// Version 3, after `HELLO 3`.
    Resp3,
}

/// A reply. Types that version 2 lacks are encoded as one that it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// An array.
    Array(Vec<Value>),
    /// An integer of any length, as its digits; a byte string in version 2. Line ends within it are
    /// sent as spaces.
    BigNumber(Bytes),
    /// A boolean; 1 or 0 in version 2.
    Boolean(bool),
    /// A byte string.
    Bulk(Bytes),
    /// A floating-point number, as its digits; a byte string in version 2.
    Double(String),
    /// An error, beginning with its error code: `ERR something`. Line ends within it are sent as
    /// spaces.
    Error(Bytes),
    /// A value that is encoded in this version, whatever the version of the rest.
    In(Protocol, Box<Value>),
    /// An integer.
    Integer(i64),
    /// Key-value pairs; a flat array in version 2.
    Map(Vec<(Value, Value)>),
    /// A null.
    Null,
    /// A null array; version 3 does not distinguish it from [`Value::Null`].
    NullArray,
    /// An out-of-band message; an array in version 2.
    Push(Vec<Value>),
    /// Several replies to one request, one after another. In an array it counts as one element,
    /// as on real servers.
    Sequence(Vec<Value>),
    /// An unordered set; an array in version 2.
    Set(Vec<Value>),
    /// A simple string: `OK`. Line ends within it are sent as spaces.
    Simple(Bytes),
    /// Text with a three-letter format; a byte string in version 2.
    Verbatim([u8; 3], Bytes),
}

impl Value {
    /// Returns `+OK`.
    #[must_use]
    pub fn ok() -> Self {
        Self::Simple(Bytes::from_static(b"OK"))
    }

    /// Returns a byte string.
    #[must_use]
    pub fn bulk(bytes: &[u8]) -> Self {
        Self::Bulk(Bytes::copy_from_slice(bytes))
    }

    /// Returns a simple string.
    #[must_use]
    pub fn simple(word: impl Into<Bytes>) -> Self {
        Self::Simple(word.into())
    }

    /// Returns the last of several replies to one request: what a command returned, next to the
    /// messages that it sent to its own connection.
    #[must_use]
    pub fn last(&self) -> &Self {
        match self {
            Self::Sequence(values) => {
                let is_reply = |value: &&Self| !matches!(value, Self::Push(_));
                let reply = values.iter().rfind(is_reply).or(values.last());
                reply.map_or(self, Self::last)
            }
            _ => self,
        }
    }

    /// Returns an error; the text begins with its error code.
    #[must_use]
    pub fn error(text: impl Into<Bytes>) -> Self {
        Self::Error(text.into())
    }

    /// Returns text that is to be shown verbatim.
    #[must_use]
    pub fn text(text: impl Into<Bytes>) -> Self {
        Self::Verbatim(*b"txt", text.into())
    }

    /// Appends the encoded value to `out`.
    pub fn encode(&self, protocol: Protocol, out: &mut Vec<u8>) {
        let is_3 = protocol == Protocol::Resp3;
        match self {
            Self::Array(values) => many(b'*', values, protocol, out),
            Self::BigNumber(digits) if is_3 => words(b'(', digits, out),
            Self::BigNumber(digits) => bulk(digits, out),
            Self::Boolean(value) if is_3 => line(b'#', if *value { b"t" } else { b"f" }, out),
            Self::Boolean(value) => line(b':', if *value { b"1" } else { b"0" }, out),
            Self::Bulk(bytes) => bulk(bytes, out),
            Self::Double(digits) if is_3 => line(b',', digits.as_bytes(), out),
            Self::Double(digits) => bulk(digits.as_bytes(), out),
            Self::Error(text) => words(b'-', text, out),
            Self::Integer(number) => integer(b':', *number, out),
            Self::In(protocol, value) => value.encode(*protocol, out),
            Self::Map(pairs) => {
                let count = if is_3 { pairs.len() } else { pairs.len() * 2 };
                integer(if is_3 { b'%' } else { b'*' }, count as i64, out);
                for (key, value) in pairs {
                    key.encode(protocol, out);
                    value.encode(protocol, out);
                }
            }
            Self::Null if is_3 => out.extend_from_slice(b"_\r\n"),
            Self::Null => out.extend_from_slice(b"$-1\r\n"),
            Self::NullArray if is_3 => out.extend_from_slice(b"_\r\n"),
            Self::NullArray => out.extend_from_slice(b"*-1\r\n"),
            Self::Push(values) => many(if is_3 { b'>' } else { b'*' }, values, protocol, out),
            Self::Sequence(values) => values.iter().for_each(|value| value.encode(protocol, out)),
            Self::Set(values) => many(if is_3 { b'~' } else { b'*' }, values, protocol, out),
            Self::Simple(text) => words(b'+', text, out),
            Self::Verbatim(kind, text) if is_3 => {
                integer(b'=', text.len() as i64 + 4, out);
                out.extend_from_slice(kind);
                out.push(b':');
                out.extend_from_slice(text);
                out.extend_from_slice(b"\r\n");
            }
            Self::Verbatim(_, text) => bulk(text, out),
        }
    }
}

fn line(mark: u8, text: &[u8], out: &mut Vec<u8>) {
    out.push(mark);
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

fn integer(mark: u8, number: i64, out: &mut Vec<u8>) {
    line(mark, &SmallBytes::decimal(number), out);
}

/// Appends a line of arbitrary text.
fn words(mark: u8, text: &[u8], out: &mut Vec<u8>) {
    out.push(mark);
    out.extend(text.iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }));
    out.extend_from_slice(b"\r\n");
}

fn bulk(bytes: &[u8], out: &mut Vec<u8>) {
    integer(b'$', bytes.len() as i64, out);
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

fn many(mark: u8, values: &[Value], protocol: Protocol, out: &mut Vec<u8>) {
    integer(mark, values.len() as i64, out);
    values.iter().for_each(|value| value.encode(protocol, out));
}
