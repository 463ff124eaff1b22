//! The client, its peer and the bound, on the same servers.

fn main() {}
