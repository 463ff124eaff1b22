//! Nodes with one key, which execute and answer commands only on request.

use std::collections::VecDeque;

use crate::command::{CommandId, Op, Reply};
use crate::holder::Holder;
use crate::restart::Introduction;
use crate::time::BootInstant;
use crate::token::Token;

/// A node that holds one key and acts only on request.
#[derive(Clone, Debug)]
pub(crate) struct FakeNode {
    pub(crate) introduction: Introduction,
    /// The connection, once it is open.
    pub(crate) epoch: Option<u32>,
    /// The connection that the client has asked to open.
    pub(crate) dialed: Option<u32>,
    /// Commands written and not executed.
    pub(crate) inbox: VecDeque<(CommandId, Op)>,
    pub(crate) key: Option<Token>,
    /// Instant at which the key expires.
    pub(crate) expires: BootInstant,
    /// The node has a plain owner-checked SET; one that is executed late may shorten a lease.
    pub(crate) has_plain: bool,
    /// Commands that a lost connection has left in the node's receive queue.
    pub(crate) limbo: Vec<Op>,
    /// Every command ever written, except introductions.
    pub(crate) written: Vec<Op>,
    /// When each command in `written` was written.
    pub(crate) written_at: Vec<BootInstant>,
    pub(crate) resets: u32,
    /// The node registers keys, and pushes their changes.
    pub(crate) pushes: bool,
    /// The next change of the key is pushed.
    pub(crate) registered: bool,
}

impl FakeNode {
    fn left_ms(&self, now: BootInstant) -> i64 {
        self.key.map_or(-2, |_| self.expires.since(now).as_millis() as i64)
    }

    pub(crate) fn execute(&mut self, op: Op, now: BootInstant) -> Reply {
        if now > self.expires {
            self.key = None;
        }
        let reply = self.reply(op, now);
        // The client's own changes are not pushed, and drop the registration.
        self.registered &= !op.has_changed_key(reply);
        reply
    }

    fn reply(&mut self, op: Op, now: BootInstant) -> Reply {
        match op {
            Op::Extend { token, ttl, plain, .. } if self.key == Some(token) => {
                let least = if plain && self.has_plain { BootInstant::ZERO } else { self.expires };
                self.expires = least.max(now.after(ttl));
                Reply::Integer(1)
            }
            Op::Extend { .. } => Reply::Integer(0),
            Op::Introduce => Reply::Introduction(self.introduction),
            Op::Release { token, .. } if self.key == Some(token) => {
                self.key = None;
                Reply::Integer(1)
            }
            Op::Release { .. } => Reply::Integer(0),
            Op::Look { .. } if self.pushes => {
                self.registered = true;
                Reply::Registered(self.left_ms(now))
            }
            Op::Look { .. } | Op::TimeLeft { .. } => Reply::Integer(self.left_ms(now)),
            Op::Read { token, .. } => {
                let has_key = i64::from(self.key == Some(token));
                self.registered = self.pushes;
                if self.pushes { Reply::Registered(has_key) } else { Reply::Integer(has_key) }
            }
            Op::Set { token, ttl, .. } => match self.key {
                Some(holder) => Reply::Held(Holder::of(holder.as_bytes())),
                None => {
                    (self.key, self.expires) = (Some(token), now.after(ttl));
                    Reply::Ok
                }
            },
        }
    }

    pub(super) fn disconnect(&mut self) {
        self.resets += u32::from(self.epoch.is_some());
        (self.epoch, self.dialed, self.registered) = (None, None, false);
        self.inbox.clear();
    }
}
