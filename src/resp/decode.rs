//! What a server says.

use bytes::{Buf, BytesMut};
use redis_protocol::resp3::decode::complete::decode_range;
use redis_protocol::resp3::types::RangeFrame;

use super::scan::{Malformed, Scan};

/// There is room for so many bytes to be read at once.
const CHUNK: usize = 4_096;

/// A reply, as far as the client tells replies apart. Both versions of the protocol are understood
/// at any time: the second one's frames are frames of the third, but for its two nulls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    Error(&'a [u8]),
    /// Pushed, and no reply: keys are gone, all of them or those of one database.
    Forgot,
    Integer(i64),
    Nil,
    Ok,
    /// Any other string.
    Text(&'a [u8]),
    /// A well-formed array or map: its bytes.
    Many(&'a [u8]),
    /// A well-formed reply of another kind.
    Other,
}

/// Turns the bytes of one connection into replies.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    buffer: BytesMut,
    scan: Scan,
    /// The length of the frame that was returned last and is still in the buffer.
    taken: usize,
    /// How many pushes there were.
    pushes: u64,
}

impl Decoder {
    /// Where to put what is read.
    pub(crate) fn room(&mut self) -> &mut BytesMut {
        self.buffer.advance(core::mem::take(&mut self.taken));
        self.buffer.reserve(CHUNK);
        &mut self.buffer
    }

    /// How many pushes there have been, of whatever kind.
    pub(crate) fn pushes(&self) -> u64 {
        self.pushes
    }

    /// The next reply, or `None` while it is not there in full. Attributes are passed over, and all
    /// pushes but one: they answer nothing. After an error there is nothing more to be had.
    pub(crate) fn next(&mut self) -> Result<Option<Frame<'_>>, Malformed> {
        loop {
            self.buffer.advance(core::mem::take(&mut self.taken));
            let Some(length) = self.scan.resume(&self.buffer)? else {
                return Ok(None);
            };
            self.taken = length;
            self.pushes += u64::from(self.buffer[0] == b'>');
            match self.buffer[0] {
                b'>' if is_forgot(&self.buffer[..length]) => return Ok(Some(Frame::Forgot)),
                b'>' | b'|' => {}
                _ => return frame(&self.buffer[..length]).map(Some),
            }
        }
    }
}

/// Whether a push says that every key of this client's, if it kept any, is out of date.
fn is_forgot(push: &[u8]) -> bool {
    push == b">2\r\n$10\r\ninvalidate\r\n_\r\n"
}

/// What the one whole frame in `bytes` is. Those that answer every day are told at sight.
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
