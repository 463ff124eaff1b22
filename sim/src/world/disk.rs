//! Times at which a node's data reaches its disk.
//!
//! `everysec`: once a second a background sync of the written data begins, if there is anything to
//! sync. During the sync, writes are postponed for at most two seconds; replies still go out.
//!
//! `always`: the process syncs before it replies, and does nothing else meanwhile. Requests that
//! arrive during a sync are executed after it, in one turn, and share the next sync.

use lock_judge::history::EventKind;
use lock_judge::ids::{ConnectionId, ServerId};
use redis_sim::Persistence;

use super::agenda::DiskTurn;
use super::network::{Arrival, Direction};
use super::packet::Packet;
use super::{Due, World};
use crate::choice::{Choice, Label};
use crate::subject::Reply;

/// Longest time that a write waits for a sync under way.
const POSTPONED_MAX_NS: u64 = 2_000_000_000;

const SECOND_NS: u64 = 1_000_000_000;

impl World {
    /// Sends a reply to a command, after a sync if the storage requires one.
    pub(super) fn answer(&mut self, connection: ConnectionId, server: ServerId, reply: Reply) {
        self.emit(connection, server, Packet::Reply(reply));
    }

    /// Sends a reply or a push, behind all that the server has sent on the connection, and after a
    /// sync if the storage requires one.
    pub(super) fn emit(&mut self, connection: ConnectionId, server: ServerId, message: Packet) {
        if self.plan.servers[server].answers_after_sync() {
            self.cluster[server].disk.held.push((connection, message));
        } else {
            self.send_down(connection, message);
        }
    }

    /// Ends a turn: the process has executed all it can, and turns to its replicas and its disk.
    pub(super) fn end_turn(&mut self, server: ServerId) {
        self.push(server);
        if self.plan.has_replicas() {
            self.tell_replicas(server);
        }
        let planned = &self.plan.servers[server];
        if planned.storage.persistence == Persistence::Everysec {
            self.schedule_disk(server);
        } else if planned.answers_after_sync() {
            let redis = &self.cluster[server].redis;
            if !redis.is_running() || redis.disk().is_syncing() {
                return;
            }
            if redis.disk().is_sync_due() {
                self.begin_sync(server);
            } else {
                self.send_held(server);
            }
        }
    }

    pub(super) fn disk_turn(&mut self, server: ServerId, turn: DiskTurn, serial: u32) {
        let now_ns = self.now_ns();
        let planned = &self.plan.servers[server];
        let host = &mut self.cluster[server];
        if turn == DiskTurn::EndSync && planned.answers_after_sync() {
            self.agenda.arrived();
        }
        if serial != host.disk.serial || !host.redis.is_running() {
            return;
        }
        match turn {
            DiskTurn::BeginSync => {
                host.disk.is_sync_scheduled = false;
                if host.redis.disk().is_sync_due() && !host.redis.disk().is_syncing() {
                    self.begin_sync(server);
                }
            }
            DiskTurn::EndSync if host.disk.stalls > 0 => {
                host.disk.is_late = true;
                if planned.answers_after_sync() && host.stalls == 0 && host.is_master() {
                    let node = planned.node;
                    self.record(EventKind::NodeStalled { node });
                }
            }
            DiskTurn::EndSync => self.end_sync(server),
            DiskTurn::Write if host.disk.write_due_ns == Some(now_ns) => {
                host.disk.write_due_ns = None;
                host.redis.disk_mut().write();
            }
            DiskTurn::Write => {}
        }
    }

    pub(super) fn stall_disk(&mut self, server: ServerId) {
        self.cluster[server].disk.stalls += 1;
    }

    pub(super) fn unstall_disk(&mut self, server: ServerId) {
        let work = &mut self.cluster[server].disk;
        work.stalls -= 1;
        if work.stalls == 0 && core::mem::take(&mut work.is_late) {
            self.hung_disk_returns(server);
            self.end_sync(server);
        }
    }

    /// Records that a process that waited for its disk executes again, or is gone.
    fn hung_disk_returns(&mut self, server: ServerId) {
        let (host, planned) = (&self.cluster[server], &self.plan.servers[server]);
        if planned.answers_after_sync() && host.stalls == 0 && host.is_master() {
            let node = planned.node;
            self.record(EventKind::NodeUnstalled { node });
        }
    }

    /// Discards the disk work of a process that is gone.
    pub(super) fn forget_disk_work(&mut self, server: ServerId) {
        if self.cluster[server].disk.is_late {
            self.hung_disk_returns(server);
        }
        self.cluster[server].disk.forget();
    }

    /// Completes a snapshot, at once.
    pub(super) fn snapshot(&mut self, server: ServerId) {
        let redis = &mut self.cluster[server].redis;
        if redis.is_running() {
            redis.disk_mut().save();
        }
    }

    /// Sends the replies and pushes that waited for a sync.
    #[cold]
    pub(super) fn send_held(&mut self, server: ServerId) {
        let mut held = core::mem::take(&mut self.cluster[server].disk.held);
        for (connection, message) in held.drain(..) {
            if self.network.connection(connection).served {
                self.send_down(connection, message);
            }
        }
        self.cluster[server].disk.held = held;
    }

    fn send_down(&mut self, connection: ConnectionId, message: Packet) {
        if let Some(wire) = &mut self.wire {
            wire.send(connection);
        }
        self.send(connection, Direction::Down, Arrival::Message(message));
    }

    #[cold]
    fn begin_sync(&mut self, server: ServerId) {
        let host = &mut self.cluster[server];
        host.redis.disk_mut().begin_sync();
        if self.plan.sync_takes_ns == 0 && host.disk.stalls == 0 {
            return self.end_sync(server);
        }
        if self.plan.servers[server].answers_after_sync() {
            // Clients wait for the replies.
            self.agenda.await_arrivals();
        }
        let serial = host.disk.serial;
        let what = Due::Disk { server, turn: DiskTurn::EndSync, serial };
        self.agenda.schedule(self.agenda.now_ns() + self.plan.sync_takes_ns, what);
    }

    fn end_sync(&mut self, server: ServerId) {
        let host = &mut self.cluster[server];
        host.redis.disk_mut().end_sync();
        host.disk.write_due_ns = None;
        if self.plan.servers[server].answers_after_sync() {
            self.send_held(server);
            self.drain_inbox(server);
            self.schedule_expiry(server);
        } else {
            self.schedule_disk(server);
        }
    }

    /// Schedules the next disk work of `everysec`.
    #[cold]
    fn schedule_disk(&mut self, server: ServerId) {
        let now_ns = self.now_ns();
        let host = &mut self.cluster[server];
        if !host.redis.is_running() {
            return;
        }
        let (disk, serial) = (host.redis.disk(), host.disk.serial);
        if disk.is_write_postponed() && host.disk.write_due_ns.is_none() {
            let due_ns = now_ns + POSTPONED_MAX_NS;
            host.disk.write_due_ns = Some(due_ns);
            self.agenda.schedule(due_ns, Due::Disk { server, turn: DiskTurn::Write, serial });
        }
        if disk.is_sync_due() && !disk.is_syncing() && !host.disk.is_sync_scheduled {
            host.disk.is_sync_scheduled = true;
            let drawn = || self.choices.below(Choice::of(Label::SyncPhase, server.0), SECOND_NS);
            let at_ns = next_ns(self.plan.sync_at_ns.unwrap_or_else(drawn), now_ns);
            self.agenda.schedule(at_ns, Due::Disk { server, turn: DiskTurn::BeginSync, serial });
        }
    }
}

/// Returns the first instant after now that is `phase_ns` past a full second.
fn next_ns(phase_ns: u64, now_ns: u64) -> u64 {
    let full_ns = now_ns - now_ns % SECOND_NS;
    let this_ns = full_ns + phase_ns;
    if this_ns > now_ns { this_ns } else { this_ns + SECOND_NS }
}
