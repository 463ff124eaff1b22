//! Executes a connection's requests and creates their replies.

use bytes::Bytes;
use lock_judge::history;
use redis_sim::Change;
use redis_sim::resp::Value;
use redis_sim::server::{Answer, Server, Touched, Turn};

use super::held::Held;
use super::waiting::{Cause, Kept, Waiting};
use super::{Arrival, Connection};
use crate::keys::tag_of;
use crate::serve::executor::{Entrance, begins_with};
use crate::serve::limits::{BATCH_MAX, REPLIES_BYTES_MAX};
use crate::serve::meaning;
use crate::serve::recorder::{Execution, Recorder, Told};

/// Time until a connection looks again whether a script still runs that keeps its timeout back, in
/// nanoseconds.
const BUSY_NS: u64 = 5_000_000;

impl Connection<'_> {
    /// Executes the requests that are due.
    pub(super) async fn execute(&mut self) {
        let node = self.node;
        let waiting = self.waiting;
        if let Some(value) = waiting.and_then(|it| it.answer(node.clock.now_ns(), node.synced())) {
            self.waiting = None;
            self.reply(&value, None);
        }
        if waiting.is_some_and(|it| it.is_for_element() && it.until_ns <= node.clock.now_ns()) {
            self.time_out().await;
        }
        while self.may_execute() {
            match node.executor.enter().await {
                Entrance::Dead => return,
                Entrance::Busy => self.be_put_off(),
                // The process that accepted the connection is dead.
                Entrance::Open(server) if server.incarnation() != self.incarnation => return,
                Entrance::Open(mut server) => {
                    // Earlier pushes must be sent before the next reply.
                    self.take_pushes();
                    for _ in 0..BATCH_MAX {
                        self.execute_next(&mut server);
                        if !self.may_execute() {
                            break;
                        }
                    }
                    node.close_killed(&mut server);
                    node.executor.leave(server);
                }
            }
        }
    }

    fn may_execute(&self) -> bool {
        let room = self.replies.len() <= REPLIES_BYTES_MAX;
        let next = self.arrivals.front().filter(|it| self.passes(it));
        let is_due = |it: &Arrival| self.node.is_due(it.due_ns) && !self.waits_for_fault(it);
        self.executes() && room && next.is_some_and(is_due)
    }

    /// Returns true if a fault begins before the request is executed, and has not begun.
    pub(super) fn waits_for_fault(&self, arrival: &Arrival) -> bool {
        let recorder = self.node.recorder.as_ref();
        let waits = |told| recorder.is_some_and(|it| it.executes_later(told, self.node.id));
        arrival.told.is_some_and(waits)
    }

    /// Returns true if requests of this connection are executed at all.
    pub(super) fn executes(&self) -> bool {
        let node = self.node;
        self.stays && self.waiting.is_none() && !node.is_stalled() && !node.executor.is_dying()
    }

    /// Returns true if the node notices that a timeout has passed.
    pub(super) fn may_time_out(&self) -> bool {
        !self.node.is_stalled() && !self.node.executor.is_dying()
    }

    /// Ends the wait for an element of a list, unless the server has ended it already: then its reply
    /// is on its way.
    async fn time_out(&mut self) {
        let node = self.node;
        if !self.may_time_out() {
            return;
        }
        let until_ns = match node.executor.enter().await {
            Entrance::Dead => return,
            Entrance::Busy => node.clock.now_ns() + BUSY_NS,
            Entrance::Open(server) if server.incarnation() != self.incarnation => return,
            Entrance::Open(mut server) => {
                let value = self.session.time_out(&mut server);
                node.executor.leave(server);
                if let Some(value) = value {
                    self.waiting = None;
                    self.reply(&value, None);
                    return;
                }
                u64::MAX
            }
        };
        self.waiting = Some(Waiting { until_ns, cause: Cause::Element });
    }

    /// Removes and returns the next request.
    fn next_arrival(&mut self) -> Option<Arrival> {
        let arrival = self.arrivals.pop_front()?;
        self.held.arrivals -= arrival.request.as_ref().map_or(0, |it| Held::cost(it));
        Some(arrival)
    }

    /// Returns true if no partition holds the request.
    pub(super) fn passes(&self, arrival: &Arrival) -> bool {
        !(arrival.is_held && self.link.requests_held)
    }

    fn execute_next(&mut self, server: &mut Server) {
        let node = self.node;
        let Some(Arrival { request, told, .. }) = self.next_arrival() else { return };
        let request = match request {
            Ok(request) => request,
            Err(error) => {
                self.reply(&Value::error(error.to_string()), None);
                self.stays = false;
                return;
            }
        };
        let wall_ns = node.wall_ns();
        node.begin(server, &request);
        let writer = tag_of(Recorder::writer(told, &self.peer));
        let turn = Turn { wall_ns, writer, touched: &mut self.touched };
        let execute = |server: &mut Server| self.session.execute(server, &request, turn);
        let answer = node.executor.execute(server, &request, execute);
        self.is_unauthenticated = self.session.is_unauthenticated();
        self.note_unknown(server);
        let instead = node.executed(server, &request);
        match answer {
            Answer::Reply(value) => {
                let value = instead.unwrap_or(value);
                let delivered = self.tell(told, &request, Some(&value), wall_ns);
                self.reply(&value, delivered);
            }
            Answer::LastReply(value) => {
                let delivered = self.tell(told, &request, Some(&value), wall_ns);
                self.reply(&value, delivered);
                self.stays = false;
            }
            Answer::Block { timeout_ms } => {
                self.tell(told, &request, None, wall_ns);
                let until_ns = self.after(timeout_ms);
                self.waiting = Some(Waiting { until_ns, cause: Cause::Element });
            }
            Answer::Silence => drop(self.tell(told, &request, None, wall_ns)),
            Answer::Wait { timeout_ms, replicas } => {
                self.wait(server, &request, (replicas, timeout_ms));
            }
        }
        self.touched.clear();
        node.push(server);
        self.take_pushes();
        let is_queued = self.session.is_in_transaction();
        self.held.queued = if is_queued { self.held.queued + Held::cost(&request) } else { 0 };
    }

    /// Notes the commands of the last request that the server does not know.
    fn note_unknown(&self, server: &mut Server) {
        let unknown = server.take_unknown();
        if let Some(recorder) = self.node.recorder.as_ref().filter(|_| !unknown.is_empty()) {
            recorder.unknown(&self.peer, unknown);
        }
    }

    /// Delays the reply to `request`, and the requests after it.
    fn wait(&mut self, server: &Server, request: &[Bytes], (replicas, timeout_ms): (i64, i64)) {
        let until_ns = self.after(timeout_ms.unsigned_abs());
        let disk = begins_with(request, b"WAITAOF").then(|| match server.disk().is_sync_due() {
            _ if !server.config().is_on("appendonly") => Kept::Never,
            true => Kept::By(self.node.sync_of_all(server.disk())),
            false => Kept::By(0),
        });
        self.waiting = Some(Waiting { until_ns, cause: Cause::Copies { replicas, disk } });
    }

    /// Returns the time at which a timeout passes that begins now; 0 means that it never does.
    fn after(&self, timeout_ms: u64) -> u64 {
        let wait_ns = timeout_ms.saturating_mul(1_000_000);
        let until_ns = self.node.clock.now_ns().saturating_add(wait_ns);
        if timeout_ms == 0 { u64::MAX } else { until_ns }
    }

    /// Records the effect of a request on the lock. `value` is the reply, if one is sent. Returns the event to record when the reply is sent.
    fn tell(
        &mut self,
        told: Option<Told>,
        request: &[Bytes],
        value: Option<&Value>,
        wall_ns: u64,
    ) -> Option<history::EventKind> {
        let recorder = self.node.recorder.as_ref()?;
        if told.is_none() && self.touched.is_empty() {
            return None;
        }
        let value = value.map(Value::last);
        let is_error = matches!(value, Some(Value::Error(_)));
        // A request queued by MULTI is recorded when EXEC executes it.
        if self.session.is_in_transaction() && self.touched.is_empty() && !is_error {
            return None;
        }
        let changes = |it: &Touched| it.executed.effect.change != Change::Nothing;
        let answer = match value {
            Some(Value::Error(_)) => history::Answer::Error,
            // The previous value, whether or not the request succeeded.
            Some(_) if meaning::shows_what_was_there(request) => history::Answer::Yes,
            Some(Value::Null | Value::NullArray | Value::Integer(..=0)) => history::Answer::No,
            None if !self.touched.iter().any(changes) => history::Answer::No,
            _ => history::Answer::Yes,
        };
        let execution = Execution { request, touched: &self.touched, answer, wall_ns };
        recorder.executed(told, &mut self.peer, execution)
    }

    /// Answers the next request like a node that is blocked by a script.
    fn be_put_off(&mut self) {
        let Some(Arrival { request, .. }) = self.next_arrival() else { return };
        match request {
            Ok(request) => {
                let executor = &self.node.executor;
                let killed = executor.answer_kill(&request);
                let busy = executor.profile.texts.busy;
                let value = killed.or_else(|| self.session.put_off(&request, busy));
                value.iter().for_each(|value| self.reply(value, None));
            }
            Err(error) => {
                self.reply(&Value::error(error.to_string()), None);
                self.stays = false;
            }
        }
    }

    pub(super) fn reply(&mut self, value: &Value, told: Option<history::EventKind>) {
        let slow_ns = self.link.replies_by_ns + self.node.travels_ns(self.client);
        let due_ns = if slow_ns == 0 { 0 } else { self.node.clock.now_ns() + slow_ns };
        let waits = self.node.recorder.as_ref().is_some_and(|it| !it.points.is_empty());
        self.replies.push(value, self.session.protocol(), due_ns, told, waits);
    }
}
