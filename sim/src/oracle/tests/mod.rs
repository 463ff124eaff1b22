//! Histories told by hand, and what the oracle makes of them.

mod beliefs;
mod blame;
mod sections;
mod tale;
