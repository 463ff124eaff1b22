//! From a node's endpoint to a connection on which the machines may speak.

mod handshake;

use std::io;
use std::sync::Arc;

use self::handshake::handshake;
use crate::endpoint::Endpoint;
use crate::environment::{Environment, Stream};
use crate::printable::printable;
use crate::resp::{Decoder, Malformed};

/// A connection that is ready.
pub(crate) struct Dialed {
    pub(crate) stream: Box<dyn Stream>,
    /// What was received so far.
    pub(crate) decoder: Decoder,
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The server's own words, fit to be shown.
    #[error("{0}")]
    Refused(Arc<str>),
}

impl DialError {
    /// The reason, fit to be shown.
    pub(crate) fn text(&self) -> Arc<str> {
        match self {
            Self::Refused(text) => Arc::clone(text),
            _ => printable(self.to_string().as_bytes(), &[], &[]),
        }
    }
}

/// Opens a connection and says who we are.
pub(crate) async fn dial(
    environment: &dyn Environment,
    endpoint: &Endpoint,
) -> Result<Dialed, DialError> {
    let stream = environment.connect(endpoint).await?;
    #[cfg(feature = "tls")]
    let stream = endpoint.secure(stream).await?;
    let mut stream = stream;
    let decoder = handshake(&mut stream, endpoint).await?;
    Ok(Dialed { stream, decoder })
}
