//! The bytes of a connection.

use tokio::io::{AsyncRead, AsyncWrite};

/// A connection's bytes, both ways. Dropping it resets the connection: what was not sent by then
/// is not sent any more.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Stream for T {}
