//! Opens a connection to a node's endpoint and makes it ready for the machines.

mod handshake;

use std::io;
use std::sync::Arc;

use self::handshake::handshake;
use crate::endpoint::Endpoint;
use crate::environment::{Environment, Stream};
use crate::printable::printable;
use crate::resp::{Decoder, Malformed};

/// A connection that is ready for commands.
pub(crate) struct Dialed {
    pub(crate) stream: Box<dyn Stream>,
    /// Decoder with the bytes received so far.
    pub(crate) decoder: Decoder,
    /// True if the server can push the changes of keys that are read on this connection.
    pub(crate) is_tracked: bool,
}

/// Reason why no connection was opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// Error text of the server, in printable form.
    #[error("{0}")]
    Refused(Arc<str>),
}

impl DialError {
    /// Returns the reason in printable form.
    pub(crate) fn text(&self) -> Arc<str> {
        match self {
            Self::Refused(text) => Arc::clone(text),
            _ => printable(self.to_string().as_bytes(), &[], &[]),
        }
    }
}

/// Opens a connection and performs the handshake.
pub(crate) async fn dial(
    environment: &dyn Environment,
    endpoint: &Endpoint,
) -> Result<Dialed, DialError> {
    let stream = environment.connect(endpoint).await?;
    #[cfg(feature = "tls")]
    let stream = endpoint.secure(stream).await?;
    let mut stream = stream;
    let (decoder, is_tracked) = handshake(&mut stream, endpoint).await?;
    Ok(Dialed { stream, decoder, is_tracked })
}
