//! Commands, their executions and answers, and the keys that they set and delete.

use super::{C1, C2, MS, TTL_MS, Tale, node};
use crate::history::{
    Answer, AttemptId, ClockKind, CommandId, EventKind, KeyEnd, OpKind, Settlement, Writer,
};

impl Tale {
    pub(in crate::oracle::tests) fn writes(
        &mut self,
        id: AttemptId,
        at: char,
        op: OpKind,
    ) -> CommandId {
        let command = CommandId(self.commands);
        self.commands += 1;
        self.tell(EventKind::Written { command, attempt: id, node: node(at), op });
        command
    }

    /// Adds the execution of a command by a node, now.
    pub(in crate::oracle::tests) fn executes(
        &mut self,
        (command, id, at, op): (CommandId, AttemptId, char, OpKind),
        answer: Answer,
        (before, after): (Writer, Writer),
    ) -> &mut Self {
        let (node, changed) = (node(at), before != after);
        let wall_ms = self.reads_ns(node.first_host(), ClockKind::Wall) / MS;
        let expires_wall_ms = if after == Writer::Nobody { u64::MAX } else { wall_ms + TTL_MS };
        self.tell(EventKind::Executed {
            command,
            attempt: id,
            node,
            op,
            answer,
            changed,
            before,
            after,
            expires_wall_ms,
        })
    }

    /// Marks the last execution as a change of the key by the same writer.
    pub(in crate::oracle::tests) fn counts_as_change(&mut self) -> &mut Self {
        match self.events.last_mut().map(|event| &mut event.kind) {
            Some(EventKind::Executed { changed, .. }) => *changed = true,
            other => panic!("not an execution: {other:?}"),
        }
        self
    }

    pub(in crate::oracle::tests) fn answers(
        &mut self,
        command: CommandId,
        id: AttemptId,
        at: char,
        answer: Answer,
    ) {
        self.hears((command, id, at, OpKind::Set), answer);
    }

    /// Adds the delivery of an answer to the client.
    pub(in crate::oracle::tests) fn hears(
        &mut self,
        (command, attempt, at, op): (CommandId, AttemptId, char, OpKind),
        answer: Answer,
    ) -> &mut Self {
        self.tell(EventKind::Delivered { command, attempt, node: node(at), op, answer })
    }

    /// Adds SETs that are written, executed and answered at once, on empty nodes.
    pub(in crate::oracle::tests) fn sets(&mut self, id: AttemptId, nodes: &str) -> &mut Self {
        for at in nodes.chars() {
            let command = self.writes(id, at, OpKind::Set);
            let change = (Writer::Nobody, Writer::Attempt(id));
            self.executes((command, id, at, OpKind::Set), Answer::Yes, change);
            self.answers(command, id, at, Answer::Yes);
        }
        self
    }

    /// Adds commands of `id` that extend keys of `owner`, executed and answered at once.
    pub(in crate::oracle::tests) fn retimes(
        &mut self,
        id: AttemptId,
        owner: AttemptId,
        nodes: &str,
    ) -> &mut Self {
        for at in nodes.chars() {
            let command = self.writes(id, at, OpKind::Extend);
            let change = (Writer::Attempt(owner), Writer::Attempt(owner));
            self.executes((command, id, at, OpKind::Extend), Answer::Yes, change);
            self.counts_as_change().hears((command, id, at, OpKind::Extend), Answer::Yes);
        }
        self
    }

    /// Ends the keys of `id` on `nodes`, which have the expiry that they last received.
    pub(in crate::oracle::tests) fn ends_key(
        &mut self,
        id: AttemptId,
        nodes: &str,
        cause: KeyEnd,
        by: Writer,
    ) -> &mut Self {
        for at in nodes.chars() {
            let (node, writer) = (node(at), Writer::Attempt(id));
            let received = self.events.iter().rev().find_map(|event| match event.kind {
                EventKind::Executed { node: on, after, expires_wall_ms, .. }
                    if (on, after) == (node, writer) =>
                {
                    Some(expires_wall_ms)
                }
                _ => None,
            });
            let expires_wall_ms = received.unwrap_or(u64::MAX);
            self.tell(EventKind::KeyEnded { node, writer, cause, by, expires_wall_ms });
        }
        self
    }

    pub(in crate::oracle::tests) fn expires(&mut self, id: AttemptId, nodes: &str) -> &mut Self {
        self.ends_key(id, nodes, KeyEnd::Expired, Writer::Nobody)
    }

    /// Adds releases of `id` that delete its keys on `nodes`.
    pub(in crate::oracle::tests) fn unlocks(&mut self, id: AttemptId, nodes: &str) -> &mut Self {
        self.deletes(id, id, nodes)
    }

    /// Adds commands of `by` that delete the keys of `owner` on `nodes`.
    pub(in crate::oracle::tests) fn deletes(
        &mut self,
        by: AttemptId,
        owner: AttemptId,
        nodes: &str,
    ) -> &mut Self {
        for at in nodes.chars() {
            let command = self.writes(by, at, OpKind::Release);
            let change = (Writer::Attempt(owner), Writer::Nobody);
            self.executes((command, by, at, OpKind::Release), Answer::Yes, change);
            let (cause, by) = (KeyEnd::Command, Writer::Attempt(by));
            self.ends_key(owner, &at.to_string(), cause, by);
        }
        self
    }

    /// Adds SETs of `id` that are refused by nodes that hold keys of `owner`.
    pub(in crate::oracle::tests) fn is_refused(
        &mut self,
        id: AttemptId,
        owner: AttemptId,
        nodes: &str,
    ) -> &mut Self {
        for at in nodes.chars() {
            let command = self.writes(id, at, OpKind::Set);
            let change = (Writer::Attempt(owner), Writer::Attempt(owner));
            self.executes((command, id, at, OpKind::Set), Answer::No, change);
            self.answers(command, id, at, Answer::No);
        }
        self
    }
    /// Adds an attempt of C1 whose SETs nobody answers, and one of C2 right after it that ends for want
    /// of nodes.
    pub(in crate::oracle::tests) fn c2_asks_nodes_that_owe_c1_answers(&mut self) -> &mut Self {
        self.begins(C1);
        for at in ['A', 'B', 'C'] {
            self.writes(C1, at, OpKind::Set);
        }
        self.settles(C1, Settlement::Cancelled).at(1).begins(C2).at(2);
        self.settles(C2, Settlement::TooFewNodes)
    }
}
