//! A command that waits to be written or answered.

use core::time::Duration;

use crate::command::{CommandId, Op, Reply, Send};
use crate::time::BootInstant;

#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) id: CommandId,
    pub(super) op: Op,
    /// Longest time that the command's key lives.
    pub(super) key_ttl: Duration,
    /// The command must be written before this instant.
    pub(super) write_before: Option<BootInstant>,
    /// When the link took the command: the node timeout runs from here.
    pub(super) since: BootInstant,
    /// When the command was handed to the transport: the link's patience runs from here.
    pub(super) written_at: Option<BootInstant>,
    /// The node timeout has passed, and the lock that sent the command was informed that there is no
    /// answer. A late answer will be dropped unless [`Pending::is_news`] says otherwise.
    pub(super) overdue: bool,
    /// The vote counts only after the introduction that directly follows the command has been
    /// answered.
    pub(super) confirmed_behind: bool,
}

impl Pending {
    pub(super) fn of_lock(send: Send, now: BootInstant) -> Self {
        let Send { id, op, write_before, key_ttl, .. } = send;
        let (written_at, overdue, confirmed_behind) = (None, false, false);
        Self { id, op, key_ttl, write_before, since: now, written_at, overdue, confirmed_behind }
    }

    pub(super) fn of_link(id: CommandId, op: Op, key_ttl: Duration, now: BootInstant) -> Self {
        let (write_before, written_at) = (None, None);
        let (overdue, confirmed_behind) = (false, false);
        Self { id, op, key_ttl, write_before, since: now, written_at, overdue, confirmed_behind }
    }

    /// Returns true if it is too late to write the command.
    pub(super) fn is_stale(&self, now: BootInstant) -> bool {
        self.write_before.is_some_and(|end| end <= now)
    }

    /// Returns true if the lock that sent the command learns of its answer, which has come: it is in
    /// time, or shows something of the node that lasts. That is whether a SET is still on its way, and
    /// whether a lease's key is there.
    pub(super) fn is_news(&self) -> bool {
        let lasts = matches!(self.op, Op::Extend { .. } | Op::Read { .. } | Op::Set { .. });
        !self.overdue || lasts
    }

    /// Returns true if `reply` can be the answer to the command.
    pub(super) fn is_answered_by(&self, reply: Reply) -> bool {
        match self.op {
            Op::Introduce => {
                matches!(reply, Reply::Introduction(_) | Reply::NotServing | Reply::Error)
            }
            Op::Extend { .. } | Op::Release { .. } | Op::TimeLeft { .. } => {
                matches!(reply, Reply::Integer(_) | Reply::NotServing | Reply::Error)
            }
            Op::Look { .. } | Op::Read { .. } => matches!(
                reply,
                Reply::Integer(_) | Reply::Registered(_) | Reply::NotServing | Reply::Error
            ),
            Op::Set { .. } => {
                !matches!(reply, Reply::Integer(_) | Reply::Introduction(_) | Reply::Registered(_))
            }
        }
    }
}
