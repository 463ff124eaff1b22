#![doc = include_str!("../docs/testing.md")]

mod clock;
mod entropy;
mod environment;
mod errors;
mod fleet;
mod node;
mod nodes;
mod stream;

pub use self::nodes::Nodes;
