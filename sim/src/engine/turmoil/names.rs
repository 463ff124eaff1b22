//! Names of hosts on turmoil's network.

use lock_judge::history::{ClientId, NodeId};
use lock_judge::ids::ServerId;

/// Returns the name of a client, for turmoil.
pub(super) fn client_name(client: ClientId) -> String {
    format!("client-{client}")
}

/// Returns the name of a node, for addresses.
pub(super) fn node_name(node: NodeId) -> String {
    format!("node-{node}")
}

/// Returns the node with this name.
pub(super) fn node_of(name: &str) -> NodeId {
    let number = name.strip_prefix("node-").and_then(|number| number.parse().ok());
    number.map(NodeId).expect("clients are told the names of nodes")
}

/// Returns the name of a server, for turmoil.
pub(super) fn server_name(server: ServerId) -> String {
    format!("server-{server}")
}
