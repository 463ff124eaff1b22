//! The wire: bytes to requests, values to bytes.

mod inline;
mod request;
mod value;

pub use request::{ProtocolError, Request, Requests};
pub use value::{Protocol, Value};
