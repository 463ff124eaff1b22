//! Commands and replies on the connections of a process, whatever lock they are about.

use super::facts::Facts;
use super::ground::NEVER;
use super::owed_answers::SetBehind;
use crate::history::{AttemptId, CommandId, NodeId, OpKind};

impl Facts {
    /// Records a command of the process of `id` to `node`: all its tasks wait for the answer.
    pub(super) fn connection_written(
        &mut self,
        (command, op): (CommandId, OpKind),
        id: AttemptId,
        node: NodeId,
    ) {
        self.next_command = self.next_command.max(CommandId(command.0.saturating_add(1)));
        if !self.can_be(id.client, node) {
            return;
        }
        // A client may have prepared a command when its process was stopped.
        let began_ns = match op {
            OpKind::Set => self.t1_before_stop_ns(id, node),
            OpKind::Extend | OpKind::Release => {
                self.processes.stopped_until_now_ns(id.client, self.now_ns)
            }
            _ => NEVER,
        };
        let connection = (self.setting.process(id.client), node);
        self.owed_answers.written(connection, (command, op), id, self.now_ns);
        for task in self.setting.tasks_with(id.client).iter() {
            self.reach.written(task, node, command, (began_ns, self.now_ns));
        }
    }

    /// Records an answer to a command of the process of `id`; returns a SET that the process has
    /// written behind that command.
    pub(super) fn connection_answered(
        &mut self,
        command: CommandId,
        id: AttemptId,
        node: NodeId,
    ) -> Option<SetBehind> {
        if !self.can_be(id.client, node) {
            return None;
        }
        for task in self.setting.tasks_with(id.client).iter() {
            self.reach.answered(task, node, command, self.now_ns);
        }
        self.owed_answers.answered((self.setting.process(id.client), node), command)
    }

    /// Records T1 of an attempt at another lock.
    pub(super) fn neighbour_began(&mut self, id: AttemptId) {
        let now_ns = self.now_ns;
        if let Some(attempt) = self.leases.ensure(id) {
            attempt.began_ns = now_ns;
        }
    }

    /// Records that an attempt at another lock has written a command to `node`.
    pub(super) fn neighbour_wrote(&mut self, id: AttemptId, node: NodeId, op: OpKind) {
        let now_ns = self.now_ns;
        if op == OpKind::Set
            && let Some(key) = self.leases.key_mut(id, node)
        {
            key.written_ns = now_ns;
        }
    }
}
