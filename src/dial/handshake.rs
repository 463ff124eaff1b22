//! Handshake: commands sent on every new connection before the machines may use it.
//!
//! All of them go out in one burst. Servers and proxies that lack a command answer it with an
//! error. Only three errors matter: a failed authentication, an invalid database, and a server that
//! is too busy to answer whether it can push.

use std::io;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use super::{DialError, read_reply, value_of};
use crate::credentials::Credentials;
use crate::endpoint::{Address, Endpoint};
use crate::resp::{self, Decoder, Frame};

/// The client's name in `CLIENT LIST`.
const NAME: &[u8] = b"redlock-client";
const VERSION: &[u8] = env!("CARGO_PKG_VERSION").as_bytes();

/// User of a connection without a configured user.
const DEFAULT_USER: &[u8] = b"default";

/// Part of the handshake that the server refused.
enum Refusal {
    /// The server refused `HELLO`. The error may be about the command itself.
    Hello(Vec<u8>),
    /// The server refused a required part.
    Final(Vec<u8>),
}

/// Performs the handshake for `endpoint` with `credentials`, in version 3 of the protocol if the
/// server knows it. Returns the decoder, and true if the server can push the changes of keys.
pub(crate) async fn handshake(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    endpoint: &Endpoint,
    credentials: Option<&Credentials>,
) -> Result<(Decoder, bool), DialError> {
    let (mut decoder, mut is_tracked) = (Decoder::default(), false);
    let mut outgoing = BytesMut::new();
    hello(&mut outgoing, credentials);
    let mut refused = exchange(stream, &mut decoder, outgoing, endpoint, &mut is_tracked).await?;
    if let (Some(Refusal::Hello(_)), Some(credentials)) = (&refused, credentials) {
        let mut outgoing = BytesMut::new();
        auth(&mut outgoing, credentials);
        refused = exchange(stream, &mut decoder, outgoing, endpoint, &mut is_tracked).await?;
    }
    let text = match refused {
        None => return Ok((decoder, is_tracked)),
        // The server speaks version 2, and requires no password.
        Some(Refusal::Hello(_)) if credentials.is_none() => return Ok((decoder, false)),
        Some(Refusal::Hello(text) | Refusal::Final(text)) => text,
    };
    Err(DialError::Refused(endpoint.printable(&text, None)))
}

/// Appends `HELLO 3`, with the credentials if there are any.
fn hello(outgoing: &mut BytesMut, credentials: Option<&Credentials>) {
    match credentials {
        None => resp::write(outgoing, &[b"HELLO", b"3"]),
        Some(Credentials { user, password }) => {
            let user = user.as_deref().unwrap_or(DEFAULT_USER);
            resp::write(outgoing, &[b"HELLO", b"3", b"AUTH", user, password]);
        }
    }
}

/// Appends `AUTH`, for servers without `HELLO`. Most of these have no users either.
fn auth(outgoing: &mut BytesMut, Credentials { user, password }: &Credentials) {
    match user {
        Some(user) if user != DEFAULT_USER => resp::write(outgoing, &[b"AUTH", user, password]),
        _ => resp::write(outgoing, &[b"AUTH", password]),
    }
}

/// Writes `outgoing`, which has one command, and after it the rest of the handshake. Then reads the
/// replies. Sets `is_tracked` if the server agrees to push the changes of keys.
async fn exchange(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    decoder: &mut Decoder,
    mut outgoing: BytesMut,
    endpoint: &Endpoint,
    is_tracked: &mut bool,
) -> Result<Option<Refusal>, DialError> {
    let database = endpoint.database();
    if database != 0 {
        resp::write(&mut outgoing, &[b"SELECT", database.to_string().as_bytes()]);
    }
    let courtesies: [&[&[u8]]; 4] = [
        &[b"CLIENT", b"SETNAME", NAME],
        &[b"CLIENT", b"SETINFO", b"LIB-NAME", NAME],
        &[b"CLIENT", b"SETINFO", b"LIB-VER", VERSION],
        // Makes the server report that its keys are gone. With `OPTIN` it tracks reads only on
        // request; otherwise it would track the reads of scripts.
        &[b"CLIENT", b"TRACKING", b"ON", b"OPTIN", b"NOLOOP"],
    ];
    courtesies.iter().for_each(|command| resp::write(&mut outgoing, command));
    let sent = send(stream, &outgoing).await;
    let first = read(stream, decoder).await;
    let (greeting, version) = match (first, sent) {
        // An alert of TLS says more than the failure to send to a server that has sent it.
        (Err(DialError::Io(alert)), Err(_)) if alert.kind() == io::ErrorKind::InvalidData => {
            return Err(alert.into());
        }
        (Err(_), Err(error)) | (Err(error), Ok(())) => return Err(unanswered(error, endpoint)),
        (Ok(Reply::Error(text)), _) => (Some(text), None),
        (Ok(Reply::Map(bytes)), _) => {
            // Version 2 of the protocol has no pushes.
            *is_tracked = bytes.starts_with(b"%");
            (None, version(&bytes))
        }
        (Ok(Reply::Other), _) => (None, None),
    };
    let replies = if database == 0 { courtesies.len() } else { 1 + courtesies.len() };
    let mut errors = match (read_errors(stream, decoder, replies).await, &greeting) {
        (Ok(errors), _) => errors,
        // A server without room for another client, or that accepts none from this address, says so
        // unasked and closes the connection.
        (Err(_), Some(_)) => return Ok(greeting.map(Refusal::Final)),
        (Err(error), None) => return Err(error),
    };
    let selection = if database == 0 { None } else { errors.remove(0) };
    let last = errors.pop().flatten();
    *is_tracked &= last.is_none();
    // A connection that was opened while a script ran would push nothing for all its life.
    let busy = last.filter(|text| text.starts_with(b"BUSY"));
    if version.is_some_and(crashes_when_tracking) {
        *is_tracked = false;
        let mut outgoing = BytesMut::new();
        resp::write(&mut outgoing, &[b"CLIENT", b"TRACKING", b"OFF"]);
        send(stream, &outgoing).await?;
        read_errors(stream, decoder, 1).await?;
    }
    Ok(match (greeting, selection) {
        (Some(text), _) if is_about_credentials(&text) => Some(Refusal::Final(text)),
        (Some(_), Some(text)) if !endpoint.needs_credentials() => Some(Refusal::Final(text)),
        (Some(text), _) => Some(Refusal::Hello(text)),
        (None, selection) => selection.or(busy).map(Refusal::Final),
    })
}

/// Returns the error of a connection on which no reply came. A server that expects TLS ends it at
/// the first bytes of another protocol, perhaps after an alert, which is no reply.
fn unanswered(error: DialError, endpoint: &Endpoint) -> DialError {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, InvalidData, UnexpectedEof};
    let is_plain = matches!(endpoint.address(), Address::Tcp { .. }) && !endpoint.is_tls();
    let kind = match &error {
        DialError::Io(error) => error.kind(),
        DialError::Malformed(_) => InvalidData,
        _ => return error,
    };
    let is_typical = matches!(kind, BrokenPipe | ConnectionReset | InvalidData | UnexpectedEof);
    if is_plain && is_typical {
        let text = format!("{error}; does the server expect TLS (`rediss://`)?");
        io::Error::new(kind, text).into()
    } else {
        error
    }
}

async fn send(stream: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> Result<(), DialError> {
    stream.write_all(bytes).await?;
    Ok(stream.flush().await?)
}

/// Returns true if the server knows `HELLO` and refuses the credentials.
fn is_about_credentials(text: &[u8]) -> bool {
    text.starts_with(b"WRONGPASS") || text.starts_with(b"NOAUTH")
}

/// Returns true if servers of this version can crash when their tracking table overflows (redis
/// issue 11715).
fn crashes_when_tracking(version: (u32, u32, u32)) -> bool {
    matches!(version, (6, 2, 7..=10) | (7, 0, 0..=8))
}

/// Returns the server's version from the reply to `HELLO`.
fn version(map: &[u8]) -> Option<(u32, u32, u32)> {
    let mut numbers = core::str::from_utf8(value_of(map, b"version")?).ok()?.split('.');
    let mut number = || numbers.next()?.parse().ok();
    Some((number()?, number()?, number()?))
}

/// A reply, in the categories that a handshake distinguishes.
enum Reply {
    Error(Vec<u8>),
    Map(Vec<u8>),
    Other,
}

/// Reads `count` replies; returns the text of each that is an error.
async fn read_errors(
    stream: &mut (impl AsyncRead + Unpin),
    decoder: &mut Decoder,
    count: usize,
) -> Result<Vec<Option<Vec<u8>>>, DialError> {
    let mut errors = Vec::with_capacity(count);
    for _ in 0..count {
        errors.push(match read(stream, decoder).await? {
            Reply::Error(text) => Some(text),
            Reply::Map(_) | Reply::Other => None,
        });
    }
    Ok(errors)
}

async fn read(
    stream: &mut (impl AsyncRead + Unpin),
    decoder: &mut Decoder,
) -> Result<Reply, DialError> {
    let reply = read_reply(stream, decoder, |reply| match reply {
        Frame::Error(text) => Reply::Error(text.to_vec()),
        Frame::Many(bytes) => Reply::Map(bytes.to_vec()),
        _ => Reply::Other,
    });
    reply.await
}

#[cfg(test)]
mod tests;
