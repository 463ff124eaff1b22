//! What the nodes' tasks tell of their transports, and what they are told to do.

use core::task::Context;
use std::collections::VecDeque;
use std::sync::Arc;

use bytes::BytesMut;

use super::{Driver, State, Task};
use crate::observer::{Answer, Event as Told, Operation};
use crate::protocol::{BootInstant, NodeIndex, Reply, Token};

/// A node's transport, as the machines want it.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// The connection that there should be, or be dialled.
    pub(super) epoch: Option<u32>,
    /// What is to be written on it.
    pub(super) outgoing: BytesMut,
    /// What was written on it and not answered, oldest first. Replies have no names of their own.
    pub(super) unanswered: VecDeque<(Operation, Option<Token>)>,
    pub(super) eligible_from: Option<BootInstant>,
    /// The last error of the node or its connection, in its own words.
    pub(super) last_error: Option<Arc<str>>,
    pub(super) task: Task,
}

/// What a node's task is to do.
pub(crate) struct Orders {
    /// The connection that there should be.
    pub(crate) epoch: Option<u32>,
    /// Nothing will be asked of the task any more.
    pub(crate) finished: bool,
    /// What is to be written on the connection that the task has.
    pub(crate) outgoing: BytesMut,
}

impl Driver {
    /// What the task of `node`, which serves the connection `epoch`, is to do.
    pub(crate) fn orders(
        &self,
        node: NodeIndex,
        epoch: Option<u32>,
        context: &Context<'_>,
    ) -> Orders {
        let mut state = self.lock();
        let finished = state.is_finished();
        let node = &mut state.nodes[node.get()];
        node.task.listen(context);
        let current = node.epoch == epoch;
        let outgoing = if current { node.outgoing.split() } else { BytesMut::new() };
        Orders { epoch: node.epoch, finished, outgoing }
    }

    /// The connection `epoch` to `node` is open.
    pub(crate) fn connected(&self, node: NodeIndex, epoch: u32) {
        self.turn(|state, now| state.machine.handle_connected(node, epoch, now));
    }

    /// The connection `epoch` to `node` takes bytes again, or takes none for now.
    pub(crate) fn writable(&self, node: NodeIndex, epoch: u32, writable: bool) {
        self.turn(|state, now| state.machine.handle_writable(node, epoch, writable, now));
    }

    /// The connection `epoch` to `node` is gone, after it brought `replies`.
    pub(crate) fn closed(&self, node: NodeIndex, epoch: u32) {
        self.turn(|state, now| self.hear_closed(state, node, epoch, now));
    }

    /// The task of `node`, which served the connection `epoch`, has ended.
    pub(crate) fn node_task_ended(&self, node: NodeIndex, epoch: Option<u32>) {
        self.last_turn(|state, now| {
            state.nodes[node.get()].task = Task::default();
            if let Some(epoch) = epoch {
                self.hear_closed(state, node, epoch, now);
            }
        });
    }

    /// `replies` were read from the connection `epoch` to `node`.
    pub(crate) fn replies(&self, node: NodeIndex, epoch: u32, replies: &[Reply]) {
        self.turn(|state, _| {
            for &reply in replies {
                if state.nodes[node.get()].epoch != Some(epoch) {
                    return;
                }
                if let Some((operation, owner)) = state.nodes[node.get()].unanswered.pop_front() {
                    let answer = answer(reply);
                    self.tell(&Told::Answered { node, operation, owner, answer });
                }
                // An attempt may have begun since the last one: the clock is read afresh.
                let now = self.environment.now();
                state.machine.handle_reply(node, epoch, reply, now);
                self.pump(state, now);
            }
        });
    }

    fn hear_closed(&self, state: &mut State, node: NodeIndex, epoch: u32, now: BootInstant) {
        if state.nodes[node.get()].epoch == Some(epoch) {
            self.disconnect(state, node);
            state.machine.handle_closed(node, epoch, now);
        }
    }

    pub(super) fn disconnect(&self, state: &mut State, node: NodeIndex) {
        let entry = &mut state.nodes[node.get()];
        entry.epoch = None;
        entry.outgoing.clear();
        entry.unanswered.clear();
        self.tell(&Told::Disconnected { node });
    }
}

fn answer(reply: Reply) -> Answer {
    match reply {
        Reply::Error => Answer::Error,
        Reply::Integer(1..) | Reply::Introduction(_) | Reply::Ok => Answer::Yes,
        Reply::Integer(_) | Reply::Nil => Answer::No,
    }
}
