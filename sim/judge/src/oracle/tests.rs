//! Feeds hand-written histories to the oracle and checks its verdicts.

mod beliefs;
mod blame;
mod exposure;
mod extension;
mod grants;
mod kept_alive;
mod loss;
mod nonsense;
mod owners;
mod polls;
mod progress;
mod quantities;
mod reads;
mod refusal;
mod resources;
mod sections;
mod tale;
mod tasks;
mod tidy;
mod tolerance;
mod votes;
mod writes;
