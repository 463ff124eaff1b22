//! Histories told by hand, and what the oracle makes of them.

mod beliefs;
mod blame;
mod exposure;
mod extension;
mod nonsense;
mod owners;
mod progress;
mod refusal;
mod sections;
mod tale;
mod tidy;
mod tolerance;
mod writes;
