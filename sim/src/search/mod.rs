//! From single runs to statements about many: campaigns over seeds, and what they amount to.

mod result;

pub use result::{CaseResult, Failure, Observed, PropertyResult};
