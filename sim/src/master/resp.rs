//! The wire: bytes to requests, values to bytes.

mod inline;
mod request;
mod value;

pub(in crate::master) use inline::words as inline_words;
pub use request::{ProtocolError, Request, Requests};
pub use value::{Protocol, Value};

#[cfg(test)]
mod tests;
