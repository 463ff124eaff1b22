//! The bytes of a connection.

use tokio::io::{AsyncRead, AsyncWrite};

/// The bytes of a connection in both directions. Dropping it resets the connection; unsent bytes
/// are discarded.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Stream for T {}
