//! Requests out of bytes that may be split anywhere.

use bytes::{Buf, Bytes, BytesMut};

/// The longest line that begins something: an inline request, a length.
const LINE_MAX: usize = 64 * 1_024;

/// The longest argument (`proto-max-bulk-len`).
const BULK_MAX: i64 = 512 * 1_024 * 1_024;

/// What a client asks: the command's name and its arguments, never empty.
pub type Request = Vec<Bytes>;

/// Bytes that are no request. The server says so and closes the connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("ERR Protocol error: {0}")]
pub struct ProtocolError(pub String);

/// The requests of one connection.
#[derive(Debug, Default)]
pub struct Requests {
    received: BytesMut,
    /// The arguments of the request under way.
    arguments: Request,
    /// How many of them are missing.
    missing: usize,
    /// How long the next one is.
    length: Option<usize>,
    /// Who has not said who he is may not send much.
    unauthenticated: bool,
}

impl Requests {
    /// Takes in what has arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.received.extend_from_slice(bytes);
    }

    /// Where to read to.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.received
    }

    /// Whether the client has still to say who it is.
    pub fn set_unauthenticated(&mut self, unauthenticated: bool) {
        self.unauthenticated = unauthenticated;
    }

    /// The next whole request; `None` while there is none.
    ///
    /// # Errors
    ///
    /// If what arrived can never become one.
    pub fn next_request(&mut self) -> Result<Option<Request>, ProtocolError> {
        loop {
            if self.missing == 0 {
                match self.received.first() {
                    None => return Ok(None),
                    Some(b'*') => {
                        let refusals = ("too big mbulk count string", "invalid multibulk length");
                        let Some(count) = self.number(i64::from(i32::MAX), refusals)? else {
                            return Ok(None);
                        };
                        if count > 10 && self.unauthenticated {
                            return Err(error("unauthenticated multibulk length"));
                        }
                        self.missing = usize::try_from(count).unwrap_or(0);
                        self.arguments.clear();
                    }
                    Some(_) => {
                        let Some(request) = self.inline()? else { return Ok(None) };
                        if !request.is_empty() {
                            return Ok(Some(request));
                        }
                    }
                }
                continue;
            }
            let Some(argument) = self.argument()? else { return Ok(None) };
            self.arguments.push(argument);
            self.missing -= 1;
            if self.missing == 0 {
                return Ok(Some(core::mem::take(&mut self.arguments)));
            }
        }
    }

    fn argument(&mut self) -> Result<Option<Bytes>, ProtocolError> {
        let length = match self.length {
            Some(length) => length,
            None => {
                match self.received.first() {
                    None => return Ok(None),
                    Some(b'$') => {}
                    Some(&other) => {
                        return Err(error(&format!("expected '$', got '{}'", other as char)));
                    }
                }
                let refusals = ("too big bulk count string", "invalid bulk length");
                let Some(length) = self.number(BULK_MAX, refusals)? else { return Ok(None) };
                if length > 16_384 && self.unauthenticated {
                    return Err(error("unauthenticated bulk length"));
                }
                let length = usize::try_from(length).map_err(|_| error("invalid bulk length"))?;
                *self.length.insert(length)
            }
        };
        if self.received.len() < length + 2 {
            return Ok(None);
        }
        self.length = None;
        let argument = self.received.split_to(length).freeze();
        self.received.advance(2);
        Ok(Some(argument))
    }

    /// The number in the line that begins with a mark.
    fn number(
        &mut self,
        most: i64,
        (too_long, invalid): (&str, &str),
    ) -> Result<Option<i64>, ProtocolError> {
        let Some(end) = self.received.iter().position(|&byte| byte == b'\r') else {
            let refused = self.received.len() > LINE_MAX;
            return if refused { Err(error(too_long)) } else { Ok(None) };
        };
        if self.received.len() < end + 2 {
            return Ok(None);
        }
        let number = super::super::keyspace::parse_integer(&self.received[1..end]);
        let number = number.filter(|number| *number <= most).ok_or_else(|| error(invalid))?;
        self.received.advance(end + 2);
        Ok(Some(number))
    }

    fn inline(&mut self) -> Result<Option<Request>, ProtocolError> {
        let Some(end) = self.received.iter().position(|&byte| byte == b'\n') else {
            let refused = self.received.len() > LINE_MAX;
            return if refused { Err(error("too big inline request")) } else { Ok(None) };
        };
        let line = self.received.split_to(end + 1);
        let words = line[..].split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        Ok(Some(words.map(Bytes::copy_from_slice).collect()))
    }
}

fn error(what: &str) -> ProtocolError {
    ProtocolError(what.to_owned())
}
