//! Names of hosts on turmoil's network.

/// Returns the name of the node at `place`, for addresses.
pub(super) fn node_name(place: usize) -> String {
    format!("node-{place}")
}

/// Returns the node with this name.
pub(super) fn node_of(name: &str) -> u8 {
    let place = name.strip_prefix("node-").and_then(|place| place.parse().ok());
    place.expect("clients are told the names of nodes")
}

/// Returns the name of the server at `place`, for turmoil.
pub(super) fn server_name(place: usize) -> String {
    format!("server-{place}")
}
