//! The command `redlock-sim`.

fn main() {}
