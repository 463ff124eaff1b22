//! Decoder of replies.

use bytes::{Buf, BytesMut};
use redis_protocol::resp3::decode::complete::decode_range;
use redis_protocol::resp3::types::RangeFrame;

use super::scan::{Found, Malformed, Scan};

/// Room for one read, in bytes.
const CHUNK: usize = 4_096;

/// A reply, in the categories that the client distinguishes. Both versions of the protocol are
/// understood at any time: frames of version 2 are frames of version 3, except for the two nulls of
/// version 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    Error(&'a [u8]),
    /// A push, not a reply: all keys are gone, or all keys of one database.
    KeysFlushed,
    /// A push, not a reply: these keys have changed.
    KeysChanged(ChangedKeys<'a>),
    Integer(i64),
    Nil,
    Ok,
    /// Any other string.
    Text(&'a [u8]),
    /// Bytes of a well-formed array or map.
    Many(&'a [u8]),
    /// A well-formed reply of another kind.
    Other,
}

/// The keys of a push that invalidates them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChangedKeys<'a>(&'a [u8]);

impl<'a> ChangedKeys<'a> {
    /// Returns the names. Elements that are no bulk strings are skipped, and all that follow.
    pub(crate) fn keys(self) -> impl Iterator<Item = &'a [u8]> {
        let line = |bytes: &[u8]| bytes.windows(2).position(|pair| pair == b"\r\n");
        let first = line(self.0).map_or(self.0.len(), |end| end + 2);
        let mut rest = &self.0[first..];
        core::iter::from_fn(move || {
            let end = line(rest)?;
            let digits = rest.strip_prefix(b"$")?.get(..end - 1)?;
            let length = usize::try_from(integer(digits).ok()?).ok()?;
            let key = rest.get(end + 2..)?.get(..length)?;
            rest = rest.get(end + 2 + length + 2..)?;
            Some(key)
        })
    }
}

/// Decodes the bytes of one connection into replies.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    buffer: BytesMut,
    scan: Scan,
    /// Length of the frame that was returned last and is still in the buffer.
    taken: usize,
    /// Number of bytes behind it that are to be dropped: the rest of a string that is too long.
    rest: usize,
    /// Number of pushes received.
    pushes: u64,
}

impl Decoder {
    /// Returns the buffer for received bytes.
    pub(crate) fn room(&mut self) -> &mut BytesMut {
        self.buffer.advance(core::mem::take(&mut self.taken));
        self.buffer.reserve(CHUNK);
        &mut self.buffer
    }

    /// Returns true if the reply that was returned last is only the beginning of a string.
    pub(crate) fn is_cut(&self) -> bool {
        self.rest > 0
    }

    /// Returns the number of pushes received, of whatever kind.
    pub(crate) fn pushes(&self) -> u64 {
        self.pushes
    }

    /// Returns the next reply, or `None` while it is incomplete. Skips attributes, and all pushes
    /// except [`Frame::KeysFlushed`] and [`Frame::KeysChanged`]: they answer no command. After an
    /// error the decoder must not be used again. A string that is longer than a frame may be is
    /// returned in part: no command of the client needs all of such a value.
    pub(crate) fn next(&mut self) -> Result<Option<Frame<'_>>, Malformed> {
        loop {
            self.buffer.advance(core::mem::take(&mut self.taken));
            if self.rest > 0 && !self.drop_rest()? {
                return Ok(None);
            }
            let Some(Found { length, rest }) = self.scan.resume(&self.buffer)? else {
                return Ok(None);
            };
            (self.taken, self.rest) = (length, rest);
            if rest > 0 {
                return Ok(Some(Frame::Text(beginning(&self.buffer[..length]))));
            }
            self.pushes += u64::from(self.buffer[0] == b'>');
            match self.buffer[0] {
                b'>' => match self.buffer[..length].strip_prefix(INVALIDATE) {
                    Some(b"_\r\n") => return Ok(Some(Frame::KeysFlushed)),
                    Some([b'*', ..]) => {
                        let keys = ChangedKeys(&self.buffer[INVALIDATE.len()..length]);
                        return Ok(Some(Frame::KeysChanged(keys)));
                    }
                    _ => {}
                },
                b'|' => {}
                _ => return frame(&self.buffer[..length]).map(Some),
            }
        }
    }
}

impl Decoder {
    /// Drops what has come of the rest of a string. Returns true if all of it has.
    fn drop_rest(&mut self) -> Result<bool, Malformed> {
        let of_string = self.buffer.len().min(self.rest.saturating_sub(LINE_BREAK.len()));
        self.buffer.advance(of_string);
        self.rest -= of_string;
        if self.rest > LINE_BREAK.len() || self.buffer.len() < LINE_BREAK.len() {
            return Ok(false);
        }
        if !self.buffer.starts_with(LINE_BREAK) {
            return Err(Malformed);
        }
        self.buffer.advance(core::mem::take(&mut self.rest));
        Ok(true)
    }
}

const LINE_BREAK: &[u8] = b"\r\n";

/// Returns the beginning of the string of which `bytes` has the header and a part.
fn beginning(bytes: &[u8]) -> &[u8] {
    let header = bytes.windows(2).position(|pair| pair == LINE_BREAK).unwrap_or(0);
    // Three letters and a colon tell the format of a verbatim string.
    let format = if bytes[0] == b'=' { 4 } else { 0 };
    &bytes[header + LINE_BREAK.len() + format..]
}

/// Head of a push that invalidates keys. A null follows that stands for all keys, or an array of
/// keys.
const INVALIDATE: &[u8] = b">2\r\n$10\r\ninvalidate\r\n";

/// Decodes the one complete frame in `bytes`. The most frequent kinds are decoded without the
/// library.
fn frame(bytes: &[u8]) -> Result<Frame<'_>, Malformed> {
    let line = &bytes[1..bytes.len() - 2];
    Ok(match bytes[0] {
        b'+' if line == b"OK" => Frame::Ok,
        b'+' => Frame::Text(line),
        b'-' => Frame::Error(line),
        b':' => Frame::Integer(integer(line)?),
        b'_' if line.is_empty() => Frame::Nil,
        b'$' | b'*' if line == b"-1" => Frame::Nil,
        b'_' => return Err(Malformed),
        _ => {
            let (frame, length) = decode_range(bytes).ok().flatten().ok_or(Malformed)?;
            if length != bytes.len() {
                return Err(Malformed);
            }
            match frame {
                RangeFrame::BlobString { data: (from, to), .. }
                | RangeFrame::VerbatimString { data: (from, to), .. } => {
                    Frame::Text(&bytes[from..to])
                }
                RangeFrame::BlobError { data: (from, to), .. } => Frame::Error(&bytes[from..to]),
                RangeFrame::Array { .. } | RangeFrame::Map { .. } => Frame::Many(bytes),
                _ => Frame::Other,
            }
        }
    })
}

fn integer(digits: &[u8]) -> Result<i64, Malformed> {
    core::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).ok_or(Malformed)
}

#[cfg(test)]
mod tests;
