//! Interface between the node tasks and the machines: transport events in, orders out.

use core::task::Context;
use std::sync::Arc;

use bytes::BytesMut;
use redlock_protocol::{BootInstant, GivenUp, NodeIndex, Op, Reply, ResourceId, RunId};

use super::names::Names;
use super::pipeline::{Answer, Pipeline};
use super::{Driver, State, Task};
use crate::error::{NO_ANSWER, NO_CONNECTION, NO_TLS_ANSWER};
use crate::observe::{self, Instant, Operation};
use crate::resp::{Decoder, Frame, Malformed};

/// A node's transport, in the state that the machines require.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// Epoch of the connection that should be open or dialled.
    pub(super) epoch: Option<u32>,
    /// Bytes to be written on that connection.
    pub(super) outgoing: BytesMut,
    /// Unanswered commands of that connection.
    pub(super) pipeline: Pipeline,
    pub(super) eligible_from: Option<BootInstant>,
    /// Last error of the node or its connection, as the server or system worded it, in printable
    /// form.
    pub(super) last_error: Option<Arc<str>>,
    /// Instant at which that error was read.
    pub(super) error_at: BootInstant,
    /// Last resource whose holder the node did not show with its refusal, and the error that it
    /// sent instead.
    pub(super) hidden_holder: Option<(ResourceId, Arc<str>)>,
    /// True if the node was in quarantine at the last check.
    pub(super) quarantined: bool,
    /// The server's process, according to the last introduction on the connection `epoch`.
    pub(super) run_id: Option<RunId>,
    /// True if the connection `epoch` is open.
    pub(super) connected: bool,
    /// Instant of an open request that the task read everything that has arrived; `None` if there
    /// is no such request.
    pub(super) to_look_since: Option<BootInstant>,
    pub(super) task: Task,
}

/// Orders for a node's task.
pub(crate) struct Orders {
    /// Epoch of the connection that should be open or dialled.
    pub(crate) epoch: Option<u32>,
    /// True if the task must read everything that has arrived, and then call [`Driver::looked`].
    pub(crate) look: bool,
    /// True if the task is to end.
    pub(crate) finished: bool,
}

impl Node {
    /// Returns the end of the node's quarantine, while it is to be reported.
    pub(super) fn quarantined_until(&self) -> Option<BootInstant> {
        self.eligible_from.filter(|_| self.quarantined)
    }
}

impl Driver {
    /// Returns the orders for the task of `node`, which serves the connection `epoch`. Bytes to be
    /// written on that connection are appended to `outgoing`.
    pub(crate) fn orders(
        &self,
        node: NodeIndex,
        epoch: Option<u32>,
        outgoing: Option<&mut BytesMut>,
        context: &Context<'_>,
    ) -> Orders {
        let mut state = self.lock();
        let finished = state.is_finished();
        let node = &mut state.nodes[node.get()];
        node.task.listen(context);
        match outgoing {
            // The two buffers are swapped, so that neither is ever allocated anew.
            Some(outgoing) if node.epoch == epoch && outgoing.is_empty() => {
                outgoing.clear();
                core::mem::swap(outgoing, &mut node.outgoing);
            }
            Some(outgoing) if node.epoch == epoch => {
                outgoing.extend_from_slice(&node.outgoing);
                node.outgoing.clear();
            }
            _ => {}
        }
        Orders { epoch: node.epoch, look: node.to_look_since.is_some(), finished }
    }

    /// Handles the beginning of the dial `epoch` to `node`. It may have been ordered long before, while
    /// no runtime polled the task.
    pub(crate) fn dialing(&self, node: NodeIndex, epoch: u32) {
        self.turn_of_task(|state, now| state.machine.handle_dialing(node, epoch, now));
    }

    /// Handles the opening of the connection `epoch` to `node`. `is_tracked` is true if the server
    /// can push the changes of keys that the client reads.
    pub(crate) fn connected(&self, node: NodeIndex, epoch: u32, is_tracked: bool) {
        self.turn_of_task(|state, now| {
            let entry = &mut state.nodes[node.get()];
            if entry.epoch == Some(epoch) {
                entry.connected = true;
                entry.pipeline.set_tracked(is_tracked);
                self.tell(|| observe::Event::Connected { node: node.get() });
            }
            state.machine.handle_connected(node, epoch, now);
        });
    }

    /// Handles a change of the connection `epoch` to `node`: it accepts bytes again, or none for
    /// now.
    pub(crate) fn writable(&self, node: NodeIndex, epoch: u32, writable: bool) {
        self.turn_of_task(|state, now| state.machine.handle_writable(node, epoch, writable, now));
    }

    /// Handles the loss of the connection `epoch` to `node`, or the failure to open it.
    pub(crate) fn closed(&self, node: NodeIndex, epoch: u32, why: Arc<str>) {
        self.turn_of_task(|state, now| self.hear_closed(state, node, epoch, why, now));
    }

    /// Handles the end of the task of `node`, which served the connection `epoch`: its runtime has
    /// ended, or the client has.
    pub(crate) fn node_task_ended(&self, node: NodeIndex, epoch: Option<u32>) {
        self.last_turn(|state, now| {
            let entry = &mut state.nodes[node.get()];
            (entry.task, entry.to_look_since) = (Task::default(), None);
            self.task_ended(state);
            if let Some(epoch) = epoch {
                self.hear_abandoned(state, node, epoch, now);
            }
        });
    }

    /// Handles the replies in `received`, from the connection `epoch` to `node`.
    ///
    /// # Errors
    ///
    /// If a reply does not fit its command. The commands that later replies belong to are then in
    /// doubt (counterexample N5).
    pub(crate) fn replies(
        &self,
        node: NodeIndex,
        epoch: u32,
        received: &mut Decoder,
    ) -> Result<(), Malformed> {
        self.turn_of_task(|state, _| {
            loop {
                let State { nodes, names, .. } = state;
                let entry = &mut nodes[node.get()];
                if entry.epoch != Some(epoch) {
                    return Ok(());
                }
                let Some(frame) = received.next()? else {
                    return Ok(());
                };
                if frame == Frame::KeysFlushed {
                    let now = state.clock;
                    state.machine.handle_keys_lost(node, epoch, now);
                    self.pump(state, now);
                    continue;
                }
                if let Frame::KeysChanged(push) = frame {
                    let now = state.clock;
                    let changed = push.keys().filter_map(|key| names.number(key));
                    let machine = &mut state.machine;
                    let woken = changed
                        .filter(|&resource| machine.handle_key_changed(node, epoch, resource, now));
                    if woken.count() > 0 {
                        self.pump(state, now);
                    }
                    continue;
                }
                let Node { pipeline, outgoing, last_error, .. } = entry;
                let name = |op: &Op| self.key_of(op, names);
                let endpoint = self.endpoint(node);
                let mut next = pipeline.receive(frame, name, outgoing, endpoint, last_error)?;
                while let Some((op, answer)) = next {
                    self.answered(state, node, epoch, op, answer);
                    next = state.nodes[node.get()].pipeline.take();
                }
            }
        })
    }

    /// Passes the reply to the oldest command on the connection `epoch` to `node` to the machines.
    fn answered(&self, state: &mut State, node: NodeIndex, epoch: u32, op: Op, answer: Answer) {
        let Answer { reply, error } = answer;
        let entry = &mut state.nodes[node.get()];
        match (op, error) {
            (Op::Set { resource, .. }, Some(error)) if reply == Reply::Nil => {
                entry.hidden_holder = Some((resource, error));
            }
            (_, Some(_)) => entry.error_at = state.clock,
            (Op::Set { resource, .. }, None) => {
                entry.hidden_holder.take_if(|(hidden, _)| *hidden == resource);
            }
            _ => {}
        }
        // The clock was read after the reply was, and again for every attempt that has begun since.
        let now = state.clock;
        self.tell(|| observe::Event::Answered {
            node: node.get(),
            operation: operation(&op),
            owner: op.token(),
            resource: op.resource().map_or(&[], |resource| state.names.name(resource)),
            answer: observed(reply),
            at: Instant::new(now),
        });
        if let Reply::Introduction(introduction) = reply {
            self.tell_twin(state, node, introduction.run_id);
        }
        let has_more = state.machine.handle_reply(node, epoch, reply, now);
        if op == Op::Introduce {
            state.waiters.wake_all(&mut state.wakes);
        }
        // No other node's eligibility has changed.
        self.tell_eligibility(state, node, now);
        if has_more {
            self.drain(state, now);
        }
    }

    /// Appends a command to the bytes to be written on the connection to `node`.
    pub(super) fn write(&self, state: &mut State, node: NodeIndex, op: Op, now: BootInstant) {
        let State { nodes, names, encoder, .. } = state;
        let Node { pipeline, outgoing, .. } = &mut nodes[node.get()];
        pipeline.write(op, self.key_of(&op, names), encoder, outgoing);
        self.tell(|| observe::Event::Written {
            node: node.get(),
            operation: operation(&op),
            owner: op.token(),
            resource: op.resource().map_or(&[][..], |resource| names.name(resource)),
            at: Instant::new(now),
        });
    }

    /// Returns the name of the key that `op` concerns: the canary if `op` has no resource.
    fn key_of<'a>(&'a self, op: &Op, names: &'a Names) -> &'a [u8] {
        op.resource().map_or(self.canary_key(), |resource| names.name(resource))
    }

    /// Closes the connection to `node` on the machine's order.
    pub(super) fn reset(&self, state: &mut State, node: NodeIndex, why: GivenUp) {
        let why = match why {
            GivenUp::NoAnswer if state.nodes[node.get()].connected => NO_ANSWER,
            GivenUp::NoAnswer if self.endpoint(node).is_tls() => NO_TLS_ANSWER,
            GivenUp::NoAnswer => NO_CONNECTION,
            GivenUp::Mismatch => "an answer that matches no command",
            GivenUp::NotServing => "the server is a replica, or is loading its data",
        };
        self.disconnect(state, node, Some(Arc::from(why)));
    }

    fn hear_closed(
        &self,
        state: &mut State,
        node: NodeIndex,
        epoch: u32,
        why: Arc<str>,
        now: BootInstant,
    ) {
        if state.nodes[node.get()].epoch == Some(epoch) {
            self.disconnect(state, node, Some(why));
            state.machine.handle_closed(node, epoch, now);
        }
    }

    /// Handles the end of the connection `epoch` to `node`, or of its dial, for want of a task.
    pub(super) fn hear_abandoned(
        &self,
        state: &mut State,
        node: NodeIndex,
        epoch: u32,
        now: BootInstant,
    ) {
        if state.nodes[node.get()].epoch == Some(epoch) {
            self.disconnect(state, node, None);
            state.machine.handle_abandoned(node, epoch, now);
        }
    }

    /// Clears the connection's state and reports its end. `why` is the error; `None` if the client
    /// or its runtime has ended.
    fn disconnect(&self, state: &mut State, node: NodeIndex, why: Option<Arc<str>>) {
        let entry = &mut state.nodes[node.get()];
        entry.epoch = None;
        entry.outgoing.clear();
        entry.pipeline.clear();
        let (node, error) = (node.get(), why.as_deref());
        if core::mem::take(&mut entry.connected) {
            self.tell(|| observe::Event::Disconnected { node, error });
        } else if let Some(error) = error {
            self.tell(|| observe::Event::ConnectFailed { node, error });
        }
        entry.run_id = None;
        if why.is_some() {
            (entry.last_error, entry.error_at) = (why, state.clock);
        }
    }
}

fn operation(op: &Op) -> Operation {
    match op {
        Op::Extend { .. } => Operation::Extend,
        Op::Introduce => Operation::Introduce,
        Op::Look { .. } => Operation::Look,
        Op::Read { .. } => Operation::Read,
        Op::Release { .. } => Operation::Release,
        Op::Set { .. } => Operation::Set,
        Op::TimeLeft { .. } => Operation::TimeLeft,
    }
}

fn observed(reply: Reply) -> observe::Answer {
    match reply {
        Reply::Error | Reply::NotServing => observe::Answer::Error,
        Reply::Integer(1..) | Reply::Introduction(_) | Reply::Ok | Reply::Registered(1..) => {
            observe::Answer::Yes
        }
        Reply::Gone | Reply::Held(_) | Reply::Integer(_) | Reply::Nil | Reply::Registered(_) => {
            observe::Answer::No
        }
    }
}

#[cfg(test)]
mod tests;
