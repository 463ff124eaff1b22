//! Runs scenarios with many seeds and summarises the verdicts.

mod agreement;
mod campaign;
mod compare;
mod engine;
mod figures;
pub mod margin;
mod played;
mod player;
mod result;
mod single;
mod smallest;
mod tally;
#[cfg(test)]
mod testing;

pub use agreement::disagreements;
pub use campaign::{Campaign, replay, replay_checked};
pub use engine::Engine;
pub use figures::Figures;
pub use played::Played;
pub(crate) use player::Player;
pub use result::{CaseResult, Failure, Observed, PropertyResult, QuantityResult};
pub use single::judge_one;
pub use tally::{DISTINCT_MAX, Tally};
