//! Errors, and reasons for the end of a lease.

mod acquire;
mod build;
mod extend;
mod lease;
mod node;
mod resource;

pub use self::acquire::{AcquireError, AcquireErrorKind, WithError};
pub use self::build::{BuildError, EndpointError, OptionError, TtlError};
pub use self::extend::{ExtendError, ExtendErrorKind};
pub use self::lease::{CheckError, Closed, LostReason, Released};
pub use self::node::{NodeAnswer, NodeVerdict};
pub use self::resource::ResourceError;
