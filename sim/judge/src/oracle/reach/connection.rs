//! Connections between clients and nodes, as far as a history shows them.

use super::super::ground::NEVER;
use crate::history::CommandId;

/// State of a client's connection to a node, derived from the history.
#[derive(Clone, Copy, Debug)]
pub(super) struct Connection {
    /// The last command that was written; `None` if none was.
    pub(super) last: Option<CommandId>,
    /// Time of the answer to the last command; [`NEVER`] if it has not come.
    pub(super) answered_ns: u64,
    /// Time from which the client may have closed the connection; [`NEVER`] if it awaits no answer.
    pub(super) let_go_ns: u64,
    /// End of the last period in which the connection may have been closed; 0 if there was none.
    pub(super) dialled_ns: u64,
    /// Time at which the connection was last lost, plus one; 0 if it never was.
    pub(super) lost_ns: u64,
    /// Time of the first answer after a silent partition to a command that was written after its
    /// beginning: [`NEVER`] until it comes, because the connection may be half open; 0 if there was no
    /// such partition.
    pub(super) works_since_ns: u64,
    /// The last command before the beginning of the last silent partition; `None` if there is none.
    pub(super) last_before_silence: Option<CommandId>,
    /// Time from which the client may have closed the connection that a silent partition left half
    /// open; [`NEVER`] if it awaits no answer on that one. `let_go_ns` may be earlier, because of a
    /// connection that was closed before the partition.
    pub(super) half_open_let_go_ns: u64,
    /// True if requests are lost that go into the half-open connection: a silent partition has cut
    /// their way, or the node's process ended meanwhile.
    pub(super) is_dead: bool,
    /// Time, plus one, of the last restart behind a proxy that took an answer along; 0 if there was
    /// none.
    pub(super) owes_since: u64,
    /// Time until which the connection last led to a master that a failover had replaced; [`NEVER`]
    /// while it does, 0 if it never did.
    pub(super) outdated_until_ns: u64,
}

pub(super) const OPEN: Connection = Connection {
    last: None,
    answered_ns: 0,
    let_go_ns: NEVER,
    dialled_ns: 0,
    lost_ns: 0,
    works_since_ns: 0,
    last_before_silence: None,
    half_open_let_go_ns: NEVER,
    is_dead: false,
    owes_since: 0,
    outdated_until_ns: 0,
};
