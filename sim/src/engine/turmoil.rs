//! The real client on tokio, RESP bytes and all, over turmoil's simulated TCP.

use super::{Kept, Outcome, Unsupported};
use crate::scenario::Case;

/// Plays `case` by `seed`; the events go to `kept` if it is given.
///
/// # Errors
///
/// If the case asks for what this engine cannot do.
pub fn run(case: &Case, seed: u64, kept: Kept<'_>) -> Result<Outcome, Unsupported> {
    let _ = (case, seed, kept);
    Err(Unsupported { engine: "turmoil", what: String::from("anything yet") })
}
