//! Opens a connection to a node's endpoint and makes it ready for the machines.

mod handshake;
mod replies;

use std::error::Error;
use std::io;
use std::sync::Arc;

use self::handshake::handshake;
pub(crate) use self::replies::{read_reply, value_of};
use crate::endpoint::Endpoint;
use crate::environment::{Environment, Stream};
use crate::printable::printable;
use crate::resp::{Decoder, Malformed};
#[cfg(feature = "tls")]
use crate::tls::explained;

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
    /// Error of the application's provider of credentials, with its causes.
    #[error("the provider of credentials failed: {0}")]
    Credentials(String),
    /// As tokio does if the system gives no thread to resolve a host's name.
    #[error("opening the connection panicked")]
    Panicked,
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

    /// Returns the error; one of TLS with the name of its layer and in words.
    fn in_words(self) -> Self {
        #[cfg(feature = "tls")]
        if let Self::Io(error) = &self
            && let Some(explained) = explained(error)
        {
            return explained.into();
        }
        self
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
    // After the connection is there: a dead node costs the provider nothing.
    let credentials =
        endpoint.credentials().await.map_err(|error| DialError::Credentials(causes(&*error)))?;
    let shaken = handshake(&mut stream, endpoint, credentials.as_ref()).await;
    let (decoder, is_tracked) = shaken.map_err(DialError::in_words)?;
    Ok(Dialed { stream, decoder, is_tracked })
}

/// Returns the texts of the error and its causes.
fn causes(error: &(dyn Error + 'static)) -> String {
    let texts = core::iter::successors(Some(error), |&error| error.source());
    texts.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests;
