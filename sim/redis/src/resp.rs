//! The wire format: parses bytes into requests and encodes values as bytes.

mod request;
mod value;

pub(crate) use request::inline_words;
pub use request::{ProtocolError, Request, Requests};
pub use value::{Protocol, Value};

#[cfg(test)]
mod tests;
