//! Replies on their way to one client.

use std::collections::VecDeque;
use std::io;

use lock_judge::history::EventKind;
use redis_sim::resp::{Protocol, Value};

use crate::serve::socket::Socket;

/// Buffer space that an idle connection keeps for replies, in bytes.
const KEPT_BYTES: usize = 64 * 1_024;

/// Unsent replies, in order.
#[derive(Default)]
pub(super) struct Replies {
    /// Bytes that may be sent.
    bytes: Vec<u8>,
    /// Number of those bytes that the kernel has accepted.
    sent: usize,
    /// Events to record before the bytes are handed to the kernel.
    told: Vec<EventKind>,
    /// Replies that are not due, or that follow one that is not due.
    later: VecDeque<Later>,
    later_bytes: usize,
    /// True if the first of them waits for a fault.
    is_held: bool,
}

/// A reply that is still travelling.
struct Later {
    due_ns: u64,
    bytes: Vec<u8>,
    told: Option<EventKind>,
}

impl Replies {
    /// Appends `value`, to be sent at `due_ns`. The event `told` is to be recorded just before. If it
    /// `waits`, the reply may have to wait for a fault.
    pub(super) fn push(
        &mut self,
        value: &Value,
        protocol: Protocol,
        due_ns: u64,
        told: Option<EventKind>,
        waits: bool,
    ) {
        if due_ns == 0 && self.later.is_empty() && !waits {
            value.encode(protocol, &mut self.bytes);
            self.told.extend(told);
            return;
        }
        let mut bytes = Vec::new();
        value.encode(protocol, &mut bytes);
        self.later_bytes += bytes.len();
        // Nothing overtakes on a connection.
        let due_ns = due_ns.max(self.later.back().map_or(0, |it| it.due_ns));
        self.later.push_back(Later { due_ns, bytes, told });
    }

    /// Returns the number of unsent bytes.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.sent + self.later_bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if the kernel has not accepted everything that is due.
    pub(super) fn is_stuck(&self) -> bool {
        self.sent < self.bytes.len()
    }

    /// Returns the time at which the next reply is due.
    pub(super) fn next_due_ns(&self) -> Option<u64> {
        self.later.front().filter(|_| !self.is_held).map(|it| it.due_ns)
    }

    /// Drops all replies and their events.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Makes the replies ready that are due at `now_ns`, up to one that `is_held` by a fault. Returns
    /// the events to record before sending them, because a client that reads a reply may act on it
    /// at once.
    pub(super) fn release(
        &mut self,
        now_ns: u64,
        is_held: impl Fn(EventKind) -> bool,
    ) -> impl Iterator<Item = EventKind> {
        self.is_held = false;
        while self.later.front().is_some_and(|it| it.due_ns <= now_ns) {
            self.is_held = self.later[0].told.is_some_and(&is_held);
            if self.is_held {
                break;
            }
            let Some(next) = self.later.pop_front() else { break };
            self.later_bytes -= next.bytes.len();
            self.bytes.extend_from_slice(&next.bytes);
            self.told.extend(next.told);
        }
        self.told.drain(..)
    }

    /// Hands ready bytes to the kernel, as many as it accepts.
    pub(super) fn send(&mut self, socket: &mut Socket) -> io::Result<()> {
        while self.sent < self.bytes.len() {
            match socket.try_write(&self.bytes[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        if self.sent == self.bytes.len() {
            self.bytes.clear();
            self.bytes.shrink_to(KEPT_BYTES);
            self.sent = 0;
        }
        Ok(())
    }
}
