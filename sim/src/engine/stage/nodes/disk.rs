//! Times at which a node's data reaches its disk.
//!
//! `everysec`: once a second a background sync of the written data begins, if there is anything to
//! sync. During the sync, writes are postponed for at most two seconds; replies still go out.
//!
//! `always`: the process syncs before it replies, and does nothing else meanwhile. Requests that
//! arrive during a sync are executed after it, in one turn, and share the next sync.

use super::ServerHost;
use crate::engine::stage::plan::Plan;
use crate::engine::stage::{Packet, QueueEntry, Stage};
use crate::history::EventKind;
use crate::ids::{ConnectionId, ServerId};
use crate::scenario::Persistence;
use crate::subject::Response;
use crate::world::{Arrival, Choice, Direction, Label};

/// Longest time that a write waits for a sync under way.
const POSTPONED_MAX_NS: u64 = 2_000_000_000;

const SECOND_NS: u64 = 1_000_000_000;

/// Pending disk work of a process.
#[derive(Clone, Debug, Default)]
pub(in crate::engine) struct DiskWork {
    /// Number of the process: work scheduled for an earlier process is skipped.
    serial: u32,
    /// Number of faults that keep syncs from finishing.
    stalls: u8,
    /// True if only those faults keep the sync under way from finishing.
    is_late: bool,
    is_sync_scheduled: bool,
    /// Time at which a postponed write is no longer postponed.
    write_due_ns: Option<u64>,
    /// Replies that wait for a sync, each with its connection.
    held: Vec<(ConnectionId, Response)>,
}

/// A step of disk work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum DiskTurn {
    BeginSync,
    EndSync,
    Write,
}

impl DiskWork {
    fn forget(&mut self) {
        self.serial += 1;
        self.is_late = false;
        self.is_sync_scheduled = false;
        self.write_due_ns = None;
        self.held.clear();
    }

    /// Resets to the beginning of a run.
    pub(in crate::engine) fn reset(&mut self) {
        self.forget();
        (self.serial, self.stalls) = (0, 0);
    }
}

impl ServerHost {
    /// Returns true if the process executes nothing now.
    pub(in crate::engine) fn is_blocked(&self) -> bool {
        let disk = self.master.disk();
        self.stalls > 0 || (disk.is_syncing() && disk.storage().persistence == Persistence::Always)
    }
}

impl Stage {
    /// Sends a reply to a command, after a sync if the storage requires one.
    pub(in crate::engine) fn answer(
        &mut self,
        plan: &Plan,
        connection: ConnectionId,
        server: ServerId,
        response: Response,
    ) {
        if plan.servers[server].answers_after_sync() {
            self.servers[server].disk.held.push((connection, response));
        } else {
            self.send_answer(plan, connection, response);
        }
    }

    /// Ends a turn: the process has executed all it can, and turns to its replicas and its disk.
    pub(in crate::engine) fn end_turn(&mut self, plan: &Plan, server: ServerId) {
        self.push(plan, server);
        let planned = &plan.servers[server];
        if plan.has_replicas() {
            self.tell_replicas(plan, server);
        }
        if planned.storage.persistence == Persistence::Everysec {
            self.schedule_disk(plan, server);
        } else if planned.answers_after_sync() {
            let host = &self.servers[server];
            if !host.master.is_running() || host.master.disk().is_syncing() {
                return;
            }
            if host.master.disk().is_sync_due() {
                self.begin_sync(plan, server);
            } else {
                self.send_held(plan, server);
            }
        }
    }

    pub(in crate::engine) fn disk_turn(
        &mut self,
        plan: &Plan,
        server: ServerId,
        turn: DiskTurn,
        serial: u32,
    ) {
        let at_ns = self.now_ns;
        let host = &mut self.servers[server];
        if turn == DiskTurn::EndSync && plan.servers[server].answers_after_sync() {
            self.arrivals_due -= 1;
        }
        if serial != host.disk.serial || !host.master.is_running() {
            return;
        }
        match turn {
            DiskTurn::BeginSync => {
                host.disk.is_sync_scheduled = false;
                if host.master.disk().is_sync_due() && !host.master.disk().is_syncing() {
                    self.begin_sync(plan, server);
                }
            }
            DiskTurn::EndSync if host.disk.stalls > 0 => {
                host.disk.is_late = true;
                let planned = &plan.servers[server];
                if planned.answers_after_sync() && host.stalls == 0 && host.is_master() {
                    self.record(EventKind::NodeStalled { node: planned.node });
                }
            }
            DiskTurn::EndSync => self.end_sync(plan, server),
            DiskTurn::Write if host.disk.write_due_ns == Some(at_ns) => {
                host.disk.write_due_ns = None;
                host.master.disk_mut().write();
            }
            DiskTurn::Write => {}
        }
    }

    pub(in crate::engine) fn stall_disk(&mut self, server: ServerId) {
        self.servers[server].disk.stalls += 1;
    }

    pub(in crate::engine) fn unstall_disk(&mut self, plan: &Plan, server: ServerId) {
        let work = &mut self.servers[server].disk;
        work.stalls -= 1;
        if work.stalls == 0 && core::mem::take(&mut work.is_late) {
            self.hung_disk_returns(plan, server);
            self.end_sync(plan, server);
        }
    }

    /// Records that a process that waited for its disk executes again, or is gone.
    fn hung_disk_returns(&mut self, plan: &Plan, server: ServerId) {
        let (host, planned) = (&self.servers[server], &plan.servers[server]);
        if planned.answers_after_sync() && host.stalls == 0 && host.is_master() {
            self.record(EventKind::NodeUnstalled { node: planned.node });
        }
    }

    /// Discards the disk work of a process that is gone.
    pub(in crate::engine) fn forget_disk_work(&mut self, plan: &Plan, server: ServerId) {
        if self.servers[server].disk.is_late {
            self.hung_disk_returns(plan, server);
        }
        self.servers[server].disk.forget();
    }

    /// Completes a snapshot, at once.
    pub(in crate::engine) fn snapshot(&mut self, server: ServerId) {
        let host = &mut self.servers[server];
        if host.master.is_running() {
            host.master.disk_mut().save();
        }
    }

    /// Sends the replies that waited for a sync.
    #[cold]
    pub(in crate::engine) fn send_held(&mut self, plan: &Plan, server: ServerId) {
        let mut held = core::mem::take(&mut self.servers[server].disk.held);
        for (connection, response) in held.drain(..) {
            if self.network.connection(connection).served {
                self.send_answer(plan, connection, response);
            }
        }
        self.servers[server].disk.held = held;
    }

    fn send_answer(&mut self, plan: &Plan, connection: ConnectionId, response: Response) {
        if let Some(wire) = &mut self.wire {
            wire.send(connection);
        }
        let message = Arrival::Message(Packet::Response(response));
        self.send(plan, connection, Direction::Down, message);
    }

    #[cold]
    fn begin_sync(&mut self, plan: &Plan, server: ServerId) {
        let host = &mut self.servers[server];
        host.master.disk_mut().begin_sync();
        if plan.sync_takes_ns == 0 && host.disk.stalls == 0 {
            return self.end_sync(plan, server);
        }
        // Clients wait for the replies, so the end of the sync counts as a due arrival.
        self.arrivals_due += u32::from(plan.servers[server].answers_after_sync());
        let serial = host.disk.serial;
        let what = QueueEntry::Disk { server, turn: DiskTurn::EndSync, serial };
        self.queue.schedule(self.now_ns + plan.sync_takes_ns, what);
    }

    fn end_sync(&mut self, plan: &Plan, server: ServerId) {
        let host = &mut self.servers[server];
        host.master.disk_mut().end_sync();
        host.disk.write_due_ns = None;
        if plan.servers[server].answers_after_sync() {
            self.send_held(plan, server);
            self.drain_inbox(plan, server);
            self.schedule_expiry(plan, server);
        } else {
            self.schedule_disk(plan, server);
        }
    }

    /// Schedules the next disk work of `everysec`.
    #[cold]
    fn schedule_disk(&mut self, plan: &Plan, server: ServerId) {
        let now_ns = self.now_ns;
        let host = &mut self.servers[server];
        if !host.master.is_running() {
            return;
        }
        let (disk, serial) = (host.master.disk(), host.disk.serial);
        if disk.is_write_postponed() && host.disk.write_due_ns.is_none() {
            let due_ns = now_ns + POSTPONED_MAX_NS;
            host.disk.write_due_ns = Some(due_ns);
            let what = QueueEntry::Disk { server, turn: DiskTurn::Write, serial };
            self.queue.schedule(due_ns, what);
        }
        if disk.is_sync_due() && !disk.is_syncing() && !host.disk.is_sync_scheduled {
            host.disk.is_sync_scheduled = true;
            let drawn = || self.choices.below(Choice::of(Label::SyncPhase, server.0), SECOND_NS);
            let phase_ns = plan.sync_at_ns.unwrap_or_else(drawn);
            let what = QueueEntry::Disk { server, turn: DiskTurn::BeginSync, serial };
            self.queue.schedule(next_ns(phase_ns, now_ns), what);
        }
    }
}

/// Returns the first instant after now that is `phase_ns` past a full second.
fn next_ns(phase_ns: u64, now_ns: u64) -> u64 {
    let full_ns = now_ns - now_ns % SECOND_NS;
    let this_ns = full_ns + phase_ns;
    if this_ns > now_ns { this_ns } else { this_ns + SECOND_NS }
}
