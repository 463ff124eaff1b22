//! Parses requests from bytes that may be split anywhere.

mod inline;

pub(crate) use self::inline::words as inline_words;

use bytes::{Buf, Bytes, BytesMut};

use crate::integer::parse_integer;

/// Greatest length of an inline request or of a line with a length, in bytes.
const LINE_MAX: usize = 64 * 1_024;

/// Number of bytes that real servers read at once: a line end within these bytes is found before
/// the length of the line is checked.
const READ_MAX: usize = 16 * 1_024;

/// Greatest length of an argument, in bytes (`proto-max-bulk-len`).
const BULK_MAX: i64 = 512 * 1_024 * 1_024;

/// Greatest size of an unfinished request, in bytes (`client-query-buffer-limit`).
const REQUEST_MAX: usize = 1_024 * 1_024 * 1_024;

/// Memory of an argument besides its bytes.
const ARGUMENT_COST: usize = size_of::<Bytes>();

/// Greatest number of arguments and greatest length of each, in bytes, before AUTH.
const UNAUTHENTICATED_MAX: (i64, i64) = (10, 16_384);

/// A request: the command's name and its arguments; never empty.
pub type Request = Vec<Bytes>;

/// Bytes that are not a request. The server replies with this error and closes the connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("ERR Protocol error: {0}")]
pub struct ProtocolError(pub String);

/// Parser of the requests of one connection.
///
/// Allocates memory for bytes that have arrived, never for announced lengths, and searches no byte
/// twice for the end of a line.
#[derive(Debug)]
pub struct Requests {
    received: BytesMut,
    /// Number of received bytes known to contain no line end.
    scanned: usize,
    /// Arguments of the unfinished request.
    arguments: Request,
    /// Memory that these arguments take, in bytes.
    taken: usize,
    /// Number of arguments still missing.
    missing: usize,
    /// Length of the next argument.
    length: Option<usize>,
    bulk_max: i64,
    /// Unauthenticated: stricter limits apply.
    unauthenticated: bool,
    quotes_join: bool,
}

impl Default for Requests {
    fn default() -> Self {
        Self {
            received: BytesMut::new(),
            scanned: 0,
            arguments: Request::new(),
            taken: 0,
            missing: 0,
            length: None,
            bulk_max: BULK_MAX,
            unauthenticated: false,
            quotes_join: false,
        }
    }
}

impl Requests {
    /// Appends received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.received.extend_from_slice(bytes);
    }

    /// Returns the buffer into which received bytes are read.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.received
    }

    /// Sets whether the client still has to authenticate.
    pub fn set_unauthenticated(&mut self, unauthenticated: bool) {
        self.unauthenticated = unauthenticated;
    }

    /// Sets whether a closing quote may stand within a word of an inline request.
    pub fn set_quotes_join(&mut self, quotes_join: bool) {
        self.quotes_join = quotes_join;
    }

    /// Sets the greatest length of an argument, in bytes.
    pub fn set_bulk_max(&mut self, bulk_max: u64) {
        self.bulk_max = i64::try_from(bulk_max).unwrap_or(i64::MAX);
    }

    /// Returns the next complete request; `None` while there is none.
    ///
    /// # Errors
    ///
    /// If the received bytes can never become a request.
    pub fn next_request(&mut self) -> Result<Option<Request>, ProtocolError> {
        loop {
            if self.missing == 0 {
                match self.received.first() {
                    None => return Ok(None),
                    Some(b'*') => {
                        if self.begin()?.is_none() {
                            return Ok(None);
                        }
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
            self.taken += argument.len() + ARGUMENT_COST;
            if self.taken > REQUEST_MAX {
                return Err(error("request is too large"));
            }
            self.arguments.push(argument);
            self.missing -= 1;
            if self.missing == 0 {
                return Ok(Some(core::mem::take(&mut self.arguments)));
            }
        }
    }

    /// Reads the number of arguments. A request without arguments is skipped.
    fn begin(&mut self) -> Result<Option<()>, ProtocolError> {
        let Some(line) = self.line(b'\r', "too big mbulk count string")? else { return Ok(None) };
        let count = parse_integer(&line[1..]).filter(|count| *count <= i64::from(i32::MAX));
        let count = count.ok_or_else(|| error("invalid multibulk length"))?;
        if count > UNAUTHENTICATED_MAX.0 && self.unauthenticated {
            return Err(error("unauthenticated multibulk length"));
        }
        self.missing = usize::try_from(count).unwrap_or(0);
        self.arguments.clear();
        self.taken = 0;
        Ok(Some(()))
    }

    fn argument(&mut self) -> Result<Option<Bytes>, ProtocolError> {
        let length = match self.length {
            Some(length) => length,
            None => match self.bulk_length()? {
                Some(length) => *self.length.insert(length),
                None => return Ok(None),
            },
        };
        // The two bytes in the place of the line end are not checked.
        if self.received.len() < length + 2 {
            return Ok(None);
        }
        self.length = None;
        let argument = self.received.split_to(length).freeze();
        self.received.advance(2);
        if length > READ_MAX && self.received.len() <= READ_MAX {
            // The memory of a long argument goes with it, and does not stay with the connection.
            self.received = BytesMut::from(&self.received[..]);
        }
        Ok(Some(argument))
    }

    fn bulk_length(&mut self) -> Result<Option<usize>, ProtocolError> {
        let Some(line) = self.line(b'\r', "too big bulk count string")? else { return Ok(None) };
        match line.first() {
            Some(b'$') => {}
            // An empty line: its end stands in the place of the mark.
            None => return Err(error("expected '$', got ' '")),
            Some(&other) => return Err(error(&format!("expected '$', got '{}'", other as char))),
        }
        let length = parse_integer(&line[1..]).filter(|length| *length <= self.bulk_max);
        let refused = length.is_some_and(|length| length > UNAUTHENTICATED_MAX.1);
        let length = length.and_then(|length| usize::try_from(length).ok());
        let length = length.ok_or_else(|| error("invalid bulk length"))?;
        if refused && self.unauthenticated {
            return Err(error("unauthenticated bulk length"));
        }
        Ok(Some(length))
    }

    fn inline(&mut self) -> Result<Option<Request>, ProtocolError> {
        let Some(line) = self.line(b'\n', "too big inline request")? else { return Ok(None) };
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        match inline::words(line, self.quotes_join) {
            Some(words) => Ok(Some(words)),
            None => Err(error("unbalanced quotes in request")),
        }
    }

    /// Takes the line up to `end` together with its line end, which has two bytes if it begins with
    /// a carriage return.
    ///
    /// Redis searches C strings: a line that contains a zero byte never ends.
    fn line(&mut self, end: u8, too_long: &str) -> Result<Option<Bytes>, ProtocolError> {
        let fresh = &self.received[self.scanned..];
        let at = fresh.iter().position(|&byte| byte == end || byte == 0);
        let found = at.map(|at| self.scanned + at);
        let Some(at) = found.filter(|&at| self.received[at] == end) else {
            self.scanned = found.unwrap_or(self.received.len());
            return if self.received.len() > LINE_MAX { Err(error(too_long)) } else { Ok(None) };
        };
        if at > LINE_MAX + READ_MAX {
            return Err(error(too_long));
        }
        let width = if end == b'\r' { 2 } else { 1 };
        if self.received.len() < at + width {
            self.scanned = at;
            return Ok(None);
        }
        self.scanned = 0;
        let line = self.received.split_to(at).freeze();
        self.received.advance(width);
        Ok(Some(line))
    }
}

fn error(what: &str) -> ProtocolError {
    ProtocolError(what.to_owned())
}
