//! The client against real servers.

fn main() {}
