//! The wire: bytes to requests, values to bytes.

mod request;
mod value;

pub(in crate::master) use request::inline_words;
pub use request::{ProtocolError, Request, Requests};
pub use value::{Protocol, Value};

#[cfg(test)]
mod tests;
