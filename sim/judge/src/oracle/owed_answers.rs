//! Answers that nodes owe to the processes of clients.
//!
//! Answers come in order. So while a process awaits answers of a node, the first command that it wrote
//! since it last awaited none is the first that is answered. If it never is, the connection was lost.

use crate::history::{AttemptId, ClientId, CommandId, NodeId, OpKind};
use crate::ids::{PerClient, PerNode};

/// Commands that each process has written to each node, and that may be unanswered. A process is named
/// by the client on whose host it runs.
#[derive(Clone, Debug)]
pub(super) struct OwedAnswers(PerClient<PerNode<Owed>>);

#[derive(Clone, Copy, Debug, Default)]
struct Owed {
    /// First command since no answer was owed, and its time; `None` once it is answered.
    first: Option<(CommandId, u64)>,
    /// Last command; `None` once it is answered.
    last: Option<CommandId>,
    /// Last SET, and its time.
    last_set: Option<(AttemptId, u64)>,
    /// Last request for an introduction; `None` once it is answered.
    introduction: Option<CommandId>,
}

/// A SET that was written while the node owed an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SetBehind {
    pub id: AttemptId,
    /// Time at which the SET was written.
    pub at_ns: u64,
    /// Time at which the command was written whose answer the node then owed.
    pub owed_since_ns: u64,
}

impl OwedAnswers {
    pub(super) fn new() -> Self {
        Self(PerClient::filled(PerNode::filled(Owed::default())))
    }

    /// Forgets everything about the first `clients` clients.
    pub(super) fn reset(&mut self, clients: usize) {
        self.0.first_mut(clients).fill(PerNode::filled(Owed::default()));
    }

    /// Records that `process` wrote a command of the attempt `id` to `node`.
    pub(super) fn written(
        &mut self,
        (process, node): (ClientId, NodeId),
        (command, op): (CommandId, OpKind),
        id: AttemptId,
        at_ns: u64,
    ) {
        let owed = &mut self.0[process][node];
        if owed.last.replace(command).is_none() {
            owed.first = Some((command, at_ns));
        }
        if op == OpKind::Set {
            owed.last_set = Some((id, at_ns));
        }
        if op == OpKind::Introduce {
            owed.introduction = Some(command);
        }
    }

    /// Returns true if `process` may still wait for an introduction of `node`.
    pub(super) fn is_introduction_owed(&self, process: ClientId, node: NodeId) -> bool {
        self.0[process][node].introduction.is_some()
    }

    /// Records that `process` received the answer to `command` of `node`; returns the last SET that it
    /// wrote behind that command, if it can tell.
    pub(super) fn answered(
        &mut self,
        (process, node): (ClientId, NodeId),
        command: CommandId,
    ) -> Option<SetBehind> {
        let owed = &mut self.0[process][node];
        if owed.last == Some(command) {
            *owed = Owed::default();
            return None;
        }
        owed.introduction.take_if(|introduction| *introduction <= command);
        let (_, owed_since_ns) = owed.first.take_if(|(first, _)| *first == command)?;
        let (id, at_ns) = owed.last_set.filter(|(_, at_ns)| *at_ns > owed_since_ns)?;
        Some(SetBehind { id, at_ns, owed_since_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: (ClientId, NodeId) = (ClientId(0), NodeId(2));

    fn id(number: u16) -> AttemptId {
        AttemptId { client: ClientId(0), number }
    }

    fn after(writes: &[(u32, OpKind)]) -> OwedAnswers {
        let mut owed = OwedAnswers::new();
        for (place, (command, op)) in (1..).zip(writes) {
            owed.written(AT, (CommandId(*command), *op), id(place), u64::from(place) * 10);
        }
        owed
    }

    #[test]
    fn a_set_behind_an_unanswered_command_is_told_with_its_answer() {
        let mut owed = after(&[(4, OpKind::Look), (7, OpKind::Set)]);
        let told = SetBehind { id: id(2), at_ns: 20, owed_since_ns: 10 };
        assert_eq!(owed.answered(AT, CommandId(4)), Some(told));
        assert_eq!(owed.answered(AT, CommandId(4)), None, "once");
        assert_eq!(owed.answered(AT, CommandId(7)), None);
    }

    #[test]
    fn an_introduction_is_owed_until_one_behind_it_is_answered() {
        let is_owed_after = |command| {
            let mut owed = after(&[
                (4, OpKind::Set),
                (7, OpKind::Introduce),
                (9, OpKind::Look),
                (11, OpKind::Set),
            ]);
            owed.answered(AT, CommandId(command));
            owed.is_introduction_owed(AT.0, AT.1)
        };
        assert!(is_owed_after(4));
        assert!(!is_owed_after(7));
        assert!(!is_owed_after(9), "7 will not be answered");
        assert!(!is_owed_after(11));
    }

    #[test]
    fn what_is_no_set_or_is_in_front_does_not_count() {
        let mut owed = after(&[(4, OpKind::Set), (7, OpKind::Release)]);
        assert_eq!(owed.answered(AT, CommandId(4)), None);
        assert_eq!(owed.answered(AT, CommandId(7)), None);
        owed.written(AT, (CommandId(8), OpKind::Look), id(9), 50);
        assert_eq!(owed.answered(AT, CommandId(8)), None, "the SET was answered before");
    }

    #[test]
    fn a_command_that_a_connection_took_along_proves_nothing() {
        let mut owed = after(&[(4, OpKind::Look), (7, OpKind::Look), (9, OpKind::Set)]);
        assert_eq!(owed.answered(AT, CommandId(7)), None, "4 will not be answered");
        assert_eq!(owed.answered(AT, CommandId(9)), None);
        owed.written(AT, (CommandId(10), OpKind::Look), id(9), 50);
        owed.written(AT, (CommandId(11), OpKind::Set), id(9), 60);
        assert!(owed.answered(AT, CommandId(10)).is_some(), "no answer was owed before 10");
    }
}
