//! Redis' wire protocol, version 2: commands out, replies in.

use bytes::{Buf, BytesMut};
use redis_protocol::resp2::decode::decode_bytes;
use redis_protocol::resp2::encode::extend_encode_borrowed;
use redis_protocol::resp2::types::{BorrowedFrame, BytesFrame};

use crate::introduction;
use crate::protocol::{Op, Reply};

/// Deletes the key if it still holds the token (specification, "correct implementation with a
/// single instance").
const RELEASE_SCRIPT: &str = "if redis.call('get',KEYS[1])==ARGV[1] then \
    return redis.call('del',KEYS[1]) else return 0 end";

/// Makes the key live for longer if it still holds the token, and never for less long. Says whether
/// it holds the token.
const EXTEND_SCRIPT: &str = "if redis.call('get',KEYS[1])==ARGV[1] then \
    if redis.call('pttl',KEYS[1])<tonumber(ARGV[2]) then \
    redis.call('pexpire',KEYS[1],ARGV[2]) end return 1 else return 0 end";

/// How deep arrays may nest. The decoder recurses, so this bounds its stack.
const DEPTH_MAX: usize = 8;
/// The longest reply, in bytes.
const FRAME_MAX: usize = 64 * 1_024;
/// The most elements of all arrays of one reply together.
const ELEMENTS_MAX: usize = 1_024;

/// The server sent what no server sends, or more than we take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a reply to anything that was asked")]
pub(crate) struct Malformed;

/// Appends `op` on the key `resource` to `buffer`.
pub(crate) fn encode(buffer: &mut BytesMut, op: &Op, resource: &[u8]) {
    match op {
        Op::Extend { token, ttl, .. } => {
            let (script, ttl_ms) = (EXTEND_SCRIPT.as_bytes(), ttl.as_millis().to_string());
            let token = token.as_bytes();
            write(buffer, &[b"EVAL", script, b"1", resource, token, ttl_ms.as_bytes()]);
        }
        // All sections: several in one command are understood from version 7 on only.
        Op::Introduce => write(buffer, &[b"INFO"]),
        Op::Release { token, .. } => {
            let script = RELEASE_SCRIPT.as_bytes();
            write(buffer, &[b"EVAL", script, b"1", resource, token.as_bytes()]);
        }
        Op::Set { token, ttl, .. } => {
            let ttl_ms = ttl.as_millis().to_string();
            let token = token.as_bytes();
            write(buffer, &[b"SET", resource, token, b"NX", b"PX", ttl_ms.as_bytes()]);
        }
    }
}

fn write(buffer: &mut BytesMut, arguments: &[&[u8]]) {
    let mut frames = [const { BorrowedFrame::Null }; 6];
    for (frame, argument) in frames.iter_mut().zip(arguments) {
        *frame = BorrowedFrame::BulkString(argument);
    }
    let command = BorrowedFrame::Array(&frames[..arguments.len()]);
    extend_encode_borrowed(buffer, &command, false).expect("a buffer that grows takes any frame");
}

/// Turns the bytes of one connection into replies.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    buffer: BytesMut,
    /// The answer to [`Op::Introduce`] has come: it is always the first one of a connection.
    introduced: bool,
}

impl Decoder {
    /// Takes in what was read.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next reply, or `None` while it is not there in full.
    pub(crate) fn next(&mut self) -> Result<Option<Reply>, Malformed> {
        let Some(length) = scan(&self.buffer)? else {
            return Ok(None);
        };
        let bytes = self.buffer.split_to(length).freeze();
        let Some((frame, decoded)) = decode_bytes(&bytes).map_err(|_| Malformed)? else {
            return Err(Malformed);
        };
        if decoded != length {
            return Err(Malformed);
        }
        let first = !core::mem::replace(&mut self.introduced, true);
        reply(&frame, first).map(Some)
    }
}

fn reply(frame: &BytesFrame, introduces: bool) -> Result<Reply, Malformed> {
    Ok(match frame {
        BytesFrame::SimpleString(text) if **text == *b"OK" => Reply::Ok,
        BytesFrame::Integer(number) => Reply::Integer(*number),
        BytesFrame::Null => Reply::Nil,
        BytesFrame::Error(_) => Reply::Error,
        // A node that says nothing we understand has not introduced itself.
        BytesFrame::BulkString(text) if introduces => {
            introduction::parse(text).map_or(Reply::Error, Reply::Introduction)
        }
        _ => return Err(Malformed),
    })
}

/// The length of the first frame in `bytes`, or `None` while it is not there in full. Goes through
/// headers alone, and through nested ones without recursion.
fn scan(bytes: &[u8]) -> Result<Option<usize>, Malformed> {
    let mut rest = bytes;
    let mut open = [0_usize; DEPTH_MAX];
    let (mut depth, mut elements) = (0, 0);
    loop {
        if rest.first().is_some_and(|kind| !b"+-:$*".contains(kind)) {
            return Err(Malformed);
        }
        let Some(end) = rest.windows(2).position(|pair| pair == b"\r\n") else {
            return if bytes.len() > FRAME_MAX { Err(Malformed) } else { Ok(None) };
        };
        let (kind, header) = (rest[0], &rest[1..end]);
        rest.advance(end + 2);
        match kind {
            b'$' => {
                let body = length(header, FRAME_MAX)?.map_or(0, |length| length + 2);
                if bytes.len() - rest.len() + body > FRAME_MAX {
                    return Err(Malformed);
                }
                if rest.len() < body {
                    return Ok(None);
                }
                rest.advance(body);
            }
            b'*' => {
                let inside = length(header, ELEMENTS_MAX)?.unwrap_or(0);
                elements += inside;
                if elements > ELEMENTS_MAX || (inside > 0 && depth == DEPTH_MAX) {
                    return Err(Malformed);
                }
                if inside > 0 {
                    open[depth] = inside;
                    depth += 1;
                    continue;
                }
            }
            _ => {}
        }
        // One frame is complete, and so is every array that ends with it.
        while depth > 0 {
            open[depth - 1] -= 1;
            if open[depth - 1] > 0 {
                break;
            }
            depth -= 1;
        }
        if depth == 0 {
            let length = bytes.len() - rest.len();
            return if length > FRAME_MAX { Err(Malformed) } else { Ok(Some(length)) };
        }
    }
}

/// A length of at most `most`; `None` for the −1 of a null.
fn length(digits: &[u8], most: usize) -> Result<Option<usize>, Malformed> {
    if digits == b"-1" {
        return Ok(None);
    }
    let digits = core::str::from_utf8(digits).map_err(|_| Malformed)?;
    let plain = digits.len() <= 7 && digits.bytes().all(|digit| digit.is_ascii_digit());
    let length = plain.then(|| digits.parse().ok()).flatten();
    length.filter(|&length| length <= most).map(Some).ok_or(Malformed)
}

#[cfg(test)]
mod tests;
