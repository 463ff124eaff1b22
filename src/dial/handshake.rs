//! What the client says on every new connection before the machines may speak.
//!
//! Everything goes out in one burst. Servers and proxies that lack a command answer it with an
//! error, and only two errors matter: those of authentication and of the database.

use std::io;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::DialError;
use crate::endpoint::{Credentials, Endpoint};
use crate::resp::{self, Decoder, EXTEND, Frame, INTRODUCE, RELEASE};

/// The client's name in `CLIENT LIST`.
const NAME: &[u8] = b"redlock-client";
const VERSION: &[u8] = env!("CARGO_PKG_VERSION").as_bytes();

/// The user that a connection without a user belongs to.
const DEFAULT_USER: &[u8] = b"default";

/// What of the handshake a server would not have.
enum Refusal {
    /// `HELLO`, in words that may be about the command itself.
    Hello(Vec<u8>),
    /// What cannot be done without.
    Final(Vec<u8>),
}

/// Speaks to the server as `endpoint` says, in version 3 of the protocol if it knows that.
pub(crate) async fn handshake(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    endpoint: &Endpoint,
) -> Result<Decoder, DialError> {
    let mut decoder = Decoder::default();
    let mut outgoing = BytesMut::new();
    let credentials = endpoint.credentials();
    hello(&mut outgoing, credentials);
    let mut refused = exchange(stream, &mut decoder, outgoing, endpoint).await?;
    if let (Some(Refusal::Hello(_)), Some(credentials)) = (&refused, credentials) {
        let mut outgoing = BytesMut::new();
        auth(&mut outgoing, credentials);
        refused = exchange(stream, &mut decoder, outgoing, endpoint).await?;
    }
    let text = match refused {
        None => return Ok(decoder),
        // The server speaks version 2, and asks for no password.
        Some(Refusal::Hello(_)) if credentials.is_none() => return Ok(decoder),
        Some(Refusal::Hello(text) | Refusal::Final(text)) => text,
    };
    Err(DialError::Refused(endpoint.printable(&text, None)))
}

/// `HELLO 3`, with which a server also takes the credentials.
fn hello(outgoing: &mut BytesMut, credentials: Option<&Credentials>) {
    match credentials {
        None => resp::write(outgoing, &[b"HELLO", b"3"]),
        Some(Credentials { user, password }) => {
            let user = user.as_deref().unwrap_or(DEFAULT_USER);
            resp::write(outgoing, &[b"HELLO", b"3", b"AUTH", user, password]);
        }
    }
}

/// For servers without `HELLO`: most of them have no users either.
fn auth(outgoing: &mut BytesMut, Credentials { user, password }: &Credentials) {
    match user {
        Some(user) if user != DEFAULT_USER => resp::write(outgoing, &[b"AUTH", user, password]),
        _ => resp::write(outgoing, &[b"AUTH", password]),
    }
}

/// Writes `outgoing`, which has one command, and the rest of the handshake behind it, and reads
/// what the server answers.
async fn exchange(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    decoder: &mut Decoder,
    mut outgoing: BytesMut,
    endpoint: &Endpoint,
) -> Result<Option<Refusal>, DialError> {
    let database = endpoint.database();
    if database != 0 {
        resp::write(&mut outgoing, &[b"SELECT", database.to_string().as_bytes()]);
    }
    let courtesies: [&[&[u8]]; 7] = [
        &[b"CLIENT", b"SETNAME", NAME],
        &[b"CLIENT", b"SETINFO", b"LIB-NAME", NAME],
        &[b"CLIENT", b"SETINFO", b"LIB-VER", VERSION],
        // So that later on their names are enough.
        &[b"SCRIPT", b"LOAD", RELEASE.text],
        &[b"SCRIPT", b"LOAD", EXTEND.text],
        &[b"SCRIPT", b"LOAD", INTRODUCE.text],
        // So that the server says when its keys are gone. Reads are not remembered unless it is asked
        // to (`OPTIN`): a script's reads would be.
        &[b"CLIENT", b"TRACKING", b"ON", b"OPTIN", b"NOLOOP"],
    ];
    courtesies.iter().for_each(|command| resp::write(&mut outgoing, command));
    stream.write_all(&outgoing).await?;
    stream.flush().await?;
    let (greeting, version) = match read(stream, decoder).await? {
        Said::Error(text) => (Some(text), None),
        Said::Map(bytes) => (None, version(&bytes)),
        Said::Other => (None, None),
    };
    let selection = if database == 0 { None } else { read_error(stream, decoder).await? };
    for _ in courtesies {
        read_error(stream, decoder).await?;
    }
    if version.is_some_and(crashes_when_tracking) {
        let mut outgoing = BytesMut::new();
        resp::write(&mut outgoing, &[b"CLIENT", b"TRACKING", b"OFF"]);
        stream.write_all(&outgoing).await?;
        stream.flush().await?;
        read_error(stream, decoder).await?;
    }
    Ok(match (greeting, selection) {
        (Some(text), _) if is_about_credentials(&text) => Some(Refusal::Final(text)),
        (Some(_), Some(text)) if endpoint.credentials().is_none() => Some(Refusal::Final(text)),
        (Some(text), _) => Some(Refusal::Hello(text)),
        (None, selection) => selection.map(Refusal::Final),
    })
}

/// Whether a server that refuses a greeting knows the command.
fn is_about_credentials(text: &[u8]) -> bool {
    text.starts_with(b"WRONGPASS") || text.starts_with(b"NOAUTH")
}

/// Whether servers of this version can crash when the table of what they track overflows (redis issue
/// 11715).
fn crashes_when_tracking(version: (u32, u32, u32)) -> bool {
    matches!(version, (6, 2, 7..=10) | (7, 0, 0..=8))
}

/// What the answer to `HELLO` says is the server's version.
fn version(map: &[u8]) -> Option<(u32, u32, u32)> {
    let mut lines = map.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii_end);
    lines.find(|line| *line == b"version")?;
    let mut numbers = core::str::from_utf8(lines.nth(1)?).ok()?.split('.');
    let mut number = || numbers.next()?.parse().ok();
    Some((number()?, number()?, number()?))
}

/// A reply, as far as a handshake tells replies apart.
enum Said {
    Error(Vec<u8>),
    Map(Vec<u8>),
    Other,
}

/// Reads one reply; returns its text if it is an error.
async fn read_error(
    stream: &mut (impl AsyncRead + Unpin),
    decoder: &mut Decoder,
) -> Result<Option<Vec<u8>>, DialError> {
    Ok(match read(stream, decoder).await? {
        Said::Error(text) => Some(text),
        Said::Map(_) | Said::Other => None,
    })
}

async fn read(
    stream: &mut (impl AsyncRead + Unpin),
    decoder: &mut Decoder,
) -> Result<Said, DialError> {
    loop {
        match decoder.next()? {
            Some(Frame::Error(text)) => return Ok(Said::Error(text.to_vec())),
            Some(Frame::Many(bytes)) => return Ok(Said::Map(bytes.to_vec())),
            // Nothing was believed so far that could be forgotten.
            Some(Frame::Forgot) => continue,
            None => {}
            Some(_) => return Ok(Said::Other),
        }
        if stream.read_buf(decoder.room()).await? == 0 {
            let text = "closed by the server during the handshake";
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text).into());
        }
    }
}

#[cfg(test)]
mod tests;
