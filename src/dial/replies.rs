//! Reads replies on a connection that the machines do not use.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

use super::DialError;
use crate::resp::{Decoder, Frame};

/// Reads the next reply, and returns what `own` makes of it.
pub(crate) async fn read_reply<T>(
    stream: &mut (impl AsyncRead + Unpin),
    decoder: &mut Decoder,
    own: impl FnOnce(Frame<'_>) -> T,
) -> Result<T, DialError> {
    loop {
        match decoder.next()? {
            // The reader keeps nothing that a push could invalidate.
            Some(Frame::KeysFlushed | Frame::KeysChanged(_)) => continue,
            Some(reply) => return Ok(own(reply)),
            None => {}
        }
        if stream.read_buf(decoder.room()).await? == 0 {
            let text = "the server closed the connection before it replied";
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text).into());
        }
    }
}

/// Returns the value of `key` in the bytes of a map of texts, in either version of the protocol.
pub(crate) fn value_of<'a>(map: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let mut lines = map.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    lines.find(|line| *line == key)?;
    // The value's length comes first.
    lines.nth(1)
}
