//! The bytes of a connection.

use tokio::io::{AsyncRead, AsyncWrite};

/// Both directions of a connection's bytes. Dropping it resets the connection: bytes not sent by
/// then are never sent.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Stream for T {}
