//! What the client says on every new connection before the machines may speak.
//!
//! Everything goes out in one burst. Servers and proxies that lack a command answer it with an
//! error, and only two errors matter: those of authentication and of the database.

use std::io;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::dial::DialError;
use crate::endpoint::{Credentials, Endpoint};
use crate::resp::{self, Decoder, EXTEND, Frame, RELEASE};

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
    let courtesies: [&[&[u8]]; 5] = [
        &[b"CLIENT", b"SETNAME", NAME],
        &[b"CLIENT", b"SETINFO", b"LIB-NAME", NAME],
        &[b"CLIENT", b"SETINFO", b"LIB-VER", VERSION],
        // So that later on their names are enough.
        &[b"SCRIPT", b"LOAD", RELEASE.text],
        &[b"SCRIPT", b"LOAD", EXTEND.text],
    ];
    courtesies.iter().for_each(|command| resp::write(&mut outgoing, command));
    stream.write_all(&outgoing).await?;
    stream.flush().await?;
    let greeting = read_error(stream, decoder).await?;
    let selection = if database == 0 { None } else { read_error(stream, decoder).await? };
    for _ in courtesies {
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

/// Reads one reply; returns its text if it is an error.
async fn read_error(
    stream: &mut (impl AsyncRead + Unpin),
    decoder: &mut Decoder,
) -> Result<Option<Vec<u8>>, DialError> {
    loop {
        match decoder.next()? {
            Some(Frame::Error(text)) => return Ok(Some(text.to_vec())),
            Some(_) => return Ok(None),
            None => {}
        }
        if stream.read_buf(decoder.room()).await? == 0 {
            let text = "closed by the server during the handshake";
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text).into());
        }
    }
}

#[cfg(test)]
mod tests;
