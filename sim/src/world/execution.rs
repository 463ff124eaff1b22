//! Execution of requests by servers.

use core::time::Duration;

use lock_judge::history::{Answer, EventKind, KeyEnd, NodeId, OpKind, Writer};
use lock_judge::ids::{ConnectionId, ResourceId, ServerId};
use lock_judge::scenario::Rights;
use redis_sim::{
    self, Change, Command, Entry, Executed, ExpireCondition, KeyCommand, SetCondition, SetExpiry,
};
use redlock_protocol::{Introduction, RunId, Token};

use super::World;
use super::cluster::Role;
use super::key_events::key_ended;
use crate::keys::{tag_of, writer_of};
use crate::native;
use crate::plan::{PlannedServer, steps};
use crate::subject::{CommandKind, Reply, ReplyValue, Request};

impl World {
    /// Executes a request. Messages that it pushes leave before any other request is answered.
    pub(crate) fn execute(&mut self, connection: ConnectionId, request: Request) {
        let server = self.plan.server_at(self.network.connection(connection).server);
        let server = server.expect("commands are for servers");
        self.execute_request(server, connection, request);
        self.push(server);
    }

    /// Executes the waiting requests after a stall, in one turn and in the order of each
    /// connection.
    pub(super) fn drain_inbox(&mut self, server: ServerId) {
        if self.cluster[server].has_taken_up {
            return;
        }
        while !self.cluster[server].is_blocked()
            && let Some((connection, request)) = self.cluster[server].inbox.pop_front()
        {
            self.execute(connection, request);
        }
        self.end_turn(server);
    }

    /// Returns the introduction of a server, with its canary if the clients may use that; `None` if they
    /// may not call `INFO`, or if the server's memory is full and its canary has to be written.
    pub(crate) fn introduction(&mut self, server: ServerId) -> Option<Introduction> {
        // Whole milliseconds, so that a fleet begins every run at the same age.
        let wall_us = self.wall_ms(server) * 1_000;
        let PlannedServer { node, rights, .. } = self.plan.servers[server];
        let (said, canary) = match rights {
            Rights::All => self.cluster.introduction(server, node, wall_us)?,
            Rights::NoCanary => (self.cluster[server].redis.introduction(wall_us / 1_000), None),
            Rights::NoInfo => return None,
        };
        Some(Introduction {
            run_id: RunId(said.run_id),
            uptime: Duration::from_secs(u64::try_from(said.uptime_s).unwrap_or(0)),
            is_master: said.is_master,
            succession: native::succession(&self.cluster[server].redis),
            canary,
        })
    }

    /// Returns true if a client that starts warm has an open connection to `server`: one that has
    /// introduced itself, and not as a replica.
    pub(crate) fn is_open_at_start(&self, server: ServerId) -> bool {
        let redis = &self.cluster[server].redis;
        let introduces_itself = self.plan.servers[server].rights != Rights::NoInfo;
        redis.is_running() && !redis.is_replica() && introduces_itself
    }

    /// Executes a request and answers it, or postpones it.
    fn execute_request(&mut self, server: ServerId, connection: ConnectionId, request: Request) {
        if self.plan.has_points
            && let Some(step) = steps::executed(request.kind.op())
        {
            let node = self.plan.servers[server].node;
            // A fault that begins here may end a turn of the server.
            self.cluster[server].has_taken_up = true;
            self.reach(request.attempt, step, Some(node));
            self.cluster[server].has_taken_up = false;
            let host = &mut self.cluster[server];
            if !host.redis.is_running() {
                return;
            }
            if host.stalls > 0 {
                return host.inbox.push_front((connection, request));
            }
        }
        let Request { command, attempt, kind, .. } = request;
        let role = self.cluster[server].replication.role;
        let value = match kind {
            CommandKind::Greet => {
                self.speak_of_itself(server, connection);
                Some(ReplyValue::Ok)
            }
            CommandKind::Introduce => {
                let value = if self.wire.is_some() {
                    self.execute_bytes(server, connection, &request).map(|(value, _)| value)
                } else {
                    self.introduction(server).map(ReplyValue::Introduction)
                };
                Some(value.unwrap_or(ReplyValue::Error))
            }
            _ if self.cluster[server].redis.is_replica() => {
                if let Some(value) = self.refuse_bytes(server, connection, &request) {
                    return self.answer_without_key(server, connection, &request, value);
                }
                None
            }
            CommandKind::Wait { replicas, timeout_ms } => {
                let wanted = (replicas, timeout_ms);
                return self.wait_for_replicas(server, connection, request, wanted);
            }
            _ => self.execute_on_key(server, connection, &request),
        };
        if self.plan.has_replicas() {
            self.cluster.note_written(server, connection);
        }
        let leaves_key = match kind {
            CommandKind::Greet => false,
            CommandKind::Introduce => true,
            // The commands of a deposed master do not count as the node's.
            _ => role == Role::Deposed,
        };
        if let Some(value) = value.filter(|_| leaves_key) {
            return self.answer_without_key(server, connection, &request, value);
        }
        let reply =
            Reply { command, attempt, op: kind.op(), value: value.unwrap_or(ReplyValue::Error) };
        self.answer(connection, server, reply);
    }

    /// Executes a request on a key; returns `None` if the server must be asked in another form.
    /// Histories record only the actions of the node's master.
    fn execute_on_key(
        &mut self,
        server: ServerId,
        connection: ConnectionId,
        request: &Request,
    ) -> Option<ReplyValue> {
        if self.wire.is_none() {
            let done = self.execute_natively(server, request);
            if done.expired.is_some() {
                self.tell_readers(server, request.resource, None);
            }
            if done.effect.change != Change::Nothing {
                self.tell_readers(server, request.resource, Some(connection));
            }
            let value = value_of(&done.reply, request);
            let value = self.register_look(server, connection, request, value);
            return Some(self.tell_of_key(server, request, value, &done));
        }
        let (value, done) = self.execute_bytes(server, connection, request)?;
        Some(self.tell_of_key(server, request, value, &done))
    }

    /// Executes a request on a key if clients do not speak bytes.
    fn execute_natively(&mut self, server: ServerId, request: &Request) -> Executed {
        let wall_ms = self.wall_ms(server);
        let value = request.token.as_bytes();
        let extends_plainly = self.plan.scenario.cluster.server.extends_plainly();
        let writer = tag_of(Writer::Attempt(request.attempt));
        let redis = &mut self.cluster[server].redis;
        let command = match request.kind {
            CommandKind::CompareAndDelete => KeyCommand::CompareAndDelete { value },
            CommandKind::Delete => KeyCommand::Del,
            CommandKind::Expire { ttl_ms } => {
                KeyCommand::Pexpire { ms: as_ms(ttl_ms), condition: ExpireCondition::Always }
            }
            CommandKind::ExtendPlainly { ttl_ms } if extends_plainly => {
                KeyCommand::CompareAndRetime { value, ttl_ms: as_ms(ttl_ms) }
            }
            CommandKind::Extend { ttl_ms } | CommandKind::ExtendPlainly { ttl_ms } => {
                let ttl_ms = as_ms(ttl_ms);
                return redis.run_in(0, self.plan.key(request.resource), wall_ms, writer, |key| {
                    native::extend(key, value, ttl_ms)
                });
            }
            CommandKind::Get | CommandKind::Read => KeyCommand::Get,
            CommandKind::Look | CommandKind::TimeLeft => KeyCommand::Pttl,
            CommandKind::GetSet => KeyCommand::Set {
                value,
                condition: SetCondition::Always,
                expiry: SetExpiry::Never,
                get: true,
            },
            CommandKind::Greet | CommandKind::Introduce | CommandKind::Wait { .. } => {
                unreachable!("not about a key")
            }
            CommandKind::Set { ttl_ms: None } => KeyCommand::Setnx { value },
            CommandKind::Set { ttl_ms: Some(ms) } | CommandKind::SetAndCount { ttl_ms: ms } => {
                set_if_missing(value, as_ms(ms), false)
            }
            CommandKind::SetOrShow { ttl_ms } => set_if_missing(value, as_ms(ttl_ms), true),
            // A time in the past leaves no key. A key that lives for 1 ms has the same effect.
            CommandKind::SetUntil { wall_ms: until_ms } => {
                set_if_missing(value, as_ms(until_ms.saturating_sub(wall_ms).max(1)), false)
            }
        };
        let key = self.plan.key(request.resource);
        redis.execute(Command::Key { key, command }, wall_ms, writer)
    }

    /// Records the effect on the key, and returns the reply.
    fn tell_of_key(
        &mut self,
        server: ServerId,
        request: &Request,
        value: ReplyValue,
        done: &Executed,
    ) -> ReplyValue {
        let node = self.plan.servers[server].node;
        let tells = self.cluster[server].is_master();
        if let Some(expired) = done.expired.as_ref().filter(|_| tells) {
            self.record(key_ended(node, expired));
        }
        let Request { command, attempt, kind, .. } = *request;
        let op = kind.op();
        let answer = Reply { command, attempt, op, value }.answer();
        if tells {
            self.record(EventKind::Executed {
                command,
                attempt,
                node,
                op,
                answer,
                changed: done.effect.change != Change::Nothing,
                before: writer_of(done.effect.before),
                after: writer_of(done.effect.after),
                expires_wall_ms: done.effect.expires_wall_ms.unwrap_or(u64::MAX),
            });
        }
        if let Some(ended) = done.ended.as_ref().filter(|_| tells) {
            self.record(key_ended(node, ended));
        }
        if matches!(kind, CommandKind::ExtendPlainly { .. }) && answer == Answer::Yes {
            // The key may now end before the time for which the expiry cycle is scheduled.
            self.reschedule_expiry(server);
        }
        if op == OpKind::Set && answer == Answer::Yes {
            self.schedule_expiry(server);
        }
        if matches!(kind, CommandKind::SetAndCount { .. }) && value == ReplyValue::Ok {
            return self.count(server, Writer::Attempt(attempt));
        }
        value
    }

    /// Executes the second half of the script that sets the key and counts. Histories record only
    /// the lock's key, not the counter.
    fn count(&mut self, server: ServerId, writer: Writer) -> ReplyValue {
        let wall_ms = self.wall_ms(server);
        let incr = Command::Key { key: &self.plan.counter_key, command: KeyCommand::Incr };
        match self.cluster[server].redis.execute(incr, wall_ms, tag_of(writer)).reply {
            redis_sim::Reply::Integer(count) => ReplyValue::Integer(count),
            _ => ReplyValue::Error,
        }
    }

    /// Records and sends the reply to a request that leaves the key unchanged.
    #[cold]
    pub(super) fn answer_without_key(
        &mut self,
        server: ServerId,
        connection: ConnectionId,
        request: &Request,
        value: ReplyValue,
    ) {
        let Request { command, attempt, kind, resource, .. } = *request;
        let op = kind.op();
        let reply = Reply { command, attempt, op, value };
        let node = self.plan.servers[server].node;
        let stored = self.stored(node, resource);
        let writer = stored.map_or(Writer::Nobody, |entry| writer_of(entry.writer));
        let expires_wall_ms = stored.and_then(|entry| entry.expires_wall_ms).unwrap_or(u64::MAX);
        let answer = reply.answer();
        self.record(EventKind::Executed {
            command,
            attempt,
            node,
            op,
            answer,
            changed: false,
            before: writer,
            after: writer,
            expires_wall_ms,
        });
        self.answer(connection, server, reply);
        let is_vote = op == OpKind::Set && answer == Answer::Yes;
        if is_vote && self.cluster[server].replication.role == Role::Deposed {
            let by = Writer::Nobody;
            let (writer, cause) = (Writer::Attempt(attempt), KeyEnd::FailedOver);
            self.record(EventKind::KeyEnded { node, writer, cause, by, expires_wall_ms: u64::MAX });
        }
    }

    /// Returns the key of `resource` as the node's master stores it.
    fn stored(&self, node: NodeId, resource: ResourceId) -> Option<&Entry> {
        let key = self.plan.key(resource);
        self.cluster[self.cluster.master(node)].redis.keyspace().stored(key)
    }
}

fn value_of(reply: &redis_sim::Reply, request: &Request) -> ReplyValue {
    match reply {
        // With `NX … GET` a nil reply means that the key was missing and was set.
        redis_sim::Reply::Nil if matches!(request.kind, CommandKind::SetOrShow { .. }) => {
            ReplyValue::Ok
        }
        redis_sim::Reply::Nil if request.kind == CommandKind::Read => ReplyValue::Integer(0),
        redis_sim::Reply::Bulk(held) => {
            let own = held[..] == request.token.as_bytes()[..];
            if request.kind == CommandKind::Read {
                return ReplyValue::Integer(i64::from(own));
            }
            let token = <[u8; Token::LENGTH]>::try_from(&held[..]).map(Token::from_bytes);
            token.map_or(ReplyValue::Error, |token| ReplyValue::Value { token, own })
        }
        redis_sim::Reply::Error(_) => ReplyValue::Error,
        redis_sim::Reply::Integer(value) => ReplyValue::Integer(*value),
        redis_sim::Reply::Introduction(_) => unreachable!("INFO was not asked"),
        redis_sim::Reply::Nil => ReplyValue::Nil,
        redis_sim::Reply::Ok => ReplyValue::Ok,
    }
}

fn set_if_missing(value: &[u8], ttl_ms: i64, get: bool) -> KeyCommand<'_> {
    let (condition, expiry) = (SetCondition::Missing, SetExpiry::Px(ttl_ms));
    KeyCommand::Set { value, condition, expiry, get }
}

fn as_ms(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}
