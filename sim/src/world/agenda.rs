//! The present, and everything that is due later.

use lock_judge::history::ClientId;
use lock_judge::ids::{ConnectionId, ServerId, StrikeId};

use super::network::Direction;
use super::queue::Queue;

/// An entry of the agenda.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// An item may have arrived at the end of a connection.
    Arrival {
        connection: ConnectionId,
        direction: Direction,
    },
    /// Make the backup for a fault that puts it back later.
    BackUp(StrikeId),
    /// A step of disk work.
    Disk {
        server: ServerId,
        turn: DiskTurn,
        /// Serial number of the server process for which the turn was scheduled.
        serial: u32,
    },
    /// The active expiry cycle of a server.
    Expiry {
        server: ServerId,
    },
    FaultBegins(StrikeId),
    FaultEnds(StrikeId),
    /// A client's timer fires; ignored if a newer timer has been set.
    Timer {
        client: ClientId,
        serial: u32,
    },
    /// A `WAIT` times out and is answered with the present count.
    WaitEnds {
        server: ServerId,
        serial: u32,
    },
}

/// A step of disk work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiskTurn {
    BeginSync,
    EndSync,
    Write,
}

/// The present true time, and the queue of what is due.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    now_ns: u64,
    queue: Queue<Due>,
    /// Number of due entries that can still make a message arrive.
    arrivals_due: u32,
}

impl Agenda {
    /// Resets to the beginning of a run, but keeps the allocated memory.
    pub(super) fn reset(&mut self) {
        self.now_ns = 0;
        self.queue.clear();
        self.arrivals_due = 0;
    }

    /// Returns the present true time.
    #[inline]
    pub(crate) fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Lets time pass until `at_ns`, unless it is later already.
    #[inline]
    pub(crate) fn advance_to(&mut self, at_ns: u64) {
        self.now_ns = self.now_ns.max(at_ns);
    }

    /// Returns the time of the next entry.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.queue.next_ns()
    }

    /// Takes the next entry if it is due by `limit_ns`; returns its time and the entry. Time does not
    /// pass yet.
    #[inline]
    pub(crate) fn pop_until(&mut self, limit_ns: u64) -> Option<(u64, Due)> {
        self.next_ns().filter(|&next_ns| next_ns <= limit_ns)?;
        self.queue.pop()
    }

    #[inline]
    pub(crate) fn schedule(&mut self, at_ns: u64, what: Due) {
        self.queue.schedule(at_ns, what);
    }

    #[inline]
    pub(super) fn schedule_arrival(
        &mut self,
        connection: ConnectionId,
        direction: Direction,
        at_ns: u64,
    ) {
        self.arrivals_due += 1;
        self.queue.schedule(at_ns, Due::Arrival { connection, direction });
    }

    /// Counts something else for which messages wait.
    pub(super) fn await_arrivals(&mut self) {
        self.arrivals_due += 1;
    }

    /// Notes that one of the counted entries has come.
    pub(super) fn arrived(&mut self) {
        self.arrivals_due -= 1;
    }

    /// Returns true if a message may still arrive.
    pub(crate) fn awaits_arrivals(&self) -> bool {
        self.arrivals_due > 0
    }
}
